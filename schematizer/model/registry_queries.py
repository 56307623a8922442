"""Queries of both interfaces on the registry's tables, within the caller's transaction."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, case, false, func, insert, or_, select, update

from schematizer.model.registry_tables import GLOBAL, schemas, subject_settings, versions
from schematizer.model.source_tables import TopicRow, TopicSchemaRow

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

READ_WRITE = "READWRITE"
READ_ONLY = "READONLY"
IMPORT = "IMPORT"
"""The mode in which clients choose ids and versions."""


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


def has_digest(digest: str) -> ColumnElement[bool]:
    """Whether a row of `schemas` is the schema with this digest, under any of its ids."""
    first = select(schemas.c.id).where(schemas.c.digest == digest).scalar_subquery()
    return or_(schemas.c.digest == digest, schemas.c.same_as == first)


def ids_of(connection: Connection, digest: str) -> list[int]:
    """The ids of the schema: first the one that new versions get."""
    query = select(schemas.c.id).where(has_digest(digest)).order_by(schemas.c.same_as.is_not(None), schemas.c.id)
    return list(connection.execute(query).scalars())


def ensure_schema(connection: Connection, digest: str, canonical: str) -> list[int]:
    """The ids of the schema, which is stored if it is new."""
    found = ids_of(connection, digest)
    if found:
        return found
    inserted = connection.execute(insert(schemas).values(digest=digest, text=canonical))
    assert inserted.inserted_primary_key is not None
    return [int(inserted.inserted_primary_key[0])]


def ensure_version(connection: Connection, subject: str, schema_ids: list[int]) -> tuple[int, int, bool]:
    """The number and the schema's id of the version that is not deleted and has the schema, and whether it is new."""
    has_schema = and_(versions.c.schema_id.in_(schema_ids), versions.c.deleted == false())
    known_version, last = func.max(case((has_schema, versions.c.version))), func.max(versions.c.version)
    row = connection.execute(select(known_version, last).where(versions.c.subject == subject)).one()
    if row[0] is not None:
        return int(row[0]), _id_of_version(connection, subject, int(row[0]), schema_ids), False
    number = int(row[1] or 0) + 1
    add_version(connection, subject, number, schema_ids[0])
    return number, schema_ids[0], True


def add_version(connection: Connection, subject: str, number: int, schema_id: int, *, deleted: bool = False) -> None:
    connection.execute(insert(versions).values(subject=subject, version=number, schema_id=schema_id, deleted=deleted))


def last_version(connection: Connection, subject: str) -> int:
    """The highest number that a version of the subject has; 0 without one."""
    return connection.execute(select(func.max(versions.c.version)).where(versions.c.subject == subject)).scalar() or 0


def _id_of_version(connection: Connection, subject: str, number: int, schema_ids: list[int]) -> int:
    if len(schema_ids) == 1:
        return schema_ids[0]
    this = and_(versions.c.subject == subject, versions.c.version == number)
    return int(connection.execute(select(versions.c.schema_id).where(this)).scalar_one())


def settings_of(connection: Connection, subject: str) -> Settings:
    table = subject_settings.c
    query = select(table.subject, table.compatibility, table.mode).where(table.subject.in_((GLOBAL, subject)))
    rows = {row.subject: row for row in connection.execute(query)}
    found = [rows[name] for name in (subject, GLOBAL) if name in rows]
    level = next((row.compatibility for row in found if row.compatibility), None)
    return Settings(level, next((row.mode for row in found if row.mode), None))


def setting(connection: Connection, subject: str, name: str) -> Any:  # noqa: ANN401 - the column's type
    """The subject's own `compatibility`, `mode` or `normalize`."""
    query = select(subject_settings.c[name]).where(subject_settings.c.subject == subject)
    return connection.execute(query).scalar()


def change(connection: Connection, subject: str, name: str, value: str | bool | None) -> None:  # noqa: FBT001 - a value
    """Set the subject's own `compatibility`, `mode` or `normalize`; None removes it."""
    this = subject_settings.c.subject == subject
    if connection.execute(select(subject_settings.c.subject).where(this)).first() is None:
        connection.execute(insert(subject_settings).values(subject=subject))
    connection.execute(update(subject_settings).where(this).values({name: value}))


def topics_with(connection: Connection, schema_id: int) -> list[str]:
    """The names of the topics that the catalogue has for the schema."""
    query = select(TopicRow.name).join(TopicSchemaRow).where(TopicSchemaRow.schema_id == schema_id).distinct()
    return list(connection.execute(query).scalars())
