"""Copies another registry into this one's database, and says what differs afterwards."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import and_, update

from schematizer.importing.compare import compare
from schematizer.model import registry_queries
from schematizer.model.given_ids import add_schema, follow_ids
from schematizer.model.registry_tables import versions
from schematizer.registration.mirror import Mirror, adopt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection

    from schematizer.importing.compare import Differences
    from schematizer.importing.source import Content, SourceVersion, SubjectSettings
    from schematizer.model.database import Database

T = TypeVar("T")
_AT_ONCE = 500
"""Versions in one transaction: other writers of a running registry wait for so long."""


def differences(database: Database, content: Content) -> Differences:
    """Return the differences between the other registry and the database."""
    return database.read_view(partial(compare, content=content))


def copy(database: Database, missing: Differences, pii_prefix: str) -> None:
    """Add everything that is missing. Each transaction is complete, so that a copy that was stopped goes on when it is
    run again. The catalogue follows after all versions are there.
    """
    mirror = Mirror(pii_prefix)
    for added in _parts(missing.missing):
        database.write(partial(_add, added))
    for changed in _parts(missing.flags):
        database.write(partial(_set_flags, changed, mirror))
    for settings in _parts(missing.settings):
        database.write(partial(_set_settings, settings))
    adopt(database, mirror)


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), _AT_ONCE):
        yield items[start : start + _AT_ONCE]


def _add(added: Sequence[SourceVersion], connection: Connection) -> None:
    for version in added:
        add_schema(connection, version.schema_id, version.text)
        registry_queries.add_version(
            connection, version.subject, version.number, version.schema_id, deleted=version.is_deleted
        )
    follow_ids(connection)


def _set_flags(changed: Sequence[SourceVersion], mirror: Mirror, connection: Connection) -> None:
    for version in changed:
        this = and_(versions.c.subject == version.subject, versions.c.version == version.number)
        connection.execute(update(versions).where(this).values(deleted=version.is_deleted))
    for subject in {version.subject for version in changed}:
        mirror.deleted(connection, subject)


def _set_settings(changed: Sequence[SubjectSettings], connection: Connection) -> None:
    for settings in changed:
        named = {"compatibility": settings.level, "normalize": settings.normalize, "mode": settings.mode}
        for name, value in named.items():
            if value is not None:
                registry_queries.change(connection, settings.subject, name, value)
