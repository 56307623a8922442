"""Compares another registry with this one: missing versions, other deletions and settings, and conflicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import select

from schematizer.importing.source import SourceVersion, SubjectSettings
from schematizer.model.registry_tables import schemas, subject_settings, versions

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from schematizer.importing.source import Content


class Differences(NamedTuple):
    """The differences between another registry and this one."""

    # The versions that are missing here.
    missing: list[SourceVersion]
    # The versions that are here, and are deleted in only one of the two.
    flags: list[SourceVersion]
    # The settings that differ.
    settings: list[SubjectSettings]
    # What is there under an id or a version that has something else here, each as a sentence.
    conflicts: list[str]
    # The number of versions that only this registry has.
    only_here: int

    @property
    def are_none(self) -> bool:
        return not (self.missing or self.flags or self.settings or self.conflicts)


def compare(connection: Connection, content: Content) -> Differences:
    """Every version, id, deletion and setting of the other registry with those of this one."""
    known = {
        (row.subject, row.version): (row.schema_id, row.deleted)
        for row in connection.execute(
            select(versions.c.subject, versions.c.version, versions.c.schema_id, versions.c.deleted)
        )
    }
    texts = {row.id: row.text for row in connection.execute(select(schemas.c.id, schemas.c.text))}
    found = Differences([], [], [], [], len(known.keys() - {version[:2] for version in content.versions}))
    for version in content.versions:
        here = texts.setdefault(version.schema_id, version.text)
        if here != version.text:
            found.conflicts.append(
                f"The id {version.schema_id}, which version {version.number} of subject {version.subject} has, is "
                "another schema here."
            )
            continue
        schema_id, is_deleted = known.get((version.subject, version.number), (None, False))
        if schema_id is None:
            found.missing.append(version)
        elif schema_id != version.schema_id:
            found.conflicts.append(
                f"Version {version.number} of subject {version.subject} has the id {version.schema_id} there, and "
                f"{schema_id} here."
            )
        elif is_deleted != version.is_deleted:
            found.flags.append(version)
    found.settings.extend(_different_settings(connection, content.settings))
    return found


def _different_settings(connection: Connection, wanted: list[SubjectSettings]) -> list[SubjectSettings]:
    columns = subject_settings.c
    query = select(columns.subject, columns.compatibility, columns.normalize, columns.mode)
    known = {row.subject: row for row in connection.execute(query)}
    return [
        settings
        for settings in wanted
        if any(
            there is not None and there != here
            for there, here in zip(settings[1:], tuple(known.get(settings.subject, (None,) * 4))[1:], strict=True)
        )
    ]
