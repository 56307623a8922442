"""A trivial fold, to try the protocol with: it counts each key's messages and emits each count."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.changes import RowChange, Source
from cdc_common.messages.topics import partition_for
from materializer.fold.result import ChunkResult
from materializer.job.planner import Planner
from materializer.processing.raw_processor import RawProcessor
from materializer.worker.batch_plan import BatchPlan
from stream_runtime.records import Message, TopicShape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from materializer.records import RawRecord
    from stream_runtime.state.reader import StateReader

RAW_PARTITIONS = "COUNTING_RAW_PARTITIONS"
CHANGE_PARTITIONS = 3
BAD_KEY = b"bad"
WIDE_VALUE = b"v75"  # of a message that takes two chunks, by itself
UNDER_WAY = b"munderway"  # in the state after the first of the two, with which the message is counted
IDLE_KEY = b"idle"  # of messages that change nothing, as heartbeats


def change_topic_of(raw_topic: str) -> str:
    return raw_topic.replace(".raw.", ".")


class CountingProcessor(RawProcessor):
    """The environment gives the number of raw partitions."""

    def __init__(self, raw_topic: str) -> None:
        self.shape = TopicShape(int(os.environ.get(RAW_PARTITIONS, "1")), "")
        self._topic = change_topic_of(raw_topic)

    def fold(self, state: StateReader, records: Sequence[RawRecord]) -> ChunkResult:
        """Fold as many of the records as one chunk is good for."""
        if records[0].value == WIDE_VALUE:
            return _count_wide(state, records)
        count = next((number for number, record in enumerate(records) if record.value == WIDE_VALUE), len(records))
        return _count(state, records[:count])._replace(left=len(records) - count)

    def change_messages(self, result: ChunkResult) -> Iterator[Message]:
        for change in result.changes:
            count = json.dumps([change.row_sequence - 1, change.row_sequence]).encode()
            partition = partition_for(change.partition_key, CHANGE_PARTITIONS)
            yield Message(self._topic, partition, change.partition_key, count)


class CountingPlan(BatchPlan):
    """A plan whose raw topics are counted; pickled to the workers, as any plan."""

    def processor(self, raw_topic: str) -> RawProcessor:
        return CountingProcessor(raw_topic)


class CountingPlanner(Planner):
    """Plans that count, for a Spark job."""

    def plan_batch(self) -> BatchPlan:
        plan = super().plan_batch()
        return CountingPlan(plan.topics, plan.kafka, plan.materializer, plan.shapes)


def _count_wide(reader: StateReader, records: Sequence[RawRecord]) -> ChunkResult:
    if reader.get(UNDER_WAY) is not None:
        return ChunkResult({UNDER_WAY: None}, [], records[0].timestamp_ms, left=len(records) - 1)
    result = _count(reader, records[:1])
    return result._replace(writes={**result.writes, UNDER_WAY: b""}, left=len(records))


def _count(reader: StateReader, records: Sequence[RawRecord]) -> ChunkResult:
    now_ms = max(record.timestamp_ms for record in records)
    records = [record for record in records if record.key != IDLE_KEY]
    keys = sorted({record.key for record in records})
    if BAD_KEY in keys:
        raise CdcError(Code.RAW_MESSAGE_UNREADABLE, "A bad message was met.", "Send no bad messages.")
    stored = reader.get_many([b"p" + key for key in keys])
    counts = {key: int.from_bytes(value or b"", "big") for key, value in zip(keys, stored, strict=True)}
    changes = []
    for record in records:
        counts[record.key] += 1
        changes.append(RowChange(record.key, None, "u", None, None, counts[record.key], Source(0, b"", "", 0)))
    writes: dict[bytes, bytes | None] = {b"p" + key: count.to_bytes(8, "big") for key, count in counts.items()}
    return ChunkResult(writes, changes, now_ms)
