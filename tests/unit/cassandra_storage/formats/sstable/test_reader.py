"""SSTables' data: what is written is read, in whatever chunks; damage raises FormatError at a position."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.clustering import ClusteringBound, Kind
from cassandra_storage.formats.rows.deletion import LIVE, NO_DELETION_TIME, NO_TIMESTAMP, DeletionTime, LivenessInfo
from cassandra_storage.formats.rows.header import SerializationHeader
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.rows.unfiltered import Marker
from cassandra_storage.formats.sstable.reader import SSTableReader
from cassandra_storage.formats.sstable.versions import BIG, sstable_format
from cassandra_storage.formats.versions import NO_DELETION_TIMES
from tests.support.cassandra_storage import sstable_builder, strategies
from tests.support.cassandra_storage.as_read import row_as_read, time_as_read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cassandra_storage.formats.rows.header import EncodingStats
    from cassandra_storage.formats.rows.row import ColumnData
    from cassandra_storage.formats.sstable.reader import Partition

NB, OA = sstable_format("nb", BIG), sstable_format("oa", BIG)
DELETION = DeletionTime(1_700_000_000_000_000, 1_700_000_000)


def chunked(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def reader_of(data: bytes, header: SerializationHeader, size: int = 100, *, length: int | None = None) -> SSTableReader:
    form = OA if header.format is OA.rows else NB
    return SSTableReader(chunked(data, size), len(data) if length is None else length, header, form)


def read(reader: SSTableReader) -> list[tuple[Partition, list[Row | Marker]]]:
    return [(partition, list(reader.rows())) for partition in reader.partitions()]


@st.composite
def sstables(
    draw: st.DrawFn,
) -> tuple[SerializationHeader, list[tuple[bytes, DeletionTime, Row | None, list[Row | Marker]]]]:
    table = draw(strategies.tables())
    header = SerializationHeader.of_table(table, draw(strategies.stats))
    partitions = []
    for _ in range(draw(st.integers(0, 3))):
        unfiltereds: list[Row | Marker] = []
        for _ in range(draw(st.integers(0, 3))):
            if bool(table.clustering) and draw(st.booleans()):
                tombstone = draw(strategies.ranges(table))
                unfiltereds.append(Marker(None, (tombstone.start, tombstone.deletion)))
                unfiltereds.append(Marker((tombstone.end, tombstone.deletion), None))
            else:
                unfiltereds.append(draw(strategies.rows(table)))
        static = (
            draw(strategies.rows(table, is_static=True)) if bool(table.static_columns) and draw(st.booleans()) else None
        )
        seconds = st.integers(0, 2**32 - 3).filter(lambda number: number not in NO_DELETION_TIMES)
        deletion = draw(st.just(LIVE) | st.builds(DeletionTime, st.integers(0, 2**63 - 1), seconds))
        partitions.append((draw(st.binary(max_size=10)), deletion, static, unfiltereds))
    return header, partitions


def as_read(one: Row | Marker, stats: EncodingStats) -> Row | Marker:
    if isinstance(one, Row):
        return row_as_read(one, stats)
    return Marker(*((None if end is None else (end[0], time_as_read(end[1], stats))) for end in one))


@given(sstables(), st.integers(1, 300))
@settings(deadline=None)
def test_what_is_written_is_read(
    made: tuple[SerializationHeader, list[tuple[bytes, DeletionTime, Row | None, list[Row | Marker]]]], size: int
) -> None:
    header, partitions = made
    written = [
        sstable_builder.partition(key, unfiltereds, header, OA, deletion=deletion, static_row=static)
        for key, deletion, static, unfiltereds in partitions
    ]
    found = read(reader_of(b"".join(written), header, size))
    position = 0
    assert len(found) == len(partitions)
    for (partition, rows), (key, deletion, static, unfiltereds), data in zip(found, partitions, written, strict=True):
        shown = None if static is None else row_as_read(static, header.stats)
        assert partition == (position, key, deletion, None if shown is None or shown.is_empty else shown)
        expected = [as_read(one, header.stats) for one in unfiltereds]
        assert rows == [one for one in expected if isinstance(one, Marker) or not one.is_empty]
        position += len(data)


def simple_header(version: int = 13) -> SerializationHeader:
    table = strategies.example_table()
    return SerializationHeader.of_table(table, messaging_version=version)


def simple_row(number: int, size: int = 10) -> Row:
    columns: dict[str, ColumnData] = {"v": Cell(1_700_000_000_000_000, b"x" * size)}
    return Row((number.to_bytes(4, "big"),), columns, LivenessInfo(1_700_000_000_000_000))


@pytest.mark.parametrize(
    ("form", "deletion"),
    [
        (NB, LIVE),
        (NB, DELETION),
        (NB, DeletionTime(-5, 7)),
        (NB, DeletionTime(NO_TIMESTAMP, 7)),
        (NB, DeletionTime(7, NO_DELETION_TIME)),
        (OA, LIVE),
        (OA, DELETION),
        (OA, DeletionTime(7, 4_200_000_000)),
    ],
)
def test_partition_deletions(form: object, deletion: DeletionTime) -> None:
    assert form in (NB, OA)
    of = NB if form is NB else OA
    header = simple_header(13 if of is OA else 12)
    data = sstable_builder.partition(b"key", [simple_row(1)], header, of, deletion=deletion)
    [(partition, rows)] = read(reader_of(data, header))
    assert (partition.deletion, rows) == (deletion, [simple_row(1)])


def test_deletion_time_before_1970_is_invalid() -> None:
    data = b"\x00\x01k" + (-1).to_bytes(4, "big", signed=True) + (5).to_bytes(8, "big") + b"\x01"
    [(partition, _)] = read(reader_of(data, simple_header(12)))
    assert partition.deletion == DeletionTime(5, 2**32 - 2)


def test_deletion_at_a_negative_timestamp_is_refused_as_cassandra_refuses_it() -> None:
    header = simple_header()
    data = sstable_builder.partition(b"k", [], header, OA, deletion=DeletionTime(-5, 7))
    with pytest.raises(FormatError, match="partition deletion with the flags 0xff") as caught:
        read(reader_of(data, header))
    assert caught.value.position == 3


def test_rows_that_are_not_asked_for_are_passed_over() -> None:
    header = simple_header()
    one = sstable_builder.partition(b"a", [simple_row(number) for number in range(50)], header, OA)
    reader = reader_of(one + sstable_builder.partition(b"b", [], header, OA), header)
    keys = []
    for partition in reader.partitions():
        keys.append(partition.key)
        next(reader.rows(), None)
    assert keys == [b"a", b"b"]


def test_boundary() -> None:
    end, start = (
        ClusteringBound(Kind.EXCL_END_BOUND, (b"\0\0\0\1",)),
        ClusteringBound(Kind.INCL_START_BOUND, (b"\0\0\0\1",)),
    )
    boundary = Marker((end, DELETION), (start, DeletionTime(5, 6)))
    header = simple_header()
    [(_, found)] = read(reader_of(sstable_builder.partition(b"a", [boundary], header, OA), header))
    assert found == [boundary]


@pytest.mark.parametrize("position", range(0, 60, 3))
def test_data_that_end_early(position: int) -> None:
    header = simple_header()
    data = sstable_builder.partition(b"key", [simple_row(1), simple_row(2)], header, OA)
    assert len(data) > 60
    with pytest.raises(FormatError) as caught:
        read(reader_of(data[:position], header, length=len(data)))
    assert caught.value.position is not None
    assert caught.value.position <= len(data)


def test_row_of_another_size() -> None:
    header = simple_header()
    whole = sstable_builder.row(simple_row(1), header, 0)
    data = sstable_builder.partition_head(b"k", header, OA) + whole.replace(b"\x14\x00", b"\x13\x00", 1) + b"\x01"
    assert data.count(whole) == 0
    with pytest.raises(FormatError, match="a row of 19 bytes that takes 20"):
        read(reader_of(data, header))


def test_row_that_reaches_past_the_end() -> None:
    header = simple_header()
    whole = sstable_builder.row(simple_row(1), header, 0)
    data = sstable_builder.partition_head(b"k", header, OA) + whole.replace(b"\x14\x00", b"\xf0\xff\xff\xff\xff\x00", 1)
    with pytest.raises(FormatError, match="past the end of the data"):
        read(reader_of(data + b"\x01", header))


def test_memory_does_not_grow_with_a_partition() -> None:
    """100,000 rows of 1,000 bytes in one partition, and one of a megabyte."""
    header = simple_header()
    count, size = 100_000, 1000
    head = sstable_builder.partition_head(b"k", header, OA)
    one = sstable_builder.row(simple_row(7, size), header, 1000)
    large = sstable_builder.row(simple_row(8, 1 << 20), header, 1000)
    length = len(head) + count * len(one) + len(large) + 1

    def chunks() -> Iterator[bytes]:
        yield head
        for _ in range(count // 100):
            yield one * 100
        yield large
        yield b"\x01"

    tracemalloc.start()
    reader = SSTableReader(chunks(), length, header, OA)
    rows = 0
    for _ in reader.partitions():
        for _ in reader.rows():
            rows += 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows == count + 1
    assert peak < 8 << 20
