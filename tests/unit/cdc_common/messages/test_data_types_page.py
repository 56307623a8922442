"""docs/reference/data-types.md says what the code does: the Avro type of each CQL type, and the JSON of an example."""

from __future__ import annotations

import json
import re
import struct
from io import BytesIO
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from fastavro import schemaless_reader

from cassandra_storage.formats.primitives.vint import write_vint
from cassandra_storage.formats.types.cql_types import parse_type
from cassandra_storage.formats.types.marshal import CqlType, NativeType, UserType
from cdc_common.messages.avro.cql_types import _NATIVE, SHARED_NAMESPACE, AvroTypes
from cdc_common.messages.avro.form_entries import CHOICES
from cdc_common.messages.avro.type_forms import DEFAULT_FORMS, EXACT, FixedDecimal
from dev.local_stack.process.paths import project_root
from tests.support.cdc_common.messages.from_avro import without_logical_types

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE = (project_root() / "docs" / "reference" / "data-types.md").read_text()
ROWS = {
    row[0]: tuple(cell.strip("`") for cell in row[1:4])
    for row in (line.strip("| ").split(" | ") for line in PAGE.splitlines() if re.match(r"\| [a-z].* \| ", line))
    if len(row) > 2 and row[2].startswith("`")
}
FORMS = [
    (*(cell.strip("`") for cell in (setting, value)), avro, *of.strip("`").split(" `"), as_json.strip("`"))
    for setting, value, avro, of, as_json, _ in (
        line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| `") and line.count(" | ") == 5
    )
]
ADDRESS = UserType("shop", "address", ("street", "zip"), (NativeType("text"), NativeType("text")), is_multi_cell=False)


def sized(*values: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(value)) + value for value in values)


def number(value: int, size: int = 4) -> bytes:
    return value.to_bytes(size, "big", signed=True)


# CQL type and literal of the page: the value in Cassandra's serialization, of a frozen collection.
SERIALIZED = {
    ("text, varchar", "'tea'"): b"tea",
    ("ascii", "'tea'"): b"tea",
    ("tinyint", "7"): b"\x07",
    ("smallint", "7"): b"\0\x07",
    ("int", "7"): number(7),
    ("bigint", "7"): number(7, 8),
    ("counter", "7"): number(7, 8),
    ("boolean", "true"): b"\x01",
    ("float", "1.5"): struct.pack(">f", 1.5),
    ("double", "1.5"): struct.pack(">d", 1.5),
    ("blob", "0x0abc"): b"\x0a\xbc",
    ("varint", "2997"): number(2997, 2),
    ("decimal", "29.97"): number(2) + number(2997, 2),
    ("uuid", "6ba7b810-9dad-41d1-80b4-00c04fd430c8"): UUID("6ba7b810-9dad-41d1-80b4-00c04fd430c8").bytes,
    ("timeuuid", "50554d6e-29bb-11e5-b345-feff819cdc9f"): UUID("50554d6e-29bb-11e5-b345-feff819cdc9f").bytes,
    ("timestamp", "'2026-11-18T11:06:40Z'"): number(1_795_000_000_000, 8),
    ("date", "'1970-01-02'"): (2**31 + 1).to_bytes(4, "big"),
    ("time", "'00:00:01'"): number(10**9, 8),
    ("duration", "1mo2d3ns"): b"".join(map(write_vint, (1, 2, 3))),
    ("inet", "'192.0.2.1'"): bytes((192, 0, 2, 1)),
    ("list<int>", "[2, 1]"): number(2) + sized(number(2), number(1)),
    ("set<int>", "{1, 2}"): number(2) + sized(number(1), number(2)),
    ("vector<int, 2>", "[2, 1]"): number(2) + number(1),
    ("map<text, int>", "{'a': 1}"): number(1) + sized(b"a", number(1)),
    ("map<int, int>", "{1: 2}"): number(1) + sized(number(1), number(2)),
    ("tuple<int, text>", "(1, 'a')"): sized(number(1), b"a"),
    ("user type", "{street: 'Elm 1'}"): sized(b"Elm 1"),
}


ONLY_IN_FORMS = {("duration", "2d3ns"): b"".join(map(write_vint, (0, 2, 3)))}


def test_every_type_is_on_the_page() -> None:
    assert {(name, example) for name, (_, example, _) in ROWS.items()} == set(SERIALIZED)
    assert {*_NATIVE} - {"empty"} <= {name for row in ROWS for name in row.split(", ")}


@pytest.mark.parametrize("name", ROWS)
def test_avro_type_and_example(name: str) -> None:
    avro, example, as_json = ROWS[name]
    avro_type = AvroTypes("cdc.shop.orders", DEFAULT_FORMS).column("c", _cql_type(name))
    assert ", ".join(_described(avro_type.schema)) == avro.replace("`", "")
    encoded = BytesIO(avro_type.encode(SERIALIZED[name, example]))
    found = _json(schemaless_reader(encoded, without_logical_types(avro_type.schema), None))
    assert found == json.loads(as_json)


@pytest.mark.parametrize("row", FORMS, ids=lambda row: " ".join(row[:4]))
def test_other_forms_and_examples(row: tuple[str, ...]) -> None:
    setting, value, avro, name, example, as_json = row
    chosen: dict[str, Any] = {setting: value}
    if setting == "type_forms":
        chosen = {"fixed": (("c", FixedDecimal(12, 4)),)}
    forms = EXACT._replace(**chosen)
    avro_type = AvroTypes("cdc.shop.orders", forms).column("c", _cql_type(name), cql_name="c")
    assert ", ".join(_described(avro_type.schema)) == avro.replace("`", "")
    encoded = BytesIO(avro_type.encode({**SERIALIZED, **ONLY_IN_FORMS}[name, example]))
    found = _json(schemaless_reader(encoded, without_logical_types(avro_type.schema), None))
    if name == "user type":
        assert found.pop("zip") is None  # the page's type may have any other fields
    assert found == json.loads(as_json)


def test_every_other_form_is_on_the_page() -> None:
    """Those of the settings but the defaults, which the first table has, and those that are no form of a type."""
    settings = {name for name in CHOICES if name not in {"out_of_range", "static_rows", "collections"}}
    others = {(name, value) for name in settings for value in CHOICES[name]}
    others -= {(name, getattr(DEFAULT_FORMS, name)) for name in settings}
    others.remove(("user_types", "columns"))  # more than one field: see test_parts
    assert {row[:2] for row in FORMS} == others | {("type_forms", "decimal(12,4)")}
    assert '`user_types = "columns"`' in PAGE


def _cql_type(name: str) -> CqlType:
    if name == "user type":
        return ADDRESS
    name = name if "<" in name else name.partition(", ")[0]
    return parse_type(f"frozen<{name}>" if "<" in name and "vector" not in name else name, "shop", {})


def _described(schema: Any) -> Iterable[str]:  # noqa: ANN401  a schema
    """The words of the page's column Avro."""
    if isinstance(schema, str):
        yield schema
        return
    if schema.get("namespace") == SHARED_NAMESPACE:
        yield f"record {SHARED_NAMESPACE}.{schema['name']}"
        return
    if schema["type"] == "record":
        yield "record of its fields" if "cqlName" in schema else f"record {schema['name']}"
    elif isinstance(schema.get("items"), dict):
        yield f"array of records {schema['items']['name']}"
    else:
        yield schema["type"]
    if schema.get("connect.name") == "io.debezium.data.Json":
        yield "JSON"
    if schema.get("logicalType") == "decimal":
        yield f"decimal({schema['precision']},{schema['scale']})"
    elif "logicalType" in schema:
        yield schema["logicalType"]
    if "cqlType" in schema:
        yield f"cqlType {schema['cqlType']}"


def _json(value: Any) -> Any:  # noqa: ANN401  any value
    """Return the value as Avro's JSON encoding writes it: bytes as characters."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, dict):
        return {name: _json(item) for name, item in value.items()}
    return [_json(item) for item in value] if isinstance(value, list) else value
