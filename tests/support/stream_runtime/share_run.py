"""Runs of processes that copy the messages of two partitions in shares, for the chaos matrix.

The processes of a run may believe in different shares: each takes the next definition of the setup.
"""

from __future__ import annotations

import math
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.settings import KafkaSettings
from stream_runtime.exactly_once.chunks import ChunkSettings
from stream_runtime.exactly_once.commits import StoredOffset
from stream_runtime.exactly_once.committed import encode
from stream_runtime.exactly_once.stateless_task import StatelessSettings, StatelessTask, Transformed
from stream_runtime.fault_points import StatelessPoint, reach
from stream_runtime.kafka import PRODUCER_DEFAULTS, Topics, read_partition, send_all
from stream_runtime.kafka.commits import KafkaCommits
from stream_runtime.kafka.source_reader import SourceReader
from stream_runtime.records import Message, Share, SourcePartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stream_runtime.records import SourceRecord, TopicShape

Definition = tuple[tuple[int, ...], ...]
TOGETHER: Definition = ((0, 1),)
"""One share has both partitions."""
APART: Definition = ((0,), (1,))
"""Each partition is a share of its own."""
PARTITIONS = 2
POINTS = [point for point in StatelessPoint if point is not StatelessPoint.SCHEMAS_REGISTERED]
"""The points that a run reaches: it registers no schemas."""
END_SECONDS = 60.0
_CHUNK = 20
_AT_ONCE = 60


class ShareSetup(NamedTuple):
    """A source with its target. It is pickled."""

    bootstrap: str
    prefix: str
    folder: str
    definitions: tuple[Definition, ...] = (TOGETHER,)
    """The shares that the processes of the run believe in, one after another, and again from the first one."""

    @property
    def kafka(self) -> KafkaSettings:
        return KafkaSettings(bootstrap_servers=self.bootstrap, replication_factor=1)

    @property
    def source(self) -> str:
        return f"{self.prefix}.source"

    @property
    def target(self) -> str:
        return f"{self.prefix}.target"

    def make_topics(self) -> None:
        for topic in (self.source, self.target):
            Topics(self.kafka).make_change_topic(topic, PARTITIONS, is_keyed=False)

    def send(self, numbers: range) -> None:
        """Send messages with these numbers to each partition."""
        parts = range(PARTITIONS)
        send_all(self.kafka, (Message(self.source, part, b"%d" % number, b"v") for number in numbers for part in parts))

    def run(self, until: int | None = None, **settings: object) -> None:
        """Copy all messages that are there, in this process. Raise what a task fails with."""
        assert until is None
        assert not settings
        number = _claim_number(Path(self.folder))
        for numbers in self.definitions[number % len(self.definitions)]:
            _Copy(self, tuple(SourcePartition(self.source, number) for number in numbers)).run()

    def check(self, messages: int) -> None:
        """Check that so many messages came out of each partition, each once, in order."""
        for partition in range(PARTITIONS):
            received = [int(key) for key, _ in read_partition(self.kafka, self.target, partition)]
            assert received == list(range(messages)), f"partition {partition}: {len(received)} of {messages}, or others"


class _Copy:
    """A process's task of a share."""

    def __init__(self, setup: ShareSetup, partitions: tuple[SourcePartition, ...]) -> None:
        self._setup = setup
        self._topics = Topics(setup.kafka)
        self._shape: TopicShape = self._topics.shapes([setup.source])[setup.source]
        self._share = Share(setup.source, partitions, _share_id(partitions))

    def run(self) -> None:
        reader = SourceReader(self._setup.kafka, self._setup.prefix)
        try:
            reach(StatelessPoint.TASK_OPENING)
            commits = KafkaCommits(
                self._setup.kafka,
                self._setup.prefix,
                self._share,
                reader,
                PRODUCER_DEFAULTS,
                before_commit=StatelessPoint.OFFSET_SENT,
                first_offset=self._first_offset,
            )
            try:
                self._copy_all(reader, commits)
            finally:
                commits.close()
        finally:
            reader.close()

    def _copy_all(self, reader: SourceReader, commits: KafkaCommits) -> None:
        settings = StatelessSettings(ChunkSettings(1 << 20, _CHUNK, math.inf), refresh_seconds=3600.0)
        shapes = dict.fromkeys(self._share.partitions, self._shape)
        task = StatelessTask(commits, settings, shapes)
        for partition in self._share.partitions:
            reader.add(partition, task.offset(partition))
        deadline = time.monotonic() + END_SECONDS
        while not self._is_done(task):
            assert time.monotonic() < deadline, "it does not come to the end"
            read = reader.read(_AT_ONCE, 0.1)
            assert not read.errors, read.errors
            reach(StatelessPoint.POLLED)
            for partition, records in read.records.items():
                done = task.process(partition, records, read.following[partition], self._transform_of(partition))
                assert done.error is None

    def _is_done(self, task: StatelessTask) -> bool:
        ends = self._topics.bounds(self._share.partitions)
        return all((task.offset(partition) or 0) >= end for partition, (_, end) in ends.items())

    def _transform_of(self, partition: SourcePartition) -> _Transform:
        return _Transform(self._setup.target, partition.partition)

    def _first_offset(self, _partition: SourcePartition) -> StoredOffset:
        return StoredOffset(0, encode(self._shape, time.time(), sent=False))


class _Transform:
    """Copies the messages of a partition."""

    def __init__(self, target: str, partition: int) -> None:
        self._target = target
        self._partition = partition

    def __call__(self, records: Sequence[SourceRecord]) -> Transformed:
        return Transformed(list(self._messages(records)))

    def _messages(self, records: Sequence[SourceRecord]) -> Iterator[Message]:
        for record in records:
            assert record.key is not None
            yield Message(self._target, self._partition, record.key, record.value)


def _share_id(partitions: tuple[SourcePartition, ...]) -> str:
    if len(partitions) == 1:
        return str(partitions[0])
    return f"{partitions[0].topic}/{'+'.join(str(partition.partition) for partition in partitions)}"


def _claim_number(folder: Path) -> int:
    """The number of this process, or of this attempt, in its run."""
    for number in count():
        try:
            (folder / f"process-{number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        return number
    raise AssertionError
