"""Record when schemas and topics were last used, and find those that have not been used for a long time."""

from __future__ import annotations

from datetime import timedelta
from threading import Lock
from typing import TYPE_CHECKING

from sqlalchemy import and_, select, update

from cdc_common.clients.registry.kinds import Status, TopicKind
from cdc_common.clients.registry.views import Unused
from schematizer.access import EVERYTHING
from schematizer.catalogue.readable import is_readable_namespace
from schematizer.model.base import now
from schematizer.model.source_tables import NamespaceRow, SourceRow, TopicRow, TopicSchemaRow
from schematizer.topic_names import parse_subject

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from sqlalchemy import ColumnElement
    from sqlalchemy.orm import Session

    from schematizer.access import Grants
    from schematizer.model.database import Database

EXACT_TO = timedelta(hours=1)
"""A use is noted at most this often: reading a schema should not be a write."""
UNUSED_DAYS = 90
"""Schemas and topics that were not used for so long count as unused, unless a request has another time."""
_AT_ONCE = 500
_OF_READERS = TopicRow.kind.in_((TopicKind.CHANGE, TopicKind.OTHER))


class Usage:
    """Collects uses in memory; `flush` writes them, from time to time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        self._seen: set[tuple[str | None, int]] = set()

    def note(self, subject: str | None, schema_id: int) -> None:
        """A client used the schema: in each of its topics, or (with a subject) in that one."""
        with self._lock:
            self._seen.add((subject, schema_id))

    def flush(self) -> None:
        """A use that cannot be written is tried again with the next flush."""
        with self._lock:
            seen, self._seen = self._seen, set()
        if not seen:
            return
        moment = now()
        try:
            # Mostly there is nothing to write: what is read often is looked up without the lock of the writers.
            stale = self._database.read_session(lambda session: _stale(session, seen, moment))
            if stale:
                self._database.write_session(lambda session: _note(session, stale, moment))
        except Exception:
            with self._lock:
                self._seen |= seen
            raise

    def unused(self, days: int, grants: Grants = EVERYTHING) -> list[Unused]:
        """The topics, and the schemas of used topics, that were not used for so many days, are not disabled, and are
        readable with the grants. The longest unused come first. The materializer's own topics (raw, dead) are left out.
        """
        before = now() - timedelta(days=days)
        is_readable = is_readable_namespace(NamespaceRow.name, grants)

        def transaction(session: Session) -> list[Unused]:
            of_topics = select(TopicRow).join(TopicRow.source).join(SourceRow.namespace)
            topics = session.scalars(of_topics.where(is_unused_topic(before), is_readable)).all()
            of_schemas = select(TopicSchemaRow).join(TopicRow).join(TopicRow.source).join(SourceRow.namespace)
            query = of_schemas.where(is_unused_schema(before), is_readable)
            found = [
                Unused(topic=row.name, schema_id=None, last_used_at=row.last_used_at, status=row.status)
                for row in topics
            ]
            found += [
                Unused(topic=row.topic.name, schema_id=row.schema_id, last_used_at=row.last_used_at, status=row.status)
                for row in session.scalars(query)
            ]
            return sorted(found, key=lambda unused: unused.last_used_at)

        return self._database.read_session(transaction)


def touch(*used: TopicRow | TopicSchemaRow) -> None:
    """Note that these are in use now."""
    moment = now()
    for use in used:
        if use.last_used_at is not None and moment - use.last_used_at > EXACT_TO:  # None: it is not stored yet
            use.last_used_at = moment


def is_unused_topic(before: datetime) -> ColumnElement[bool]:
    """The condition that a TopicRow was not used since `before`."""
    return and_(TopicRow.last_used_at < before, TopicRow.status != Status.DISABLED, _OF_READERS)


def is_unused_schema(before: datetime) -> ColumnElement[bool]:
    """The condition on a TopicSchemaRow with its TopicRow that the topic was used since `before`, the schema not."""
    return and_(
        TopicSchemaRow.last_used_at < before,
        TopicSchemaRow.status != Status.DISABLED,
        TopicRow.last_used_at >= before,
        _OF_READERS,
    )


def _stale(session: Session, seen: set[tuple[str | None, int]], moment: datetime) -> list[tuple[int, int]]:
    """(id, topic id)s of the rows of topic_schemas that were used and say so of a time that is too long ago."""
    topics = {(subject, schema_id): parse_subject(subject) if subject else None for subject, schema_id in seen}
    everywhere = {schema_id for (_, schema_id), topic in topics.items() if topic is None}
    in_topics = {(*topic, schema_id) for (_, schema_id), topic in topics.items() if topic is not None}
    query = (
        select(TopicSchemaRow.id, TopicSchemaRow.topic_id, TopicSchemaRow.part, TopicSchemaRow.schema_id, TopicRow.name)
        .join(TopicRow)
        .where(TopicSchemaRow.last_used_at < moment - EXACT_TO)
    )
    found: list[tuple[int, int]] = []
    for schema_ids in _batched({schema_id for _, schema_id in seen}):
        found += [
            (row.id, row.topic_id)
            for row in session.execute(query.where(TopicSchemaRow.schema_id.in_(schema_ids)))
            if row.schema_id in everywhere or (row.name, row.part, row.schema_id) in in_topics
        ]
    return found


def _note(session: Session, stale: list[tuple[int, int]], moment: datetime) -> None:
    for ids in _batched({used for used, _ in stale}):
        session.execute(update(TopicSchemaRow).where(TopicSchemaRow.id.in_(ids)).values(last_used_at=moment))
    for ids in _batched({topic for _, topic in stale}):
        session.execute(update(TopicRow).where(TopicRow.id.in_(ids)).values(last_used_at=moment))


def _batched(ids: set[int]) -> Iterator[list[int]]:
    """Yield the ids in order, as many at a time as one statement takes."""
    every = sorted(ids)
    return (every[start : start + _AT_ONCE] for start in range(0, len(every), _AT_ONCE))
