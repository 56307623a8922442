"""Schemas by id, and their elements with the documentation of their source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import insert, select

from cdc_common.clients.registry.kinds import Part, Status, TopicKind
from cdc_common.clients.registry.views import Element, Schema
from schematizer.avro_schemas import elements as avro_elements
from schematizer.catalogue import lookups
from schematizer.catalogue.topics import topic_schema_view
from schematizer.model.source_tables import PATH_LENGTH, ElementRow, FieldRow, SourceRow, TopicRow, TopicSchemaRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.orm import Session

    from schematizer.model.database import Database


class Schemas:
    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, schema_id: int) -> Schema:
        def transaction(session: Session) -> Schema:
            text = lookups.schema_text(session, schema_id)
            query = select(TopicSchemaRow).where(TopicSchemaRow.schema_id == schema_id).order_by(TopicSchemaRow.id)
            return Schema(
                schema_id=schema_id, text=text, topics=[topic_schema_view(row) for row in session.scalars(query)]
            )

        return self._database.read_session(transaction)

    def elements(self, schema_id: int, topic: str | None = None) -> list[Element]:
        """The fields of a schema. With the documentation of `topic`'s source, by default of the first that uses it."""

        def transaction(session: Session) -> list[Element]:
            lookups.schema_text(session, schema_id)
            query = select(TopicSchemaRow).where(TopicSchemaRow.schema_id == schema_id).order_by(TopicSchemaRow.id)
            if topic is None:
                return elements_of(session, schema_id, session.scalars(query).first())
            row = lookups.topic_row(session, topic)
            used = session.scalars(query.where(TopicSchemaRow.topic_id == row.id)).first()
            return elements_of(session, schema_id, used, row.source)

        return self._database.read_session(transaction)

    def of_source(self, namespace: str, source: str) -> list[Element]:
        """The fields of the source's newest enabled value schema; empty if it has none."""

        def transaction(session: Session) -> list[Element]:
            row = newest_value(session, lookups.source_row(session, namespace, source))
            return [] if row is None else elements_of(session, row.schema_id, row)

        return self._database.read_session(transaction)


def newest_value(session: Session, source: SourceRow) -> TopicSchemaRow | None:
    """The newest enabled value schema of the source's change topics."""
    query = (
        select(TopicSchemaRow)
        .join(TopicRow)
        .where(
            TopicRow.source_id == source.id,
            TopicRow.kind.not_in((TopicKind.RAW, TopicKind.DEAD)),
            TopicSchemaRow.part == Part.VALUE,
            TopicSchemaRow.status != Status.DISABLED,
        )
        .order_by(TopicRow.id.desc(), TopicSchemaRow.id.desc())
    )
    return session.scalars(query).first()


def elements_of(
    session: Session, schema_id: int, used: TopicSchemaRow | None, source: SourceRow | None = None
) -> list[Element]:
    """`source`: whose documentation counts; by default that of the topic that uses the schema."""
    rows = session.scalars(
        select(ElementRow).where(ElementRow.schema_id == schema_id).order_by(ElementRow.position)
    ).all()
    documented = used.topic.source if source is None and used is not None else source
    fields = {} if documented is None else {field.path: field for field in documented.fields}
    key = set() if used is None else set(primary_key(session, used))
    return [_view(row, fields.get(row.path), is_key=row.path in key) for row in rows]


def primary_key(session: Session, used: TopicSchemaRow) -> Sequence[str]:
    """The paths of the key's columns: what the schema says, or the fields of the topic's key schema."""
    if used.primary_key:
        return lookups.lines(used.primary_key)
    key = [row for row in used.topic.schemas if row.part is Part.KEY]
    if not key:
        return []
    query = select(ElementRow.path).where(ElementRow.schema_id == key[-1].schema_id).order_by(ElementRow.position)
    return [path for path in session.scalars(query) if path]


def store_elements(session: Session, texts: Mapping[int, str]) -> None:
    """Store the elements of schemas, once for each schema. texts: at most 500 schemas by their ids."""
    stored = set(session.scalars(select(ElementRow.schema_id).where(ElementRow.schema_id.in_(texts)).distinct()))
    rows = [
        {**element._asdict(), "path": element.path[:PATH_LENGTH], "schema_id": schema_id, "position": position}
        for schema_id, text in texts.items()
        if schema_id not in stored
        for position, element in enumerate(avro_elements.elements(text))
    ]
    if rows:
        session.connection().execute(insert(ElementRow), rows)  # the session's own insert is one statement a row


def _view(row: ElementRow, field: FieldRow | None, *, is_key: bool) -> Element:
    return Element(
        path=row.path,
        type=row.type,
        source_type=row.source_type,
        is_nullable=row.is_nullable,
        is_key=is_key,
        doc=(field and field.doc) or row.doc,
        owner=field.owner if field else None,
        is_pii=field is not None and field.is_pii,
        field_id=field.id if field else None,
    )
