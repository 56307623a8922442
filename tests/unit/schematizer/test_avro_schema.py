"""What is a schema, and which texts are one (see also test_against_java.py)."""

from __future__ import annotations

import json

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schematizer.avro_schemas.parsing import InvalidSchemaError, parse
from tests.support.schematizer.avro_strategies import Schema, maybe_schemas


def record(*fields: Schema, **more: Schema) -> Schema:
    return {"type": "record", "name": "R", "fields": list(fields), **more}


def canonical(schema: Schema) -> Schema:
    return json.loads(parse(json.dumps(schema)).canonical)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"type": "string"}, "string"),
        ({"type": {"type": "string"}}, "string"),
        ({"type": ["null", "int"]}, ["null", "int"]),
        (
            {"name": "n.E", "type": "enum", "symbols": []},
            {"type": "enum", "namespace": "n", "symbols": [], "name": "E"},
        ),
        (record(namespace=""), record()),
        (record(aliases=[]), record()),
        (record({"name": "a", "type": {"type": "int"}, "order": "ascending"}), record({"type": "int", "name": "a"})),
        (
            record({"name": "a", "type": "n.R"}, namespace="n"),
            record({"name": "a", "type": {"type": "R"}}, name="n.R"),
        ),
        ({"type": "long", "b": 1, "a": 2}, {"a": 2, "type": "long", "b": 1}),
    ],
)
def test_spellings_of_one_schema(one: Schema, other: Schema) -> None:
    assert parse(json.dumps(one)) == parse(json.dumps(other, indent=2))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (record(doc="a"), record()),
        (record({"name": "a", "type": "int"}), record({"name": "a", "type": "int", "default": 0})),
        (record({"name": "a", "type": "int"}), record({"name": "a", "type": "int", "aliases": ["b"]})),
        (record({"name": "a", "type": "int"}, {"name": "b", "type": "int"}), record({"name": "a", "type": "int"})),
        ({"type": "long", "logicalType": "timestamp-millis"}, "long"),
        (["null", "int"], ["int", "null"]),
        (record(namespace="n"), record()),
    ],
)
def test_different_schemas(one: Schema, other: Schema) -> None:
    assert parse(json.dumps(one)).canonical != parse(json.dumps(other)).canonical


@pytest.mark.parametrize(
    "schema",
    [
        record({"name": "created", "type": {"type": "long", "logicalType": "timestamp-micros", "cql": "timestamp"}}),
        record({"name": "next", "type": ["null", "R"], "default": None, "cql": "next value"}, doc="what it is"),
        {"type": "array", "items": {"type": "fixed", "name": "n.F", "size": 16, "logicalType": "uuid"}},
    ],
)
def test_nothing_that_a_reader_needs_is_dropped(schema: Schema) -> None:
    kept = canonical(schema)
    assert fastavro.parse_schema(kept, expand=True) == fastavro.parse_schema(schema, expand=True)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("strin", "neither a type of Avro nor defined before"),
        ("", "neither"),
        (7, "not a schema"),
        (None, "not a schema"),
        ({}, "not a schema"),
        ({"type": 7}, "not a schema"),
        (["null", ["int"]], "union stands directly in a union"),
        (["int", {"type": "int", "logicalType": "date"}], "int stands twice"),
        ([record(), "R"], "R stands twice"),
        ([{"type": "array", "items": "int"}, {"type": "array", "items": "long"}], "array stands twice"),
        ({"type": "array"}, "array without items"),
        ({"type": "map"}, "map without values"),
        ({"type": "record", "fields": []}, "without a name"),
        ({"type": "record", "name": "R"}, "fields of a record must be a list"),
        (record(name="int"), "a type of Avro itself"),
        (record(name="a-b"), "'a-b' is not a name"),
        (record(name="ü"), "is not a name"),
        (record(namespace="a..b"), "'' is not a name"),
        (record(namespace=7), "namespace 7 is not a string"),
        (record("a"), "is not a field"),
        (record({"name": "a"}), "is not a field"),
        (record({"name": "a b", "type": "int"}), "'a b' is not a name"),
        (record({"name": "a", "type": "int"}, {"name": "a", "type": "int"}), "field a stands twice"),
        (record({"name": "a", "type": "int", "order": "up"}), "order"),
        (record({"name": "a", "type": "int", "aliases": "b"}), "aliases must be a list"),
        (record({"name": "a", "type": "int", "default": "1"}), 'default "1" is not a value of its type'),
        (record({"name": "a", "type": "int", "default": 2**31}), "default"),
        (record({"name": "a", "type": "int", "default": True}), "default"),
        (record({"name": "a", "type": "string", "default": None}), "default"),
        (record({"name": "a", "type": {"type": "array", "items": "int"}, "default": [1.5]}), "default"),
        (record({"name": "a", "type": record({"name": "b", "type": "int"}, name="S"), "default": {}}), "default"),
        (record({"name": "a", "type": "R", "default": {}}), "default"),
        (record({"name": "a", "type": "S"}, {"name": "b", "type": record(name="S")}), "nor defined before"),
        (record({"name": "a", "type": record()}), "R is defined twice"),
        ({"type": "enum", "name": "E"}, "symbols"),
        ({"type": "enum", "name": "E", "symbols": ["a", "a"]}, "symbol stands twice"),
        ({"type": "enum", "name": "E", "symbols": ["a b"]}, "'a b' is not a name"),
        ({"type": "enum", "name": "E", "symbols": ["a"], "default": "b"}, "not one of the symbols"),
        ({"type": "fixed", "name": "F"}, "size"),
        ({"type": "fixed", "name": "F", "size": True}, "size"),
        ({"type": "fixed", "name": "F", "size": -1}, "size"),
    ],
)
def test_what_is_no_schema(schema: Schema, reason: str) -> None:
    with pytest.raises(InvalidSchemaError) as caught:
        parse(json.dumps(schema))
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        ("double", 1),
        ("bytes", "\u00ff"),
        (["null", "int"], 5),
        ({"type": "map", "values": "long"}, {"a": 1}),
        (record({"name": "b", "type": "int", "default": 1}, name="S"), {}),
        ({"type": "enum", "name": "E", "symbols": ["X"]}, "X"),
        ({"type": "long", "logicalType": "timestamp-millis"}, 0),
    ],
)
def test_valid_defaults(type_: Schema, default: Schema) -> None:
    schema = record({"name": "a", "type": type_, "default": default})
    assert canonical(schema)["fields"][0]["default"] == default


def test_an_error_says_where() -> None:
    with pytest.raises(InvalidSchemaError, match=r"at /R/a/items/S/b"):
        parse(
            json.dumps(
                record({"name": "a", "type": {"type": "array", "items": record({"name": "b", "type": "x"}, name="S")}})
            )
        )


@pytest.mark.parametrize("text", ["", "{", "NaN", '{"type": NaN}', "[" * 100_000, '{"a":' * 100_000, "1" * 10_000])
def test_what_is_no_json(text: str) -> None:
    with pytest.raises(InvalidSchemaError):
        parse(text)


@given(st.text())
def test_any_text_is_a_schema_or_none(text: str) -> None:
    try:
        parse(text)
    except InvalidSchemaError:
        return


@given(maybe_schemas)
def test_the_canonical_form_is_its_own(schema: Schema) -> None:
    try:
        parsed = parse(json.dumps(schema))
    except InvalidSchemaError:
        return
    assert parse(parsed.canonical) == parsed
    parsed.canonical.encode("ascii")
