"""Queries of both interfaces on the registry's tables, within the caller's transaction."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, case, false, func, insert, select, update

from schematizer.model.registry_tables import GLOBAL, schemas, subject_settings, versions
from schematizer.model.source_tables import TopicRow, TopicSchemaRow

if TYPE_CHECKING:
    from sqlalchemy import Connection

READ_WRITE = "READWRITE"
READ_ONLY = "READONLY"


class Settings(NamedTuple):
    """The subject's own settings, the global ones without these, or None."""

    # The compatibility level.
    compatibility: str | None
    # The mode.
    mode: str | None

    @property
    def is_read_only(self) -> bool:
        return self.mode == READ_ONLY


def digest_of(canonical: str) -> str:
    return hashlib.sha256(canonical.encode()).hexdigest()


def ensure_schema(connection: Connection, digest: str, canonical: str) -> int:
    """The id of the schema, stored if it is new."""
    found = connection.execute(select(schemas.c.id).where(schemas.c.digest == digest)).scalar()
    if found is not None:
        return int(found)
    inserted = connection.execute(insert(schemas).values(digest=digest, text=canonical))
    assert inserted.inserted_primary_key is not None
    return int(inserted.inserted_primary_key[0])


def ensure_version(connection: Connection, subject: str, schema_id: int) -> tuple[int, bool]:
    """The number of the version that is not deleted and has the schema, and whether it is a new one."""
    has_schema = and_(versions.c.schema_id == schema_id, versions.c.deleted == false())
    known_version, last = func.max(case((has_schema, versions.c.version))), func.max(versions.c.version)
    row = connection.execute(select(known_version, last).where(versions.c.subject == subject)).one()
    if row[0] is not None:
        return int(row[0]), False
    version = int(row[1] or 0) + 1
    connection.execute(insert(versions).values(subject=subject, version=version, schema_id=schema_id, deleted=False))
    return version, True


def settings_of(connection: Connection, subject: str) -> Settings:
    table = subject_settings.c
    query = select(table.subject, table.compatibility, table.mode).where(table.subject.in_((GLOBAL, subject)))
    rows = {row.subject: row for row in connection.execute(query)}
    found = [rows[name] for name in (subject, GLOBAL) if name in rows]
    level = next((row.compatibility for row in found if row.compatibility), None)
    return Settings(level, next((row.mode for row in found if row.mode), None))


def setting(connection: Connection, subject: str, name: str) -> str | None:
    """The subject's own `compatibility` or `mode`."""
    query = select(subject_settings.c[name]).where(subject_settings.c.subject == subject)
    value: str | None = connection.execute(query).scalar()
    return value


def change(connection: Connection, subject: str, name: str, value: str | None) -> None:
    """The subject's own `compatibility` or `mode`; None removes it."""
    this = subject_settings.c.subject == subject
    if connection.execute(select(subject_settings.c.subject).where(this)).first() is None:
        connection.execute(insert(subject_settings).values(subject=subject))
    connection.execute(update(subject_settings).where(this).values({name: value}))


def topics_with(connection: Connection, schema_id: int) -> list[str]:
    """The names of the topics that the catalogue has for the schema."""
    query = select(TopicRow.name).join(TopicSchemaRow).where(TopicSchemaRow.schema_id == schema_id).distinct()
    return list(connection.execute(query).scalars())
