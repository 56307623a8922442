"""Updates written while a column had a user type that its drop has written out as a tuple."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cassandra_storage.deletion import LIVE
from cassandra_storage.dropped_columns import with_user_types
from cassandra_storage.errors import FormatError
from cassandra_storage.header import SerializationHeader, write_stats
from cassandra_storage.marshal import NativeType, TupleType, UserType
from cassandra_storage.partition_update import read_partition_update
from cassandra_storage.rows import Cell, ComplexColumnData, Row
from cassandra_storage.schema import ColumnKind, ColumnMetadata, DroppedColumn, TableMetadata
from cassandra_storage.unfiltered import write_row
from cassandra_storage.versions import VERSION_50
from cassandra_storage.vint import write_sized
from tests.support.materializer.raw_builder import INT, TABLE, column

FIELDS = (NativeType("int"), NativeType("text"))
USER_TYPE = UserType("ks", "pair", ("x", "y"), FIELDS, is_multi_cell=True)
BEFORE = TableMetadata(
    "ks",
    "t",
    TABLE.id,
    TABLE.partition_key,
    regular_columns=(column("a", INT, ColumnKind.REGULAR), ColumnMetadata("u", USER_TYPE, ColumnKind.REGULAR)),
)
DROPPED = DroppedColumn(ColumnMetadata("u", TupleType(FIELDS), ColumnKind.REGULAR), 1_700_000_000_000_000)
AFTER = replace(BEFORE, regular_columns=BEFORE.regular_columns[:1], dropped_columns={"u": DROPPED})
AGAIN = replace(
    AFTER,
    regular_columns=(*AFTER.regular_columns, ColumnMetadata("u", TupleType(FIELDS), ColumnKind.REGULAR)),
)
NEWER = DROPPED.dropped_time + 1_000_000


def update() -> bytes:
    header = SerializationHeader.of_table(BEFORE)
    fields = (Cell(NEWER, b"\0\0\0\1", path=b"\0\0"), Cell(NEWER, b"y", path=b"\0\1"))
    row = Row((), {"a": Cell(NEWER, b"\0\0\0\7"), "u": ComplexColumnData(LIVE, fields)})
    start = TABLE.id.bytes + write_sized(b"\0\0\0\1") + b"\x10" + write_stats(header.stats)
    return start + header.regular_columns.raw + b"\x01" + write_row(row, header) + b"\x01"


@pytest.mark.parametrize("table", [AFTER, AGAIN])
def test_cells_of_a_dropped_user_type_are_stepped_over(table: TableMetadata) -> None:
    key = TABLE.id.bytes
    with pytest.raises(FormatError):
        read_partition_update(update(), 0, VERSION_50, {key: table})
    known = with_user_types(table)
    assert known is not None
    read, end = read_partition_update(update(), 0, VERSION_50, {key: known})
    assert end == len(update())
    [row] = read.rows
    assert row.columns == {"a": Cell(NEWER, b"\0\0\0\7")}


def test_a_table_without_dropped_tuples_is_read_in_one_way() -> None:
    assert with_user_types(BEFORE) is None
