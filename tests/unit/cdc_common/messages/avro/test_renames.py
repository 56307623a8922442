"""Renamed fields of user types, judged by fastavro's schema resolution."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from typing import Any

from fastavro import parse_schema, schemaless_reader, schemaless_writer

from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.marshal import ListType, NativeType, UserType
from cdc_common.messages.avro.renames import is_misread, with_aliases
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.envelope import value_schema
from tests.support.materializer.raw_builder import TABLE


def schema(*names: str) -> dict[str, Any]:
    return value_schema(table(*names), "cdc", EXACT)


def table(*names: str) -> TableMetadata:
    """Return a table with a column of a user type, and a list of it, whose fields have these names."""
    user_type = UserType("ks", "pair", names, (NativeType("int"),) * len(names), is_multi_cell=False)
    columns = (
        ColumnMetadata("u", user_type, ColumnKind.REGULAR),
        ColumnMetadata("l", ListType(user_type, is_multi_cell=True), ColumnKind.REGULAR),
    )
    return TableMetadata("ks", "t", TABLE.id, TABLE.partition_key, regular_columns=columns)


def resolve(written: dict[str, Any], reader: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    value = {
        "before": None,
        "after": after,
        "source": dict.fromkeys(("version", "connector", "name", "cluster", "keyspace", "table", "host", "file"), "")
        | dict.fromkeys(("ts_ms", "ts_us", "pos", "row_sequence"), 0)
        | {"snapshot": "false", "cause": "write", "empty": []},
        "op": "c",
        "ts_ms": 0,
    }
    out = BytesIO()
    schemaless_writer(out, parse_schema(written), value)
    out.seek(0)
    read = schemaless_reader(out, parse_schema(written), parse_schema(reader))
    assert isinstance(read, dict)
    row: dict[str, Any] = read["after"]
    return row


def test_a_renamed_field_is_read_from_its_former_name_wherever_the_type_is() -> None:
    first, second, third = schema("a", "b"), schema("a", "c", "x"), schema("a", "d", "x")
    second = with_aliases(second, [first])
    third = with_aliases(third, [first, second])
    image = {"k": 1, "u": {"a": 1, "b": 2}, "l": [{"a": 3, "b": 4}]}
    assert resolve(first, third, image)["u"] == {"a": 1, "d": 2, "x": None}
    assert resolve(first, third, image)["l"] == [{"a": 3, "d": 4, "x": None}]
    image = {"k": 1, "u": {"a": 1, "c": 2, "x": 5}, "l": []}
    assert resolve(second, third, image)["u"] == {"a": 1, "d": 2, "x": 5}


def test_nothing_is_added_where_nothing_was_renamed() -> None:
    assert with_aliases(schema("a", "b", "c"), [schema("a", "b")]) == schema("a", "b", "c")
    assert with_aliases(schema("a"), []) == schema("a")


def test_a_name_that_another_field_had_is_misread() -> None:
    assert is_misread(schema("b", "a"), schema("a", "b"))
    assert is_misread(schema("b", "x"), schema("a", "b"))
    assert not is_misread(schema("x", "y"), schema("a", "b"))
    assert not is_misread(schema("a", "b", "c"), schema("a", "b"))


def test_the_row_of_a_table_called_types_is_no_user_type() -> None:
    before = replace(table("a", "b"), name="types")
    dropped = value_schema(replace(before, regular_columns=before.regular_columns[1:]), "cdc", EXACT)
    assert with_aliases(dropped, [value_schema(before, "cdc", EXACT)]) == dropped
    assert not is_misread(dropped, value_schema(before, "cdc", EXACT))
