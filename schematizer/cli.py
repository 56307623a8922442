"""The console script cassandra-schematizer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cdc_program.cli import Program

if TYPE_CHECKING:
    from cdc_program.settings import Settings

# The imports of the commands stand within them: --help and config need neither FastAPI nor SQLAlchemy.
# ruff: noqa: PLC0415

main = Program(
    "cassandra-schematizer",
    tables=("cassandra", "kafka", "registry", "schematizer", "log"),
    help="The schema registry: a service with the API of Confluent's Schema Registry, and a catalogue of all schemas.",
)
docs = click.Group("docs", help="Documentation files: one for each table, TOML or YAML, kept in git.")
models = click.Group("models", help="SQLAlchemy models.")
main.add_command(docs)
main.add_command(models)

_DATABASE = {"--database-url": "schematizer.database_url"}
_SERVICE = {"--url": "registry.url"}
_PATHS = click.Argument(["paths"], nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
_PLACE = click.Argument(["place"], metavar="MODULE:NAME")


def _file(*, exists: bool) -> click.Argument:
    return click.Argument(["file"], type=click.Path(exists=exists, dir_okay=False, path_type=Path))


@main.program_command(
    "serve",
    flags={
        "--host": "schematizer.host",
        "--port": "schematizer.port",
        **_DATABASE,
        "--operations-address": "schematizer.operations_address",
        "--operations-port": "schematizer.operations_port",
    },
)
def serve(settings: Settings) -> None:
    """Serves HTTP requests until it is stopped."""
    from schematizer.server import serve_registry

    serve_registry(settings)


@main.program_command("backup", flags=_DATABASE, params=[_file(exists=False)])
def backup(settings: Settings, file: Path) -> None:
    """Writes all of the database to FILE, while the service runs."""
    from schematizer.model.backup import write_backup
    from schematizer.model.database import opened

    with opened(settings.schematizer.database_url) as database:
        click.echo(f"{write_backup(database, file)} rows in {file}")


@main.program_command("restore", flags=_DATABASE, params=[_file(exists=True)])
def restore(settings: Settings, file: Path) -> None:
    """Fills an empty database from FILE, which `backup` wrote; of whatever kind either database is."""
    from schematizer.model.backup import restore_backup
    from schematizer.model.database import opened

    with opened(settings.schematizer.database_url) as database:
        click.echo(f"{restore_backup(database, file)} rows from {file}")


@main.program_command(
    "check",
    group=docs,
    flags=_SERVICE,
    params=[_PATHS, click.Option(["--offline"], is_flag=True, help="Do not compare with the schemas of the registry.")],
)
def docs_check(settings: Settings, paths: tuple[Path, ...], *, offline: bool) -> None:
    """Checks documentation files, for continuous integration: exit status 1 if one lacks an owner or a doc, or does not
    fit the newest schema of its source.
    """
    from schematizer.commands import documentation

    documentation.check(settings, paths, offline=offline)


@main.program_command("apply", group=docs, flags=_SERVICE, params=[_PATHS])
def docs_apply(settings: Settings, paths: tuple[Path, ...]) -> None:
    """Makes the catalogue say what documentation files say: docs, owners and flags for personal data."""
    from schematizer.commands import documentation

    documentation.apply(settings, paths)


@main.program_command(
    "comments", group=docs, flags=_SERVICE, params=[click.Argument(["keyspaces"], nargs=-1, required=True)]
)
def docs_comments(settings: Settings, keyspaces: tuple[str, ...]) -> None:
    """Makes the comments of Cassandra's tables in KEYSPACES the docs of their sources."""
    from schematizer.commands import documentation

    documentation.comments(settings, keyspaces)


@main.program_command("check", group=models, params=[_PLACE])
def models_check(settings: Settings, place: str) -> None:  # noqa: ARG001 - every command has them
    """A gate for continuous integration: exit status 1 if a table of MODULE:NAME, a declarative base or a MetaData, has
    no comment or owner, or a column no comment.
    """
    from schematizer.commands import models as commands

    commands.check(place)


@main.program_command(
    "register",
    group=models,
    flags=_SERVICE,
    params=[
        _PLACE,
        click.Option(["--namespace"], required=True, help="The namespace of the tables, such as shop."),
        click.Option(["--dialect"], type=click.Choice(["mysql", "postgresql"]), required=True, help="Their database."),
    ],
)
def models_register(settings: Settings, place: str, namespace: str, dialect: str) -> None:
    """Registers every table of MODULE:NAME, with its docs, owners and flags."""
    from schematizer.commands import models as commands

    commands.register(settings, place, namespace, dialect)


@main.program_command(
    "unused",
    flags=_SERVICE,
    params=[
        click.Option(["--days"], type=click.IntRange(1), default=90, show_default=True, help="Not used for so long."),
        click.Option(["--disable"], is_flag=True, help="Disable them."),
    ],
)
def unused(settings: Settings, days: int, *, disable: bool) -> None:
    """Lists topics and schemas that were not used for a long time."""
    from schematizer.commands.unused import unused as command

    command(settings, days, disable=disable)


_keys = click.Group("keys", help="Make, list and revoke API keys, in the registry's database.")
main.add_command(_keys)


@main.program_command(
    "create",
    group=_keys,
    flags=_DATABASE,
    params=[
        click.Argument(["name"]),
        click.Option(
            ["--grant", "grants"],
            metavar="ROLE:NAMESPACE",
            multiple=True,
            required=True,
            help="A role (reader, writer, admin) in a namespace (cdc.shop, cdc.*, *); may be repeated.",
        ),
        click.Option(
            ["--expires-days"],
            type=click.FloatRange(min=0, min_open=True),
            help="Days until it expires.  [default: never]",
        ),
    ],
)
def create_key(settings: Settings, name: str, grants: tuple[str, ...], expires_days: float | None) -> None:
    """Makes a key for NAME, who uses it, and prints it. The secret is shown only now: the database has its hash."""
    from schematizer.security import commands

    commands.create_key(settings.schematizer, name, grants, expires_days)


@main.program_command("list", group=_keys, flags=_DATABASE)
def list_keys(settings: Settings) -> None:
    """Prints each key as one line of JSON, without its secret."""
    from schematizer.security import commands

    commands.list_keys(settings.schematizer)


@main.program_command(
    "revoke",
    group=_keys,
    flags=_DATABASE,
    params=[click.Argument(["key_id"])],
)
def revoke_key(settings: Settings, key_id: str) -> None:
    """Revokes the key KEY_ID. A running registry accepts it for 5 s more at most."""
    from schematizer.security import commands

    commands.revoke_key(settings.schematizer, key_id)


@main.program_command(
    "audit",
    flags=_DATABASE,
    params=[
        click.Option(["--actor"], help="Only what this actor did.  [default: everyone]"),
        click.Option(["--since"], type=int, help="Records after this id, the oldest first.  [default: the newest]"),
        click.Option(["--limit"], type=click.IntRange(min=1), default=100, show_default=True, help="How many."),
    ],
)
def audit(settings: Settings, actor: str | None, since: int | None, limit: int) -> None:
    """Prints the audit log: one line of JSON for each write, refusal and login."""
    from schematizer.security import commands

    commands.print_audit(settings.schematizer, actor, since, limit)
