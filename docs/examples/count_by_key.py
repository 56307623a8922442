"""Count a topic's messages by key, exactly once: how a new program starts on the stream runtime.

    python docs/examples/count_by_key.py localhost:9092 orders counts /var/lib/counts

Each message (key, value) of the topic `orders` becomes a message (key, number of messages with this key so far) of the
topic `counts`. Both topics exist, with the same number of partitions. Kill it at any moment: after a restart, each
message is counted once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.settings import KafkaSettings
from stream_runtime.driver.stateful_job import run_stateful_job
from stream_runtime.exactly_once.processor import Processor
from stream_runtime.faults import Faults
from stream_runtime.records import Message
from stream_runtime.settings import StatefulSettings
from stream_runtime.words import Words
from stream_runtime.worker.stateful_loop import StatefulJob

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stream_runtime.exactly_once.report import Report
    from stream_runtime.records import Record, SourcePartition, TopicShape
    from stream_runtime.state.reader import StateReader


class Counted(NamedTuple):
    """The result of a chunk of messages."""

    writes: dict[bytes, bytes | None]
    """The new counts, which go into the state."""
    now_ms: int
    """The time of the last message, which is kept with the state."""
    messages: list[tuple[bytes, bytes]]
    """A key and its count for each message."""
    left: int = 0
    """How many messages are left for another transaction."""


class CountByKey(Processor[Counted]):
    """Counts the messages of a topic."""

    def __init__(self, shape: TopicShape, target: str) -> None:
        self.shape = shape
        self._target = target

    def fold(self, state: StateReader, records: Sequence[Record]) -> Counted:
        """Count the messages of a chunk. The state has the counts before it; what is returned becomes true with the
        messages, and with the offset after them, or not at all.
        """
        counts: dict[bytes, bytes | None] = {}
        messages: list[tuple[bytes, bytes]] = []
        for record in records:
            stored = b"count/" + record.key
            count = b"%d" % (int(counts.get(stored) or state.get(stored) or 0) + 1)
            counts[stored] = count
            messages.append((record.key, count))
        return Counted(counts, records[-1].timestamp_ms, messages)

    def messages(self, partition: SourcePartition, result: Counted) -> Iterator[Message]:
        """A message for each count, to the partition that the key came from."""
        for key, count in result.messages:
            yield Message(self._target, partition.partition, key, count)

    def add_to(self, report: Report, first: int, end: int, result: Counted) -> Report:
        return report.with_chunk(first, end, changes=len(result.messages), native=0)


class CountFaults(Faults):
    """The job's words, in errors, logs, metrics and Spark's UI."""

    words = Words("counter", "partition", "source topic", "count", "counted")


class CountJob(StatefulJob):
    """Its source, what it does with it, and where it commits."""

    faults = CountFaults()

    def __init__(self, kafka: KafkaSettings, settings: StatefulSettings, source: str, target: str) -> None:
        super().__init__(kafka, settings, [source])
        self._target = target

    def processor(self, topic: str, shape: TopicShape) -> CountByKey:  # noqa: ARG002 - there is one topic
        return CountByKey(shape, self._target)


if __name__ == "__main__":
    servers, source, target, folder = sys.argv[1:]
    settings = StatefulSettings(
        group_id="count-by-key",
        spark_master="local[2]",
        checkpoint_location=f"{folder}/checkpoint",
        state_directory=Path(folder, "states"),
    )
    run_stateful_job(CountJob(KafkaSettings(bootstrap_servers=servers), settings, source, target))
