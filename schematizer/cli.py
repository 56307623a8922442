"""The console script cassandra-schematizer."""

from __future__ import annotations

from pathlib import Path

import click

from cdc_common.program.cli import Program
from schematizer.settings import Settings
from schematizer.topics_cli import add_topic_commands

# The imports of the commands stand within them: --help and config need neither FastAPI nor SQLAlchemy.
# ruff: noqa: PLC0415

main = Program(
    "cassandra-schematizer",
    Settings,
    tables=("cassandra", "kafka", "registry", "schematizer", "log"),
    secrets_of=("kafka", "schematizer"),
    help="The schema registry. It serves the API of Confluent's Schema Registry, and a catalogue of all schemas.",
)
docs = click.Group("docs", help="Checks and applies documentation files, TOML or YAML.")
models = click.Group("models", help="Checks and registers SQLAlchemy models.")
main.add_command(docs)
main.add_command(models)
add_topic_commands(main)

_DATABASE = {"--database-url": "schematizer.database_url"}
_SERVICE = {"--url": "registry.url"}
_SERVICE_SECRETS = ("registry",)
_PATHS = click.Argument(["paths"], nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
_PLACE = click.Argument(["place"], metavar="MODULE:NAME")


def _file(*, exists: bool) -> click.Argument:
    return click.Argument(["file"], type=click.Path(exists=exists, dir_okay=False, path_type=Path))


@main.program_command(
    "serve",
    is_service=True,
    flags={
        "--host": "schematizer.host",
        "--port": "schematizer.port",
        **_DATABASE,
        "--operations-address": "schematizer.operations_address",
        "--operations-port": "schematizer.operations_port",
    },
)
def serve(settings: Settings) -> None:
    """Serves HTTP requests until it is stopped.

    Example: cassandra-schematizer serve --config /etc/cdc.toml
    """
    from schematizer.server import serve_registry

    serve_registry(settings)


@main.program_command("backup", flags=_DATABASE, params=[_file(exists=False)])
def backup(settings: Settings, file: Path) -> None:
    """Writes the whole database to FILE. The service may keep running.

    Example: cassandra-schematizer backup registry-backup.gz
    """
    from schematizer.model.backup import write_backup
    from schematizer.model.database import opened

    with opened(settings.schematizer.database_url, must_exist=True) as database:
        click.echo(f"{write_backup(database, file)} rows in {file}")


@main.program_command("restore", flags=_DATABASE, params=[_file(exists=True)])
def restore(settings: Settings, file: Path) -> None:
    """Fills an empty database from FILE, which `backup` wrote. The two databases may be of different kinds.

    Example: cassandra-schematizer restore registry-backup.gz --database-url sqlite:////var/lib/new/registry.db
    """
    from schematizer.model.backup import restore_backup
    from schematizer.model.database import opened

    with opened(settings.schematizer.database_url) as database:
        click.echo(f"{restore_backup(database, file)} rows from {file}")


@main.program_command(
    "import",
    flags=_DATABASE,
    secrets_of=_SERVICE_SECRETS,
    params=[
        click.Argument(["url"]),
        click.Option(["--dry-run"], is_flag=True, help="Only say what would be copied."),
        click.Option(["--skip-unsupported"], is_flag=True, help="Copy the rest if something cannot be kept."),
    ],
)
def import_registry(settings: Settings, url: str, *, dry_run: bool, skip_unsupported: bool) -> None:
    """Copies another registry with Confluent's API into the database.

    Ids, versions, deletions and settings stay as they are at URL. The service may keep running on the database.
    Repeating it copies only the rest.

    Example: cassandra-schematizer import https://old-registry.example:8081 --dry-run
    """
    from schematizer.commands import imports

    imports.import_registry(settings, url, is_dry_run=dry_run, skips_unsupported=skip_unsupported)


@main.program_command(
    "check",
    group=docs,
    flags=_SERVICE,
    secrets_of=_SERVICE_SECRETS,
    params=[
        _PATHS,
        click.Option(["--offline"], is_flag=True, help="Do not compare the files with the schemas of the registry."),
    ],
)
def docs_check(settings: Settings, paths: tuple[Path, ...], *, offline: bool) -> None:
    """Checks documentation files, for continuous integration.

    Exit status: 1 if a file lacks an owner or a doc, or does not fit the newest schema of its source.

    Example: cassandra-schematizer docs check docs/
    """
    from schematizer.commands import documentation

    documentation.check(settings, paths, offline=offline)


@main.program_command("apply", group=docs, flags=_SERVICE, secrets_of=_SERVICE_SECRETS, params=[_PATHS])
def docs_apply(settings: Settings, paths: tuple[Path, ...]) -> None:
    """Copies documentation files into the catalogue.

    It copies docs, owners, and flags for personal data.

    Example: cassandra-schematizer docs apply docs/
    """
    from schematizer.commands import documentation

    documentation.apply(settings, paths)


@main.program_command(
    "comments",
    group=docs,
    flags=_SERVICE,
    secrets_of=(*_SERVICE_SECRETS, "cassandra"),
    params=[click.Argument(["keyspaces"], nargs=-1, required=True)],
)
def docs_comments(settings: Settings, keyspaces: tuple[str, ...]) -> None:
    """Copies the comments of Cassandra's tables in KEYSPACES.

    They become the docs of the tables' sources.

    Example: cassandra-schematizer docs comments shop
    """
    from schematizer.commands import documentation

    documentation.comments(settings, keyspaces)


@main.program_command("check", group=models, params=[_PLACE])
def models_check(settings: Settings, place: str) -> None:  # noqa: ARG001 - every command has them
    """Checks the tables of MODULE:NAME, for continuous integration.

    NAME is a declarative base or a MetaData.

    Exit status: 1 if a table has no comment or no owner, or a column has no comment.

    Example: cassandra-schematizer models check shop.models:Base
    """
    from schematizer.commands import models as commands

    commands.check(place)


@main.program_command(
    "register",
    group=models,
    flags=_SERVICE,
    secrets_of=_SERVICE_SECRETS,
    params=[
        _PLACE,
        click.Option(["--namespace"], required=True, help="Namespace of the tables, such as shop."),
        click.Option(
            ["--dialect"], type=click.Choice(["mysql", "postgresql"]), required=True, help="Database of the tables."
        ),
    ],
)
def models_register(settings: Settings, place: str, namespace: str, dialect: str) -> None:
    """Registers every table of MODULE:NAME.

    NAME is a declarative base or a MetaData. Docs, owners and flags are registered with the tables.

    Example: cassandra-schematizer models register shop.models:Base --namespace shop --dialect postgresql
    """
    from schematizer.commands import models as commands

    commands.register(settings, place, namespace, dialect)


@main.program_command(
    "unused",
    flags=_SERVICE,
    secrets_of=_SERVICE_SECRETS,
    params=[
        click.Option(
            ["--days"], type=click.IntRange(1), default=90, show_default=True, help="Time without use (days)."
        ),
        click.Option(["--disable"], is_flag=True, help="Disable the topics and schemas that are listed."),
    ],
)
def unused(settings: Settings, days: int, *, disable: bool) -> None:
    """Lists topics and schemas that were not used for a time.

    Example: cassandra-schematizer unused --days 180
    """
    from schematizer.commands.unused import unused as command

    command(settings, days, disable=disable)


_keys = click.Group("keys", help="Creates, lists and revokes API keys, in the registry's database.")
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
            help="Time until the key expires (days).  [default: never]",
        ),
    ],
)
def create_key(settings: Settings, name: str, grants: tuple[str, ...], expires_days: float | None) -> None:
    """Creates a key for NAME, the user of the key, and prints it. The secret is shown only once: the database has its
    hash.

    Example: cassandra-schematizer keys create ops --grant 'admin:*'
    """
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
    """Revokes the key KEY_ID. A running registry accepts it for at most 5 s more."""
    from schematizer.security import commands

    commands.revoke_key(settings.schematizer, key_id)


@main.program_command(
    "audit",
    flags=_DATABASE,
    params=[
        click.Option(["--actor"], help="Only records of this actor.  [default: all]"),
        click.Option(
            ["--since"], type=int, help="Only records after this id, oldest first.  [default: the newest records]"
        ),
        click.Option(
            ["--limit"], type=click.IntRange(min=1), default=100, show_default=True, help="Maximum number of records."
        ),
    ],
)
def audit(settings: Settings, actor: str | None, since: int | None, limit: int) -> None:
    """Prints the audit log.

    It has one line of JSON for each write, refusal and login.

    Example: cassandra-schematizer audit --actor ops
    """
    from schematizer.security import commands

    commands.print_audit(settings.schematizer, actor, since, limit)
