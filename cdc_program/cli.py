"""The command line's common parts: each program's cli.py is a Program and its commands.

    main = Program("cassandra-schematizer", tables=("schematizer", "log"), help="…")

    @main.program_command("serve", flags={"--port": "schematizer.port"})
    def serve(settings: Settings) -> None: …

Every command takes --config, --set and the log flags, before or behind its name, and so do `config check` and
`config show`, which each Program has.
"""

from __future__ import annotations

import inspect
import json
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import structlog

from cdc_program.describe import mask_url, setting, settings_of, value_text
from cdc_program.errors import CdcError, Code
from cdc_program.load import DEFAULT_ORIGIN, Loaded, load_settings
from cdc_program.logs import configure
from cdc_program.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import FrameType

UNEXPECTED_EXIT_STATUS = 70  # EX_SOFTWARE of sysexits.h
_CONFIG = "cdc_program.config"
_OVERRIDES = "cdc_program.overrides"
_FLAG_NAMES = "cdc_program.flag_names"
_LOG_FLAGS = {"--log-format": "log.format", "--log-level": "log.level"}


class Program(click.Group):
    """The console script of a program; `tables` are the tables of cdc.toml that it uses."""

    def __init__(self, name: str, *, tables: Sequence[str], help: str) -> None:  # noqa: A002 - click's own name
        super().__init__(name, help=inspect.cleandoc(help), params=_common_options())
        self.tables = tuple(tables)
        click.version_option(package_name="cassandra-cdc-materializer", prog_name=name)(self)
        self.add_command(_config_group(self.tables))

    def program_command(
        self,
        name: str,
        *,
        flags: Mapping[str, str] | None = None,
        params: Sequence[click.Parameter] = (),
        group: click.Group | None = None,
    ) -> Callable[[Callable[..., None]], click.Command]:
        """Makes a function of the settings (and of `params`) a command; `flags` maps a flag to its setting, `group` is
        one of this program's if the command is not its own.

        Settings are loaded and logging is set up before it; its errors become one message and an exit status.
        """

        def make(function: Callable[..., None]) -> click.Command:
            def callback(**arguments: Any) -> None:  # noqa: ANN401 - what the command's own parameters are
                with reported_errors():
                    loaded = load_from_context(click.get_current_context())
                    configure(loaded.settings.log)
                    function(loaded.settings, **arguments)

            command = click.Command(
                name,
                help=inspect.cleandoc(function.__doc__ or ""),
                callback=callback,
                params=[
                    *(setting_option(flag, key) for flag, key in (flags or {}).items()),
                    *params,
                    *_common_options(),
                ],
            )
            (group or self).add_command(command)
            return command

        return make


def setting_option(flag: str, name: str) -> click.Option:
    """A flag for the setting `table.key`; its help and its default are the setting's own."""
    known = setting(name)

    def keep(context: click.Context, _option: click.Parameter, value: str | None) -> None:
        if value is not None:
            context.meta.setdefault(_OVERRIDES, {})[name] = value
            context.meta.setdefault(_FLAG_NAMES, {})[name] = flag

    return click.Option(
        [flag],
        metavar=known.metavar,
        expose_value=False,
        callback=keep,
        help=f"{known.description} Over {name}.  [default: {known.default_text}]",
    )


def load_from_context(context: click.Context) -> Loaded:
    """The settings that the flags of this command line, the environment and the file give."""
    meta = context.meta
    return load_settings(meta.get(_CONFIG), meta.get(_OVERRIDES, {}), meta.get(_FLAG_NAMES, {}))


@contextmanager
def reported_errors() -> Iterator[None]:
    """Ends the process as programs do.

    CdcError: one message on stderr without a trace, the code's exit status. SIGINT or SIGTERM: KeyboardInterrupt is
    raised in the main thread, so that the program's `finally` and `with` run, and the exit status is 0. Anything else:
    logged with its trace, exit status 70.
    """
    previous = _on_terminate(_interrupt)
    try:
        yield
    except CdcError as error:
        print_error(error)
        raise SystemExit(error.code.exit_status) from None
    except KeyboardInterrupt:
        structlog.get_logger(__name__).info("stopped on request")
        raise SystemExit(0) from None
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except Exception as error:  # noqa: BLE001 - the last resort: logged with its trace
        structlog.get_logger(__name__).exception("unexpected error, please report it", error=type(error).__name__)
        raise SystemExit(UNEXPECTED_EXIT_STATUS) from None
    finally:
        _on_terminate(previous)


def print_error(error: CdcError) -> None:
    label = click.style(f"error {error.code.text}:", fg="red", bold=True)
    click.echo(f"{label} {error.problem}", err=True)
    click.echo(f"{click.style('fix:', bold=True)} {error.fix}", err=True)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    _on_terminate(signal.SIG_IGN)
    raise KeyboardInterrupt


def _on_terminate(handler: Any) -> Any:  # noqa: ANN401 - signal's own types
    """Sets what SIGTERM does, if this is the main thread, and returns what it did."""
    try:
        return signal.signal(signal.SIGTERM, handler)
    except ValueError:
        return None


def _common_options() -> list[click.Parameter]:
    return [
        click.Option(
            ["--config"],
            metavar="FILE",
            type=click.Path(path_type=Path),
            expose_value=False,
            callback=_keep_config,
            help="The settings file.  [default: $CDC_CONFIG, else ./cdc.toml if it is there]",
        ),
        click.Option(
            ["--set"],
            metavar="TABLE.KEY=VALUE",
            multiple=True,
            expose_value=False,
            callback=_keep_set,
            help="Any setting of docs/configuration.md, over file and environment; may be repeated.  [default: none]",
        ),
        *(setting_option(flag, name) for flag, name in _LOG_FLAGS.items()),
    ]


def _keep_config(context: click.Context, _option: click.Parameter, value: Path | None) -> None:
    if value is not None:
        context.meta[_CONFIG] = value


def _keep_set(context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> None:
    for assignment in values:
        name, equals, value = assignment.partition("=")
        if not equals or "." not in name:
            raise click.BadParameter(f"{name!r} is not TABLE.KEY=VALUE, as in kafka.topic_prefix=cdc")
        context.meta.setdefault(_OVERRIDES, {})[name.strip()] = value
        context.meta.setdefault(_FLAG_NAMES, {})[name.strip()] = f"--set {name.strip()}"


def _config_group(tables: Sequence[str]) -> click.Group:
    group = click.Group("config", help="The settings: are they valid, and where does each come from?")
    group.add_command(
        click.Command(
            "check",
            callback=_check,
            params=_common_options(),
            help="Checks file, environment and flags; connects to nothing.",
        )
    )
    group.add_command(
        click.Command(
            "show",
            callback=lambda *, everything, as_json: _show(tables, everything=everything, as_json=as_json),
            params=[
                click.Option(
                    ["--json", "as_json"], is_flag=True, help="One JSON object: table.key to value and origin."
                ),
                click.Option(["--all", "everything"], is_flag=True, help="The tables of the other programs too."),
                *_common_options(),
            ],
            help="Prints each value and where it comes from; secrets are masked.",
        )
    )
    return group


def _check() -> None:
    with reported_errors():
        loaded = load_from_context(click.get_current_context())
        given = sum(origin != DEFAULT_ORIGIN for origin in loaded.origins.values())
        click.echo(f"ok: {loaded.file or 'no settings file'}, {given} values given, the others are defaults")


def _show(tables: Sequence[str], *, everything: bool, as_json: bool) -> None:
    with reported_errors():
        loaded = load_from_context(click.get_current_context())
        shown = (
            list(Settings.model_fields) if everything else [table for table in Settings.model_fields if table in tables]
        )
        if as_json:
            click.echo(json.dumps(_values_as_json(loaded, shown), indent=2, ensure_ascii=False))
        else:
            click.echo("\n\n".join(_table_text(loaded, table) for table in shown))


def _values_as_json(loaded: Loaded, tables: Sequence[str]) -> dict[str, dict[str, object]]:
    """`table.key` → {value, origin}; a secret's value is `***`, or empty if it is."""
    result: dict[str, dict[str, object]] = {}
    for table in tables:
        values = getattr(loaded.settings, table).model_dump(mode="json")
        for known in settings_of(table):
            value = values[known.key]
            if known.secret and value:
                value = "***"
            elif isinstance(value, str):
                value = mask_url(value)
            result[known.name] = {"value": value, "origin": loaded.origins[known.name]}
    return result


def _table_text(loaded: Loaded, table: str) -> str:
    values = getattr(loaded.settings, table)
    rows = [(f"{known.key} = {value_text(getattr(values, known.key))}", known.name) for known in settings_of(table)]
    width = max(len(text) for text, _ in rows)
    return "\n".join([f"[{table}]", *(f"{text:<{width}}  # {loaded.origins[name]}" for text, name in rows)])


__all__ = ["CdcError", "Code", "Program", "load_from_context", "print_error", "reported_errors", "setting_option"]
