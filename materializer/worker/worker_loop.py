"""A worker polls its raw partitions and folds them for the time of a batch (stream_runtime.worker.loop).

A task's time ends between two chunks, or between two parts of a change that is too much for one transaction; the next
batch goes on from there. A worker whose time is over folds on while another one needs longer.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog

from cdc_common.errors.codes import CdcError
from cdc_common.messages.topics import watermarks_topic
from materializer.errors import RAW_FAULTS
from materializer.processing.fold_report import fold_part
from materializer.worker.backlog import RawBacklog
from materializer.worker.local_states import LocalStates
from materializer.worker.open_partitions import OpenPartitions
from materializer.worker.watermark_feed import WatermarkFeed
from stream_runtime.exactly_once.position import check_offset, check_shape
from stream_runtime.exactly_once.report import NOTHING_DONE
from stream_runtime.kafka import RawReader, ReadBudget, Topics
from stream_runtime.records import Share
from stream_runtime.state.snapshots import in_background
from stream_runtime.worker import collector
from stream_runtime.worker.loop import LoopTask, WorkerLoop, poll_seconds
from stream_runtime.worker.task import TaskResult, WorkerStatus

if TYPE_CHECKING:
    from collections.abc import Hashable

    from materializer.planning.plan import TopicPlan
    from materializer.records import RawPartition
    from materializer.settings import MaterializerSettings
    from materializer.worker.batch_plan import BatchPlan
    from stream_runtime.exactly_once.position import Position
    from stream_runtime.state.unused import DiskUse
    from stream_runtime.worker.task import Assignment

_logger = structlog.get_logger(__name__)
_IDLE_SECONDS = 0.25  # of a poll for folding idle raw partitions, while new messages wait
_ACTIVE_SECONDS = 1.0  # of a poll for folding active raw partitions, while the driver and idle ones wait
_STATES_AT_ONCE = 8  # that are fetched at most before those of idle raw partitions wait
_READ_CHUNKS = 4  # bytes of raw messages that are read ahead, as a multiple of those of a chunk
_MAX_HEARTBEATS = 50_000  # that wait, each of about 500 bytes in memory


class BatchTask(LoopTask["BatchPlan"]):
    """Folds in a worker."""

    def loop_key(self, plan: BatchPlan) -> Hashable:
        return plan.kafka, plan.materializer.group_id

    def make_loop(self, plan: BatchPlan) -> PollLoop:
        collector.take_over()
        settings = plan.materializer
        wait_ms = int(500 * poll_seconds(settings.trigger_interval_ms))
        reader = RawReader(plan.kafka, settings.group_id, wait_ms, RAW_FAULTS)
        return PollLoop(settings, reader, Topics(plan.kafka), OpenPartitions(in_background), LocalStates())


class PollLoop(WorkerLoop["BatchPlan"]):
    """A worker's Kafka reader, and the messages that it has read but not folded. They are kept for the next batch,
    which has the same raw partitions.
    """

    def __init__(
        self,
        settings: MaterializerSettings,
        reader: RawReader,
        topics: Topics,
        open_partitions: OpenPartitions,
        states: LocalStates,
    ) -> None:
        super().__init__(RAW_FAULTS.words)
        self._poll_seconds = poll_seconds(settings.trigger_interval_ms)
        self._reader = reader
        self._topics = topics
        self._open_partitions = open_partitions
        self._states = states
        self._waiting: set[RawPartition] = set()  # for their states
        self._unchecked: set[str] = set()  # topics with messages read since they were described
        self._disk: DiskUse | None = None
        self._backlog = RawBacklog(max_heartbeat_wait(settings), _MAX_HEARTBEATS)
        forgotten = [host.bytes for host in settings.forgotten_publishers]
        self._watermarks = WatermarkFeed(self._backlog, reader, topics, forgotten)
        self._unopened: dict[RawPartition, Position] = {}  # whose states were not looked for yet
        self._plans: dict[str, TopicPlan] = {}

    def begin_batch(self, plan: BatchPlan, assignment: Assignment) -> None:
        collector.collect()
        self._apply_assignment(plan, assignment)

    def close(self) -> None:
        self._open_partitions.close_all()
        self._reader.close()

    def status(self) -> WorkerStatus:
        return WorkerStatus(len(self._backlog.active()) > 1, bool(self.failed), bool(self._waiting))

    def results(self, plan: BatchPlan) -> list[TaskResult]:
        """The results. From time to time one of them says what the states take on this machine, and another one which
        publishers are stalled.
        """
        stalled = self._watermarks.stalled(plan.materializer.stalled_publisher_seconds)
        for raw_partition in list(self._backlog.raw_partitions)[:1] if stalled else ():
            share = Share.of(raw_partition)
            known = self._results.setdefault(share, TaskResult(share, NOTHING_DONE, None))
            report = known.report or NOTHING_DONE
            report = report._replace(own=fold_part(report)._replace(stalled_publishers=stalled))
            self._results[share] = known._replace(report=report)
        results = list(self._results.values())
        self._disk = self._states.sweep(plan, self._backlog.raw_partitions | self._waiting) or self._disk
        for number, result in enumerate(results):
            if result.report is not None and self._disk is not None:
                state = result.report.state._replace(disk=self._disk)
                results[number] = result._replace(report=result.report._replace(state=state))
                self._disk = None
        return results

    def _apply_assignment(self, plan: BatchPlan, assignment: Assignment) -> None:
        """Release and add raw partitions, and mark the topics of changed tables ready."""
        if plan.has_watermarks:
            self._watermarks.open(watermarks_topic(plan.kafka.topic_prefix))
        assigned = {share.partition for share in assignment.shares}
        for raw_partition in (self._backlog.raw_partitions | self._waiting) - assigned:
            self.forget(Share.of(raw_partition))
        changed = {topic for topic, before in self._plans.items() if plan.topics.get(topic) != before}
        self._backlog.mark_ready(changed)
        if changed or plan.topics.keys() != self._plans.keys():
            self._watermarks.look_again()
        self._plans = plan.topics
        new = assigned - self._backlog.raw_partitions - self._waiting
        self._add(new, plan)
        if new:
            _logger.info("raw partitions taken", raw_partitions=len(new), asleep=self._backlog.asleep)
        self._backlog.wake([share.partition for share in assignment.retried])

    def _add(self, raw_partitions: set[RawPartition], plan: BatchPlan) -> None:
        """Read these from their committed positions on. Their states are looked for when they have work."""
        if not raw_partitions:
            return
        try:
            positions = self._reader.positions(raw_partitions)
            self._reader.add(
                {
                    raw_partition: 0 if position is None else position.offset
                    for raw_partition, position in positions.items()
                    if not isinstance(position, CdcError)
                }
            )
        except CdcError as error:
            self.fail_all(map(Share.of, raw_partitions), error)
            return
        for raw_partition, position in positions.items():
            if isinstance(position, CdcError):
                self.fail(Share.of(raw_partition), position)
                continue
            rest = None if position is None else position.rest
            if rest is not None and rest.rules != plan.rules_mark(raw_partition.topic):
                rest = None
            self._backlog.add(raw_partition, time.monotonic(), rest, is_new=position is None)
            if position is not None:
                self._unopened[raw_partition] = position
        self._watermarks.look_again()

    def _look_for_states(self, plan: BatchPlan) -> None:
        """Look for the states of raw partitions that have work for the first time. Those whose states take longer to
        fetch are read again when these have come, so that they hold no messages in the meantime.
        """
        idle = self._backlog.ready_idle(time.monotonic())[: max(0, _STATES_AT_ONCE - len(self._waiting))]
        for raw_partition in [*self._backlog.active(), *idle]:
            position = self._unopened.pop(raw_partition, None)
            if position is not None and not self._states.is_here(plan, raw_partition, position):
                self._waiting.add(raw_partition)
        late = set()
        for raw_partition, error in self._states.finished().items():
            if raw_partition not in self._waiting:
                continue
            self._waiting.discard(raw_partition)
            if error is not None:
                self.fail(Share.of(raw_partition), error)
            elif raw_partition in self._backlog.raw_partitions:
                self._states.forget(raw_partition)
            else:
                late.add(raw_partition)
        for raw_partition in self._waiting & self._backlog.raw_partitions:
            self._stop_reading(raw_partition)
        self._add(late, plan)

    def poll_and_process(self, plan: BatchPlan, assignment: Assignment) -> None:
        """Read for a while. Then fold all active raw partitions, and the idle ones that are ready."""
        settings = plan.materializer
        self._poll(ReadBudget(assignment.max_messages, _READ_CHUNKS * settings.chunk_max_bytes))
        self._watermarks.feed(plan.topics)
        self._look_for_states(plan)
        self._check_topics(plan)
        self._fold_all(_ACTIVE_SECONDS, self._backlog.active(), plan)
        idle = self._backlog.ready_idle(time.monotonic())
        self._fold_all(
            _IDLE_SECONDS, [raw_partition for raw_partition in idle if raw_partition not in self._unopened], plan
        )

    def _poll(self, budget: ReadBudget) -> None:
        """Read new messages."""
        messages, size = self._backlog.active_size
        left = ReadBudget(budget.messages - messages, budget.bytes - size)
        try:
            read = self._reader.read(left, 0 if messages else self._poll_seconds)
        except CdcError as error:  # of the consumer, which reads all of them
            self.fail_all(map(Share.of, self._backlog.raw_partitions), error)
            return
        self._watermarks.take(read)
        for raw_partition, found in read.records.items():
            self._backlog.append(raw_partition, found)
            self._unchecked.add(raw_partition.topic)
        for raw_partition, problem in read.errors.items():
            self.fail(Share.of(raw_partition), problem)
        for raw_partition in read.lost - read.errors.keys():
            self._explain_loss(raw_partition)
        self._renew_stuck_reader()

    def _renew_stuck_reader(self) -> None:
        """A consumer whose broker was frozen may read nothing any more: then a new one reads on."""
        silent = self._reader.silent()
        if not silent:
            return
        try:
            stuck = self._reader.renew_if_stuck(self._topics.ends(silent))
        except CdcError as error:
            _logger.warning("silent raw partitions not looked at", code=error.code.text, problem=error.problem)
            return
        if stuck:
            _logger.warning("consumer replaced: it did not read what is there", raw_partitions=[*map(str, stuck)])

    def _explain_loss(self, raw_partition: RawPartition) -> None:
        """Fail the raw partition if its next message is gone. If the message is there again by now, it
        is read again.
        """
        try:
            position = self._reader.positions([raw_partition])[raw_partition]
            if isinstance(position, CdcError):
                raise position
            bounds = self._topics.bounds([raw_partition])[raw_partition]
            check_offset(raw_partition, 0 if position is None else position.offset, bounds, RAW_FAULTS)
        except CdcError as error:
            self.fail(Share.of(raw_partition), error)
        else:
            self.forget(Share.of(raw_partition))

    def _check_topics(self, plan: BatchPlan) -> None:
        """Stop the topics that do not have the planned shapes now that their messages are read: keys may have moved.

        One request for the topics with new messages. Those that are left of an earlier time were checked then.
        """
        active: dict[str, set[RawPartition]] = {}
        for raw_partition in self._backlog.active():
            if raw_partition.topic in self._unchecked:
                active.setdefault(raw_partition.topic, set()).add(raw_partition)
        self._unchecked -= active.keys()
        try:
            shapes = self._topics.each_shape(active)
        except CdcError as error:
            self.fail_all(map(Share.of, set().union(*active.values())), error)
            return
        for topic, shape in shapes.items():
            try:
                if isinstance(shape, CdcError):
                    raise shape
                check_shape(topic, plan.shapes[topic], shape, RAW_FAULTS)
            except CdcError as error:
                self.fail_all(map(Share.of, active[topic]), error)

    def _fold_all(self, seconds: float, raw_partitions: list[RawPartition], plan: BatchPlan) -> None:
        """Fold one raw partition after another, until the time is over."""
        end = time.monotonic() + seconds
        for raw_partition in raw_partitions:
            self._fold(raw_partition, plan, end)
            if time.monotonic() >= end:
                return

    def _fold(self, raw_partition: RawPartition, plan: BatchPlan, end: float) -> None:
        """Fold one chunk, or what of its parts begins before `end`, and at least one part."""
        records = self._backlog.first_records(raw_partition, plan.materializer.chunk_max_messages)
        with self.isolated(Share.of(raw_partition), f"fold messages of {raw_partition}", records):
            report = self._open_partitions.process(plan, raw_partition, records, end)
            folded = records[: len(records) - report.left]
            self._backlog.mark_folded(raw_partition, folded, report, time.monotonic())
            self.add_report(Share.of(raw_partition), report)

    def forget(self, share: Share) -> None:
        """Drop its backlog and close it. A later batch reads it again from its committed position."""
        raw_partition = share.partition
        self._waiting.discard(raw_partition)
        self._states.forget(raw_partition)
        self._stop_reading(raw_partition)
        self._open_partitions.close(raw_partition)

    def _stop_reading(self, raw_partition: RawPartition) -> None:
        self._unopened.pop(raw_partition, None)
        self._watermarks.forget(raw_partition)
        self._backlog.remove(raw_partition)
        self._reader.remove([raw_partition])


def max_heartbeat_wait(settings: MaterializerSettings) -> float:
    """How many seconds heartbeats may wait without looking like a stalled publisher."""
    return min(settings.idle_commit_seconds, settings.stalled_publisher_seconds / 4)
