"""Follow a source's rows from where they come to where they go: table → raw topic → change topic → consumers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import select

from cdc_common.clients.registry.kinds import TopicKind
from cdc_common.clients.registry.views import (
    CassandraTable,
    Lineage,
    Reader,
    Stage,
    StageKind,
)
from schematizer.catalogue import lookups
from schematizer.catalogue.overview import groups_of_source
from schematizer.model.client_tables import ConsumerRow
from schematizer.model.source_tables import TopicRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sqlalchemy.orm import Session

    from cdc_common.clients.registry.views import Topic
    from schematizer.catalogue.topics import Topics
    from schematizer.model.database import Database

    LagsOf = Callable[[str], Mapping[str, int]]


class Registered(NamedTuple):
    """A service that registered as a consumer of a topic."""

    # The topic's name.
    topic: str
    # Kafka's name of its group.
    group: str
    # The service's name.
    service: str


def unknown_lags(_topic: str) -> Mapping[str, int]:
    """No lags: the registry does not measure Kafka."""
    return {}


class Lineages:
    def __init__(self, database: Database, topics: Topics) -> None:
        self._database = database
        self._topics = topics

    def of_source(self, namespace: str, source: str, lags_of: LagsOf = unknown_lags) -> Lineage:
        """`lags_of`: by consumer group, the offsets of a topic that it has not read. NOT_FOUND."""

        def transaction(session: Session) -> Lineage:
            row = lookups.source_row(session, namespace, source)
            query = (
                select(TopicRow.name, ConsumerRow.consumer_group, ConsumerRow.service)
                .join(ConsumerRow.topic)
                .where(TopicRow.source_id == row.id)
                .order_by(TopicRow.id, ConsumerRow.service, ConsumerRow.id)
            )
            table = CassandraTable(keyspace=namespace.rpartition(".")[2], name=source)
            topics = [self._topics.view(topic) for topic in row.topics]
            readers = Readers(
                [Registered(*columns) for columns in session.execute(query)],
                {group.name: group.data_target.name for group in groups_of_source(session, row)},
                lags_of,
            )
            return Lineage(namespace=namespace, source=source, stages=stages(table, topics, readers))

        return self._database.read_session(transaction)


class Readers(NamedTuple):
    """The readers of a source."""

    # The services that registered as consumers of its topics.
    registered: Sequence[Registered]
    # The data targets, by those of their consumer groups that read it.
    fills: Mapping[str, str]
    # Returns the lags of a group.
    lags_of: LagsOf

    def of(self, topics: Sequence[str]) -> list[Reader]:
        """Return the topics' readers, ordered by group: those that registered, that fill a data target, or that Kafka
        has seen.
        """
        read: dict[str, dict[str, None]] = {}
        services: dict[str, dict[str, None]] = {}
        lags: dict[str, dict[str, int]] = {}
        for topic, group, service in self.registered:
            if topic in topics:
                read.setdefault(group, {})[topic] = None
                services.setdefault(group, {})[service] = None
        for group in self.fills:
            read.setdefault(group, {}).update(dict.fromkeys(topics))
        for topic in topics:
            for group, lag in self.lags_of(topic).items():
                lags.setdefault(group, {})[topic] = lag
                read.setdefault(group, {})[topic] = None
        return [
            Reader(
                group=group,
                services=list(services.get(group, ())),
                data_target=self.fills.get(group),
                topics=list(read[group]),
                lags=lags.get(group, {}),
            )
            for group in sorted(read)
        ]


def stages(table: CassandraTable, topics: Iterable[Topic], readers: Readers) -> list[Stage]:
    """Return the stages in the order in which rows pass them. A source without a raw topic has no table, because
    nothing says that it is one.
    """
    by_kind: dict[TopicKind, list[Topic]] = {kind: [] for kind in TopicKind}
    for topic in topics:
        by_kind[topic.kind].append(topic)
    raw, read = by_kind[TopicKind.RAW], by_kind[TopicKind.CHANGE] + by_kind[TopicKind.OTHER]
    before = [Stage(kind=StageKind.TABLE, tables=[table]), Stage(kind=StageKind.RAW, topics=raw)] if raw else []
    return [
        *before,
        Stage(kind=StageKind.CHANGE if raw else StageKind.OTHER, topics=read + by_kind[TopicKind.DEAD]),
        Stage(kind=StageKind.CONSUMERS, readers=readers.of([topic.name for topic in read])),
    ]
