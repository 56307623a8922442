"""The one write of a schema as a version of a subject: in the registry, and in the catalogue's topic of the subject."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cdc_common.clients.registry.kinds import Part, Status
from schematizer.catalogue import lookups
from schematizer.catalogue.schemas import store_elements
from schematizer.catalogue.usage import touch
from schematizer.model import registry_queries
from schematizer.model.source_tables import TopicRow, TopicSchemaRow
from schematizer.topic_names import parse_subject, parse_topic

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


class NewVersion(NamedTuple):
    """A schema that is to be a version of a subject. No check is left to do."""

    # The subject's name.
    subject: str
    # the schema's canonical text
    text: str
    # the format of the description that it was made from
    format: str
    # the fields of the primary key, if the description names them
    primary_key: tuple[str, ...] = ()


class Version(NamedTuple):
    """A version of a subject that is not deleted."""

    # Its number.
    number: int
    # The schema's id.
    schema_id: int


def register_version(session: Session, by: str, new: NewVersion, topic: TopicRow | None) -> Version:
    """Store the schema if it is new, make it a version of the subject unless it is one, and add it to the topic. None
    for a subject that no topic of the catalogue has.
    """
    connection = session.connection()
    schema_ids = registry_queries.ensure_schema(connection, registry_queries.digest_of(new.text), new.text)
    number, schema_id, is_new = registry_queries.ensure_version(connection, new.subject, schema_ids)
    if topic is not None and add_to_topic(session, by, new, topic, schema_id, is_enabled=is_new):
        store_elements(session, {schema_id: new.text})
    return Version(number, schema_id)


def add_to_topic(  # noqa: PLR0913 - a schema and its topic
    session: Session, by: str, new: NewVersion, topic: TopicRow, schema_id: int, *, is_enabled: bool
) -> bool:
    """Add the schema unless the topic has it; whether it was added. The caller stores its elements. `is_enabled`: if it
    was disabled with its deleted version, it is enabled again.
    """
    parsed = parse_subject(new.subject)
    assert parsed is not None
    _, part = parsed
    row = next((known for known in topic.schemas if (known.part, known.schema_id) == (part, schema_id)), None)
    is_new = row is None
    if row is None:
        row = TopicSchemaRow(
            topic=topic, part=part, schema_id=schema_id, format=new.format, primary_key="\n".join(new.primary_key)
        )
        session.add(row)
        about = f"{topic.name}: {schema_id}"
        lookups.record(session, by, lookups.Change("add schema", topic.source.namespace.name, about, part.value))
    elif is_enabled and row.status is Status.DISABLED:
        row.status = Status.READ_WRITE
    touch(topic, row)
    return is_new


def ensure_topic_of(session: Session, by: str, subject: str, pii_prefix: str) -> TopicRow | None:
    """The topic of a subject that a client of Confluent's API has named; it is added if it is missing. None if the
    subject has none.
    """
    found = topic_of(subject)
    if found is None:
        return None
    topic, _ = found
    row = lookups.find_topic(session, topic)
    if row is not None:
        return row
    name = parse_topic(topic, pii_prefix)
    source = lookups.ensure_source(session, by, name.namespace, name.source)
    pii = "\n".join(field.path for field in source.fields if field.is_pii)
    row = TopicRow(name=topic, source=source, kind=name.kind, pii=pii)
    session.add(row)
    lookups.record(session, by, lookups.Change("add topic", name.namespace, topic))
    return row


def topic_of(subject: str) -> tuple[str, Part] | None:
    """The topic of a subject, and which part of its messages the subject is about. None also for a name that Kafka
    cannot have: the registry takes any subject.
    """
    found = parse_subject(subject)
    return found if found and lookups.is_name(found[0]) else None
