"""Brings the tables of a database to this program's version: Alembic's migrations in schematizer/model/migrations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from sqlalchemy import Connection

_LOCK = 0x5C4E3A  # of PostgreSQL: any number that no other program takes in this database


def migrate(connection: Connection) -> None:
    """Migrate the tables within the caller's transaction. Tables of a registry from before the first migration are
    kept.

    CdcError REGISTRY_DATABASE if the tables are newer than this program.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    current = revision(connection)
    scripts = ScriptDirectory.from_config(config)
    if current is not None and current not in {script.revision for script in scripts.walk_revisions()}:
        raise CdcError(
            Code.REGISTRY_DATABASE,
            f"The registry's database has tables of version {current}, which is newer than this program.",
            "Run the newer program, or restore a backup that this one made.",
        )
    if current != scripts.get_current_head():
        command.upgrade(config, "head")
        if current is not None:
            structlog.get_logger(__name__).info("tables migrated", before=current, after=scripts.get_current_head())


def revision(connection: Connection) -> str | None:
    """The version of the database's tables; None before the first migration."""
    return MigrationContext.configure(connection).get_current_revision()
