"""The folds of `state reshard`: the unread messages of the old raw partitions, ticks, and the backlog after the switch.

Each function is a task: it is given all that it needs, and can run on any machine. It may run again after a failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from materializer.command_marks import RESHARDING
from materializer.commands.reshard.backlog import read_backlog
from materializer.commands.reshard.partition import opened
from materializer.commands.reshard.redistribute import TICK_HOST
from materializer.commands.reshard.survey import is_placed_by
from materializer.fault_points import ReshardPoint
from materializer.worker.open_partitions import OpenPartitions
from materializer.worker.wiring import chunk_settings
from stream_runtime.exactly_once.position import Position
from stream_runtime.fault_points import reach
from stream_runtime.kafka import read_raw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from materializer.commands.reshard.survey import Survey
    from materializer.processing.raw_processor import RawProcessor
    from materializer.records import RawRecord
    from materializer.worker.batch_plan import BatchPlan

_NEVER = 2**40  # seconds: nothing is purged here, so that messages that are folded twice change nothing


class Folded(NamedTuple):
    """The result of folding a backlog."""

    # The positions of the backlog's targets, by partition number.
    positions: Mapping[int, Position]
    # The number of folded messages.
    messages: int
    # The number of changes.
    changes: int


def catch_up(plan: BatchPlan, survey: Survey, number: int) -> tuple[int, int]:
    """Fold an old raw partition as the job would have, up to the first message that needs the new partitions: the
    number of messages and of changes.
    """
    own = plan.with_partition_count(survey.topic.name, survey.old_count)
    raw_partition, end = survey.topic.raw_partition(number), survey.topic.bounds[number][1]
    records = takewhile(
        partial(_is_from_before, survey, number),
        read_raw(plan.kafka, raw_partition, survey.position(number).offset, end),
    )
    open_partitions = OpenPartitions()
    try:
        report = open_partitions.process(own, raw_partition, records)
    finally:
        open_partitions.close_all()
    return report.messages, report.changes


def mark_and_align(plan: BatchPlan, survey: Survey, old: tuple[int, RawRecord | None]) -> tuple[int, Position]:
    """Mark the position of an old raw partition and bring its state to the time of the tick, if there is one: its
    number and its position.
    """
    number, tick = old
    position = survey.position(number)
    marked = position._replace(
        topic_id=survey.topic.id, refreshes=position.refreshes + 1, in_progress=RESHARDING, rest=None
    )
    with opened(plan, survey.topic.raw_partition(number), position, marked) as partition:
        partition.commit_position(marked._replace(version=partition.position.version))
        reach(ReshardPoint.AFTER_MARK)
        if tick is not None:
            partition.settle(tick, _processor(plan.with_partition_count(survey.topic.name, survey.old_count), survey))
        return number, partition.position


def fold_backlog(plan: BatchPlan, survey: Survey, targets: Sequence[int]) -> Folded:
    """Fold the backlog of these target partitions, which lies in all raw partitions, in the order of time."""
    changes = messages = 0
    processor = _processor(plan, survey)
    with ExitStack() as stack:
        partitions = {
            number: stack.enter_context(
                opened(plan, survey.topic.raw_partition(number), survey.positions[number], survey.positions[number])
            )
            for number in targets
        }
        for chunk in read_backlog(plan.kafka, survey, chunk_settings(plan.materializer), partitions):
            for number, records in chunk.items():
                changes += partitions[number].fold(records, processor)
                messages += len(records)
            reach(ReshardPoint.IN_BACKLOG)
        return Folded({number: partition.position for number, partition in partitions.items()}, messages, changes)


def _processor(plan: BatchPlan, survey: Survey) -> RawProcessor:
    """Return a processor that purges nothing, and knows the publisher of ticks."""
    settings = plan.materializer
    forgotten = frozenset({*settings.forgotten_publishers, UUID(bytes=TICK_HOST)})
    here = settings.model_copy(update={"purge_margin_seconds": _NEVER, "forgotten_publishers": forgotten})
    return replace(plan, materializer=here).processor(survey.topic.name)


def _is_from_before(survey: Survey, number: int, record: RawRecord) -> bool:
    return record.timestamp_ms < survey.first_moved_ms and is_placed_by(record, number, survey.old_count)
