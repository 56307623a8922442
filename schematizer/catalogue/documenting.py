"""The documentation of sources and their fields: from registrations, and from files in git."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select
from sqlalchemy.orm import selectinload

from cdc_common.clients.registry.views import FieldText, SourceDocumentation
from schematizer.catalogue import lookups
from schematizer.catalogue.schemas import elements_of, newest_value
from schematizer.converters.converted import FieldDocumentation
from schematizer.errors import invalid, not_found
from schematizer.model.source_tables import PATH_LENGTH, FieldRow, SourceRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from schematizer.model.database import Database


@dataclass(frozen=True, slots=True)
class Documentation:
    """The documentation in a registration."""

    # The documentation; None keeps what is known.
    doc: str | None
    # The owner; None keeps what is known.
    owner: str | None
    # By path.
    fields: Mapping[str, FieldDocumentation]
    # The paths of fields whose documentation the schema itself has.
    in_schema: frozenset[str]


class Documenting:
    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, namespace: str, source: str) -> SourceDocumentation:
        """The documentation that people wrote of the source and of its fields; not the docs in its schemas."""

        def transaction(session: Session) -> SourceDocumentation:
            return _view(lookups.source_row(session, namespace, source))

        return self._database.read_session(transaction)

    def of_namespace(self, namespace: str) -> dict[str, SourceDocumentation]:
        """The same of all sources of a namespace, by source."""

        def transaction(session: Session) -> dict[str, SourceDocumentation]:
            place = lookups.namespace_row(session, namespace)
            query = select(SourceRow).where(SourceRow.namespace_id == place.id).order_by(SourceRow.name)
            rows = session.scalars(query.options(selectinload(SourceRow.fields)))
            return {row.name: _view(row) for row in rows}

        return self._database.read_session(transaction)

    def put(self, namespace: str, source: str, wanted: SourceDocumentation, *, by: str) -> list[str]:
        """Sets all of it: a field that is not named loses what was said. The source is made if it is missing.

        Returns the paths that the source's newest schema does not have: these are kept, for a schema that comes later.
        """

        def transaction(session: Session) -> list[str]:
            row = lookups.ensure_source(session, by, namespace, source)
            changed = (row.doc, row.owner) != (wanted.doc, wanted.owner)
            row.doc, row.owner = wanted.doc, wanted.owner
            known = {field.path: field for field in row.fields}
            for path in known.keys() - wanted.fields.keys():
                field = known[path]
                changed = changed or bool(field.doc or field.owner or field.is_pii)
                field.doc, field.owner, field.is_pii = None, None, False  # kept for its notes and tags
            for path, said in wanted.fields.items():
                field = known.get(path) or _add(row, path)
                changed = changed or (field.doc, field.owner, field.is_pii) != (said.doc, said.owner, said.pii)
                field.doc, field.owner, field.is_pii = said.doc, said.owner, said.pii
            session.flush()
            if changed:
                lookups.record(session, by, lookups.Change("document source", namespace, f"{namespace}/{source}"))
            return _unknown(session, row, wanted.fields)

        return self._database.write_session(transaction)

    def describe_field(  # noqa: PLR0913 - a field's name has three parts
        self, namespace: str, source: str, path: str, doc: str | None, owner: str | None, *, by: str
    ) -> int:
        """Sets the docs and the owner of one field, and returns its id; None removes one. Its PII flag stays: a change
        of it is a registration.
        """

        def transaction(session: Session) -> int:
            row = _field(session, namespace, source, path)
            if (row.doc, row.owner) != (doc, owner):
                row.doc, row.owner = doc, owner
                lookups.record(
                    session, by, lookups.Change("document field", namespace, f"{namespace}/{source}: {path}")
                )
            session.flush()
            return row.id

        return self._database.write_session(transaction)

    def field_id(self, namespace: str, source: str, path: str) -> int:
        """Return the id of a field's documentation, for notes and tags. Create an empty one if there is none."""

        def transaction(session: Session) -> int:
            row = _field(session, namespace, source, path)
            session.flush()
            return row.id

        return self._database.write_session(transaction)


def _view(row: SourceRow) -> SourceDocumentation:
    fields = {field.path: FieldText(doc=field.doc, owner=field.owner, pii=field.is_pii) for field in row.fields}
    return SourceDocumentation(doc=row.doc, owner=row.owner, fields=fields)


def apply_registration(session: Session, by: str, source: SourceRow, said: Documentation) -> None:
    """Apply a registration's documentation of its source and fields."""
    before = (source.doc, source.owner)
    source.doc = said.doc if said.doc is not None else source.doc
    source.owner = said.owner if said.owner is not None else source.owner
    changed = before != (source.doc, source.owner)
    known = {field.path: field for field in source.fields}
    for path, field in said.fields.items():
        if path in said.in_schema and field.owner is None and field.is_pii is None and path not in known:
            continue
        row = known.get(path)
        if row is None:
            row = _add(source, path)
        old = (row.doc, row.owner, row.is_pii)
        row.doc = field.doc if field.doc is not None else row.doc
        row.owner = field.owner if field.owner is not None else row.owner
        row.is_pii = field.is_pii if field.is_pii is not None else bool(row.is_pii)
        changed = changed or old != (row.doc, row.owner, row.is_pii)
    session.flush()
    if changed:
        name = source.namespace.name
        lookups.record(session, by, lookups.Change("document source", name, f"{name}/{source.name}"))


def _field(session: Session, namespace: str, source: str, path: str) -> FieldRow:
    """Return the field's row. NOT_FOUND for a path that neither the newest schema nor the documentation has."""
    row = lookups.source_row(session, namespace, source)
    known = next((field for field in row.fields if field.path == path), None)
    if known is None and _unknown(session, row, {path: FieldText(doc=None, owner=None, pii=False)}):
        raise not_found("field", f"{namespace}/{source}: {path}")
    return known or _add(row, path)


def _add(source: SourceRow, path: str) -> FieldRow:
    if not 0 < len(path) <= PATH_LENGTH:
        raise invalid(f"{path[:80]!r} is not a field's path.", f"Use names joined by dots, at most {PATH_LENGTH} long.")
    row = FieldRow(path=path, doc=None, owner=None, is_pii=False)
    source.fields.append(row)
    return row


def _unknown(session: Session, source: SourceRow, fields: Mapping[str, FieldText]) -> list[str]:
    newest = newest_value(session, source)
    if newest is None:
        return []
    known = {element.path for element in elements_of(session, newest.schema_id, newest)}
    return sorted(fields.keys() - known)
