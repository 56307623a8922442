"""Producers and consumers: who writes and reads which topic, and when they were last seen."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import select

from schematizer.catalogue import lookups
from schematizer.errors import invalid
from schematizer.model.base import now
from schematizer.model.client_tables import ConsumerRow, ProducerRow
from schematizer.model.record_tables import OutboxRow
from schematizer.model.source_tables import TopicRow
from schematizer.views import Consumer, Producer

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

    from schematizer.catalogue.rules import Rules
    from schematizer.model.database import Database

_LATE = 2
"""A client is late after this many times its expected frequency."""


@dataclass(frozen=True, slots=True)
class ProducerRegistration:
    """`expected_frequency_seconds`: how often it registers itself or writes, at least."""

    team: str
    service: str
    topic: str
    schema_id: int
    expected_frequency_seconds: int


@dataclass(frozen=True, slots=True)
class ConsumerRegistration:
    team: str
    service: str
    topic: str
    consumer_group: str
    expected_frequency_seconds: int


class Clients:
    def __init__(self, database: Database, rules: Rules) -> None:
        self._database = database
        self._is_announced = rules.is_announced

    def producers(self, topic: str | None = None, team: str | None = None) -> list[Producer]:
        def transaction(session: Session) -> list[Producer]:
            query = select(ProducerRow).join(TopicRow).order_by(TopicRow.name, ProducerRow.service, ProducerRow.id)
            if topic is not None:
                query = query.where(TopicRow.id == lookups.topic_row(session, topic).id)
            if team is not None:
                query = query.where(ProducerRow.team == team)
            return [_producer(row) for row in session.scalars(query)]

        return self._database.read_session(transaction)

    def consumers(self, topic: str | None = None, team: str | None = None) -> list[Consumer]:
        def transaction(session: Session) -> list[Consumer]:
            query = select(ConsumerRow).join(TopicRow).order_by(TopicRow.name, ConsumerRow.service, ConsumerRow.id)
            if topic is not None:
                query = query.where(TopicRow.id == lookups.topic_row(session, topic).id)
            if team is not None:
                query = query.where(ConsumerRow.team == team)
            return [_consumer(row) for row in session.scalars(query)]

        return self._database.read_session(transaction)

    def register_producer(self, wanted: ProducerRegistration, *, by: str) -> Producer:
        """Idempotent; each call counts as being seen. The registration also goes to Kafka, by the outbox."""
        _check(wanted)

        def transaction(session: Session) -> Producer:
            [used, *_] = lookups.topic_schema_rows(session, wanted.topic, wanted.schema_id)
            query = select(ProducerRow).where(
                ProducerRow.service == wanted.service,
                ProducerRow.topic_id == used.topic_id,
                ProducerRow.schema_id == wanted.schema_id,
            )
            seen_at = now()
            row = session.scalar(query)
            if row is None:
                row = ProducerRow(
                    service=wanted.service, topic=used.topic, schema_id=wanted.schema_id, first_seen_at=seen_at
                )
                namespace = used.topic.source.namespace.name
                lookups.record(
                    session, by, lookups.Deed("add producer", namespace, f"{wanted.service} of {wanted.topic}")
                )
            row.team, row.expected_frequency_seconds = wanted.team, wanted.expected_frequency_seconds
            row.last_seen_at = used.last_used_at = used.topic.last_used_at = seen_at
            lookups.added(session, row)
            self._announce(session, "producer", wanted, seen_at)
            return _producer(row)

        return self._database.write_session(transaction)

    def register_consumer(self, wanted: ConsumerRegistration, *, by: str) -> Consumer:
        """Idempotent; each call counts as being seen. The registration also goes to Kafka, by the outbox."""
        _check(wanted)

        def transaction(session: Session) -> Consumer:
            topic = lookups.topic_row(session, wanted.topic)
            query = select(ConsumerRow).where(
                ConsumerRow.service == wanted.service,
                ConsumerRow.topic_id == topic.id,
                ConsumerRow.consumer_group == wanted.consumer_group,
            )
            seen_at = now()
            row = session.scalar(query)
            if row is None:
                row = ConsumerRow(
                    service=wanted.service, topic=topic, consumer_group=wanted.consumer_group, first_seen_at=seen_at
                )
                lookups.record(
                    session,
                    by,
                    lookups.Deed("add consumer", topic.source.namespace.name, f"{wanted.service} of {wanted.topic}"),
                )
            row.team, row.expected_frequency_seconds = wanted.team, wanted.expected_frequency_seconds
            row.last_seen_at = topic.last_used_at = seen_at
            lookups.added(session, row)
            self._announce(session, "consumer", wanted, seen_at)
            return _consumer(row)

        return self._database.write_session(transaction)

    def _announce(
        self, session: Session, kind: str, wanted: ProducerRegistration | ConsumerRegistration, seen_at: datetime
    ) -> None:
        if self._is_announced:
            value = {"kind": kind, **asdict(wanted), "seen_at": seen_at.isoformat()}
            session.add(OutboxRow(key=f"{kind} {wanted.service} {wanted.topic}", value=json.dumps(value)))


def _check(wanted: ProducerRegistration | ConsumerRegistration) -> None:
    if not wanted.team or not wanted.service or wanted.expected_frequency_seconds < 1:
        raise invalid(
            f"A registration for {wanted.topic} lacks a team, a service or an expected frequency.",
            "Name all three; the frequency is a number of seconds from 1.",
        )


def _is_late(row: ProducerRow | ConsumerRow) -> bool:
    return now() - row.last_seen_at > timedelta(seconds=_LATE * row.expected_frequency_seconds)


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
