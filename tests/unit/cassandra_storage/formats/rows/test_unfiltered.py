"""Rows: written and read back, and anything else refused."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.vint import read_unsigned_vint, write_int, write_unsigned_vint
from cassandra_storage.formats.rows.deletion import LIVE, NO_DELETION_TIME, DeletionTime, LivenessInfo, RowDeletion
from cassandra_storage.formats.rows.header import (
    Columns,
    EncodingStats,
    SerializationHeader,
    read_deletion_time,
    read_stats,
    write_stats,
)
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData, Row
from cassandra_storage.formats.rows.unfiltered import read_row, skip_row, write_row
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, DroppedColumn, TableMetadata
from cassandra_storage.formats.types.marshal import MapType
from cassandra_storage.formats.versions import VERSION_40, VERSION_3014, messaging_format
from tests.support.cassandra_storage import strategies
from tests.support.cassandra_storage.as_read import row_as_read
from tests.support.cassandra_storage.strategies import INT, TEXT

TABLE = TableMetadata(
    "k",
    "t",
    UUID(int=1),
    (ColumnMetadata("p", INT, ColumnKind.PARTITION_KEY, 0),),
    (ColumnMetadata("c", TEXT, ColumnKind.CLUSTERING, 0),),
    (ColumnMetadata("s", TEXT, ColumnKind.STATIC),),
    (
        ColumnMetadata("a", INT, ColumnKind.REGULAR),
        ColumnMetadata("b", TEXT, ColumnKind.REGULAR),
        ColumnMetadata("m", MapType(TEXT, INT, is_multi_cell=True), ColumnKind.REGULAR),
    ),
)
MAPS = replace(
    TABLE,
    clustering=(),
    static_columns=(),
    regular_columns=tuple(ColumnMetadata(n, MapType(TEXT, INT, is_multi_cell=True), ColumnKind.REGULAR) for n in "mn"),
)
CELL = Cell(1, b"v", path=b"k")
EPOCH = 1_442_880_000
HEADER = SerializationHeader.of_table(TABLE)


@st.composite
def rows_with_headers(draw: st.DrawFn) -> tuple[Row, SerializationHeader, bool]:
    table = draw(strategies.tables())
    is_static = bool(table.static_columns) and draw(st.booleans())
    header = SerializationHeader.of_table(table, draw(strategies.stats))
    return draw(strategies.rows(table, is_static=is_static)), header, is_static


@given(rows_with_headers(), st.binary(max_size=3))
def test_round_trip(generated: tuple[Row, SerializationHeader, bool], lead: bytes) -> None:
    row, header, is_static = generated
    data = lead + write_row(row, header, is_static=is_static)
    read = row_as_read(row, header.stats)
    assert read_row(data + b"\x01", len(lead), header, is_static=is_static) == (read, len(data))
    assert skip_row(data + b"\x01", len(lead), header, is_static=is_static).end == len(data)


@given(rows_with_headers(), st.sampled_from([VERSION_3014, VERSION_40]))
def test_round_trip_in_older_versions(generated: tuple[Row, SerializationHeader, bool], version: int) -> None:
    row, header, is_static = generated
    row, header = up_to_2038(row), header._replace(format=messaging_format(version))
    data = write_row(row, header, is_static=is_static)
    assert read_row(data, 0, header, is_static=is_static) == (row, len(data))


def up_to_2038(part: Any) -> Any:  # noqa: ANN401  all that rows are made of
    """Return the part with the local deletion times that versions before 5.0 can hold."""
    if isinstance(part, dict):
        return {name: up_to_2038(data) for name, data in part.items()}
    if not hasattr(part, "_replace"):
        return tuple(map(up_to_2038, part)) if isinstance(part, tuple) else part
    fields = {name: up_to_2038(value) for name, value in part._asdict().items()}
    for name in ("local_deletion_time", "local_expiration_time"):
        if fields.get(name, NO_DELETION_TIME) != NO_DELETION_TIME:
            fields[name] = min(fields[name], 2**31 - 2)
    return part._replace(**fields)


@given(rows_with_headers(), st.data())
def test_truncated(generated: tuple[Row, SerializationHeader, bool], data: st.DataObject) -> None:
    row, header, is_static = generated
    written = write_row(row, header, is_static=is_static)
    cut = written[: data.draw(st.integers(0, len(written) - 1))]
    with pytest.raises(FormatError):
        read_row(cut, 0, header, is_static=is_static)


@given(rows_with_headers(), st.data())
def test_changed(generated: tuple[Row, SerializationHeader, bool], data: st.DataObject) -> None:
    """A changed byte makes another row or a FormatError; what is read ends inside the bytes."""
    row, header, is_static = generated
    written = bytearray(write_row(row, header, is_static=is_static))
    written[data.draw(st.integers(0, len(written) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        read, end = read_row(bytes(written), 0, header, is_static=is_static)
    except FormatError:
        return
    assert end <= len(written)
    assert skip_row(bytes(written), 0, header, is_static=is_static).end == end
    again = write_row(read, header, is_static=is_static)
    assert read_row(again, 0, header, is_static=is_static)[0] == read


@given(st.binary(max_size=60), st.booleans())
def test_arbitrary(data: bytes, is_static: bool) -> None:  # noqa: FBT001  Hypothesis draws it
    try:
        _, end = read_row(data, 0, HEADER, is_static=is_static)
    except FormatError:
        return
    assert 0 < end <= len(data)


def test_insert_bytes() -> None:
    """INSERT of all columns at the epoch of the statistics: cells use the row's timestamp."""
    row = Row(
        (b"x",),
        {
            "a": Cell(EPOCH * 1_000_000 + 1, b"\0\0\0\7"),
            "b": Cell(EPOCH * 1_000_000 + 1, b""),
            "m": ComplexColumnData(DeletionTime(EPOCH * 1_000_000, EPOCH + 1), (Cell(1, b"v", path=b"k"),)),
        },
        LivenessInfo(EPOCH * 1_000_000 + 1),
    )
    expected = (
        "64"  # timestamp, all columns, complex deletion
        "00"
        "0178"  # clustering: nothing empty, "x"
        "01"  # liveness
        "08"
        "00000007"  # a: row's timestamp; 4 bytes
        "0c"  # b: row's timestamp, empty
        "00"
        "01"  # m's deletion
        "01"  # one cell
        "00"
        "fffffadfb552258001"
        "016b"
        "0176"
    )
    assert write_row(row, HEADER).hex() == expected
    assert read_row(bytes.fromhex(expected), 0, HEADER) == (row, len(expected) // 2)


def test_shadowable_deletion_and_live_complex_deletion() -> None:
    """HAS_COMPLEX_DELETION gives every complex column a deletion time: LIVE's local deletion time has all bits set."""
    header = SerializationHeader.of_table(MAPS)
    row = Row(
        (),
        {"m": ComplexColumnData(DeletionTime(5, 6), ()), "n": ComplexColumnData(LIVE, (CELL,))},
        deletion=RowDeletion(DeletionTime(7, 8), is_shadowable=True),
    )
    data = write_row(row, header)
    assert data[:2] == bytes.fromhex("f002")
    assert read_row(data, 0, header) == (row, len(data))
    assert (2**32 - 1 - EPOCH).to_bytes(4, "big") in data


@pytest.mark.parametrize(
    ("version", "written", "read"),
    [
        (11, 2**31 - 1, NO_DELETION_TIME),  # Integer.MAX_VALUE of 3.11 and 4.x
        (11, 2**32 - 5, 2**32 - 2),
        (12, 2**31 - 1, NO_DELETION_TIME),
        (12, 2**31 - 2, 2**31 - 2),
        (12, 2**32 - 5, 2**32 - 2),  # negative: Cell.INVALID_DELETION_TIME
        (13, 2**31 - 1, 2**31 - 1),
        (13, EPOCH + 2**31 - 1, EPOCH + 2**31 - 1),
        (13, EPOCH + 2**31, 2**32 - 2),
        (13, 2**32 - 3, 2**32 - 2),
    ],
)
def test_deletion_times_of_versions(version: int, written: int, read: int) -> None:
    """A DeletionTime whose difference to the least, or which itself, is negative as an int is invalid in 13 too."""
    header = SerializationHeader.of_table(TABLE, messaging_version=version)
    row = Row((b"x",), {}, deletion=RowDeletion(DeletionTime(5, written)))
    assert read_row(write_row(row, header), 0, header)[0].deletion.time == DeletionTime(5, read)


@pytest.mark.parametrize(
    ("written", "ttl", "read"),
    [
        (2**31 - 1, 0, 2**31 - 1),
        (EPOCH + 2**31, 0, EPOCH + 2**31),
        (2**32 - 3, 0, 2**32 - 3),
        (2**32 - 3, 9, 2**32 - 3),
        (2**32 - 1, 9, NO_DELETION_TIME),
    ],
)
def test_deletion_times_of_cells(written: int, ttl: int, read: int) -> None:
    """Cell.decodeLocalDeletionTime takes the whole range of unsigned ints, also where the least is after 2038."""
    cell = Cell(5, b"", written, ttl)
    for least in (EPOCH, 2**31 - 1, 2**31 + 5):
        header = SerializationHeader.of_table(TABLE, EncodingStats(min_local_deletion_time=least))
        stats, _ = read_stats(write_stats(header.stats), 0)
        data = write_row(Row((b"x",), {"b": cell}), header)
        assert read_row(data, 0, header._replace(stats=stats))[0].columns["b"] == Cell(5, b"", read, ttl)


@pytest.mark.parametrize(("ttl", "read"), [(8, 8), (9, 2**32 - 2), (2**31 - 1, 8)])
def test_expiration_before_the_ttl(ttl: int, read: int) -> None:
    """It would have been written before 1970, unless its TTL is LivenessInfo.EXPIRED_LIVENESS_TTL."""
    data = write_row(Row((b"x",), {}, LivenessInfo(5, ttl, 8)), HEADER)
    assert read_row(data, 0, HEADER)[0].liveness == LivenessInfo(5, ttl, read)


def test_deletion_after_2038_as_the_least() -> None:
    """EncodingStats.Serializer reads a least after 2038 as negative, and so each DeletionTime as invalid."""
    time = DeletionTime(5, 2**31)
    header = SerializationHeader.of_table(TABLE, EncodingStats(min_local_deletion_time=time.local_deletion_time))
    stats, _ = read_stats(write_stats(header.stats), 0)
    data = write_row(Row((b"x",), {}, deletion=RowDeletion(time)), header)
    assert read_row(data, 0, header._replace(stats=stats))[0].deletion.time == DeletionTime(5, 2**32 - 2)


@pytest.mark.parametrize(("version", "none"), [(11, 2**31 - 1), (12, 2**31 - 1), (13, 2**32 - 1)])
def test_no_deletion_in_versions(version: int, none: int) -> None:
    """LIVE beside a real complex deletion: each version's own mark is written, and any mark is read."""
    header = SerializationHeader.of_table(MAPS, messaging_version=version)
    row = Row((), {"m": ComplexColumnData(DeletionTime(5, 6), ()), "n": ComplexColumnData(LIVE, (CELL,))})
    data = write_row(row, header)
    assert write_int(none - EPOCH) in data
    assert read_row(data, 0, header) == (row, len(data))
    for other in (2**31 - 1, 2**32 - 1):
        foreign = header._replace(format=replace(header.format, no_deletion_time=other))
        assert read_row(write_row(row, foreign), 0, header)[0] == row


def test_dropped_columns() -> None:
    """Cells up to the time of a DROP are not there; a column that was added again keeps its later ones."""
    gone = DroppedColumn(ColumnMetadata("gone", INT, ColumnKind.REGULAR), 100)
    back = DroppedColumn(TABLE.regular_columns[2], 100)
    table = TableMetadata(
        "k",
        "t",
        UUID(int=1),
        TABLE.partition_key,
        TABLE.clustering,
        regular_columns=TABLE.regular_columns,
        dropped_columns=MappingProxyType({"gone": gone, "m": back}),
    )
    header = SerializationHeader.of_table(table)
    cells = (Cell(100, b"old", path=b"a"), Cell(101, b"new", path=b"b"))
    row = Row((b"x",), {"m": ComplexColumnData(DeletionTime(100, 5), cells)})
    read, _ = read_row(write_row(row, HEADER), 0, header)
    assert read.columns == {"m": ComplexColumnData(LIVE, cells[1:])}
    old = Row((b"x",), {"m": ComplexColumnData(DeletionTime(100, 5), cells[:1])})
    assert read_row(write_row(old, HEADER), 0, header)[0].is_empty


@pytest.mark.parametrize("count", [1, 7, 63, 64, 65, 200])
def test_subsets(count: int) -> None:
    columns = Columns(tuple(HEADER.regular_columns.layouts[0]._replace(name=f"c{i}") for i in range(count)))
    for present in ([0], [count - 1], list(range(count)), list(range(0, count, 2)), list(range(1, count))):
        data = columns.write_subset(present)
        found, end = columns.read_subset(data, 0)
        assert [columns.index[layout.name] for layout in found.layouts] == present
        assert end == len(data)


@given(strategies.stats)
def test_stats(stats: EncodingStats) -> None:
    data = write_stats(stats)
    assert read_stats(data, 0) == (stats, len(data))


@pytest.mark.parametrize(
    ("time", "least"),
    [(1_400_000_000, 1_400_000_000), (1_700_000_000, 5), (5, 2**31 - 2), (1_700_000_000, -(2**31))],
)
def test_times_that_wrap_are_read_as_cassandra_casts_them(time: int, least: int) -> None:
    """Scylla writes differences as unsigned 32 bits, Cassandra as signed ones; 3.0 to 4.1 cast both to an int."""
    header = SerializationHeader.of_table(TABLE, EncodingStats(min_local_deletion_time=least), 12)
    written = write_stats(header.stats)
    _, start = read_unsigned_vint(written, 0)
    unsigned = written[:start] + write_unsigned_vint((least - EPOCH) % 2**32) + write_unsigned_vint(2**32)
    stats, end = read_stats(unsigned, 0)
    assert (stats, end) == (header.stats, len(unsigned))
    for delta in ((time - least) % 2**32, (time - least) % 2**64):
        data = write_unsigned_vint(0) + write_unsigned_vint(delta)
        deletion = DeletionTime(stats.min_timestamp, time)
        assert read_deletion_time(data, 0, header) == (deletion, len(data))
