"""`cassandra-materializer rebuild`: the table continues with an empty state at the end of its raw topic.

Decision 0017 describes the steps, and why another run repairs a crash between any two of them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError
from cdc_common.messages.topics import raw_topic
from materializer.command_marks import REBUILDING, command_lock
from materializer.commands.rebuild.row_deletions import RowDeleter
from materializer.commands.reshard.survey import read_raw_topic
from materializer.commands.stored_partitions import list_stored_partitions
from materializer.errors import RAW_FAULTS
from materializer.fault_points import RebuildPoint
from materializer.fold.gaps import DeadLetter
from materializer.output.dead_letters import DeadLetterWriter, unresolved_dead_letters
from materializer.planning.topic_finder import topics_of_table
from materializer.rows.keys import FLOOR
from stream_runtime.exactly_once.position import Position
from stream_runtime.fault_points import reach
from stream_runtime.kafka import FencingProducer, GroupPositions, Topics
from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.checkpoint_location import object_store
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.versions import NOTHING, next_version, sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from materializer.commands.rebuild.row_deletions import Schemas
    from materializer.commands.reshard.survey import RawTopic
    from materializer.records import RawPartition
    from materializer.settings import Settings


class Rebuild:
    """The rebuild of one table. `say` prints progress. CdcError or KafkaException if it fails."""

    def __init__(self, settings: Settings, table: str, schemas: Schemas, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._kafka = settings.kafka
        self._group = settings.materializer.group_id
        self._keyspace, _, self._table = table.partition(".")
        self._name = raw_topic(settings.kafka.topic_prefix, self._keyspace, self._table)
        self._schemas = schemas
        self._say = say
        self._store = object_store(settings.materializer)
        self._group_positions = GroupPositions(self._kafka, self._group, RAW_FAULTS)

    def describe(self) -> Iterator[str]:
        """Lines that say what a rebuild would do. Nothing is changed."""
        topic = read_raw_topic(self._kafka, self._name)
        yield f"{topic.name}: {topic.partition_count} partitions; the messages that they have by then are skipped"
        for number, position in self._read_positions(topic).items():
            first, end = topic.bounds[number]
            unread = "no readable position" if position is None else f"{end - position.offset} not read"
            yield f"{topic.raw_partition(number)}: {end - first} messages, {unread}"
        for raw_partition in self._list_stored():
            sizes = [entry.size for entries in self._checkpoints(raw_partition).entries() for entry in entries]
            yield f"{raw_partition}: a state of {len(sizes)} files, {sum(sizes)} bytes, to be deleted"
        for topic_name, count in self._find_change_topics().items():
            yield f"{topic_name}: {count} partitions; a d is sent for each row that they show"
        yield f"{len(unresolved_dead_letters(self._kafka, self._name))} dead-lettered messages to be resolved"

    def rebuild_table(self) -> None:
        """All steps. Another run repeats those that an interrupted run has not completed."""
        topic = read_raw_topic(self._kafka, self._name)
        lock = self._fence(command_lock(self._name))
        positions = self._mark_positions(topic)
        floor = max(self._delete_rows(lock), time.time_ns() // 1000)
        self._resolve_dead_letters(lock)
        reach(RebuildPoint.ROWS_ENDED)
        for raw_partition in self._list_stored():
            self._checkpoints(raw_partition).delete_all()
            reach(RebuildPoint.STATE_DELETED)
        for raw_partition, position in positions.items():
            self._store_empty_state(raw_partition, position, floor)
            reach(RebuildPoint.STATE_BEGUN)
        lock.begin()
        lock.send_positions(
            {raw_partition: position._replace(in_progress=None) for raw_partition, position in positions.items()}
        )
        reach(RebuildPoint.POSITIONS_SENT)
        lock.commit()
        self._say(f"{self._name}: done; row_sequence continues above {floor}")
        reach(RebuildPoint.REBUILD_DONE)

    def _mark_positions(self, topic: RawTopic) -> dict[RawPartition, Position]:
        """Commit the position where each raw partition continues, with a mark that stops everyone else.

        Each raw partition's own producer commits it, after it has fenced the one before. A position that an earlier run
        has marked stays: the messages after it may already come from Cassandra's rebuild.
        """
        for raw_partition in {*self._list_stored(), *map(topic.raw_partition, topic.bounds)}:
            self._fence(raw_partition).abandon()
        known = self._read_positions(topic)
        others = [
            position for position in known.values() if position is None or position.partitions != topic.partition_count
        ]
        reshards = max((position.reshards for position in known.values() if position is not None), default=0) + bool(
            others
        )
        marked = {}
        for number, (_, end) in topic.bounds.items():
            raw_partition, position = topic.raw_partition(number), known[number]
            if position is None or not _is_marked(position, topic):
                newest = self._checkpoints(raw_partition).newest_version()
                latest = max(newest, position.version if position else NOTHING, key=sequence)
                position = Position(
                    end,
                    next_version(latest),
                    topic.partition_count,
                    topic.id,
                    reshards=reshards,
                    in_progress=REBUILDING,
                )
                producer = self._fence(raw_partition)
                producer.begin()
                producer.send_positions({raw_partition: position})
                producer.commit()
            marked[raw_partition] = position
            reach(RebuildPoint.POSITION_MARKED)
        return marked

    def _delete_rows(self, lock: FencingProducer) -> int:
        """Send a `d` for each row that readers of the change topics have. The largest row_sequence of these."""
        deleter = RowDeleter(self._settings, self._schemas, lock)
        largest = 0
        for topic, count in self._find_change_topics().items():
            deleted = deleter.delete_rows(topic, count)
            largest = max(largest, deleted.max_row_sequence)
            self._say(f"{topic}: {deleted.rows} rows deleted")
        return largest

    def _resolve_dead_letters(self, lock: FencingProducer) -> None:
        """Cassandra's rebuild brings the rows that these messages lack."""
        letters = unresolved_dead_letters(self._kafka, self._name)
        if not letters:
            return
        writer = DeadLetterWriter(self._kafka, self._name)
        lock.begin()
        for letter in letters:
            resolved = DeadLetter(bytes.fromhex(letter.id), letter.key, None, letter.offset, letter.timestamp_ms)
            for message in writer.messages(letter.where, [resolved]):
                lock.send(message)
        lock.commit()
        self._say(f"{len(letters)} dead-lettered messages resolved")

    def _store_empty_state(self, raw_partition: RawPartition, position: Position, floor: int) -> None:
        """Store a state that holds only `floor`, above which the row_sequences of all rows start."""
        head = Head(position.version, position.offset, time.time_ns() // 1_000_000, position.partitions)
        writes = {FLOOR: floor.to_bytes(8, "big")}
        self._checkpoints(raw_partition).write_changelog(Changelog(head, NOTHING, position.offset, writes))

    def _fence(self, raw_partition: RawPartition) -> FencingProducer:
        return FencingProducer(self._kafka, self._group, str(raw_partition), self._group_positions.consumer)

    def _checkpoints(self, raw_partition: RawPartition) -> CheckpointStore:
        return CheckpointStore(self._store, self._group, raw_partition, RAW_FAULTS)

    def _list_stored(self) -> list[RawPartition]:
        return [
            raw_partition
            for raw_partition in list_stored_partitions(self._store, self._group)
            if raw_partition.topic == self._name
        ]

    def _find_change_topics(self) -> dict[str, int]:
        """The existing versions of the table's change topic, and their numbers of partitions."""
        counts = Topics(self._kafka).partition_counts()
        found = topics_of_table(self._settings, self._keyspace, self._table, counts)
        return {topic: counts[topic] for topic in found}

    def _read_positions(self, topic: RawTopic) -> Mapping[int, Position | None]:
        """The positions by partition number. An unreadable position counts as none."""
        return {number: self._read_position(topic.raw_partition(number)) for number in topic.bounds}

    def _read_position(self, raw_partition: RawPartition) -> Position | None:
        try:
            return self._group_positions.read([raw_partition])[raw_partition]
        except CdcError as error:
            self._say(f"{raw_partition}: its position cannot be read: {error.problem}")
            return None


def _is_marked(position: Position, topic: RawTopic) -> bool:
    expected = topic.partition_count, topic.id
    return position.in_progress == REBUILDING and (position.partitions, position.topic_id) == expected
