"""Raw messages as the publishers of a table send them, for benchmarks: four loads of one table or another."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import time_ns
from typing import TYPE_CHECKING

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from rich.progress import track

from cassandra_storage.formats.rows.deletion import LIVE, NO_LIVENESS, DeletionTime, LivenessInfo, RowDeletion
from cassandra_storage.formats.rows.row import Cell, ColumnData, ComplexColumnData, Row
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.marshal import MapType, NativeType, SetType
from cdc_common.messages.tables import message_key, to_json
from dev.bench.topics import create_topics
from tests.support.materializer.raw_builder import TableWriter, raw_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdc_common.messages.raw import Kind

    Write = tuple[bytes, Kind, object]

PREFIX = "cdc"
START_US = time_ns() // 1000
KEYS = 50_000  # of the load "few"
WIDE_PARTITIONS, WIDE_ROWS = 100, 10_000
NARROW_ROWS = 10  # of a partition of the load "mixed"
TTL = 86_400 * 30
_TEXT = "abcdefghijklmnopqrstuvwxyz 0123456789"


def _column(name: str, of: NativeType | MapType | SetType, kind: ColumnKind, position: int = -1) -> ColumnMetadata:
    return ColumnMetadata(name, of, kind, position)


_KEYS = (
    (_column("id", NativeType("uuid"), ColumnKind.PARTITION_KEY, 0),),
    (_column("at", NativeType("timeuuid"), ColumnKind.CLUSTERING, 0),),
)
_TEXT_TYPE = NativeType("text")
_REGULAR = (
    _column("amount", NativeType("int"), ColumnKind.REGULAR),
    _column("kind", NativeType("int"), ColumnKind.REGULAR),
    _column("note", _TEXT_TYPE, ColumnKind.REGULAR),
    _column("price", NativeType("double"), ColumnKind.REGULAR),
    _column("tags", MapType(_TEXT_TYPE, _TEXT_TYPE, is_multi_cell=True), ColumnKind.REGULAR),
)
PLAIN = TableMetadata("bench", "plain", uuid.UUID(int=11), *_KEYS, regular_columns=_REGULAR)
MIXED = TableMetadata(
    "bench",
    "mixed",
    uuid.UUID(int=12),
    *_KEYS,
    static_columns=(_column("owner", _TEXT_TYPE, ColumnKind.STATIC),),
    regular_columns=_REGULAR,
)


@dataclass(frozen=True)
class Load:
    """A load of one table."""

    # The name of the load.
    name: str
    # The table.
    table: TableMetadata
    # Makes so many writes to the table.
    writes: Callable[[random.Random, int], Iterator[Write]]

    @property
    def raw_topic(self) -> str:
        return f"{PREFIX}.raw.bench.{self.table.name}"


def new_row(rng: random.Random, key: tuple[bytes, bytes], timestamp: int, *, ttl: int = 0) -> Write:
    """An INSERT of all columns."""

    def cell(value: bytes, path: bytes | None = None) -> Cell:
        return Cell(timestamp, value, timestamp // 10**6 + ttl, ttl, path) if ttl else Cell(timestamp, value, path=path)

    source, session = (text(rng, 8), text(rng, 12))
    columns: dict[str, ColumnData] = {
        "amount": cell(rng.randbytes(4)),
        "kind": cell(rng.randbytes(4)),
        "note": cell(text(rng, 100)),
        "price": cell(rng.randbytes(8)),
        "tags": ComplexColumnData(
            DeletionTime(timestamp - 1, timestamp // 10**6), (cell(session, b"session"), cell(source, b"source"))
        ),
    }
    liveness = LivenessInfo(timestamp, ttl, timestamp // 10**6 + ttl) if ttl else LivenessInfo(timestamp)
    return key[0], "row", Row((key[1],), columns, liveness)


def text(rng: random.Random, length: int) -> bytes:
    return "".join(rng.choices(_TEXT, k=length)).encode()


def new_key(rng: random.Random) -> tuple[bytes, bytes]:
    return uuid.UUID(int=rng.getrandbits(128), version=4).bytes, time_uuid(rng)


def time_uuid(rng: random.Random) -> bytes:
    return uuid.UUID(int=rng.getrandbits(128), version=1).bytes


def new_keys(rng: random.Random, count: int) -> Iterator[Write]:
    """Each row is new."""
    for number in range(count):
        yield new_row(rng, new_key(rng), START_US + number)


def few_keys(rng: random.Random, count: int) -> Iterator[Write]:
    """Rows of KEYS partitions are written again and again."""
    keys = [new_key(rng) for _ in range(KEYS)]
    for number in range(count):
        yield new_row(rng, rng.choice(keys), START_US + number)


def wide(rng: random.Random, count: int) -> Iterator[Write]:
    """WIDE_PARTITIONS partitions of WIDE_ROWS rows each."""
    partitions = [(new_key(rng)[0], [time_uuid(rng) for _ in range(WIDE_ROWS)]) for _ in range(WIDE_PARTITIONS)]
    for number in range(count):
        partition, rows = rng.choice(partitions)
        yield new_row(rng, (partition, rng.choice(rows)), START_US + number)


def mixed(rng: random.Random, count: int) -> Iterator[Write]:
    """Partitions of NARROW_ROWS rows with a static column: of 100 writes 50 insert, 20 insert with a TTL, 14 update a
    column, 6 set one to null, 5 delete a row, 3 write the static column, 1 deletes a partition, 1 adds to the map.
    """
    partitions = [
        (new_key(rng)[0], [time_uuid(rng) for _ in range(NARROW_ROWS)])
        for _ in range(max(1, count // (2 * NARROW_ROWS)))
    ]
    for number in range(count):
        partition, rows = rng.choice(partitions)
        yield _mixed_write(rng, (partition, rng.choice(rows)), START_US + number)


def _mixed_write(rng: random.Random, key: tuple[bytes, bytes], timestamp: int) -> Write:
    which, second = rng.randrange(100), timestamp // 10**6
    deletion = DeletionTime(timestamp, second)
    if which < 70:
        return new_row(rng, key, timestamp, ttl=TTL if which >= 50 else 0)
    if which < 95:
        return key[0], "row", _change_of_row(rng, which, key[1], deletion)
    if which < 98:
        return key[0], "static", Row((), {"owner": Cell(timestamp, text(rng, 12))})
    if which < 99:
        return key[0], "partition_deletion", deletion
    added = ComplexColumnData(LIVE, (Cell(timestamp, text(rng, 8), path=text(rng, 4)),))
    return key[0], "row", Row((key[1],), {"tags": added}, NO_LIVENESS)


def _change_of_row(rng: random.Random, which: int, clustering: bytes, deletion: DeletionTime) -> Row:
    timestamp, second = deletion
    if which < 84:
        return Row((clustering,), {"amount": Cell(timestamp, rng.randbytes(4))}, NO_LIVENESS)
    if which < 90:
        return Row((clustering,), {"note": Cell(timestamp, b"", second)}, NO_LIVENESS)
    return Row((clustering,), {}, NO_LIVENESS, RowDeletion(deletion))


LOADS = {
    load.name: load
    for load in (
        Load("new", PLAIN, new_keys),
        Load("few", PLAIN, few_keys),
        Load("wide", PLAIN, wide),
        Load("mixed", MIXED, mixed),
    )
}


def make_topics(bootstrap: str, load: Load, partitions: int) -> None:
    """The load's raw topic, and the tables topic with its schema."""
    stamped = {"message.timestamp.type": "LogAppendTime"}
    raw_topic = NewTopic(load.raw_topic, partitions, 1, config=stamped)
    create_topics(bootstrap, raw_topic, NewTopic(f"{PREFIX}.tables", 1, 1))
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(f"{PREFIX}.tables", to_json(load.table), message_key(load.table))
    producer.flush()


def make_messages(load: Load, count: int) -> list[tuple[bytes, bytes]]:
    """Keys and values of `count` raw messages."""
    writer = TableWriter(load.table)
    writes = load.writes(random.Random(1), count)  # noqa: S311 - a load
    records = (
        raw_record(key, kind, write, offset=offset, writer=writer)
        for offset, (key, kind, write) in enumerate(track(writes, f"Making {load.name}", count))
    )
    return [(record.key, record.value) for record in records]


def send(bootstrap: str, topic: str, messages: Iterable[tuple[bytes, bytes]]) -> None:
    """Send all, each to its key's raw partition, as fast as Kafka takes them."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "partitioner": "murmur2", "linger.ms": 20, "compression.type": "lz4"}
    )
    for key, value in messages:
        while True:
            try:
                producer.produce(topic, value, key)
            except BufferError:
                producer.poll(0.1)
            else:
                break
    producer.flush()
