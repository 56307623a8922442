"""The messages that no state holds yet after the switch, in the order of the brokers' time, by their targets."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from cdc_common.messages import raw
from cdc_common.messages.topics import partition_for
from materializer.commands.reshard.partition import RawMessageAt
from materializer.fold.row_updates import decode_record
from materializer.records import UnreadableError
from stream_runtime.kafka import read_raw

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from cdc_common.settings import KafkaSettings
    from materializer.commands.reshard.survey import Survey
    from materializer.records import RawPartition, RawRecord
    from stream_runtime.exactly_once.chunks import ChunkSettings
    from stream_runtime.exactly_once.position import Position


def read_backlog(
    settings: KafkaSettings, survey: Survey, chunk_limits: ChunkSettings, targets: Collection[int]
) -> Iterator[Mapping[int, list[RawMessageAt]]]:
    """Chunks of the backlog of these target partitions, each by the number of its target."""
    chunk: dict[int, list[RawMessageAt]] = {}
    size = rows = 0
    backlogs = [
        _read_partition(settings, survey.topic.raw_partition(number), survey.position(number))
        for number in survey.positions
    ]
    for message in heapq.merge(*backlogs, key=_broker_order):
        needing = [target for target in _targets(message.record, survey.old_count) if target in targets]
        if not needing:
            continue
        for target in needing:
            chunk.setdefault(target, []).append(message)
        size, rows = size + len(message.record.key) + len(message.record.value), rows + 1
        if size >= chunk_limits.max_bytes or rows >= chunk_limits.max_messages:
            yield chunk
            chunk, size, rows = {}, 0, 0
    if chunk:
        yield chunk


def _read_partition(settings: KafkaSettings, source: RawPartition, position: Position) -> Iterator[RawMessageAt]:
    assert position.in_progress is not None
    for record in read_raw(settings, source, *position.in_progress):
        yield RawMessageAt(source, record)


def _broker_order(message: RawMessageAt) -> tuple[int, int, int]:
    """The order of messages of several raw partitions."""
    return message.record.timestamp_ms, message.source.partition, message.record.offset


def _targets(record: RawRecord, count: int) -> Sequence[int]:
    """The partitions whose states need the record.

    No state needs a heartbeat: it concerns the partition that it was sent to, and the next ones come soon. A repair
    that begins here is never done. Its messages may lie in two partitions, whose brokers' clocks differ, so that its
    end may come before an image. And after a crash the messages from before it would be folded again after it.
    """
    if raw.is_repair_step(record.value):
        return ()
    if record.key:
        return (partition_for(record.key, count),)
    try:
        return () if decode_record(record).kind == "heartbeat" else range(count)
    except UnreadableError:
        return range(count)
