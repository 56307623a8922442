"""Reads and writes the tables for the assignment of topics, within the caller's transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from cdc_common.clients.registry.kinds import Part, Status, TopicKind
from schematizer.avro_schemas import elements
from schematizer.avro_schemas.parsing import parse
from schematizer.catalogue import lookups
from schematizer.catalogue.schemas import primary_key
from schematizer.errors import invalid
from schematizer.model.registry_queries import digest_of, has_digest
from schematizer.model.registry_tables import schemas
from schematizer.model.source_tables import NAME_LENGTH, SourceRow, TopicRow, TopicSchemaRow
from schematizer.registration.decide import NewestTopic, NewSchema, Rule, Verdict
from schematizer.topic_names import parse_topic, topic_name

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

UNSAID = "avro"
"""The format whose schemas need not say what their primary key is."""
_ASSIGNED = (TopicKind.CHANGE, TopicKind.OTHER)


def newest_topic(session: Session, source: SourceRow, pii_prefix: str) -> NewestTopic | None:
    found = [topic for topic in source.topics if topic.kind in _ASSIGNED]
    if not found:
        return None
    row = found[-1]
    values = [schema for schema in row.schemas if schema.part is Part.VALUE and schema.status is not Status.DISABLED]
    texts = _texts(session, [value.schema_id for value in values])
    paths = {element.path for text in texts.values() for element in elements.elements(text)}
    key = _key_text(session, row)
    columns = _primary_key(session, row)
    return NewestTopic(
        row.name,
        row.status is not Status.READ_WRITE,
        row.name.startswith(pii_prefix),
        bool(key or columns or any(schema.format != UNSAID for schema in row.schemas)),
        key,
        columns,
        frozenset(paths),
        frozenset(lookups.lines(row.pii)),
        tuple((schema_id, parse(text)) for schema_id, text in texts.items()),
    )


def topic_with(session: Session, source: SourceRow, new: NewSchema, pii_prefix: str) -> TopicRow | None:
    """The newest topic of the source, not disabled, that has this schema with this key and these personal fields. A
    topic without the prefix that has personal fields, as clients of Confluent's API may make one, is none.
    """
    for topic in reversed(source.topics):
        if new.pii and not topic.name.startswith(pii_prefix):
            continue
        value = schema_in(session, topic, Part.VALUE, new.schema.canonical)
        if topic.kind not in _ASSIGNED or topic.status is Status.DISABLED or value is None:
            continue
        is_same_key = new.key == _key_text(session, topic) and new.primary_key == _primary_key(session, topic)
        if is_same_key and new.pii == frozenset(lookups.lines(topic.pii)) & new.paths:
            return topic
    return None


def schema_in(session: Session, topic: TopicRow, part: Part, canonical: str) -> TopicSchemaRow | None:
    query = (
        select(TopicSchemaRow)
        .join(schemas, schemas.c.id == TopicSchemaRow.schema_id)
        .where(TopicSchemaRow.topic_id == topic.id, TopicSchemaRow.part == part, has_digest(digest_of(canonical)))
    )
    return session.scalar(query)


def there_already(topic: TopicRow) -> Verdict:
    return Verdict(False, Rule.COMPATIBLE, f"{topic.name} has it.")


def add_topic(session: Session, by: str, source: SourceRow, new: NewSchema, pii_prefix: str) -> TopicRow:
    """Add a topic. Its name has the next version's number, and the prefix of personal data if the schema has some."""
    namespace = source.namespace.name
    known = [topic.name for topic in source.topics if topic.kind in _ASSIGNED]
    version = 1 + max((parse_topic(name, pii_prefix).version for name in known), default=0)
    prefix = pii_prefix if new.pii else ""
    name = topic_name(namespace, source.name, version, prefix)
    while session.scalar(select(TopicRow.id).where(TopicRow.name == name)) is not None:
        version += 1
        name = topic_name(namespace, source.name, version, prefix)
    if len(name) > NAME_LENGTH:
        raise invalid(
            f"The topic {name} would have {len(name)} characters; Kafka allows {NAME_LENGTH}.",
            "Choose a shorter source.",
        )
    parsed = parse_topic(name, pii_prefix)
    if (parsed.namespace, parsed.source) != (namespace, source.name):
        raise invalid(
            f"The topic {name} of {namespace}/{source.name} would be read as one of "
            f"{parsed.namespace}/{parsed.source}.",
            "Choose a source without a dot and without -v and a number at its end, and no raw topic's namespace.",
        )
    kind = parsed.kind
    row = TopicRow(name=name, source=source, kind=kind, pii="\n".join(sorted(new.pii)))
    lookups.added(session, row)
    lookups.record(session, by, lookups.Change("add topic", namespace, name))
    return row


def _primary_key(session: Session, topic: TopicRow) -> tuple[str, ...]:
    """Return what the newest value schema says, enabled or not; or the fields of the key's."""
    newest = [schema for part in (Part.VALUE, Part.KEY) for schema in topic.schemas[::-1] if schema.part is part]
    return tuple(primary_key(session, newest[0])) if newest else ()


def _key_text(session: Session, topic: TopicRow) -> str | None:
    keys = [schema for schema in topic.schemas if schema.part is Part.KEY and schema.status is not Status.DISABLED]
    return lookups.schema_text(session, keys[-1].schema_id) if keys else None


def _texts(session: Session, schema_ids: list[int]) -> dict[int, str]:
    """Return the schemas' texts by id, in the order of `schema_ids`."""
    query = select(schemas.c.id, schemas.c.text).where(schemas.c.id.in_(schema_ids))
    found = {row.id: row.text for row in session.execute(query)}
    return {schema_id: found[schema_id] for schema_id in schema_ids}
