"""docs/reference/data-types.md says what the code does: the Avro type of each CQL type, and the JSON of an example."""

from __future__ import annotations

import json
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
from fastavro import schemaless_reader

from cdc_common.messages.avro.cql_types import _NATIVE, SHARED_NAMESPACE, AvroTypes
from cdc_common.messages.avro.form_entries import CHOICES
from cdc_common.messages.avro.type_forms import DEFAULT_FORMS, EXACT, FixedDecimal
from tests.support.cdc_common.messages.data_types import FORMS, ONLY_IN_FORMS, PAGE, ROWS, SERIALIZED, cql_type_of
from tests.support.cdc_common.messages.from_avro import without_logical_types

if TYPE_CHECKING:
    from collections.abc import Iterable


def test_every_type_is_on_the_page() -> None:
    assert {(name, example) for name, (_, example, _) in ROWS.items()} == set(SERIALIZED)
    assert {*_NATIVE} - {"empty"} <= {name for row in ROWS for name in row.split(", ")}


@pytest.mark.parametrize("name", ROWS)
def test_avro_type_and_example(name: str) -> None:
    avro, example, as_json = ROWS[name]
    avro_type = AvroTypes("cdc.shop.orders", DEFAULT_FORMS).column("c", cql_type_of(name))
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
    avro_type = AvroTypes("cdc.shop.orders", forms).column("c", cql_type_of(name), cql_name="c")
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
