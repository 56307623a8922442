"""Topics, and the schemas in them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import or_, select
from sqlalchemy.orm import contains_eager, object_session

from cdc_common.clients.registry.kinds import Part, Status, TopicKind
from cdc_common.clients.registry.views import Topic, TopicSchema
from schematizer.avro_schemas.elements import is_within
from schematizer.catalogue import lookups
from schematizer.errors import not_found
from schematizer.model.client_tables import ConsumerGroupRow, DataSourceRow
from schematizer.model.source_tables import ElementRow, NamespaceRow, SourceRow, TopicRow, TopicSchemaRow

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Select
    from sqlalchemy.orm import Session

    from schematizer.model.database import Database


@dataclass(frozen=True, slots=True)
class TopicFilter:
    """A choice of topics. A field that is None admits all."""

    # The name of the namespace.
    namespace: str | None = None
    # The name of the source.
    source: str | None = None
    # The data target that reads the topics.
    data_target: str | None = None
    # The id of a schema in the topics.
    schema_id: int | None = None
    # The kind of messages.
    kind: TopicKind | None = None
    # The status of the topics.
    status: Status | None = None
    # The topics that were added at this moment or later.
    created_since: datetime | None = None


class Topics:
    def __init__(self, database: Database, pii_prefix: str) -> None:
        self._database = database
        self._pii_prefix = pii_prefix

    def every(self, wanted: TopicFilter = TopicFilter()) -> list[Topic]:
        """The oldest first. CatalogueError NOT_FOUND for a data target that does not exist."""

        def transaction(session: Session) -> list[Topic]:
            rows = session.scalars(_query(session, wanted)).unique()
            return [self.view(row) for row in rows]

        return self._database.read_session(transaction)

    def get(self, name: str) -> Topic:
        return self._database.read_session(lambda session: self.view(lookups.topic_row(session, name)))

    def schemas(self, name: str, part: Part | None = None, status: Status | None = None) -> list[TopicSchema]:
        """The oldest first."""

        def transaction(session: Session) -> list[TopicSchema]:
            rows = lookups.topic_row(session, name).schemas
            kept = [row for row in rows if part in (None, row.part) and status in (None, row.status)]
            return [topic_schema_view(row) for row in kept]

        return self._database.read_session(transaction)

    def latest_schema(self, name: str, part: Part = Part.VALUE) -> TopicSchema:
        """The newest that is not disabled."""
        found = [schema for schema in self.schemas(name, part) if schema.status is not Status.DISABLED]
        if not found:
            raise not_found(f"enabled schema of the {part}s of topic", name, "Register one, or enable one that it has.")
        return found[-1]

    def set_status(self, name: str, status: Status, *, by: str) -> Topic:
        """A disabled topic gets no new schemas: the next schema of its source goes to a new topic."""

        def transaction(session: Session) -> Topic:
            row = lookups.topic_row(session, name)
            if row.status is not status:
                row.status = status
                lookups.record(
                    session,
                    by,
                    lookups.Change("set status of topic", row.source.namespace.name, name, status.value),
                )
            return self.view(row)

        return self._database.write_session(transaction)

    def set_schema_status(self, name: str, schema_id: int, status: Status, *, by: str) -> list[TopicSchema]:
        """The schema in this topic, as the part or parts that it is of."""

        def transaction(session: Session) -> list[TopicSchema]:
            rows = lookups.topic_schema_rows(session, name, schema_id)
            for row in rows:
                row.status = status
            namespace = rows[0].topic.source.namespace.name
            lookups.record(
                session, by, lookups.Change("set status of schema", namespace, f"{name}: {schema_id}", status.value)
            )
            return [topic_schema_view(row) for row in rows]

        return self._database.write_session(transaction)

    def view(self, row: TopicRow) -> Topic:
        """Return the view of a row. Call it within the row's session."""
        pii = lookups.lines(row.pii)
        return Topic(
            id=row.id,
            name=row.name,
            namespace=row.source.namespace.name,
            source=row.source.name,
            kind=row.kind,
            status=row.status,
            pii=pii,
            pii_misplaced=self._is_misplaced(row),
            created_at=row.created_at,
            last_used_at=row.last_used_at,
        )

    def _is_misplaced(self, row: TopicRow) -> bool:
        """Return whether the topic has personal data by today's flags, and is not a topic for it. A field may have been
        marked after the topic was made.
        """
        flags = [field.path for field in row.source.fields if field.is_pii]
        if not flags or row.kind not in (TopicKind.CHANGE, TopicKind.OTHER) or row.name.startswith(self._pii_prefix):
            return False
        query = (
            select(ElementRow.path)
            .join(TopicSchemaRow, TopicSchemaRow.schema_id == ElementRow.schema_id)
            .where(TopicSchemaRow.topic_id == row.id, TopicSchemaRow.status != Status.DISABLED)
        )
        session = object_session(row)
        assert session is not None
        return any(is_within(path, flags) for path in session.scalars(query))


def topic_schema_view(row: TopicSchemaRow) -> TopicSchema:
    return TopicSchema(
        topic=row.topic.name,
        part=row.part,
        schema_id=row.schema_id,
        status=row.status,
        format=row.format,
        primary_key=lookups.lines(row.primary_key),
        created_at=row.created_at,
        last_used_at=row.last_used_at,
    )


def topics_of_target(session: Session, data_target_id: int) -> list[TopicRow]:
    """The topics that its consumer groups read, the oldest first."""
    query = _all().where(_is_read_by(data_target_id))
    return list(session.scalars(query).unique())


def _query(session: Session, wanted: TopicFilter) -> Select[TopicRow]:
    equal = {
        NamespaceRow.name: wanted.namespace,
        SourceRow.name: wanted.source,
        TopicRow.kind: wanted.kind,
        TopicRow.status: wanted.status,
    }
    query = _all().where(*(column == value for column, value in equal.items() if value is not None))
    if wanted.created_since is not None:
        query = query.where(TopicRow.created_at >= wanted.created_since)
    if wanted.schema_id is not None:
        used = select(TopicSchemaRow.topic_id).where(TopicSchemaRow.schema_id == wanted.schema_id)
        query = query.where(TopicRow.id.in_(used))
    if wanted.data_target is not None:
        query = query.where(_is_read_by(lookups.data_target_row(session, wanted.data_target).id))
    return query


def _all() -> Select[TopicRow]:
    source = contains_eager(TopicRow.source)
    return (
        select(TopicRow)
        .join(TopicRow.source)
        .join(SourceRow.namespace)
        .order_by(TopicRow.id)
        .options(source, source.joinedload(SourceRow.namespace), source.selectinload(SourceRow.fields))
    )


def _is_read_by(data_target_id: int) -> ColumnElement[bool]:
    """Return the condition that a data target reads the topic. It reads change topics and others only: raw and dead
    topics are the materializer's own.
    """
    read = (
        select(DataSourceRow.id)
        .join(ConsumerGroupRow)
        .where(
            ConsumerGroupRow.data_target_id == data_target_id,
            DataSourceRow.namespace_id == SourceRow.namespace_id,
            or_(DataSourceRow.source_id.is_(None), DataSourceRow.source_id == SourceRow.id),
        )
    )
    return TopicRow.kind.in_((TopicKind.CHANGE, TopicKind.OTHER)) & read.exists()
