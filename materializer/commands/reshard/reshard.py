"""`cassandra-materializer state reshard`: a raw topic's state dealt out anew, by the partitions that it has now.

The steps, and why a crash between any two of them leaves the old truth or the new one, are in docs/decisions/0018.
"""

from __future__ import annotations

import heapq
import tempfile
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from cdc_messages.topics import partition_for
from materializer.commands.reshard.partition import RawMessageAt, opened, overtaken
from materializer.commands.reshard.redistribute import TICK_HOST, Deal, Facts, Times, dealt, make_deal, read_facts, tick
from materializer.commands.reshard.survey import Survey, TopicNow, is_explained, survey, topic_now
from materializer.exactly_once.position import RESHARDING, Position, command_lock
from materializer.fault_points import ReshardPoint, reach
from materializer.fold.row_updates import decode_record
from materializer.job.open_partitions import OpenPartitions
from materializer.job.wiring import chunk_settings, object_store
from materializer.kafka import GroupPositions, PartitionProducer, read_raw
from materializer.records import RawPartition, UnreadableError
from materializer.store.bulk_load import BulkLoad
from materializer.store.changelog import Head
from materializer.store.checkpoints import CheckpointStore
from materializer.store.restore import restore
from materializer.store.rocksdb import open_local_store
from materializer.store.versions import next_version, sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from materializer.job.plan import BatchPlan
    from materializer.records import RawRecord
    from materializer.store.rocksdb import LocalStore

_AT_ONCE = 16  # states that are filled in one pass over the old ones
_NEVER = 2**40  # seconds: nothing is purged here, so that what is folded twice finds its like


class Reshard:
    """One raw topic's; `say` is told how it goes on. CdcError, or KafkaException, where it cannot be done."""

    def __init__(self, plan: BatchPlan, topic: str, say: Callable[[str], None]) -> None:
        settings = plan.materializer
        forgotten = frozenset({*settings.forgotten_publishers, UUID(bytes=TICK_HOST)})
        here = settings.model_copy(update={"purge_margin_seconds": _NEVER, "forgotten_publishers": forgotten})
        self._plan = plan
        self._name = topic
        self._say = say
        self._plan_here = replace(plan, materializer=here)
        self._processor_here = self._plan_here.processor(topic)
        self._store = object_store(settings)
        self._group = settings.group_id
        self._group_positions = GroupPositions(plan.kafka, self._group)

    def run(self) -> None:
        lock = self._fence(command_lock(self._name))
        found = self._look()
        if found.is_needless:
            self._say(f"{self._name}: the state of {found.before} partitions, and all messages, are where they belong")
            return
        if not found.is_switched:
            if not found.is_begun:
                self._catch_up(found)
                found = self._look()
            self._switch(lock, found, self._mark(found))
            reach(ReshardPoint.AFTER_SWITCH)
            found = self._look()
        self._finish(lock, found, self._spread(found))

    def _look(self) -> Survey:
        """How all lies, after whoever worked on any of the partitions is fenced."""
        topic = topic_now(self._plan.kafka, self._name)
        partitions = [topic.partition(number) for number in topic.bounds]
        for partition in partitions:
            self._fence(partition).abandon()
        return survey(self._plan.kafka, topic, self._group_positions.read(partitions))

    def _fence(self, partition: RawPartition) -> PartitionProducer:
        return PartitionProducer(self._plan.kafka, self._group, partition, self._group_positions.consumer)

    def _catch_up(self, found: Survey) -> None:
        """Go on as the job would have, up to the first message that needs the new partitions."""
        plan, open_partitions = self._plan.with_partition_count(self._name, found.before), OpenPartitions()
        for number in range(found.before):
            partition, end = found.topic.partition(number), found.topic.bounds[number][1]
            records = takewhile(
                partial(_is_from_before, found, number),
                read_raw(self._plan.kafka, partition, found.position(number).offset, end),
            )
            try:
                report = open_partitions.process(plan, partition, records)
            finally:
                open_partitions.close_all()
            self._say(f"{partition}: {report.messages} messages folded as before, {report.changes} changes")
        reach(ReshardPoint.AFTER_CATCH_UP)

    def _mark(self, found: Survey) -> dict[int, Position]:
        """Keep everybody else from the partitions, and bring their states to one time and one schema."""
        processor = self._plan_here.with_partition_count(self._name, found.before).processor(self._name)
        facts = [self._facts(found, number) for number in range(found.before)]
        times, table_id = self._common(facts)
        positions = {}
        for number, known in enumerate(facts):
            position = found.position(number)
            with opened(self._plan, found.topic.partition(number), position) as partition:
                partition.commit_position(
                    position._replace(topic_id=found.topic.id, refreshes=position.refreshes + 1, in_progress=RESHARDING)
                )
                reach(ReshardPoint.AFTER_MARK)
                if table_id is not None and known.table_id is not None:
                    partition.settle(tick(table_id, times.now_ms), processor)
                positions[number] = partition.position
        return positions

    def _common(self, facts: Sequence[Facts]) -> tuple[Times, bytes | None]:
        """The time that all states come to, and the newest table that one of them is of."""
        reorder_ms = int(self._plan.materializer.reorder_seconds * 1000)
        now_ms = max(max(known.times.now_ms, known.times.clock_ms + reorder_ms) for known in facts)
        order = [schema.table_id for schema in self._plan.topics[self._name].schemas]
        tables = {known.table_id for known in facts if known.table_id is not None}
        return Times(now_ms, now_ms - reorder_ms), max(tables, key=order.index, default=None)

    def _facts(self, found: Survey, number: int) -> Facts:
        with self._state(found.topic.partition(number), found.position(number).version) as state:
            return read_facts(state)

    @contextmanager
    def _state(self, partition: RawPartition, version: str) -> Iterator[LocalStore]:
        """A partition's state at a version."""
        folder = self._plan.materializer.state_directory / self._group / str(partition)
        with closing(open_local_store(folder)) as state:
            restore(state, self._history(partition), version)
            yield state

    def _history(self, partition: RawPartition) -> CheckpointStore:
        return CheckpointStore(self._store, self._group, partition)

    def _switch(self, lock: PartitionProducer, found: Survey, marked: Mapping[int, Position]) -> None:
        """Store the states of the new partitions, and make them true in one transaction."""
        topic = found.topic
        facts = []
        for number, position in marked.items():
            with self._state(topic.partition(number), position.version) as state:
                facts.append(read_facts(state))
        times, _ = self._common(facts)
        deal = make_deal(facts, topic.partitions, times)
        version = self._fresh_version(topic, marked)
        numbers = list(topic.bounds)
        versions: dict[int, str] = {}
        for start in range(0, topic.partitions, _AT_ONCE):
            some = numbers[start : start + _AT_ONCE]
            versions |= self._deal(topic, marked, deal, {number: next_version(version) for number in some})
        reach(ReshardPoint.BEFORE_SWITCH)
        now = topic_now(self._plan.kafka, self._name)
        reshards = 1 + max(position.reshards for position in marked.values())
        after = {
            number: marked.get(number, found.position(number))._replace(
                offset=_first(marked, number),
                version=versions[number],
                partitions=topic.partitions,
                topic_id=topic.id,
                reshards=reshards,
                in_progress=(_first(marked, number), now.bounds[number][1]),
            )
            for number in numbers
        }
        self._commit_all(lock, topic, marked, after)
        self._say(f"{topic.name}: the state of {found.before} partitions is dealt out to {topic.partitions}")

    def _fresh_version(self, topic: TopicNow, marked: Mapping[int, Position]) -> str:
        """One that none stored comes after."""
        versions = [position.version for position in marked.values()]
        return max(
            [*versions, *(self._history(topic.partition(each)).newest_version() for each in topic.bounds)], key=sequence
        )

    def _deal(
        self, topic: TopicNow, marked: Mapping[int, Position], deal: Deal, versions: Mapping[int, str]
    ) -> Mapping[int, str]:
        """Store a snapshot of each of these partitions; their versions."""
        home = self._plan.materializer.state_directory / self._group
        home.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=home, prefix="reshard-")))
            loads = {
                number: BulkLoad(
                    stack.enter_context(closing(open_local_store(folder / str(number)))),
                    Head(
                        version, marked[number].offset if number in marked else 0, deal.times.now_ms, topic.partitions
                    ),
                    deal.begin,
                )
                for number, version in versions.items()
            }
            for source, numbers in zip(marked, deal.numbers, strict=True):
                with self._state(topic.partition(source), marked[source].version) as state:
                    for number, key, value in dealt(state, numbers, topic.partitions, loads):
                        loads[number].add(key, value)
            for number, load in loads.items():
                entries, state = load.finish()
                store = partial(self._history(topic.partition(number)).write_snapshot, versions[number])
                state.checkpoint(partial(_store_first, store))
                reach(ReshardPoint.IN_REDISTRIBUTION)
                self._say(f"{topic.partition(number)}: {entries} entries")
        return versions

    def _commit_all(
        self, lock: PartitionProducer, topic: TopicNow, before: Mapping[int, Position], after: Mapping[int, Position]
    ) -> None:
        """Make the positions of all partitions true at once. Nobody else commits there: they are marked."""
        partitions = [topic.partition(number) for number in topic.bounds]
        for partition, position in self._group_positions.read(partitions).items():
            if position != before.get(partition.partition):
                raise overtaken(partition)
        lock.begin()
        lock.send_positions({topic.partition(number): position for number, position in after.items()})
        reach(ReshardPoint.IN_COMMIT)
        lock.commit()

    def _spread(self, found: Survey) -> dict[int, Position]:
        """Fold the backlog, of all partitions together in the order of time, each message where its key belongs."""
        changes = messages = 0
        with ExitStack() as stack:
            partitions = {
                number: stack.enter_context(opened(self._plan, found.topic.partition(number), position))
                for number, position in found.positions.items()
            }
            for chunk in self._backlog(found):
                for number, records in chunk.items():
                    changes += partitions[number].fold(records, self._processor_here)
                    messages += len(records)
                reach(ReshardPoint.IN_BACKLOG)
            self._say(f"{found.topic.name}: {messages} messages folded where they belong, {changes} changes")
            return {number: partition.position for number, partition in partitions.items()}

    def _backlog(self, found: Survey) -> Iterator[Mapping[int, list[RawMessageAt]]]:
        """By the partitions that they belong to, so much at a time as a chunk may have."""
        limits = chunk_settings(self._plan.materializer)
        chunk: dict[int, list[RawMessageAt]] = {}
        size = rows = 0
        waiting = [self._waiting(found.topic.partition(number), found.position(number)) for number in found.positions]
        for each in heapq.merge(*waiting, key=_time):
            for number in _belongs(each.record, found.before):
                chunk.setdefault(number, []).append(each)
            size, rows = size + len(each.record.key) + len(each.record.value), rows + 1
            if size >= limits.max_bytes or rows >= limits.max_messages:
                yield chunk
                chunk, size, rows = {}, 0, 0
        if chunk:
            yield chunk

    def _waiting(self, where: RawPartition, position: Position) -> Iterator[RawMessageAt]:
        assert position.in_progress is not None
        for record in read_raw(self._plan.kafka, where, *position.in_progress):
            yield RawMessageAt(where, record)

    def _finish(self, lock: PartitionProducer, found: Survey, positions: Mapping[int, Position]) -> None:
        topic, done = found.topic, {}
        for number, position in positions.items():
            assert position.in_progress is not None
            done[number] = position._replace(offset=position.in_progress[1], in_progress=None)
        self._commit_all(lock, topic, positions, done)
        reach(ReshardPoint.AFTER_FINISH)
        is_last = found.before == topic.partitions
        self._say(
            f"{topic.name}: done; {'start the materializer' if is_last else 'it has more by now: run this again'}"
        )


def _first(marked: Mapping[int, Position], number: int) -> int:
    """Where a partition's backlog begins: a new one's at its beginning."""
    return marked[number].offset if number in marked else 0


def _is_from_before(found: Survey, number: int, record: RawRecord) -> bool:
    return record.timestamp_ms < found.cut_ms and is_explained(record, number, found.before)


def _time(each: RawMessageAt) -> tuple[int, int, int]:
    """By which messages of several raw partitions are put in order: the brokers' time."""
    return each.record.timestamp_ms, each.source.partition, each.record.offset


def _belongs(record: RawRecord, count: int) -> Sequence[int]:
    """Whose state a record is for. Heartbeats are for none: what they say is of the partition they were sent to, and
    others come soon.
    """
    if record.key:
        return (partition_for(record.key, count),)
    try:
        return () if decode_record(record).kind == "heartbeat" else range(count)
    except UnreadableError:
        return range(count)


def _store_first(store: Callable[..., object], files: dict[Path, str]) -> None:
    """A snapshot that none came before."""
    store(files, None, is_own=True)
