"""The tables that read the cells of dropped columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.dropped_columns import as_if_not_dropped, cell_by_cell, without_dropped
from cassandra_storage.formats.rows.partition_update import read_partition_update
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, DroppedColumn
from cassandra_storage.formats.types.marshal import NativeType
from cassandra_storage.formats.versions import VERSION_3014
from tests.support.cassandra_storage.dropped_user_type import AFTER, AGAIN, BEFORE, NEWER, insert

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import TableMetadata


@pytest.mark.parametrize("table", [AFTER, AGAIN])
def test_cells_of_a_dropped_user_type_are_stepped_over(table: TableMetadata) -> None:
    update = insert(BEFORE, fields=(b"\0\0\0\1", b"y"))[1:]
    key = table.id.bytes
    with pytest.raises(FormatError):
        read_partition_update(update, 0, VERSION_3014, {key: table})
    known = cell_by_cell(table, {"u"})
    read, end = read_partition_update(update, 0, VERSION_3014, {key: known})
    assert end == len(update)
    [row] = read.rows
    assert row.columns == {"a": Cell(NEWER, b"\0\0\0\7")}
    assert known.altered_at == 0


def test_all_cells_are_read_as_if_nothing_was_dropped() -> None:
    known = as_if_not_dropped(cell_by_cell(AFTER, {"u"}))
    read, _ = read_partition_update(insert(BEFORE, fields=(b"\0\0\0\1",))[1:], 0, VERSION_3014, {known.id.bytes: known})
    [row] = read.rows
    assert set(row.columns) == {"a", "u"}


def test_a_column_that_was_added_again_stays_as_it_is() -> None:
    assert as_if_not_dropped(AGAIN) == replace(AGAIN, dropped_columns={})


def test_a_drop_ends_what_is_as_old_as_it() -> None:
    column = ColumnMetadata("a", NativeType("text"), ColumnKind.REGULAR)
    table = replace(AFTER, regular_columns=(), dropped_columns={"a": DroppedColumn(column, 5)})
    for timestamp, left in ((4, {}), (5, {}), (6, {"a": Cell(6, b"x")})):
        assert without_dropped(Row((), {"a": Cell(timestamp, b"x")}), table).columns == left
