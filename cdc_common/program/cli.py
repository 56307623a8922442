"""The command lines of all programs: each program's cli.py is a Program and its commands.

    main = Program("cassandra-schematizer", Settings, tables=("schematizer", "log"), help="…")

    @main.program_command("serve", flags={"--port": "schematizer.port"})
    def serve(settings: Settings) -> None: …

Every command takes --config, --set and the log flags, before or after its name. Each Program also has the commands
`config check`, `config show` and `explain`.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import select
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import structlog

from cdc_common.errors.codes import CdcError, Code
from cdc_common.program.logs import configure_logging
from cdc_common.settings.describe import mask_password_options, mask_url, setting, settings_of, value_text
from cdc_common.settings.load import DEFAULT_ORIGIN, Loaded, load_settings
from cdc_common.settings.shared import Settings
from cdc_common.settings.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import FrameType

UNEXPECTED_EXIT_STATUS = 70  # EX_SOFTWARE of sysexits.h
_STDOUT = 1
SIGNAL_EXIT_STATUS = 128  # and the signal's number, as a shell counts
_CONFIG = "cdc_common.config"
_OVERRIDES = "cdc_common.overrides"
_FLAG_NAMES = "cdc_common.flag_names"
_LOG_FLAGS = {"--log-format": "log.format", "--log-level": "log.level"}


class Program(click.Group):
    """The console script of a program. `settings`: the class of the settings that its commands get. `tables` are the
    tables of cdc.toml that `config show` prints. `secrets_of`: those whose secrets every command needs, by default all
    of them.
    """

    def __init__(
        self,
        name: str,
        settings: type[Settings] = Settings,
        *,
        tables: Sequence[str],
        secrets_of: Sequence[str] | None = None,
        help: str,  # noqa: A002 - click's own name
    ) -> None:
        super().__init__(name, help=inspect.cleandoc(help), params=_common_options())
        self.settings = settings
        self.tables = tuple(tables)
        self.secrets_of = self.tables if secrets_of is None else tuple(secrets_of)
        click.version_option(package_name="cassandra-cdc-materializer", prog_name=name)(self)
        self.add_command(_config_group(self.tables, self.secrets_of))
        self.add_command(_explain_command(name))

    def program_command(  # noqa: PLR0913 - what differs by keyword
        self,
        name: str,
        *,
        flags: Mapping[str, str] | None = None,
        params: Sequence[click.Parameter] = (),
        group: click.Group | None = None,
        is_service: bool = False,
        secrets_of: Sequence[str] | None = None,
    ) -> Callable[[Callable[..., None]], click.Command]:
        """Makes a command of a function of the settings and of `params`. `flags` maps a flag to its setting. `group` is
        the group of the command, by default the program. A service runs until it is stopped. `secrets_of`: the tables
        whose secrets it needs, if they are not those of the program.

        The command loads the settings, configures logging, and reports an error as one message and an exit status.
        """

        def make_command(function: Callable[..., None]) -> click.Command:
            def callback(**arguments: Any) -> None:  # noqa: ANN401 - what the command's own parameters are
                with reported_errors(is_service=is_service):
                    needed = self.secrets_of if secrets_of is None else secrets_of
                    loaded = load_from_context(click.get_current_context(), needed)
                    configure_logging(loaded.settings.log)
                    function(loaded.of(self.settings), **arguments)

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

        return make_command


def check_table(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """The callback of an argument KEYSPACE.TABLE. Raises click.BadParameter before anything is connected to."""
    if value is not None and value.count(".") != 1:
        raise click.BadParameter(f"{value!r} is not KEYSPACE.TABLE, as in shop.orders")
    return value


def setting_option(flag: str, name: str) -> click.Option:
    """A flag for the setting `table.key`, with the help and the default of the setting."""
    known = setting(name)

    def store_override(context: click.Context, _option: click.Parameter, value: str | None) -> None:
        if value is not None:
            context.meta.setdefault(_OVERRIDES, {})[name] = value
            context.meta.setdefault(_FLAG_NAMES, {})[name] = flag

    return click.Option(
        [flag],
        metavar=known.metavar,
        expose_value=False,
        callback=store_override,
        help=f"{known.description} Overrides {name}.  [default: {known.default_text}]",
    )


def load_from_context(context: click.Context, secrets_of: Sequence[str]) -> Loaded:
    """The settings from this command line's flags, the environment and the file, with the secrets of these tables."""
    meta = context.meta
    return load_settings(meta.get(_CONFIG), meta.get(_OVERRIDES, {}), meta.get(_FLAG_NAMES, {}), secrets_of)


@contextmanager
def reported_errors(*, is_service: bool = False) -> Iterator[None]:
    """Exits the process with one message or log event, and a status.

    CdcError: one message on stderr without a stack trace, and the code's exit status. SIGINT or SIGTERM: raises
    KeyboardInterrupt in the main thread, so that the program's `finally` and `with` run. Then a service exits with 0,
    and any other command with 130 or 143, as it has not done all that it was to do. Whoever reads the output of a
    command may stop (`| head`): it ends with 141, without a word. Any other exception: logged with its stack trace,
    exit status 70.
    """
    previous = _on_terminate(_interrupt)
    try:
        yield
    except CdcError as error:
        print_error(error)
        raise SystemExit(error.code.exit_status) from None
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last resort: logged with its trace
        raise SystemExit(_status_of(error, is_service=is_service)) from None
    finally:
        _on_terminate(previous)


def _status_of(error: BaseException, *, is_service: bool) -> int:
    """Log how the program ends, and return its exit status."""
    log = structlog.get_logger(__name__)
    # A signal may come inside of a C function that does not pass its exception on: Python then raises SystemError.
    interrupt = error.__cause__ if isinstance(error, SystemError) else error
    if isinstance(interrupt, KeyboardInterrupt):
        log.info("stopped on request")
        # All is closed. At its end Python would look through all objects for cycles: 0.6 CPU seconds for the registry,
        # on a busy machine more than the 10 s after which `docker stop` kills. Of frozen objects it takes 0.1.
        gc.freeze()
        number = interrupt.args[0] if interrupt.args else signal.SIGINT
        return 0 if is_service else SIGNAL_EXIT_STATUS + int(number)
    if isinstance(error, BrokenPipeError) and not is_service and _is_output_closed():
        return SIGNAL_EXIT_STATUS + signal.SIGPIPE
    log.error("unexpected error, please report it", error=type(error).__name__, exc_info=error)
    return UNEXPECTED_EXIT_STATUS


def _is_output_closed() -> bool:
    """Whether no program reads the standard output any more. What Python writes at its end then goes nowhere."""
    poll = select.poll()
    poll.register(_STDOUT, 0)  # errors alone
    if not poll.poll(0):
        return False
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _STDOUT)
    os.close(nowhere)
    return True


def print_error(error: CdcError) -> None:
    label = click.style(f"error {error.code.text}:", fg="red", bold=True)
    click.echo(f"{label} {error.problem}", err=True)
    click.echo(f"{click.style('fix:', bold=True)} {error.fix}", err=True)


class _TerminatedError(KeyboardInterrupt):
    """Stands for SIGTERM. If a KeyboardInterrupt itself passes through `exec` of a text, as dataclasses use it, Python
    ends the process as SIGINT does, even if it is caught later (run_eval_code_obj in its pythonrun.c).
    """


def _interrupt(number: int, _frame: FrameType | None) -> None:
    _on_terminate(signal.SIG_IGN)
    raise _TerminatedError(number)


def _on_terminate(handler: Any) -> Any:  # noqa: ANN401 - signal's own types
    """Sets the handler of SIGTERM, if this is the main thread, and returns the previous one."""
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
            callback=_store_config,
            help="The settings file.  [default: $CDC_CONFIG, or the first of ./cdc.toml and /etc/cdc.toml that exists]",
        ),
        click.Option(
            ["--set"],
            metavar="TABLE.KEY=VALUE",
            multiple=True,
            expose_value=False,
            callback=_store_overrides,
            help="Override any setting of docs/reference/configuration.md; may be repeated.  [default: none]",
        ),
        *(setting_option(flag, name) for flag, name in _LOG_FLAGS.items()),
    ]


def _store_config(context: click.Context, _option: click.Parameter, value: Path | None) -> None:
    if value is not None:
        context.meta[_CONFIG] = value


def _store_overrides(context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> None:
    for assignment in values:
        name, equals, value = assignment.partition("=")
        if not equals or "." not in name:
            raise click.BadParameter(f"{name!r} is not TABLE.KEY=VALUE, as in kafka.topic_prefix=cdc")
        context.meta.setdefault(_OVERRIDES, {})[name.strip()] = value
        context.meta.setdefault(_FLAG_NAMES, {})[name.strip()] = f"--set {name.strip()}"


def _config_group(tables: Sequence[str], secrets_of: Sequence[str]) -> click.Group:
    group = click.Group("config", help="Checks and shows the settings.")
    group.add_command(
        click.Command(
            "check",
            callback=lambda: _check(secrets_of),
            params=_common_options(),
            help="Checks the settings file, the environment and the flags. Connects to no server.",
        )
    )
    group.add_command(
        click.Command(
            "show",
            callback=lambda *, everything, as_json: _show(tables, secrets_of, everything=everything, as_json=as_json),
            params=[
                click.Option(
                    ["--json", "as_json"],
                    is_flag=True,
                    help="Print one JSON object: each table.key with value and origin.",
                ),
                click.Option(["--all", "everything"], is_flag=True, help="Also show the tables of the other programs."),
                *_common_options(),
            ],
            help="Prints each value and its origin. Secrets are masked.",
        )
    )
    return group


def _explain_command(program: str) -> click.Command:
    return click.Command(
        "explain",
        callback=_explain,
        params=[click.Argument(["codes"], metavar="[CODE]...", nargs=-1, callback=_parse_codes)],
        help="Prints meaning, cause and fix of error codes. Without a code: lists the codes with their titles.\n\n"
        f"Example: {program} explain CDC-012",
    )


def _parse_codes(_context: click.Context, _parameter: click.Parameter, names: tuple[str, ...]) -> list[Code]:
    """CDC-012, cdc-012 or 12."""
    known = {code.text: code for code in Code}
    codes = []
    for name in names:
        number = name.upper().removeprefix("CDC-")
        code = known.get(f"CDC-{number:0>3}")
        if code is None:
            raise click.BadParameter(f"{name!r} is not a code such as CDC-012")
        codes.append(code)
    return codes


def _explain(codes: list[Code]) -> None:
    from cdc_common.errors.reference import explain, titles  # noqa: PLC0415 - no other command needs the texts

    click.echo("\n\n".join(map(explain, codes)) if codes else titles())


def _check(secrets_of: Sequence[str]) -> None:
    with reported_errors():
        loaded = load_from_context(click.get_current_context(), secrets_of)
        given = sum(origin != DEFAULT_ORIGIN for origin in loaded.origins.values())
        click.echo(f"ok: {loaded.file or 'no settings file'}, {given} values set, the others are defaults")


def _show(tables: Sequence[str], secrets_of: Sequence[str], *, everything: bool, as_json: bool) -> None:
    with reported_errors():
        loaded = load_from_context(click.get_current_context(), secrets_of)
        shown = [table for table in TABLES if everything or table in tables]
        if as_json:
            click.echo(json.dumps(_values_as_json(loaded, shown), indent=2, ensure_ascii=False))
        else:
            click.echo("\n\n".join(_table_text(loaded, table) for table in shown))


def _values_as_json(loaded: Loaded, tables: Sequence[str]) -> dict[str, dict[str, object]]:
    """Return `table.key` → {value, origin}. A secret's value is `***`, or empty if the secret is."""
    result: dict[str, dict[str, object]] = {}
    for table in tables:
        values = getattr(loaded.settings, table).model_dump(mode="json")
        for known in settings_of(table):
            value = values[known.key]
            if known.secret and value:
                value = "***"
            elif isinstance(value, str):
                value = mask_url(value)
            elif isinstance(value, list):
                value = mask_password_options(value)
            result[known.name] = {"value": value, "origin": loaded.origins[known.name]}
    return result


def _table_text(loaded: Loaded, table: str) -> str:
    values = getattr(loaded.settings, table)
    rows = [(f"{known.key} = {value_text(getattr(values, known.key))}", known.name) for known in settings_of(table)]
    width = max(len(text) for text, _ in rows)
    return "\n".join([f"[{table}]", *(f"{text:<{width}}  # {loaded.origins[name]}" for text, name in rows)])


__all__ = ["CdcError", "Code", "Program", "load_from_context", "print_error", "reported_errors", "setting_option"]
