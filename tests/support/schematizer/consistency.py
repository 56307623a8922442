"""Rules that must hold in every database of the registry, whatever was killed when."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sqlalchemy import select
from sqlalchemy.orm import Session

from schematizer.avro_schemas.elements import elements
from schematizer.model.record_tables import ChangeRow, DecisionRow
from schematizer.model.registry_tables import schemas, versions
from schematizer.model.source_tables import ElementRow, TopicRow, TopicSchemaRow
from schematizer.topic_names import parse_subject, subject_of

if TYPE_CHECKING:
    from sqlalchemy import Connection


def problems(connection: Connection) -> list[str]:
    """A line for each thing that is only half there; empty if all is well."""
    found = []
    subjects: dict[str, list[int]] = {}
    registered = set()
    for subject, version, schema_id in connection.execute(
        select(versions.c.subject, versions.c.version, versions.c.schema_id)
    ):
        subjects.setdefault(subject, []).append(version)
        registered.add((subject, schema_id))
    found += [f"{s}: versions {sorted(v)}" for s, v in subjects.items() if sorted(v) != list(range(1, len(v) + 1))]
    texts = {row.id: row.text for row in connection.execute(select(schemas.c.id, schemas.c.text))}
    found += [f"{count} ids of one schema" for count in Counter(texts.values()).values() if count > 1]
    found += [f"schema {text} has no version" for text in texts.keys() - {schema_id for _, schema_id in registered}]
    with Session(connection) as session:
        found += _catalogue(session, registered, texts)
    return found


def _catalogue(session: Session, registered: set[tuple[str, int]], texts: dict[int, str]) -> list[str]:
    rows = session.execute(
        select(TopicRow.name, TopicSchemaRow.part, TopicSchemaRow.schema_id).join(TopicRow.schemas)
    ).all()
    in_topics = {(subject_of(topic, part), schema_id) for topic, part, schema_id in rows}
    expected = {(subject, schema_id) for subject, schema_id in registered if parse_subject(subject)}
    found = [f"{in_topic} is registered and in no topic" for in_topic in expected - in_topics]
    found += [f"{in_topic} is in a topic and not registered" for in_topic in in_topics - expected]
    empty = set(session.scalars(select(TopicRow.name))) - {topic for topic, _, _ in rows}
    found += [f"{topic} has no schema" for topic in empty]
    counts: Counter[int] = Counter(session.scalars(select(ElementRow.schema_id)))
    used = {schema_id for _, schema_id in in_topics}
    found += [
        f"schema {schema_id} lacks elements"
        for schema_id in used
        if counts[schema_id] != len(elements(texts[schema_id]))
    ]
    decided = {(row.topic_id, row.schema_id) for row in session.scalars(select(DecisionRow))}
    added = {row.about for row in session.scalars(select(ChangeRow).where(ChangeRow.action == "add topic"))}
    found += [f"no change says that {topic} was added" for topic in {topic for topic, _, _ in rows} - added]
    dangling = decided - {(row.topic_id, row.schema_id) for row in session.scalars(select(TopicSchemaRow))}
    found += [f"a decision for {schema_id}, which is not there" for schema_id in dangling]
    return found
