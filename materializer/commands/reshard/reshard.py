"""`cassandra-materializer state reshard`: redistributes a raw topic's state over the partitions that it has now.

docs/decisions/0016 describes the steps. After a crash between any two of them, the committed state is the one before or
the one after the switch.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING
from uuid import UUID

from materializer.commands.reshard.backlog import read_backlog
from materializer.commands.reshard.partition import opened, overtaken
from materializer.commands.reshard.redistribute import TICK_HOST, StateFacts, Times, make_tick, plan_redistribution
from materializer.commands.reshard.states import TopicStates
from materializer.commands.reshard.survey import RawTopic, Survey, is_placed_by, read_raw_topic, survey_topic
from materializer.exactly_once.position import RESHARDING, Position, command_lock
from materializer.fault_points import ReshardPoint, reach
from materializer.job.open_partitions import OpenPartitions
from materializer.job.wiring import chunk_settings
from materializer.kafka import GroupPositions, PartitionProducer, read_raw
from materializer.store.changelog import Head
from materializer.store.versions import next_version, sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from materializer.job.plan import BatchPlan
    from materializer.records import RawPartition, RawRecord

_TARGETS_AT_ONCE = 16  # states that are filled in one pass over the old ones
_NEVER = 2**40  # seconds: nothing is purged here, so that messages that are folded twice change nothing


class Reshard:
    """The reshard of one raw topic. `say` prints progress. CdcError or KafkaException if it fails."""

    def __init__(self, plan: BatchPlan, topic: str, say: Callable[[str], None]) -> None:
        settings = plan.materializer
        forgotten = frozenset({*settings.forgotten_publishers, UUID(bytes=TICK_HOST)})
        here = settings.model_copy(update={"purge_margin_seconds": _NEVER, "forgotten_publishers": forgotten})
        self._plan = plan
        self._name = topic
        self._say = say
        self._plan_here = replace(plan, materializer=here)
        self._processor_here = self._plan_here.processor(topic)
        self._states = TopicStates(settings, say)
        self._group = settings.group_id
        self._group_positions = GroupPositions(plan.kafka, self._group)

    def reshard_topic(self) -> None:
        """All steps. Another run continues where an interrupted run has stopped."""
        lock = self._fence(command_lock(self._name))
        survey = self._survey()
        if survey.is_unneeded:
            self._say(
                f"{self._name}: the state of {survey.old_count} partitions and all messages are in the right partitions"
            )
            return
        if not survey.is_switched:
            if not survey.is_begun:
                self._catch_up(survey)
                survey = self._survey()
            self._switch(lock, survey, self._mark_and_align(survey))
            reach(ReshardPoint.AFTER_SWITCH)
            survey = self._survey()
        self._finish(lock, survey, self._fold_backlog(survey))

    def _survey(self) -> Survey:
        """Fence all tasks of the raw topic, then survey it."""
        topic = read_raw_topic(self._plan.kafka, self._name)
        raw_partitions = [topic.raw_partition(number) for number in topic.bounds]
        for raw_partition in raw_partitions:
            self._fence(raw_partition).abandon()
        return survey_topic(self._plan.kafka, topic, self._group_positions.read(raw_partitions))

    def _catch_up(self, survey: Survey) -> None:
        """Fold as the job would have, up to the first message that needs the new partitions."""
        plan, open_partitions = self._plan.with_partition_count(self._name, survey.old_count), OpenPartitions()
        for number in range(survey.old_count):
            raw_partition, end = survey.topic.raw_partition(number), survey.topic.bounds[number][1]
            records = takewhile(
                partial(_is_from_before, survey, number),
                read_raw(self._plan.kafka, raw_partition, survey.position(number).offset, end),
            )
            try:
                report = open_partitions.process(plan, raw_partition, records)
            finally:
                open_partitions.close_all()
            self._say(f"{raw_partition}: caught up: {report.messages} messages, {report.changes} changes")
        reach(ReshardPoint.AFTER_CATCH_UP)

    def _mark_and_align(self, survey: Survey) -> dict[int, Position]:
        """Mark the positions, which stops everyone else, and bring all states to one time and one schema."""
        processor = self._plan_here.with_partition_count(self._name, survey.old_count).processor(self._name)
        facts = [
            self._states.read_facts(survey.topic.raw_partition(number), survey.position(number).version)
            for number in range(survey.old_count)
        ]
        times, table_id = self._common_times(facts)
        positions = {}
        for number, known in enumerate(facts):
            position = survey.position(number)
            with opened(self._plan, survey.topic.raw_partition(number), position) as partition:
                partition.commit_position(
                    position._replace(
                        topic_id=survey.topic.id, refreshes=position.refreshes + 1, in_progress=RESHARDING
                    )
                )
                reach(ReshardPoint.AFTER_MARK)
                if table_id is not None and known.table_id is not None:
                    partition.settle(make_tick(table_id, times.now_ms), processor)
                positions[number] = partition.position
        return positions

    def _common_times(self, facts: Sequence[StateFacts]) -> tuple[Times, bytes | None]:
        """The times that all states are brought to, and the newest table id that one of them has."""
        reorder_ms = int(self._plan.materializer.reorder_seconds * 1000)
        now_ms = max(max(known.times.now_ms, known.times.clock_ms + reorder_ms) for known in facts)
        order = [schema.table_id for schema in self._plan.topics[self._name].schemas]
        tables = {known.table_id for known in facts if known.table_id is not None}
        return Times(now_ms, now_ms - reorder_ms), max(tables, key=order.index, default=None)

    def _switch(self, lock: PartitionProducer, survey: Survey, marked: Mapping[int, Position]) -> None:
        """Store the states of all targets, then commit them in one transaction."""
        topic = survey.topic
        versions = self._store_targets(topic, marked)
        reach(ReshardPoint.BEFORE_SWITCH)
        now = read_raw_topic(self._plan.kafka, self._name)
        reshards = 1 + max(position.reshards for position in marked.values())
        after = {
            number: marked.get(number, survey.position(number))._replace(
                offset=_backlog_start(marked, number),
                version=versions[number],
                partitions=topic.partition_count,
                topic_id=topic.id,
                reshards=reshards,
                in_progress=(_backlog_start(marked, number), now.bounds[number][1]),
            )
            for number in topic.bounds
        }
        self._commit_all(lock, topic, marked, after)
        self._say(
            f"{topic.name}: the state of {survey.old_count} partitions is redistributed over {topic.partition_count}"
        )

    def _store_targets(self, topic: RawTopic, marked: Mapping[int, Position]) -> dict[int, str]:
        """The version of each target's state, which is later than all stored ones."""
        sources = {topic.raw_partition(number): position.version for number, position in marked.items()}
        facts = [self._states.read_facts(source, version) for source, version in sources.items()]
        times, _ = self._common_times(facts)
        redistribution = plan_redistribution(facts, topic.partition_count, times)
        targets = [topic.raw_partition(number) for number in topic.bounds]
        newest = max([*sources.values(), self._states.newest_version(targets)], key=sequence)
        heads = {
            target: Head(
                next_version(newest), _backlog_start(marked, target.partition), times.now_ms, topic.partition_count
            )
            for target in targets
        }
        for start in range(0, len(targets), _TARGETS_AT_ONCE):
            some = {target: heads[target] for target in targets[start : start + _TARGETS_AT_ONCE]}
            self._states.store_targets(sources, some, redistribution)
        return {target.partition: head.version for target, head in heads.items()}

    def _fold_backlog(self, survey: Survey) -> dict[int, Position]:
        """Fold the backlog of all partitions in the order of time, each message in its target."""
        changes = messages = 0
        with ExitStack() as stack:
            partitions = {
                number: stack.enter_context(opened(self._plan, survey.topic.raw_partition(number), position))
                for number, position in survey.positions.items()
            }
            for chunk in read_backlog(self._plan.kafka, survey, chunk_settings(self._plan.materializer)):
                for number, records in chunk.items():
                    changes += partitions[number].fold(records, self._processor_here)
                    messages += len(records)
                reach(ReshardPoint.IN_BACKLOG)
            self._say(f"{survey.topic.name}: backlog folded: {messages} messages, {changes} changes")
            return {number: partition.position for number, partition in partitions.items()}

    def _finish(self, lock: PartitionProducer, survey: Survey, positions: Mapping[int, Position]) -> None:
        """Remove the marks."""
        topic, done = survey.topic, {}
        for number, position in positions.items():
            assert position.in_progress is not None
            done[number] = position._replace(offset=position.in_progress[1], in_progress=None)
        self._commit_all(lock, topic, positions, done)
        reach(ReshardPoint.AFTER_FINISH)
        is_last = survey.old_count == topic.partition_count
        next_step = "start the materializer" if is_last else "the topic has more partitions now: run this again"
        self._say(f"{topic.name}: done; {next_step}")

    def _commit_all(
        self, lock: PartitionProducer, topic: RawTopic, before: Mapping[int, Position], after: Mapping[int, Position]
    ) -> None:
        """Commit the positions of all partitions in one transaction. Their marks stop all other commits."""
        raw_partitions = [topic.raw_partition(number) for number in topic.bounds]
        for raw_partition, position in self._group_positions.read(raw_partitions).items():
            if position != before.get(raw_partition.partition):
                raise overtaken(raw_partition)
        lock.begin()
        lock.send_positions({topic.raw_partition(number): position for number, position in after.items()})
        reach(ReshardPoint.IN_COMMIT)
        lock.commit()

    def _fence(self, raw_partition: RawPartition) -> PartitionProducer:
        return PartitionProducer(self._plan.kafka, self._group, raw_partition, self._group_positions.consumer)


def _backlog_start(marked: Mapping[int, Position], number: int) -> int:
    """The first offset of a partition's backlog. A new partition has no position and starts at 0."""
    return marked[number].offset if number in marked else 0


def _is_from_before(survey: Survey, number: int, record: RawRecord) -> bool:
    return record.timestamp_ms < survey.first_moved_ms and is_placed_by(record, number, survey.old_count)
