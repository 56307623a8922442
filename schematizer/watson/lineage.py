"""Where a source's rows come from and where they go: table → raw topic → change topic → consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from schematizer.model.source_tables import TopicKind
from schematizer.views import Topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from schematizer.measures.measured import Measured
    from schematizer.measures.sampler import Measures
    from schematizer.views import Consumer, ConsumerGroup, Source


class Table(NamedTuple):
    keyspace: str
    name: str


class Reader(NamedTuple):
    """A consumer of change topics. `registered`: services that named themselves; `data_target`: what the group fills;
    `lags`: offsets that it has not read, by topic; empty if it is unknown.
    """

    group: str
    services: tuple[str, ...]
    data_target: str | None
    topics: tuple[str, ...]
    lags: dict[str, int]


class Lineage(NamedTuple):
    """`table` is None for a source that has no raw topic: nothing says that it is a Cassandra table."""

    table: Table | None
    raw: list[Topic]
    change: list[Topic]
    dead: list[Topic]
    readers: list[Reader]


def lineage(
    source: Source,
    topics: Sequence[Topic],
    consumers: Iterable[Consumer],
    groups: Iterable[ConsumerGroup],
    measures: Measures,
) -> Lineage:
    """`consumers` and `groups`: those that read any topic of the source."""
    by_kind = {kind: [topic for topic in topics if topic.kind is kind] for kind in TopicKind}
    raw, read = by_kind[TopicKind.RAW], by_kind[TopicKind.CHANGE] + by_kind[TopicKind.OTHER]
    table = Table(source.namespace.rpartition(".")[2], source.name) if raw else None
    measured = {topic.name: found for topic in read if (found := measures.of(topic.name)) is not None}
    return Lineage(table, raw, read, by_kind[TopicKind.DEAD], _readers(read, consumers, groups, measured))


def _readers(
    topics: Sequence[Topic],
    consumers: Iterable[Consumer],
    groups: Iterable[ConsumerGroup],
    measured: dict[str, Measured],
) -> list[Reader]:
    """By the name of the group: of those that registered, that fill a data target, or that Kafka has seen."""
    names = [topic.name for topic in topics]
    read: dict[str, dict[str, None]] = {}
    services: dict[str, dict[str, None]] = {}
    targets: dict[str, str] = {}
    for consumer in consumers:
        if consumer.topic in names:
            read.setdefault(consumer.consumer_group, {})[consumer.topic] = None
            services.setdefault(consumer.consumer_group, {})[consumer.service] = None
    for group in groups:
        targets[group.name] = group.data_target
        read.setdefault(group.name, {}).update(dict.fromkeys(names))
    lags: dict[str, dict[str, int]] = {}
    for topic, found in measured.items():
        for name, lag in found.lags.items():
            lags.setdefault(name, {})[topic] = lag
            read.setdefault(name, {})[topic] = None
    return [
        Reader(name, tuple(services.get(name, ())), targets.get(name), tuple(read[name]), lags.get(name, {}))
        for name in sorted(read)
    ]
