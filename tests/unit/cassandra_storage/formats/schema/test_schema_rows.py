"""Tables from rows of system_schema as 5.0 and 3.11 have them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.schema.schema_rows import in_order, tables_from_rows
from cassandra_storage.formats.schema.tables import (
    BINARY_NAMES,
    ColumnKind,
    ColumnMetadata,
    DroppedColumn,
    TableMetadata,
)
from cassandra_storage.formats.types.marshal import ListType, NativeType, SetType, TupleType, UserType

INT, TEXT = NativeType("int"), NativeType("text")
ID, VIEW_ID = UUID(int=1), UUID(int=2)
TABLE = {"keyspace_name": "ks", "table_name": "t", "id": ID, "flags": {"compound"}, "gc_grace_seconds": 60, "cdc": True}


def column(name: str, type_: str, kind: str = "regular", position: int = -1, order: str = "none") -> dict[str, Any]:
    return {
        "keyspace_name": "ks",
        "table_name": "t",
        "column_name": name,
        "column_name_bytes": name.encode(),
        "clustering_order": order,
        "kind": kind,
        "position": position,
        "type": type_,
    }


COLUMNS = [
    column("a", "map<text, int>"),
    column("b", "point"),
    column("ck1", "int", "clustering", 0, "asc"),
    column("ck2", "timestamp", "clustering", 1, "desc"),
    column("pk", "text", "partition_key", 0),
    column("s1", "list<int>", "static"),
    column("s2", "int", "static"),
    column("\u00e9", "int"),
    column("z", "frozen<point>"),
]
TYPES = [
    {"keyspace_name": "ks", "type_name": "point", "field_names": ["x"], "field_types": ["int"]},
    {"keyspace_name": "other", "type_name": "point", "field_names": ["y"], "field_types": ["text"]},
]


def point(*, is_multi_cell: bool) -> UserType:
    return UserType("ks", "point", ("x",), (INT,), is_multi_cell)


def test_a_table() -> None:
    (table,) = tables_from_rows([TABLE], COLUMNS, TYPES, []).values()
    assert (table.keyspace, table.name, table.id, table.gc_grace_seconds, table.cdc) == ("ks", "t", ID, 60, True)
    assert table.partition_key == (ColumnMetadata("pk", TEXT, ColumnKind.PARTITION_KEY, 0),)
    assert table.clustering == (
        ColumnMetadata("ck1", INT, ColumnKind.CLUSTERING, 0),
        ColumnMetadata("ck2", NativeType("timestamp"), ColumnKind.CLUSTERING, 1, is_reversed=True),
    )
    assert table.static_columns == (
        ColumnMetadata("s2", INT, ColumnKind.STATIC),
        ColumnMetadata("s1", ListType(INT, is_multi_cell=True), ColumnKind.STATIC),
    )
    assert [one.name for one in table.regular_columns] == ["\u00e9", "z", "a", "b"]
    assert table.regular_columns[1].type == point(is_multi_cell=False)
    assert table.regular_columns[3].type == point(is_multi_cell=True)
    assert table.flags == {"compound"}


def test_keys_are_ordered_by_position() -> None:
    rows = [column("b", "int", "partition_key", 0), column("a", "int", "partition_key", 1)]
    (table,) = tables_from_rows([TABLE], rows, [], []).values()
    assert [one.name for one in table.partition_key] == ["b", "a"]


def test_names_that_share_six_bytes_are_ordered_by_the_rest() -> None:
    names = ("\u00e9\u00e9\u00e9a", "\u00e9\u00e9\u00e9b", "aaaaaa", "aaaaaaa", "aaaaaab", "aab")
    columns = [ColumnMetadata(name, INT, ColumnKind.REGULAR) for name in names]
    assert in_order(reversed(columns)) == tuple(columns)


MICROS = 1_767_323_045_006_000
DROPPED_TIMES = (
    datetime(2026, 1, 2, 3, 4, 5, 6000),  # noqa: DTZ001  as the driver gives it
    datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=UTC),
    MICROS // 1000,  # toUnixTimestamp
)


@pytest.mark.parametrize("time", DROPPED_TIMES)
def test_dropped_columns(time: datetime | int) -> None:
    of_table = {"keyspace_name": "ks", "table_name": "t", "dropped_time": time}
    dropped = [
        {**of_table, "column_name": "old", "type": "frozen<tuple<int>>", "kind": "static"},
        {**of_table, "column_name": "older", "type": "set<text>"},
    ]
    (table,) = tables_from_rows([TABLE], COLUMNS, TYPES, dropped).values()
    assert table.dropped_columns == {
        "old": DroppedColumn(ColumnMetadata("old", TupleType((INT,)), ColumnKind.STATIC), MICROS),
        "older": DroppedColumn(ColumnMetadata("older", SetType(TEXT, is_multi_cell=True), ColumnKind.REGULAR), MICROS),
    }


def test_a_view_and_a_table_of_311_without_cdc() -> None:
    table = {**TABLE, "cdc": None, "flags": {"compound", "counter"}}
    view = {"keyspace_name": "ks", "view_name": "v", "id": VIEW_ID, "gc_grace_seconds": 0}
    of_view = [{**row, "table_name": "v"} for row in COLUMNS]
    tables = tables_from_rows([table], [*COLUMNS, *of_view], TYPES, [], [view])
    assert not tables[ID].cdc
    assert tables[ID].is_counter
    assert tables[VIEW_ID].name == "v"
    assert tables[VIEW_ID].flags == {"compound", "view"}
    assert tables[VIEW_ID].is_view
    assert not tables[VIEW_ID].is_compact
    assert tables[VIEW_ID].regular_columns == tables[ID].regular_columns


def test_a_compact_table_of_311() -> None:
    rows = [
        column("key", "blob", "partition_key", 0),
        column("column1", "int", "clustering", 0, "asc"),
        column("value", "empty"),
    ]
    (table,) = tables_from_rows([{**TABLE, "flags": {"dense"}}], rows, [], []).values()
    assert table.regular_columns == (ColumnMetadata("value", NativeType("empty"), ColumnKind.REGULAR),)
    assert table.flags == {"dense"}


def test_names_that_are_not_those_of_updates_are_marked() -> None:
    """Thrift's comparator is an int: CQL shows its text, updates name the column by its bytes."""
    key = column("key", "blob", "partition_key", 0)
    for name_bytes, flags in ((b"\0\0\0\n", {BINARY_NAMES}), (b"10", set())):
        rows = [key, {**column("10", "text", "static"), "column_name_bytes": name_bytes}]
        (table,) = tables_from_rows([{**TABLE, "flags": set()}], rows, [], []).values()
        assert table.flags == flags


def test_a_table_whose_columns_are_not_there_yet() -> None:
    with pytest.raises(FormatError, match=r"ks\.t"):
        tables_from_rows([TABLE], [], [], [])


def test_a_type_that_is_not_there_yet() -> None:
    with pytest.raises(FormatError, match=r"ks\.point"):
        tables_from_rows([TABLE], COLUMNS, [], [])


def test_equal_rows_give_equal_tables() -> None:
    first, second = (tables_from_rows([TABLE], rows, TYPES, []) for rows in (COLUMNS, COLUMNS[::-1]))
    assert first == second
    assert isinstance(first[ID], TableMetadata)


def test_a_table_is_as_new_as_the_types_it_uses() -> None:
    types = [{**row, "altered_at": 7 if row["keyspace_name"] == "ks" else 9} for row in TYPES]
    (table,) = tables_from_rows([{**TABLE, "altered_at": 3}], COLUMNS, types, []).values()
    assert table.altered_at == 7
    (table,) = tables_from_rows([{**TABLE, "altered_at": 30}], COLUMNS, types, []).values()
    assert table.altered_at == 30
