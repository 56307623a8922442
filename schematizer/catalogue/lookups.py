"""Rows by their names, and the record of each write. All functions work within the caller's transaction."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import contains_eager, joinedload

from schematizer.errors import conflict, invalid, not_found
from schematizer.model.client_tables import ConsumerGroupRow, DataTargetRow
from schematizer.model.record_tables import ChangeRow
from schematizer.model.registry_tables import schemas
from schematizer.model.source_tables import NAME_LENGTH, NamespaceRow, SourceRow, TopicRow, TopicSchemaRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from schematizer.model.base import Base

SCHEMA_FIX = "Check the id: /topics/{topic}/schemas lists those of a topic."
ID_FIX = "Use the `id` that it has in the answer about it, such as /namespaces/{namespace}/sources/{source}."
_NAME = re.compile(r"[A-Za-z0-9._-]+")


class Change(NamedTuple):
    """See ChangeRow."""

    # The kind of write.
    action: str
    # The namespace that it concerns; None for what has none.
    namespace: str | None
    # The thing that was written.
    about: str
    # The new value, or other words about the write.
    detail: str = ""


def namespace_row(session: Session, name: str) -> NamespaceRow:
    row = session.scalar(select(NamespaceRow).where(NamespaceRow.name == name))
    if row is None:
        raise not_found("namespace", name)
    return row


def find_source(session: Session, namespace: str, name: str) -> SourceRow | None:
    query = (
        select(SourceRow)
        .join(SourceRow.namespace)
        .options(contains_eager(SourceRow.namespace))
        .where(NamespaceRow.name == namespace, SourceRow.name == name)
    )
    return session.scalar(query)


def source_row(session: Session, namespace: str, name: str) -> SourceRow:
    row = find_source(session, namespace, name)
    if row is None:
        namespace_row(session, namespace)
        raise not_found("source", f"{namespace}/{name}")
    return row


def find_topic(session: Session, name: str) -> TopicRow | None:
    """Return the topic, with its source and namespace loaded, which most callers name; None if there is none."""
    place = joinedload(TopicRow.source, innerjoin=True).joinedload(SourceRow.namespace, innerjoin=True)
    return session.scalar(select(TopicRow).options(place).where(TopicRow.name == name))


def topic_row(session: Session, name: str) -> TopicRow:
    row = find_topic(session, name)
    if row is None:
        raise not_found("topic", name)
    return row


def topic_schema_rows(session: Session, topic: str, schema_id: int) -> list[TopicSchemaRow]:
    """One, or two if the schema describes both the keys and the values of the topic."""
    wanted = topic_row(session, topic)
    found = [row for row in wanted.schemas if row.schema_id == schema_id]
    if not found:
        raise not_found("schema", f"{schema_id} in topic {topic}", SCHEMA_FIX)
    return found


def data_target_row(session: Session, name: str) -> DataTargetRow:
    row = session.scalar(select(DataTargetRow).where(DataTargetRow.name == name))
    if row is None:
        raise not_found("data target", name)
    return row


def group_row(session: Session, name: str) -> ConsumerGroupRow:
    row = session.scalar(select(ConsumerGroupRow).where(ConsumerGroupRow.name == name))
    if row is None:
        raise not_found("consumer group", name)
    return row


def schema_text(session: Session, schema_id: int) -> str:
    text = session.execute(select(schemas.c.text).where(schemas.c.id == schema_id)).scalar()
    if text is None:
        raise not_found("schema", schema_id, SCHEMA_FIX)
    return str(text)


def ensure_source(session: Session, by: str, namespace: str, name: str) -> SourceRow:
    """The source, made if it is missing, and its namespace."""
    row = find_source(session, namespace, name)
    if row is not None:
        return row
    space = session.scalar(select(NamespaceRow).where(NamespaceRow.name == namespace))
    if space is None:
        space = NamespaceRow(name=checked_name("namespace", namespace))
        added(session, space)
        record(session, by, Change("add namespace", namespace, namespace))
    row = SourceRow(namespace=space, name=checked_name("source", name))
    added(session, row)
    record(session, by, Change("add source", namespace, f"{namespace}/{name}"))
    return row


def checked_name(what: str, name: str) -> str:
    """Names are parts of Kafka topics' names."""
    if not is_name(name):
        raise invalid(
            f"{name!r} is not the name of a {what}.", f"Use letters, digits, `.`, `_`, `-`; at most {NAME_LENGTH}."
        )
    return name


def is_name(name: str) -> bool:
    return len(name) <= NAME_LENGTH and _NAME.fullmatch(name) is not None


def refuse_if_there(row: object | None, what: str, name: str) -> None:
    if row is not None:
        raise conflict(f"The {what} {name} exists.", "Choose another name, or change the one that exists.")


def added(session: Session, row: Base) -> None:
    """Add the row, which gets its id."""
    session.add(row)
    session.flush()


def record(session: Session, by: str, note: Change) -> None:
    """Every write to the catalogue calls this in its own transaction."""
    action, namespace, about, detail = note
    session.add(ChangeRow(changed_by=by, action=action, namespace=namespace, about=about[:1024], detail=detail))


def lines(text: str) -> list[str]:
    """A list that is stored one item a line."""
    return text.split("\n") if text else []
