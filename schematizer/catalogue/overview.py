"""Answers that only the pages show: coverage, versions with their fields, readers, names of ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, func, or_, select

from cdc_common.clients.registry.kinds import About, Part, Status, TopicKind
from cdc_common.clients.registry.views import (
    CatalogueEntry,
    ConsumerGroup,
    Coverage,
    Version,
)
from schematizer.catalogue import lookups
from schematizer.catalogue.census import how_many
from schematizer.catalogue.schemas import elements_of, primary_key
from schematizer.catalogue.targets import group_view
from schematizer.catalogue.topics import topic_schema_view
from schematizer.errors import not_found
from schematizer.model.client_tables import ConsumerGroupRow, DataSourceRow, DataTargetRow
from schematizer.model.source_tables import ElementRow, FieldRow, NamespaceRow, SourceRow, TopicRow, TopicSchemaRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Select
    from sqlalchemy.orm import Session

    from schematizer.model.base import Base
    from schematizer.model.database import Database

_TABLES: dict[About, type[Base]] = {
    About.NAMESPACE: NamespaceRow,
    About.SOURCE: SourceRow,
    About.FIELD: FieldRow,
    About.TOPIC: TopicRow,
    About.DATA_TARGET: DataTargetRow,
}
_OF_READERS = TopicRow.kind.not_in((TopicKind.RAW, TopicKind.DEAD))


class Overview:
    def __init__(self, database: Database) -> None:
        self._database = database

    def coverage(self, namespace: str | None = None) -> dict[int, Coverage]:
        """The coverage of each source with a schema, by the source's id."""

        def transaction(session: Session) -> dict[int, Coverage]:
            query = _coverage()
            if namespace is not None:
                space = lookups.namespace_row(session, namespace)
                query = query.where(SourceRow.namespace_id == space.id)
            return {
                source_id: Coverage(fields=fields, documented=documented, pii=pii)
                for source_id, fields, documented, pii in session.execute(query)
            }

        return self._database.read_session(transaction)

    def coverage_of_namespaces(self) -> dict[int, Coverage]:
        """The sums of the sources of each namespace with a schema, by the namespace's id."""

        def transaction(session: Session) -> dict[int, Coverage]:
            coverage = _coverage().subquery()
            columns = [func.sum(coverage.c[name]) for name in ("fields", "documented", "pii")]
            query = (
                select(SourceRow.namespace_id, *columns)
                .join(SourceRow, SourceRow.id == coverage.c.source_id)
                .group_by(SourceRow.namespace_id)
            )
            return {
                namespace_id: Coverage(fields=int(fields), documented=int(documented), pii=int(pii))
                for namespace_id, fields, documented, pii in session.execute(query)
            }

        return self._database.read_session(transaction)

    def versions(self, namespace: str, source: str, start: int, count: int) -> tuple[list[Version], int]:
        """The value schemas of a source, the newest first, `count` of them after the first `start`; and how many it
        has.
        """

        def transaction(session: Session) -> tuple[list[Version], int]:
            row = lookups.source_row(session, namespace, source)
            query = (
                select(TopicSchemaRow)
                .join(TopicRow)
                .where(TopicRow.source_id == row.id, TopicSchemaRow.part == Part.VALUE, _OF_READERS)
                .order_by(TopicRow.id.desc(), TopicSchemaRow.id.desc())
            )
            used = session.scalars(query).all()
            shown = enumerate(used[start : start + count], start)
            return [_version(session, row, len(used) - index) for index, row in shown], len(used)

        return self._database.read_session(transaction)

    def readers(self, namespace: str, source: str) -> list[ConsumerGroup]:
        """The consumer groups of data targets that read the source."""

        def transaction(session: Session) -> list[ConsumerGroup]:
            row = lookups.source_row(session, namespace, source)
            return [group_view(group) for group in groups_of_source(session, row)]

        return self._database.read_session(transaction)

    def place(self, about: About, about_id: int) -> CatalogueEntry:
        """Find the subject of a note or a tag; a schema's place is the first source that uses it. NOT_FOUND."""
        return self._database.read_session(lambda session: _place(session, about, about_id))


def groups_of_source(session: Session, row: SourceRow) -> Sequence[ConsumerGroupRow]:
    """The consumer groups of data targets that read the source, by name."""
    reads = and_(
        DataSourceRow.namespace_id == row.namespace_id,
        or_(DataSourceRow.source_id.is_(None), DataSourceRow.source_id == row.id),
    )
    query = select(ConsumerGroupRow).where(ConsumerGroupRow.data_sources.any(reads))
    return session.scalars(query.order_by(ConsumerGroupRow.name)).all()


def _coverage() -> Select[int, int, int, int]:
    newest = (
        select(
            TopicRow.source_id,
            TopicSchemaRow.schema_id,
            func.row_number()
            .over(partition_by=TopicRow.source_id, order_by=(TopicRow.id.desc(), TopicSchemaRow.id.desc()))
            .label("place"),
        )
        .join(TopicSchemaRow, TopicSchemaRow.topic_id == TopicRow.id)
        .where(_OF_READERS, TopicSchemaRow.part == Part.VALUE, TopicSchemaRow.status != Status.DISABLED)
        .subquery()
    )
    has_doc = func.coalesce(func.nullif(FieldRow.doc, ""), ElementRow.doc, "") != ""
    return (
        select(
            newest.c.source_id,
            func.count(ElementRow.id).label("fields"),
            how_many(has_doc).label("documented"),
            how_many(FieldRow.is_pii).label("pii"),
        )
        .join(SourceRow, SourceRow.id == newest.c.source_id)
        .join(ElementRow, ElementRow.schema_id == newest.c.schema_id)
        .outerjoin(FieldRow, and_(FieldRow.source_id == newest.c.source_id, FieldRow.path == ElementRow.path))
        .where(newest.c.place == 1, ElementRow.path != "")
        .group_by(newest.c.source_id)
    )


def _version(session: Session, used: TopicSchemaRow, version: int) -> Version:
    return Version(
        version=version,
        schema_=topic_schema_view(used),
        primary_key=list(primary_key(session, used)),
        elements=elements_of(session, used.schema_id, None),
    )


def _place(session: Session, about: About, about_id: int) -> CatalogueEntry:
    if about is About.SCHEMA:
        return _place_of_schema(session, about_id)
    match session.get(_TABLES[about], about_id):
        case NamespaceRow() as row:
            return CatalogueEntry(about=about, namespace=row.name, source=None, name=row.name)
        case SourceRow() as row:
            return _of_source(about, row, row.name)
        case FieldRow() as row:
            return _of_source(about, row.source, row.path)
        case TopicRow() as row:
            return _of_source(about, row.source, row.name)
        case DataTargetRow() as row:
            return CatalogueEntry(about=about, namespace=None, source=None, name=row.name)
    raise not_found(about.value, about_id, lookups.ID_FIX)


def _place_of_schema(session: Session, schema_id: int) -> CatalogueEntry:
    lookups.schema_text(session, schema_id)
    used = select(TopicRow).join(TopicSchemaRow).where(TopicSchemaRow.schema_id == schema_id)
    topic = session.scalars(used.order_by(TopicSchemaRow.id)).first()
    if topic is None:
        return CatalogueEntry(about=About.SCHEMA, namespace=None, source=None, name=str(schema_id))
    return _of_source(About.SCHEMA, topic.source, str(schema_id))


def _of_source(about: About, source: SourceRow, name: str) -> CatalogueEntry:
    return CatalogueEntry(about=about, namespace=source.namespace.name, source=source.name, name=name)
