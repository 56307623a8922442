"""`cassandra-materializer rebuild`: a table starts over, with no state, behind all raw messages that are there.

The steps, and why a crash between any two of them is mended by another run, are in docs/decisions/0019.
"""

from __future__ import annotations

import re
import tempfile
import time
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cdc_messages import wire
from cdc_messages.ended import Ending
from cdc_messages.topics import change_topic, raw_topic
from cdc_program.errors import CdcError
from materializer.commands.reshard.survey import topic_now
from materializer.commands.state_list import stored_partitions
from materializer.exactly_once.position import REBUILDING, Position, command_lock
from materializer.fault_points import RebuildPoint, reach
from materializer.fold.gaps import DeadLetter
from materializer.job.wiring import object_store
from materializer.kafka import GroupPositions, PartitionProducer, Topics, read_partition
from materializer.output.dead_letters import DeadLetterWriter, unresolved_dead_letters
from materializer.records import Message, RawPartition
from materializer.rows.keys import FLOOR
from materializer.store.bulk_load import BulkLoad
from materializer.store.changelog import Changelog, Head
from materializer.store.checkpoints import CheckpointStore
from materializer.store.rocksdb import open_local_store
from materializer.store.versions import NOTHING, next_version, sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cdc_program.settings import Settings
    from materializer.commands.reshard.survey import TopicNow

_ROWS_AT_ONCE = 1000  # in a transaction
_KEY = b"k"  # a change's key begins with 0x00, which is the state store's own


class Schemas(Protocol):
    """cdc_program.registry.RegistryClient."""

    def get(self, schema_id: int) -> dict[str, Any]: ...


class ChangePartition(NamedTuple):
    """A partition of a version of the table's change topic."""

    topic: str
    partition: int


class Rebuild:
    """One table's; `say` is told how it goes on. CdcError, or KafkaException, where it cannot be done."""

    def __init__(self, settings: Settings, table: str, schemas: Schemas, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._kafka = settings.kafka
        self._group = settings.materializer.group_id
        self._keyspace, _, self._table = table.partition(".")
        self._name = raw_topic(settings.kafka.topic_prefix, self._keyspace, self._table)
        self._schemas = schemas
        self._say = say
        self._store = object_store(settings.materializer)
        self._positions = GroupPositions(self._kafka, self._group)
        self._endings: dict[int, Ending] = {}

    def survey(self) -> Iterator[str]:
        """What is there, for a reader; nothing is changed."""
        topic = topic_now(self._kafka, self._name)
        yield f"{topic.name}: {topic.partitions} partitions; what lies in them by the time of the command is left out"
        for number, position in self._known(topic).items():
            first, end = topic.bounds[number]
            unread = "no position that can be read" if position is None else f"{end - position.offset} not read"
            yield f"{topic.partition(number)}: {end - first} messages, {unread}"
        for partition in self._stored():
            sizes = [entry.size for entries in self._history(partition).entries() for entry in entries]
            yield f"{partition}: a state of {len(sizes)} files, {sum(sizes)} bytes, to be deleted"
        for topic_name, count in self._change_topics().items():
            yield f"{topic_name}: {count} partitions; each row that is there by its newest message ends with a d"
        yield f"{len(unresolved_dead_letters(self._kafka, self._name))} dead letters to be settled"

    def run(self) -> None:
        topic = topic_now(self._kafka, self._name)
        lock = self._fence(command_lock(self._name))
        positions = self._mark(topic)
        floor = max(self._end_rows(lock), time.time_ns() // 1000)
        self._settle_letters(lock)
        reach(RebuildPoint.ROWS_ENDED)
        for partition in self._stored():
            self._history(partition).delete_all()
            reach(RebuildPoint.STATE_DELETED)
        for partition, position in positions.items():
            self._begin(partition, position, floor)
            reach(RebuildPoint.STATE_BEGUN)
        lock.begin()
        lock.send_positions({each: position._replace(in_progress=None) for each, position in positions.items()})
        reach(RebuildPoint.POSITIONS_SENT)
        lock.commit()
        self._say(f"{self._name}: done; row_sequence goes on above {floor}")
        reach(RebuildPoint.REBUILD_DONE)

    def _fence(self, partition: RawPartition) -> PartitionProducer:
        return PartitionProducer(self._kafka, self._group, partition, self._positions.consumer)

    def _stored(self) -> list[RawPartition]:
        return [each for each in stored_partitions(self._store, self._group) if each.topic == self._name]

    def _history(self, partition: RawPartition) -> CheckpointStore:
        return CheckpointStore(self._store, self._group, partition)

    def _known(self, topic: TopicNow) -> Mapping[int, Position | None]:
        """The positions; one that nobody can go on from is as good as none."""
        return {number: self._position(topic.partition(number)) for number in topic.bounds}

    def _position(self, partition: RawPartition) -> Position | None:
        try:
            return self._positions.read([partition])[partition]
        except CdcError as error:
            self._say(f"{partition}: its position cannot be read: {error.problem}")
            return None

    def _mark(self, topic: TopicNow) -> dict[RawPartition, Position]:
        """Where the table goes on, committed with a mark that keeps everybody else away.

        Each partition's own producer commits it, after it has fenced whoever worked there. What an earlier run has
        marked stays: the messages behind it may have come after a rebuild of Cassandra's.
        """
        for partition in {*self._stored(), *map(topic.partition, topic.bounds)}:
            self._fence(partition).abandon()
        known = self._known(topic)
        others = [each for each in known.values() if each is None or each.partitions != topic.partitions]
        reshards = max((each.reshards for each in known.values() if each is not None), default=0) + bool(others)
        marked = {}
        for number, (_, end) in topic.bounds.items():
            partition, position = topic.partition(number), known[number]
            if position is None or not _is_marked(position, topic):
                newest = max(
                    self._history(partition).newest_version(), position.version if position else NOTHING, key=sequence
                )
                position = Position(
                    end, next_version(newest), topic.partitions, topic.id, reshards=reshards, in_progress=REBUILDING
                )
                producer = self._fence(partition)
                producer.begin()
                producer.send_position(position)
                producer.commit()
            marked[partition] = position
            reach(RebuildPoint.POSITION_MARKED)
        return marked

    def _change_topics(self) -> dict[str, int]:
        """All versions of the table's change topic that are there, and the numbers of their partitions."""
        name = re.escape(change_topic(self._kafka.topic_prefix, self._keyspace, self._table))
        counts = Topics(self._kafka).partition_counts()
        return {each: counts[each] for each in sorted(counts) if re.fullmatch(rf"{name}(-v\d+)?", each)}

    def _end_rows(self, lock: PartitionProducer) -> int:
        """End each row that the change topic's readers have: the largest row_sequence of these ends."""
        largest = 0
        for topic, count in self._change_topics().items():
            ended = 0
            for number in range(count):
                rows, sequence = self._end_partition(lock, ChangePartition(topic, number))
                ended, largest = ended + rows, max(largest, sequence)
            self._say(f"{topic}: {ended} rows ended")
        return largest

    def _end_partition(self, lock: PartitionProducer, where: ChangePartition) -> tuple[int, int]:
        """How many rows, and the largest row_sequence. The newest messages of the keys are gathered on disk."""
        home = self._settings.materializer.state_directory / self._group
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        rows = largest = 0
        with (
            tempfile.TemporaryDirectory(dir=home, prefix="rebuild-") as folder,
            closing(open_local_store(Path(folder))) as newest,
        ):
            load = BulkLoad(newest, Head(next_version(NOTHING), 0, 0, 0), {})
            for key, value in read_partition(self._kafka, *where):
                load.add(_KEY + key, value)
            load.finish()
            for ends in _some(self._ends(where, newest.scan(_KEY, _KEY + b"\xff"))):
                lock.begin()
                for messages, sequence in ends:
                    rows, largest = rows + 1, max(largest, sequence)
                    for message in messages:
                        lock.send(message)
                reach(RebuildPoint.ROWS_SENT)
                lock.commit()
        return rows, largest

    def _ends(
        self, where: ChangePartition, newest: Iterable[tuple[bytes, bytes]]
    ) -> Iterator[tuple[list[Message], int]]:
        """For each row that is there: its last messages, and the row_sequence of its end."""
        for stored, value in newest:
            key = stored[len(_KEY) :]
            ended = self._ending(wire.schema_id(value)).end(value, time.time_ns() // 1000)
            if ended is not None:
                messages = [Message(*where, key, ended.value)]
                if self._settings.materializer.tombstones:
                    messages.append(Message(*where, key, None))
                yield messages, ended.row_sequence

    def _ending(self, schema_id: int) -> Ending:
        if schema_id not in self._endings:
            self._endings[schema_id] = Ending(self._schemas.get(schema_id))
        return self._endings[schema_id]

    def _settle_letters(self, lock: PartitionProducer) -> None:
        """What they lack, Cassandra's rebuild brings."""
        letters = unresolved_dead_letters(self._kafka, self._name)
        if not letters:
            return
        writer = DeadLetterWriter(self._kafka, self._name)
        lock.begin()
        for letter in letters:
            settled = DeadLetter(bytes.fromhex(letter.id), letter.key, None, letter.offset, letter.timestamp_ms)
            for message in writer.messages(letter.where, [settled]):
                lock.send(message)
        lock.commit()
        self._say(f"{len(letters)} dead letters settled")

    def _begin(self, partition: RawPartition, position: Position, floor: int) -> None:
        """A state of nothing but the row_sequence above which rows begin."""
        head = Head(position.version, position.offset, time.time_ns() // 1_000_000, position.partitions)
        writes = {FLOOR: floor.to_bytes(8, "big")}
        self._history(partition).write_changelog(Changelog(head, NOTHING, position.offset, writes))


def next_steps(table: str) -> list[str]:
    """What is to be done when the table has started over."""
    keyspace = table.partition(".")[0]
    return [
        'Next, on each node of the CDC datacenter, one after the other (docs/operations.md, "Starting over"):',
        f"  cqlsh -e \"DELETE FROM system.available_ranges_v2 WHERE keyspace_name = '{keyspace}'\"",  # noqa: S608 - for the reader
        "      (3.11: system.available_ranges; without it the node refuses or leaves out what it has streamed once)",
        f"  nodetool rebuild --keyspace {keyspace} -- <another datacenter>",
        "and, before it or after:",
        "  cassandra-materializer run",
    ]


def _is_marked(position: Position, topic: TopicNow) -> bool:
    return position.in_progress == REBUILDING and (position.partitions, position.topic_id) == (
        topic.partitions,
        topic.id,
    )


def _some(ends: Iterator[tuple[list[Message], int]]) -> Iterator[list[tuple[list[Message], int]]]:
    while some := list(islice(ends, _ROWS_AT_ONCE)):
        yield some
