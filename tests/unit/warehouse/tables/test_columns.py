"""The columns that schemas give a table, one after the other."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.warehouse.scene import ID, envelope, nullable
from warehouse.records import Column
from warehouse.tables.columns import ColumnError, merge_columns, migration, taken_columns
from warehouse.tables.schemas import row_schema
from warehouse.tables.types import DUCKDB, POSTGRESQL, wider_type


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def columns_of(*rows: list[Any], dialect: Any = POSTGRESQL) -> tuple[Column, ...]:  # noqa: ANN401 - a Dialect
    """The columns after schemas with these fields."""
    columns: tuple[Column, ...] = ()
    for number, fields in enumerate(rows):
        columns = merge_columns(columns, row_schema(number, envelope(fields)).fields, dialect)
    return columns


def test_columns_are_added_and_never_dropped() -> None:
    columns = columns_of([ID, nullable("name", "string")], [ID, nullable("qty", "int")])
    assert [(column.name, column.type) for column in columns] == [
        ("id", "INTEGER"),
        ("name", "TEXT"),
        ("qty", "INTEGER"),
    ]


def test_columns_become_wider_and_not_narrower() -> None:
    fields = [nullable("a", "int"), nullable("b", "double"), nullable("c", decimal(5, 2))]
    later = [nullable("a", "long"), nullable("b", "float"), nullable("c", decimal(6, 4))]
    columns = columns_of(fields, later)
    assert [column.type for column in columns] == ["BIGINT", "DOUBLE PRECISION", "NUMERIC(7, 4)"]
    steps = migration(columns_of(fields), columns)
    assert [(column.name, before) for column, before in steps.widened] == [("a", "INTEGER"), ("c", "NUMERIC(5, 2)")]
    assert columns_of(later, fields) == columns


def test_a_decimal_that_no_decimal_holds_beside_another() -> None:
    assert wider_type("DECIMAL(38, 0)", "DECIMAL(4, 2)", DUCKDB) is None
    assert wider_type("NUMERIC(38, 0)", "NUMERIC(4, 2)", POSTGRESQL) == "NUMERIC(40, 2)"


def test_another_type_is_refused_and_named() -> None:
    with pytest.raises(ColumnError, match="the field a: its type is TEXT and was INTEGER"):
        columns_of([nullable("a", "int")], [nullable("a", "string")])


def test_a_renamed_column_is_found_under_both_names() -> None:
    columns = columns_of([ID, nullable("name", "string")], [ID, nullable("title", "string", aliases=["name"])])
    assert columns[1] == Column(("title", "name"), "title", "TEXT")
    assert taken_columns(columns, ["id", "name"])[1] == (columns[1], "name")
    assert taken_columns(columns, ["id", "title"])[1] == (columns[1], "title")
    assert columns_of([ID, nullable("name", "string")], [ID, nullable("title", "string", aliases=["name"])], [
        ID, nullable("name", "string")
    ]) == columns, "an older schema adds no column"  # fmt: skip


def test_an_older_schema_may_come_first_or_last() -> None:
    older, newer = [ID, nullable("name", "string")], [ID, nullable("title", "string", aliases=["name"])]
    assert columns_of(newer, older) == columns_of(older, newer)


def test_a_name_that_is_used_again_is_a_column_of_its_own() -> None:
    columns = columns_of(
        [nullable("name", "string")],
        [nullable("title", "string", aliases=["name"]), nullable("name", "string")],
    )
    assert [column.fields for column in columns] == [("name",), ("title",)]


def test_names_that_the_warehouse_cannot_have() -> None:
    long = "x" * 64
    names = [
        column.name for column in columns_of([nullable(name, "int") for name in ("a", "A", "_key", long, "select")])
    ]
    assert names[0] == "a"
    assert names[1].startswith("A_")
    assert names[2].startswith("_key_")
    assert len(names[3]) == 63
    assert names[4] == "select"
    assert len({name.lower() for name in names}) == 5


def test_types_of_arrays() -> None:
    inner = {"type": "array", "items": "int"}
    fields = [nullable("a", inner), nullable("b", {"type": "array", "items": inner})]
    assert [column.type for column in columns_of(fields)] == ["JSON", "JSON"]
    assert [column.type for column in columns_of(fields, dialect=DUCKDB)] == ["INTEGER[]", "JSON"]


def test_a_union_of_several_types_is_refused() -> None:
    with pytest.raises(ValueError, match="a union of several types"):
        row_schema(1, envelope([{"name": "a", "type": ["null", "int", "string"]}]))
