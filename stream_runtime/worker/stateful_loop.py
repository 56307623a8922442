"""The worker's loop of a job whose source partitions have states.

Its source topics have no transactions and are not compacted: a missing offset means a lost message.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cdc_common.errors.codes import CdcError
from stream_runtime.exactly_once.chunks import ChunkSettings
from stream_runtime.exactly_once.commits import NotOwnerError
from stream_runtime.exactly_once.partition_task import PartitionTask, TaskSettings
from stream_runtime.exactly_once.position import check_shape
from stream_runtime.fault_points import FaultPoint, reach
from stream_runtime.faults import NEUTRAL_FAULTS, Faults
from stream_runtime.kafka import GroupPositions, RawReader, ReadBudget, Topics
from stream_runtime.records import Share, SourcePartition, TopicShape, list_shares
from stream_runtime.state.snapshots import in_background
from stream_runtime.worker.loop import LoopTask, WorkerLoop, poll_seconds
from stream_runtime.worker.open_resources import Opening, open_resources
from stream_runtime.worker.task import WorkerStatus

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from cdc_common.settings import KafkaSettings
    from stream_runtime.exactly_once.processor import Processor
    from stream_runtime.records import Record
    from stream_runtime.settings import StatefulSettings
    from stream_runtime.worker.task import Assignment

_CHUNK_SECONDS = 60.0
_READ_CHUNKS = 4  # bytes that are read ahead, as a multiple of those of a chunk


class StatefulJob(ABC):
    """A program with states. It is sent to the workers."""

    faults: Faults = NEUTRAL_FAULTS

    def __init__(self, kafka: KafkaSettings, settings: StatefulSettings, topics: Sequence[str]) -> None:
        self.kafka = kafka
        self.settings = settings
        self.topics = tuple(topics)

    @abstractmethod
    def processor(self, topic: str, shape: TopicShape) -> Processor[Any]:
        """The processor of a source topic's messages."""


@dataclass(frozen=True, slots=True)
class StatefulPlan:
    """The plan of a batch."""

    # The job.
    job: StatefulJob
    # The shape of each source topic that is there.
    shapes: Mapping[str, TopicShape]

    @property
    def shares(self) -> list[Share]:
        return list_shares(self.shapes)


class StatefulLoopTask(LoopTask[StatefulPlan]):
    """Processes in a worker."""

    def loop_key(self, plan: StatefulPlan) -> Hashable:
        return plan.job.kafka, plan.job.settings.group_id

    def make_loop(self, plan: StatefulPlan) -> StatefulLoop:
        return StatefulLoop(plan.job)


class StatefulLoop(WorkerLoop[StatefulPlan]):
    """A worker's open shares. Each has one partition."""

    def __init__(self, job: StatefulJob) -> None:
        super().__init__(job.faults.words)
        self._job = job
        self._poll_seconds = poll_seconds(job.settings.trigger_interval_ms)
        group = job.settings.group_id
        self._reader = RawReader(job.kafka, group, int(500 * self._poll_seconds), job.faults)
        self._positions = GroupPositions(job.kafka, group, job.faults)
        self._topics = Topics(job.kafka)
        self._reading: set[SourcePartition] = set()
        self._tasks: dict[SourcePartition, PartitionTask] = {}
        self._is_behind = False

    def begin_batch(self, _plan: StatefulPlan, assignment: Assignment) -> None:
        assigned = {share.partition for share in assignment.shares}
        for partition in self._reading - assigned:
            self.forget(Share.of(partition))
        try:
            positions = self._reader.positions(assigned - self._reading)
        except CdcError as error:
            self.fail_all(map(Share.of, assigned - self._reading), error)
            return
        for partition, position in positions.items():
            if isinstance(position, CdcError):
                self.fail(Share.of(partition), position)
            else:
                self._reader.add({partition: 0 if position is None else position.offset})
                self._reading.add(partition)

    def poll_and_process(self, plan: StatefulPlan, assignment: Assignment) -> None:
        settings = self._job.settings
        budget = ReadBudget(assignment.max_messages, _READ_CHUNKS * settings.chunk_max_bytes)
        try:
            read = self._reader.read(budget, self._poll_seconds)
            shapes = self._topics.each_shape({partition.topic for partition in read.records})
        except CdcError as error:
            self.fail_all([Share.of(partition) for partition in self._reading], error)
            return
        for partition, records in read.records.items():
            with self.isolated(Share.of(partition), f"{self._words.do} messages of {partition}", records):
                self._process(partition, records, plan.shapes[partition.topic], shapes[partition.topic])
        for partition in read.lost:
            lost = self._job.faults.messages_deleted(partition, self._reader.next_offset(partition))
            self.fail(Share.of(partition), lost)
        for partition, problem in read.errors.items():
            self.fail(Share.of(partition), problem)
        self._is_behind = sum(map(len, read.records.values())) >= assignment.max_messages

    def status(self) -> WorkerStatus:
        return WorkerStatus(is_behind=self._is_behind, has_failed=bool(self.failed))

    def forget(self, share: Share) -> None:
        partition = share.partition
        self._reading.discard(partition)
        self._reader.remove([partition])
        task = self._tasks.pop(partition, None)
        if task is not None:
            task.close()

    def close(self) -> None:
        for partition in list(self._reading):
            self.forget(Share.of(partition))
        self._reader.close()

    def _process(
        self, partition: SourcePartition, records: list[Record], planned: TopicShape, now: TopicShape | CdcError
    ) -> None:
        """Process the messages. The topic was asked for its shape after they were read: it is still the planned one."""
        if isinstance(now, CdcError):
            raise now
        check_shape(partition.topic, planned, now, self._job.faults)
        task = self._tasks.get(partition)
        if task is None:
            task = self._tasks[partition] = self._open(partition)
        try:
            report = task.process(records, self._job.processor(partition.topic, planned))
        except NotOwnerError:  # the next batch opens another one, at the committed position
            self.forget(Share.of(partition))
        else:
            state = report.state._replace(bytes=task.state_bytes())
            self.add_report(Share.of(partition), report._replace(state=state))

    def _open(self, partition: SourcePartition) -> PartitionTask:
        """A task that has fenced every other one of the partition."""
        settings, job = self._job.settings, self._job
        reach(FaultPoint.BEFORE_INIT)
        opening = Opening(job.faults, in_background)
        resources = open_resources(job.kafka, settings, Share.of(partition), self._positions, opening)
        chunk = ChunkSettings(settings.chunk_max_bytes, settings.chunk_max_messages, _CHUNK_SECONDS)
        return PartitionTask(partition, resources, TaskSettings(chunk, faults=job.faults))
