"""The commands `cassandra-schematizer topics …`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cdc_common.program.cli import Program
    from schematizer.settings import Settings

# The imports of the commands stand within them: --help needs no client of Kafka.
# ruff: noqa: PLC0415, ARG001 - every command has the settings

topics = click.Group("topics", help="Checks the files of topics in git, and applies them.")

_FOLDER = click.Argument(["folder"], type=click.Path(file_okay=False, path_type=Path))
_REPOSITORY = click.Option(
    ["--repository"],
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    show_default="the current folder",
    help="Folder with catalogue.toml.",
)
_ENVIRONMENT = click.Argument(["environment"], metavar="ENVIRONMENT")
_ALLOW = click.Option(
    ["--allow"],
    multiple=True,
    metavar="NAME=TOPIC",
    help="Do a change that loses something, as in shorter-retention=shop.orders. The plan names it; may be repeated.",
)
_SERVERS = ("kafka", "registry")


def add_topic_commands(program: Program) -> None:
    """Add the group `topics` to the program."""
    program.add_command(topics)
    _add_file_commands(program)
    _add_server_commands(program)


def _add_file_commands(program: Program) -> None:
    @program.program_command("init", group=topics, secrets_of=(), params=[_FOLDER])
    def init(settings: Settings, folder: Path) -> None:
        """Writes a first catalogue.toml, with four typologies.

        Example: cassandra-schematizer topics init topics
        """
        from schematizer.commands import topics as commands

        commands.init(folder)

    @program.program_command(
        "new",
        group=topics,
        secrets_of=(),
        params=[
            click.Argument(["place"], metavar="COMPANY/DOMAIN/TOPIC"),
            click.Option(["--typology"], required=True, help="Kind of topic: a name of `typologies`."),
            click.Option(["--owner"], required=True, help="The team that owns it: a name of `owners`."),
            _REPOSITORY,
        ],
    )
    def new(settings: Settings, place: str, typology: str, owner: str, repository: Path) -> None:
        """Writes the files of a topic for each environment.

        Example: cassandra-schematizer topics new acme/shop/orders --typology event --owner team-orders
        """
        from schematizer.commands import topics as commands

        commands.new(repository, place, typology, owner)

    @program.program_command("json-schemas", group=topics, secrets_of=(), params=[_FOLDER])
    def json_schemas(settings: Settings, folder: Path) -> None:
        """Writes the JSON Schemas of the files into FOLDER, for editors.

        Example: cassandra-schematizer topics json-schemas .schemas
        """
        from schematizer.commands import topics as commands

        commands.json_schemas(folder)

    @program.program_command(
        "check",
        group=topics,
        secrets_of=(),
        params=[
            _REPOSITORY,
            click.Option(["--sarif"], type=click.Path(path_type=Path), help="Also write a SARIF file, for code hosts."),
            click.Option(["--junit"], type=click.Path(path_type=Path), help="Also write a JUnit file, for CI."),
        ],
    )
    def check(settings: Settings, repository: Path, sarif: Path | None, junit: Path | None) -> None:
        """Checks all topic files, for continuous integration. It asks no server.

        Exit status: 1 if a rule is broken and not waived.

        Example: cassandra-schematizer topics check --sarif topics.sarif
        """
        from schematizer.commands import topics as commands

        commands.check(repository, sarif, junit)


def _form(*forms: str) -> click.Option:
    return click.Option(["--format", "form"], type=click.Choice(forms), default=forms[0], help="Form of the output.")


def _add_server_commands(program: Program) -> None:
    @program.program_command(
        "plan",
        group=topics,
        secrets_of=_SERVERS,
        params=[_ENVIRONMENT, _REPOSITORY, _ALLOW, _form("text", "markdown", "json")],
    )
    def plan(settings: Settings, environment: str, repository: Path, allow: tuple[str, ...], form: str) -> None:
        """Shows what `apply` would change in Kafka and in the registry.

        Example: cassandra-schematizer topics plan staging
        """
        from schematizer.commands import topic_plans as commands

        commands.plan(settings, repository, environment, allow, form)

    @program.program_command(
        "apply",
        group=topics,
        secrets_of=_SERVERS,
        params=[
            _ENVIRONMENT,
            _REPOSITORY,
            _ALLOW,
            click.Option(["--dry-run"], is_flag=True, help="Only print the plan, with the exit status of apply."),
            click.Option(
                ["--wait"], type=click.FloatRange(0), default=0, help="Time to wait for another apply to end (s)."
            ),
        ],
    )
    def apply(  # noqa: PLR0913, PLR0917 - the command's options
        settings: Settings,
        environment: str,
        repository: Path,
        allow: tuple[str, ...],
        dry_run: bool,  # noqa: FBT001 - click passes it by name
        wait: float,
    ) -> None:
        """Makes Kafka and the registry as the files say.

        Exit status: 1 if a rule is broken, or a change would lose something and is not allowed: nothing is done then.
        3 if a server refuses, or another apply runs. Repeating it continues with what is left.

        Example: cassandra-schematizer topics apply staging
        """
        from schematizer.commands import topic_plans as commands

        commands.apply(settings, repository, environment, allow, wait, dry_run=dry_run)

    @program.program_command(
        "drift", group=topics, secrets_of=_SERVERS, params=[_ENVIRONMENT, _REPOSITORY, _form("text", "json")]
    )
    def drift(settings: Settings, environment: str, repository: Path, form: str) -> None:
        """Shows what someone changed by hand since the last `apply`.

        Exit status: 1 if there is any.

        Example: cassandra-schematizer topics drift prod
        """
        from schematizer.commands import topic_plans as commands

        if commands.drift(settings, repository, environment, form):
            click.get_current_context().exit(1)
