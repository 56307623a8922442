"""Producers and consumers: who writes and reads which topic, and when they were last seen."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import contains_eager

from cdc_common.clients.registry.views import Consumer, Producer
from schematizer.catalogue import lookups
from schematizer.errors import invalid
from schematizer.model.base import now
from schematizer.model.client_tables import ConsumerRow, ProducerRow
from schematizer.model.record_tables import OutboxRow
from schematizer.model.source_tables import TopicRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import ColumnElement
    from sqlalchemy.orm import Session

    from schematizer.catalogue.rules import Rules
    from schematizer.model.database import Database

RowT = TypeVar("RowT", ProducerRow, ConsumerRow)
ViewT = TypeVar("ViewT", Producer, Consumer)
LATE = 2
"""A client is late after this many times its expected frequency."""


@dataclass(frozen=True, slots=True)
class ProducerRegistration:
    """`expected_frequency_seconds`: how often it registers itself or writes, at least."""

    kind: ClassVar = "producer"

    # The team of the service.
    team: str
    # The service's name.
    service: str
    # The topic that it writes.
    topic: str
    # The id of the schema that it writes with.
    schema_id: int
    # How often it registers itself or writes, at least, in seconds.
    expected_frequency_seconds: int


@dataclass(frozen=True, slots=True)
class ConsumerRegistration:
    """A service that registers as a consumer of a topic."""

    kind: ClassVar = "consumer"

    # The team of the service.
    team: str
    # The service's name.
    service: str
    # The topic that it reads.
    topic: str
    # Kafka's name of its group.
    consumer_group: str
    # How often it registers itself or reads, at least, in seconds.
    expected_frequency_seconds: int


class Clients:
    def __init__(self, database: Database, rules: Rules) -> None:
        self._database = database
        self._is_announced = rules.is_announced

    def producers(self, topic: str | None = None, team: str | None = None) -> list[Producer]:
        return self._views(ProducerRow, _producer, topic, team)

    def consumers(self, topic: str | None = None, team: str | None = None) -> list[Consumer]:
        return self._views(ConsumerRow, _consumer, topic, team)

    def register_producer(self, wanted: ProducerRegistration, *, by: str) -> Producer:
        """Register a producer. Idempotent; each call counts as being seen. The registration also goes to Kafka, by the
        outbox.
        """

        def transaction(session: Session) -> Producer:
            [used, *_] = lookups.topic_schema_rows(session, wanted.topic, wanted.schema_id)
            row = _row(session, ProducerRow, wanted, used.topic, ProducerRow.schema_id == wanted.schema_id)
            row.schema_id, used.last_used_at = wanted.schema_id, self._seen(session, row, wanted, by)
            lookups.added(session, row)
            return _producer(row)

        return self._written(wanted, transaction)

    def register_consumer(self, wanted: ConsumerRegistration, *, by: str) -> Consumer:
        """Register a consumer. Idempotent; each call counts as being seen. The registration also goes to Kafka, by the
        outbox.
        """

        def transaction(session: Session) -> Consumer:
            topic, group = lookups.topic_row(session, wanted.topic), wanted.consumer_group
            row = _row(session, ConsumerRow, wanted, topic, ConsumerRow.consumer_group == group)
            row.consumer_group = group
            self._seen(session, row, wanted, by)
            lookups.added(session, row)
            return _consumer(row)

        return self._written(wanted, transaction)

    def remove(
        self, kind: type[ProducerRow | ConsumerRow], topic: str, service: str, group: str | None, *, by: str
    ) -> int:
        """Forget a service as producer or consumer of a topic. Return how many registrations it had. `group`: of a
        consumer; None for all. It comes back when it registers again.
        """

        def transaction(session: Session) -> int:
            found = lookups.topic_row(session, topic)
            query = select(kind).where(kind.topic_id == found.id, kind.service == service)
            if group is not None:
                query = query.where(ConsumerRow.consumer_group == group)
            rows = list(session.scalars(query))
            for row in rows:
                session.delete(row)
            if rows:
                what = "producer" if kind is ProducerRow else "consumer"
                namespace = found.source.namespace.name
                lookups.record(session, by, lookups.Change(f"remove {what}", namespace, f"{service} of {topic}"))
            return len(rows)

        return self._database.write_session(transaction)

    def _views(
        self, table: type[RowT], view: Callable[[RowT], ViewT], topic: str | None, team: str | None
    ) -> list[ViewT]:
        """The clients of a topic, those of a team, or all."""

        def transaction(session: Session) -> list[ViewT]:
            query = select(table).join(TopicRow).options(contains_eager(table.topic))
            query = query.order_by(TopicRow.name, table.service, table.id)
            if topic is not None:
                query = query.where(TopicRow.id == lookups.topic_row(session, topic).id)
            if team is not None:
                query = query.where(table.team == team)
            return [view(row) for row in session.scalars(query)]

        return self._database.read_session(transaction)

    def _written(
        self, wanted: ProducerRegistration | ConsumerRegistration, transaction: Callable[[Session], ViewT]
    ) -> ViewT:
        _check(wanted)
        return self._database.write_session(transaction)

    def _seen(
        self,
        session: Session,
        row: ProducerRow | ConsumerRow,
        wanted: ProducerRegistration | ConsumerRegistration,
        by: str,
    ) -> datetime:
        """Note that a client was seen now. The row has what was registered; a new one is recorded."""
        moment = now()
        if row.id is None:
            row.first_seen_at = moment
            about = f"{wanted.service} of {wanted.topic}"
            namespace = row.topic.source.namespace.name
            lookups.record(session, by, lookups.Change(f"add {wanted.kind}", namespace, about))
        row.team, row.expected_frequency_seconds = wanted.team, wanted.expected_frequency_seconds
        row.last_seen_at = row.topic.last_used_at = moment
        if self._is_announced:
            value = {"kind": wanted.kind, **asdict(wanted), "seen_at": moment.isoformat()}
            session.add(OutboxRow(key=f"{wanted.kind} {wanted.service} {wanted.topic}", value=json.dumps(value)))
        return moment


def _row(
    session: Session,
    table: type[RowT],
    wanted: ProducerRegistration | ConsumerRegistration,
    topic: TopicRow,
    reads_or_writes: ColumnElement[bool],
) -> RowT:
    """That of the service and the topic, or a new one that is not yet added."""
    query = select(table).where(table.service == wanted.service, table.topic_id == topic.id, reads_or_writes)
    return session.scalar(query) or table(service=wanted.service, topic=topic)


def _check(wanted: ProducerRegistration | ConsumerRegistration) -> None:
    if not wanted.team or not wanted.service or wanted.expected_frequency_seconds < 1:
        raise invalid(
            f"A registration for {wanted.topic} lacks a team, a service or an expected frequency.",
            "Name all three; the frequency is a number of seconds from 1.",
        )


def _is_late(row: ProducerRow | ConsumerRow) -> bool:
    return now() - row.last_seen_at > timedelta(seconds=LATE * row.expected_frequency_seconds)


def _producer(row: ProducerRow) -> Producer:
    return Producer(
        team=row.team,
        service=row.service,
        topic=row.topic.name,
        schema_id=row.schema_id,
        expected_frequency_seconds=row.expected_frequency_seconds,
        first_seen_at=row.first_seen_at,
        last_seen_at=row.last_seen_at,
        is_late=_is_late(row),
    )


def _consumer(row: ConsumerRow) -> Consumer:
    return Consumer(
        team=row.team,
        service=row.service,
        topic=row.topic.name,
        consumer_group=row.consumer_group,
        expected_frequency_seconds=row.expected_frequency_seconds,
        first_seen_at=row.first_seen_at,
        last_seen_at=row.last_seen_at,
        is_late=_is_late(row),
    )
