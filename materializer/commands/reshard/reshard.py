"""`cassandra-materializer state reshard`: redistributes a raw topic's state over the partitions that it has now.

Decision 0016 describes the steps. After a crash between any two of them, the committed state is the one before or the
one after the switch.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from materializer.command_marks import command_lock
from materializer.commands.reshard.folds import catch_up, fold_backlog, mark_and_align
from materializer.commands.reshard.partition import overtaken
from materializer.commands.reshard.parts import PartsPlace, by_target
from materializer.commands.reshard.redistribute import Times, make_tick, plan_redistribution
from materializer.commands.reshard.states import (
    OldState,
    Split,
    Target,
    facts_of,
    newest_version,
    split_source,
    store_target,
)
from materializer.commands.reshard.survey import RawTopic, Survey, read_raw_topic, survey_topic
from materializer.commands.reshard.tasks import LocalTasks
from materializer.errors import RAW_FAULTS
from materializer.fault_points import ReshardPoint
from materializer.records import RawPartition
from materializer.rows.catalog import SchemaId
from stream_runtime.fault_points import reach
from stream_runtime.kafka import FencingProducer, GroupPositions
from stream_runtime.state.versions import sequence
from stream_runtime.worker.open_resources import state_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from materializer.commands.reshard.redistribute import Redistribution, StateFacts
    from materializer.commands.reshard.tasks import Tasks
    from materializer.worker.batch_plan import BatchPlan
    from stream_runtime.exactly_once.position import Position


class Reshard:
    """The reshard of one raw topic. `say` prints progress. tasks: where each step is done for the raw partitions.

    CdcError or KafkaException if it fails.
    """

    def __init__(self, plan: BatchPlan, topic: str, say: Callable[[str], None], tasks: Tasks | None = None) -> None:
        self._plan = plan
        self._name = topic
        self._say = say
        self._tasks = tasks or LocalTasks()
        self._settings = plan.materializer
        self._group = plan.materializer.group_id
        self._group_positions = GroupPositions(plan.kafka, self._group, RAW_FAULTS)

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
        numbers = list(range(survey.old_count))
        for number, done in zip(numbers, self._tasks.run(partial(catch_up, self._plan, survey), numbers), strict=True):
            messages, changes = done
            self._say(f"{survey.topic.raw_partition(number)}: caught up: {messages} messages, {changes} changes")
        reach(ReshardPoint.AFTER_CATCH_UP)

    def _mark_and_align(self, survey: Survey) -> dict[int, Position]:
        """Mark the positions, which stops everyone else, and bring all states to one time and one schema."""
        facts = self._read_facts({number: survey.position(number) for number in range(survey.old_count)}, survey.topic)
        times, schema = self._common_times(facts)
        ticks = [None if schema is None or known.schema is None else make_tick(schema, times.now_ms) for known in facts]
        return dict(self._tasks.run(partial(mark_and_align, self._plan, survey), list(enumerate(ticks))))

    def _read_facts(self, positions: Mapping[int, Position], topic: RawTopic) -> list[StateFacts]:
        sources = [OldState(topic.raw_partition(number), position.version) for number, position in positions.items()]
        return list(self._tasks.run(partial(facts_of, self._settings), sources))

    def _common_times(self, facts: Sequence[StateFacts]) -> tuple[Times, SchemaId | None]:
        """The times that all states are brought to, and the newest schema that is in force for one of them."""
        reorder_ms = int(self._plan.materializer.reorder_seconds * 1000)
        now_ms = max(max(known.times.now_ms, known.times.clock_ms + reorder_ms) for known in facts)
        order = [SchemaId(schema.table_id, schema.digest) for schema in self._plan.topics[self._name].schemas]
        schemas = {known.schema for known in facts if known.schema is not None}
        return Times(now_ms, now_ms - reorder_ms), max(schemas, key=order.index, default=None)

    def _switch(self, lock: FencingProducer, survey: Survey, marked: Mapping[int, Position]) -> None:
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
                rest=None,
            )
            for number in topic.bounds
        }
        self._commit_all(lock, topic, marked, after)
        self._say(
            f"{topic.name}: the state of {survey.old_count} partitions is redistributed over {topic.partition_count}"
        )

    def _store_targets(self, topic: RawTopic, marked: Mapping[int, Position]) -> dict[int, str]:
        """The version of each target's state, which is later than all stored ones."""
        facts = self._read_facts(marked, topic)
        times, _ = self._common_times(facts)
        redistribution = plan_redistribution(facts, topic.partition_count, times)
        newest = max(
            [
                *(position.version for position in marked.values()),
                newest_version(self._settings, [topic.raw_partition(number) for number in topic.bounds]),
            ],
            key=sequence,
        )
        splits = [
            Split(OldState(topic.raw_partition(number), position.version), schema_numbers)
            for (number, position), schema_numbers in zip(marked.items(), redistribution.schema_numbers, strict=True)
        ]
        starts = {number: _backlog_start(marked, number) for number in topic.bounds}
        with self._parts_place() as place:
            return self._redistribute(splits, starts, redistribution, newest, place)

    def _redistribute(
        self,
        splits: Sequence[Split],
        starts: Mapping[int, int],
        redistribution: Redistribution,
        newest: str,
        place: PartsPlace,
    ) -> dict[int, str]:
        """Each old state is read once and written to parts; each new state is made of its parts: their versions.

        starts: the offset of each target.
        """
        split = partial(split_source, self._settings, place, redistribution.target_count)
        parts = by_target(list(self._tasks.run(split, splits)))
        targets = [
            Target(RawPartition(self._name, number), start, parts.get(number, ())) for number, start in starts.items()
        ]
        store = partial(store_target, self._settings, place, redistribution, newest)
        versions: dict[int, str] = {}
        for target, (entries, version) in zip(targets, self._tasks.run(store, targets), strict=True):
            versions[target.raw_partition.partition] = version
            self._say(f"{target.raw_partition}: {entries} entries")
        return versions

    @contextmanager
    def _parts_place(self) -> Iterator[PartsPlace]:
        """A local folder if all tasks run here, otherwise of the checkpoint location. Parts of an earlier run that
        was interrupted go too.
        """
        folder = state_folder(self._settings)
        if self._tasks.is_here:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder, prefix="reshard-parts-") as here:
                yield PartsPlace(here, "parts")
            return
        place = PartsPlace("", f"{self._group}/{self._name}.parts")
        place.delete_all(self._settings)
        yield place
        place.delete_all(self._settings)

    def _fold_backlog(self, survey: Survey) -> dict[int, Position]:
        """Fold the backlog of all partitions in the order of time, each message in its target."""
        positions: dict[int, Position] = {}
        messages = changes = 0
        groups = self._tasks.groups(list(survey.positions))
        for folded in self._tasks.run(partial(fold_backlog, self._plan, survey), groups):
            positions |= folded.positions
            messages, changes = messages + folded.messages, changes + folded.changes
        self._say(f"{survey.topic.name}: backlog folded: {messages} messages, {changes} changes")
        return positions

    def _finish(self, lock: FencingProducer, survey: Survey, positions: Mapping[int, Position]) -> None:
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
        self, lock: FencingProducer, topic: RawTopic, before: Mapping[int, Position], after: Mapping[int, Position]
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

    def _fence(self, raw_partition: RawPartition) -> FencingProducer:
        return FencingProducer(self._plan.kafka, self._group, str(raw_partition), self._group_positions.consumer)


def _backlog_start(marked: Mapping[int, Position], number: int) -> int:
    """The first offset of a partition's backlog. A new partition has no position and starts at 0."""
    return marked[number].offset if number in marked else 0
