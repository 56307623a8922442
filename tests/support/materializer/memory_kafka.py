"""Kafka as far as a raw topic's states need it, in memory: offsets of a group, transactions that fence each other."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from materializer.errors import RAW_FAULTS
from materializer.records import RawPartition, RawRecord
from stream_runtime.exactly_once.position import Position, decode
from stream_runtime.records import Message, TopicShape

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pytest

    from stream_runtime.exactly_once.commits import StoredOffset
    from stream_runtime.records import ChangeRun


class FencedError(Exception):
    """Another producer has the transactional id."""


class MemoryKafka:
    """One raw topic. `install` puts it where the materializer's own clients are."""

    consumer = None

    def __init__(self, topic: str, partitions: int) -> None:
        self.topic = topic
        self.raw: list[list[RawRecord]] = [[] for _ in range(partitions)]
        self.positions: dict[RawPartition, Position] = {}
        self.messages: list[Message] = []
        self._owners: dict[object, MemoryProducer] = {}
        self._now = itertools.count(1_700_000_000_000)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        for module in ("materializer.commands.reshard.reshard", "stream_runtime.kafka.commits"):
            patch.setattr(f"{module}.FencingProducer", self.producer)
        for module in ("commands.reshard.folds", "commands.reshard.survey", "commands.reshard.backlog"):
            patch.setattr(f"materializer.{module}.read_raw", self.read_raw)
        patch.setattr("materializer.commands.reshard.reshard.GroupPositions", lambda *_: self)
        patch.setattr("materializer.worker.wiring._positions", lambda *_: self)
        patch.setattr("materializer.commands.reshard.survey.Topics", lambda *_: self)

    def append(self, partition: int, key: bytes, value: bytes) -> None:
        self.raw[partition].append(RawRecord(key, value, len(self.raw[partition]), next(self._now)))

    def add_partitions(self, partitions: int) -> None:
        self.raw += [[] for _ in range(partitions - len(self.raw))]

    def producer(self, _settings: object, _group: str, name: object, *_: object) -> MemoryProducer:
        made = self._owners[name] = MemoryProducer(self, name)
        return made

    def owns(self, producer: MemoryProducer) -> bool:
        return self._owners[producer.name] is producer

    # stream_runtime.kafka.GroupPositions
    def read(self, partitions: Collection[RawPartition]) -> dict[RawPartition, Position | None]:
        return {raw_partition: self.positions.get(raw_partition) for raw_partition in partitions}

    def stored(self, partitions: Collection[RawPartition]) -> dict[RawPartition, StoredOffset | None]:
        return {
            raw_partition: position and position.stored() for raw_partition, position in self.read(partitions).items()
        }

    # stream_runtime.kafka.Topics
    def partition_counts(self) -> dict[str, int]:
        return {self.topic: len(self.raw)}

    def shapes(self, _topics: Collection[str]) -> dict[str, TopicShape]:
        return {self.topic: TopicShape(len(self.raw), "id")}

    def bounds(self, partitions: Sequence[RawPartition]) -> dict[RawPartition, tuple[int, int]]:
        return {raw_partition: (0, len(self.raw[raw_partition.partition])) for raw_partition in partitions}

    def read_raw(self, _settings: object, partition: RawPartition, first: int, end: int) -> Iterator[RawRecord]:
        yield from self.raw[partition.partition][first:end]


class _Open(NamedTuple):
    messages: list[Message]
    positions: dict[RawPartition, Position]


class MemoryProducer:
    """stream_runtime.kafka.FencingProducer."""

    def __init__(self, kafka: MemoryKafka, name: object) -> None:
        self.name = name
        self._kafka = kafka
        self._open: _Open | None = None

    def begin(self) -> None:
        assert self._open is None
        self._open = _Open([], {})

    def send(self, message: Message) -> None:
        assert self._open is not None
        self._open.messages.append(message)

    def send_changes(self, run: ChangeRun) -> None:
        for message in run.messages():
            self.send(message)

    def send_positions(self, positions: Mapping[RawPartition, Position]) -> None:
        assert self._open is not None
        self._open.positions.update(positions)

    def send_offsets(self, offsets: Mapping[RawPartition, StoredOffset]) -> None:
        self.send_positions(
            {
                raw_partition: decode(stored.offset, stored.metadata, raw_partition, RAW_FAULTS)
                for raw_partition, stored in offsets.items()
            }
        )

    def commit(self) -> None:
        if not self._kafka.owns(self):
            raise FencedError
        assert self._open is not None
        self._kafka.messages += self._open.messages
        self._kafka.positions |= self._open.positions
        self._open = None

    def abandon(self) -> None:
        self._open = None
