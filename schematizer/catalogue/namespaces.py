"""Namespaces and sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select
from sqlalchemy.orm import selectinload

from cdc_common.clients.registry.views import Deprecation, Namespace, Source
from schematizer.catalogue import lookups
from schematizer.model.source_tables import NamespaceRow, SourceRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from schematizer.model.database import Database


class Namespaces:
    def __init__(self, database: Database) -> None:
        self._database = database

    def every(self) -> list[Namespace]:
        """Return all namespaces, ordered by name."""
        return self._database.read_session(_namespaces)

    def get(self, name: str) -> Namespace:
        return self._database.read_session(lambda session: _namespace(session, lookups.namespace_row(session, name)))

    def add(self, name: str, owner: str | None, doc: str | None, *, by: str) -> Namespace:
        """Add a namespace. CatalogueError CONFLICT if it exists."""

        def transaction(session: Session) -> Namespace:
            known = session.scalar(select(NamespaceRow).where(NamespaceRow.name == name))
            lookups.refuse_if_there(known, "namespace", name)
            row = NamespaceRow(name=lookups.checked_name("namespace", name), owner=owner, doc=doc)
            lookups.added(session, row)
            lookups.record(session, by, lookups.Change("add namespace", name, name))
            return _namespace(session, row)

        return self._database.write_session(transaction)

    def describe(self, name: str, owner: str | None, doc: str | None, *, by: str) -> Namespace:
        """Sets its owner and its documentation; None removes one."""

        def transaction(session: Session) -> Namespace:
            row = lookups.namespace_row(session, name)
            if (row.owner, row.doc) != (owner, doc):
                row.owner, row.doc = owner, doc
                lookups.record(session, by, lookups.Change("describe namespace", name, name))
            return _namespace(session, row)

        return self._database.write_session(transaction)


class Sources:
    def __init__(self, database: Database) -> None:
        self._database = database

    def every(self, namespace: str | None = None, owner: str | None = None) -> list[Source]:
        """Return all sources, or those of a namespace or owner, ordered by namespace and name. NOT_FOUND without the
        namespace.
        """

        def transaction(session: Session) -> list[Source]:
            query = select(SourceRow).join(NamespaceRow).order_by(NamespaceRow.name, SourceRow.name)
            if namespace is not None:
                query = query.where(SourceRow.namespace_id == lookups.namespace_row(session, namespace).id)
            if owner is not None:
                query = query.where(func.coalesce(SourceRow.owner, NamespaceRow.owner) == owner)
            loaded = query.options(selectinload(SourceRow.topics), selectinload(SourceRow.namespace))
            return [source_view(row) for row in session.scalars(loaded)]

        return self._database.read_session(transaction)

    def get(self, namespace: str, name: str) -> Source:
        return self._database.read_session(lambda session: source_view(lookups.source_row(session, namespace, name)))

    def add(self, namespace: str, name: str, owner: str | None, doc: str | None, *, by: str) -> Source:
        """Add a source, and its namespace if that is missing. CatalogueError CONFLICT if the source exists."""

        def transaction(session: Session) -> Source:
            query = select(SourceRow).join(NamespaceRow).where(NamespaceRow.name == namespace, SourceRow.name == name)
            lookups.refuse_if_there(session.scalar(query), "source", f"{namespace}/{name}")
            row = lookups.ensure_source(session, by, namespace, name)
            row.owner, row.doc = owner, doc
            return source_view(row)

        return self._database.write_session(transaction)

    def describe(self, namespace: str, name: str, owner: str | None, doc: str | None, *, by: str) -> Source:
        """Sets its owner and its documentation; None removes one."""

        def transaction(session: Session) -> Source:
            row = lookups.source_row(session, namespace, name)
            if (row.owner, row.doc) != (owner, doc):
                row.owner, row.doc = owner, doc
                lookups.record(session, by, lookups.Change("describe source", namespace, f"{namespace}/{name}"))
            return source_view(row)

        return self._database.write_session(transaction)


def source_view(row: SourceRow) -> Source:
    return Source(
        id=row.id,
        namespace=row.namespace.name,
        name=row.name,
        owner=row.owner or row.namespace.owner,
        doc=row.doc,
        created_at=row.created_at,
        topics=[topic.name for topic in row.topics],
        deprecation=_deprecation(row),
    )


def _deprecation(row: SourceRow) -> Deprecation | None:
    if row.deprecation is None or row.deprecated_at is None:
        return None
    return Deprecation(reason=row.deprecation, successor=row.successor, since=row.deprecated_at)


def _namespaces(session: Session) -> list[Namespace]:
    counts = select(SourceRow.namespace_id, func.count().label("sources")).group_by(SourceRow.namespace_id).subquery()
    query = (
        select(NamespaceRow, func.coalesce(counts.c.sources, 0))
        .outerjoin(counts, counts.c.namespace_id == NamespaceRow.id)
        .order_by(NamespaceRow.name)
    )
    return [_view(row, sources) for row, sources in session.execute(query)]


def _namespace(session: Session, row: NamespaceRow) -> Namespace:
    query = select(func.count()).select_from(SourceRow).where(SourceRow.namespace_id == row.id)
    return _view(row, session.execute(query).scalar_one())


def _view(row: NamespaceRow, sources: int) -> Namespace:
    return Namespace(id=row.id, name=row.name, owner=row.owner, doc=row.doc, created_at=row.created_at, sources=sources)
