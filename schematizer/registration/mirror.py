"""Keeps the catalogue in step with Confluent's API: what is registered or deleted there is added or disabled here, in
the same transaction. Only subjects `<topic>-value` and `<topic>-key` have a topic.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import false, select
from sqlalchemy.orm import Session

from cdc_common.clients.registry.kinds import Status
from schematizer.catalogue import lookups
from schematizer.catalogue.schemas import store_elements
from schematizer.model.database import write_in_session
from schematizer.model.registry_tables import schemas, versions
from schematizer.model.source_tables import TopicRow, TopicSchemaRow
from schematizer.registration.register_version import (
    NewVersion,
    Version,
    add_to_topic,
    ensure_topic_of,
    register_version,
    topic_of,
)
from schematizer.topic_names import subject_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection

    from schematizer.catalogue.usage import Usage
    from schematizer.model.database import Database

BY = "confluent"
"""Who changed the catalogue, where a client of Confluent's API did."""
FORMAT = "avro"
_AT_ONCE = 500


class Mirror:
    """Called by the registry's store, within its transactions (`used`: outside them)."""

    def __init__(self, pii_prefix: str = "", usage: Usage | None = None) -> None:
        """`usage`: None if usage is not recorded."""
        self._pii_prefix = pii_prefix
        self._usage = usage

    def used(self, subject: str | None, schema_id: int) -> None:
        """A client asked for a schema by its id (subject None), or registered one again."""
        if self._usage is not None:
            self._usage.note(subject, schema_id)

    def register(self, connection: Connection, subject: str, text: str) -> Version:
        """Make the schema a version of the subject."""
        new = NewVersion(subject, text, FORMAT)
        return write_in_session(
            connection, lambda session: register_version(session, BY, new, self._topic_of(session, subject))
        )

    def add_registered(self, connection: Connection, subject: str, schema_id: int, text: str) -> None:
        """Add a version that a program without a catalogue has registered."""
        self.add_all(connection, [(subject, schema_id)], {schema_id: text})

    def add_all(self, connection: Connection, pairs: Sequence[tuple[str, int]], texts: Mapping[int, str]) -> None:
        """Add versions, (subject, schema id), as add_registered does. texts: of their schemas, by id; at most 500."""
        topics: dict[str, TopicRow] = {}

        def add(session: Session) -> None:
            found: dict[int, str] = {}
            with session.no_autoflush:  # all rows are written together
                for subject, schema_id in pairs:
                    parsed = topic_of(subject)
                    if parsed is None:
                        continue
                    topic = topics.get(parsed[0]) or self._topic_of(session, subject)
                    assert topic is not None
                    topics[parsed[0]] = topic
                    new = NewVersion(subject, texts[schema_id], FORMAT)
                    if add_to_topic(session, BY, new, topic, schema_id, is_enabled=True):
                        found[schema_id] = texts[schema_id]
            store_elements(session, found)

        write_in_session(connection, add)

    def _topic_of(self, session: Session, subject: str) -> TopicRow | None:
        return ensure_topic_of(session, BY, subject, self._pii_prefix)

    def deleted(self, connection: Connection, subject: str) -> None:
        """Disable the schemas of deleted versions of the subject in its topic."""
        found = topic_of(subject)
        if found is None:
            return
        topic, part = found
        alive = select(versions.c.schema_id).where(versions.c.subject == subject, versions.c.deleted == false())
        query = (
            select(TopicSchemaRow)
            .join(TopicRow)
            .where(
                TopicRow.name == topic,
                TopicSchemaRow.part == part,
                TopicSchemaRow.status != Status.DISABLED,
                TopicSchemaRow.schema_id.not_in(alive),
            )
        )

        def disable(session: Session) -> None:
            for row in session.scalars(query):
                row.status = Status.DISABLED
                namespace = row.topic.source.namespace.name
                lookups.record(
                    session, BY, lookups.Change("delete schema", namespace, f"{topic}: {row.schema_id}", subject)
                )

        write_in_session(connection, disable)


def adopt(database: Database, mirror: Mirror) -> int:
    """Adds the versions that a program without a catalogue has registered; how many. Safe in several processes."""
    missing = database.read(_missing)
    for start in range(0, len(missing), _AT_ONCE):
        database.write(partial(_adopt, mirror, missing[start : start + _AT_ONCE]))
    return len(missing)


def _missing(connection: Connection) -> list[tuple[str, int]]:
    """(subject, schema id)s of versions whose topic does not have them."""
    with Session(connection) as session:
        known = select(TopicRow.name, TopicSchemaRow.part, TopicSchemaRow.schema_id).join(TopicRow.schemas)
        there = {(subject_of(topic, part), schema_id) for topic, part, schema_id in session.execute(known)}
    query = (
        select(versions.c.subject, versions.c.schema_id)
        .where(versions.c.deleted == false())
        .order_by(versions.c.subject, versions.c.version)
    )
    found = connection.execute(query)
    return [pair for pair in found if pair not in there and topic_of(pair[0]) is not None]


def _adopt(mirror: Mirror, pairs: list[tuple[str, int]], connection: Connection) -> None:
    ids = {schema_id for _, schema_id in pairs}
    query = select(schemas.c.id, schemas.c.text).where(schemas.c.id.in_(ids))
    mirror.add_all(connection, pairs, {row.id: row.text for row in connection.execute(query)})
