"""Partition updates: read, and split into parts that read back to the same content."""

from __future__ import annotations

import time
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.errors import FormatError, UnknownColumnError, UnknownTableError
from cassandra_storage.formats.rows.clustering import ClusteringBound, Kind
from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime, LivenessInfo, RangeTombstone
from cassandra_storage.formats.rows.header import SerializationHeader
from cassandra_storage.formats.rows.partition import PartitionUpdate
from cassandra_storage.formats.rows.partition_update import read_partition_update, split_partition_update
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.marshal import NativeType
from tests.support.cassandra_storage import update_builder
from tests.support.cassandra_storage.split_parts import joined
from tests.support.cassandra_storage.update_builder import VERSION, Written, updates

INT = NativeType("int")
TABLE = TableMetadata(
    "k",
    "t",
    UUID(int=1),
    (ColumnMetadata("p", INT, ColumnKind.PARTITION_KEY, 0),),
    (ColumnMetadata("c", INT, ColumnKind.CLUSTERING, 0),),
    (ColumnMetadata("s", INT, ColumnKind.STATIC),),
    (ColumnMetadata("v", INT, ColumnKind.REGULAR),),
)
HEADER = SerializationHeader.of_table(TABLE)
TABLES = {TABLE.id.bytes: TABLE}


def tables_of(written: Written) -> dict[bytes, TableMetadata]:
    return {written.update.table.id.bytes: written.update.table}


def number(value: int) -> bytes:
    return value.to_bytes(4, "big")


def row(clustering: int) -> Row:
    return Row((number(clustering),), {"v": Cell(5, number(7))}, LivenessInfo(5))


@given(updates(), st.binary(max_size=3))
def test_read(written: Written, lead: bytes) -> None:
    read, end = read_partition_update(lead + written.data + b"\x00", len(lead), VERSION, tables_of(written))
    assert read == written.update
    assert end == len(lead) + len(written.data)


@given(updates(), st.binary(max_size=3))
def test_split(written: Written, lead: bytes) -> None:
    tables = tables_of(written)
    parts, table, end = split_partition_update(lead + written.data, len(lead), VERSION, tables)
    update = written.update
    assert table is update.table
    assert end == len(lead) + len(written.data)
    assert joined(parts, update.table, update.partition_key, VERSION) == update
    assert len(parts) == sum(
        (not update.deletion.is_live, update.static_row is not None, len(update.rows), len(update.range_tombstones))
    )


@given(updates())
def test_split_again(written: Written) -> None:
    """A part is its own only part, byte for byte: it holds no column that its row does not have."""
    tables = tables_of(written)
    for part in split_partition_update(written.data, 0, VERSION, tables)[0]:
        (again,) = split_partition_update(part.update, 0, VERSION, tables)[0]
        assert (again.kind, again.partition_key, again.update) == (part.kind, part.partition_key, part.update)


@given(updates(), st.data())
def test_truncated(written: Written, data: st.DataObject) -> None:
    cut = written.data[: data.draw(st.integers(0, len(written.data) - 1))]
    for read in (read_partition_update, split_partition_update):
        with pytest.raises(FormatError):
            read(cut, 0, VERSION, tables_of(written))


@given(updates(), st.data())
def test_changed(written: Written, data: st.DataObject) -> None:
    changed = bytearray(written.data)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    tables = tables_of(written)
    try:
        update, end = read_partition_update(bytes(changed), 0, VERSION, tables)
    except FormatError:
        update, end = None, 0
    try:
        parts, _, split_end = split_partition_update(bytes(changed), 0, VERSION, tables)
    except FormatError:
        assert update is None  # what can be read can be split
        return
    assert split_end <= len(changed)
    if update is not None:
        assert split_end == end
        assert joined(parts, update.table, update.partition_key, VERSION) == update


@given(st.binary(max_size=80))
def test_arbitrary(data: bytes) -> None:
    for read in (read_partition_update, split_partition_update):
        for start in (b"", TABLE.id.bytes, TABLE.id.bytes + b"\x04\0\0\0\1"):
            try:
                end = read(start + data, 0, VERSION, TABLES)[-1]
            except FormatError:
                continue
            assert 0 < end <= len(start + data)


def test_single_row_is_the_update_itself() -> None:
    update = PartitionUpdate(TABLE, b"key", rows=(row(1),))
    data = update_builder.write_update(update, [row(1)], HEADER)
    parts, _, _ = split_partition_update(b"!" + data + b"!", 1, VERSION, TABLES)
    assert [(part.kind, part.partition_key, part.update) for part in parts] == [("row", b"key", data)]


def test_boundary_is_split() -> None:
    """Two ranges that touch share a marker with two deletion times; each part has an open and a close marker."""
    middle = (number(5),)
    ranges = (
        RangeTombstone(
            ClusteringBound(Kind.INCL_START_BOUND, (number(1),)),
            ClusteringBound(Kind.EXCL_END_BOUND, middle),
            DeletionTime(10, 20),
        ),
        RangeTombstone(
            ClusteringBound(Kind.INCL_START_BOUND, middle),
            ClusteringBound(Kind.INCL_END_BOUND, (number(9),)),
            DeletionTime(11, 21),
        ),
    )
    data = update_builder.write_update(PartitionUpdate(TABLE, b"key", range_tombstones=ranges), [*ranges], HEADER)
    assert data.count(bytes((0x02, Kind.EXCL_END_INCL_START_BOUNDARY))) == 1
    parts, _, _ = split_partition_update(data, 0, VERSION, TABLES)
    assert [part.kind for part in parts] == ["range_deletion"] * 2
    assert tuple(read_partition_update(p.update, 0, VERSION, TABLES)[0].range_tombstones for p in parts) == (
        ranges[:1],
        ranges[1:],
    )


def test_many_rows_in_linear_time() -> None:
    """20,000 rows: quadratic work would take minutes."""
    rows = [row(index) for index in range(20_000)]
    update = PartitionUpdate(TABLE, b"key", LIVE, rows=tuple(rows))
    data = update_builder.write_update(update, [*rows], HEADER)
    started = time.process_time()
    parts, _, _ = split_partition_update(data, 0, VERSION, TABLES)
    assert time.process_time() - started < 5
    assert len(parts) == 20_000
    assert read_partition_update(parts[-1].update, 0, VERSION, TABLES)[0].rows == (rows[-1],)


def test_empty_update() -> None:
    data = TABLE.id.bytes + b"\x03key" + b"\x01"
    assert read_partition_update(data, 0, VERSION, TABLES) == (PartitionUpdate(TABLE, b"key"), len(data))
    assert split_partition_update(data, 0, VERSION, TABLES) == ([], TABLE, len(data))


def test_unknown_names() -> None:
    data = update_builder.write_update(PartitionUpdate(TABLE, b"key", rows=(row(1),)), [row(1)], HEADER)
    for read in (read_partition_update, split_partition_update):
        with pytest.raises(UnknownTableError) as raised:
            read(data, 0, VERSION, {})
        assert raised.value.table_id == TABLE.id.bytes
        with pytest.raises(UnknownColumnError, match=r"'w' of k\.t"):
            read(data.replace(b"\x01v", b"\x01w"), 0, VERSION, TABLES)
        with pytest.raises(FormatError, match="messaging version 10"):
            read(data, 0, 10, TABLES)


def marked(*markers: tuple[Kind, bytes]) -> bytes:
    """An update of range tombstone markers only: kinds, and deletion times."""
    header = update_builder.write_update(PartitionUpdate(TABLE, b"key"), [], HEADER)[:-1]
    return header + b"".join(bytes((2, kind, 0, 0)) + deletions for kind, deletions in markers) + b"\x01"


OPEN, CLOSE = (Kind.INCL_START_BOUND, b"\x05\x06"), (Kind.INCL_END_BOUND, b"\x05\x06")


def test_markers_without_a_start_or_with_two_deletion_times() -> None:
    boundary = Kind.EXCL_END_INCL_START_BOUNDARY, b"\x05\x07\x05\x06"
    for markers in ((CLOSE,), (boundary,), (OPEN, boundary, CLOSE), (OPEN, (CLOSE[0], b"\x06\x06"))):
        for read in (read_partition_update, split_partition_update):
            with pytest.raises(FormatError, match="range tombstone"):
                read(marked(*markers), 0, VERSION, TABLES)


def test_a_range_without_an_end_deletes_nothing() -> None:
    """Cassandra's MutableDeletionInfo.Builder forgets such a range too."""
    for markers, expected in (((OPEN,), 0), ((OPEN, OPEN, CLOSE), 1), ((OPEN, CLOSE, OPEN), 1)):
        data = marked(*markers)
        assert len(read_partition_update(data, 0, VERSION, TABLES)[0].range_tombstones) == expected
        parts, _, end = split_partition_update(data, 0, VERSION, TABLES)
        assert ([part.kind for part in parts], end) == (["range_deletion"] * expected, len(data))


def test_flags_without_a_meaning_are_ignored() -> None:
    update = PartitionUpdate(TABLE, b"key", rows=(row(1),))
    data = update_builder.write_update(update, [row(1)], HEADER)
    flags = TABLE.id.bytes + b"\x03key"
    odd = data.replace(flags + b"\x10", flags + b"\xf0")
    assert odd != data
    assert read_partition_update(odd, 0, VERSION, TABLES)[0] == update
    assert [part.update for part in split_partition_update(odd, 0, VERSION, TABLES)[0]] == [data]
    for refused in (b"\x00", b"\x12"):  # without an estimate, and reversed
        for read in (read_partition_update, split_partition_update):
            with pytest.raises(FormatError, match="invalid flags"):
                read(data.replace(flags + b"\x10", flags + refused), 0, VERSION, TABLES)


def test_parts_share_what_they_have_in_common() -> None:
    """A long key is there once, not once a row."""
    rows = [row(index) for index in range(1000)]
    data = update_builder.write_update(PartitionUpdate(TABLE, b"k" * 60_000, rows=tuple(rows)), [*rows], HEADER)
    parts, _, _ = split_partition_update(data, 0, VERSION, TABLES)
    pieces = {id(piece): len(piece) for part in parts for piece in (part.partition_key, *part.pieces)}
    assert sum(pieces.values()) < 4 * len(data)
    assert len(parts[-1].update) > 60_000
