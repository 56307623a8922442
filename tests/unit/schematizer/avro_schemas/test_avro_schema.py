"""Texts that are schemas, and texts that are the same schema (see also test_against_java.py)."""

from __future__ import annotations

import json
from time import process_time

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schematizer.avro_schemas.elements import elements
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
        ({"type": "int", "name": "x", "doc": "Not a property.", "size": 3}, "int"),
        ({"type": "array", "items": "int", "name": "x", "aliases": ["y"]}, {"type": "array", "items": "int"}),
        (record(size=3, symbols=["A"]), record()),
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


def nested(levels: int) -> Schema:
    """Arrays in each other: one level of JSON each."""
    made: Schema = "int"
    for _ in range(levels):
        made = {"type": "array", "items": made}
    return made


def called_from(depth: int, text: str) -> str:
    return called_from(depth - 1, text) if depth else parse(text).canonical


@pytest.mark.parametrize("levels", [99, 100, 150, 240, 300, 330])
def test_how_deep_a_schema_may_be_does_not_depend_on_who_asks(levels: int) -> None:
    """A schema that was registered is read again further down the stack, when the next one is compared with it."""
    answers = set()
    for depth in (0, 100, 200):
        try:
            answers.add(called_from(depth, json.dumps(nested(levels))))
        except InvalidSchemaError as error:
            answers.add(str(error))
    assert len(answers) == 1
    assert (answers == {"it is nested too deeply"}) == (levels >= 100)


def test_a_property_is_not_nested_deeper_than_a_schema() -> None:
    inner: Schema = 1
    for _ in range(500):
        inner = [inner]
    with pytest.raises(InvalidSchemaError, match="nested too deeply"):
        parse(json.dumps({"type": "int", "x": inner}))


@pytest.mark.parametrize("text", ["1e999", "-1e999", "[1e999]"])
def test_numbers_that_json_cannot_hold_are_refused(text: str) -> None:
    """Python reads them as infinite, and would write `Infinity`, which no parser reads."""
    with pytest.raises(InvalidSchemaError, match="not JSON"):
        parse(f'{{"type": "double", "x": {text}}}')


@pytest.mark.parametrize("text", [r"\u0000", r"\ud800", r"\udc00\ud800"])
@pytest.mark.parametrize("key", ["doc", "logicalType"])
def test_texts_that_a_database_cannot_keep_are_refused(key: str, text: str) -> None:
    with pytest.raises(InvalidSchemaError, match="has a character that is none"):
        parse(json.dumps(record(**{key: "what"})).replace("what", text))
    assert "\\ud83d\\ude00" in parse(json.dumps(record(doc="😀"))).canonical


def test_a_default_is_compared_once_with_each_record() -> None:
    """Two records that contain each other: each level of the default would double the time, to years."""
    inner = record({"name": "n", "type": ["null", "A", "B"]}, name="B")
    outer = record({"name": "n", "type": ["null", inner, "A"]}, name="A")
    value: Schema = 7
    for _ in range(60):
        value = {"n": value}
    with pytest.raises(InvalidSchemaError, match="is not a value of its type"):
        parse(json.dumps(record({"name": "x", "type": outer}, {"name": "y", "type": "A", "default": value})))


def test_the_time_to_read_a_schema_rises_with_its_fields() -> None:
    """Not with their square: 60,000 fields are a body of 2 MB, and would take a minute."""
    fields = [{"name": f"a{number}", "type": "int"} for number in range(60_000)]
    started = process_time()
    parse(json.dumps(record(*fields)))
    assert process_time() - started < 10


def test_a_record_that_is_one_value_has_no_fields_of_its_own() -> None:
    decimal = {
        "type": "record",
        "name": "Decimal",
        "connect.name": "io.debezium.data.VariableScaleDecimal",
        "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
    }
    duration = {
        "type": "record",
        "name": "Duration",
        "cqlType": "duration",
        "fields": [{"name": "days", "type": "int"}],
    }
    address = {"type": "record", "name": "Address", "fields": [{"name": "street", "type": "string"}]}
    fields = [
        {"name": "total", "type": ["null", decimal]},
        {"name": "net", "type": "Decimal"},
        {"name": "prices", "type": {"type": "array", "items": "Decimal"}},
        {"name": "length", "type": duration},
        {"name": "home", "type": address},
    ]
    found = elements(parse(json.dumps(record(*fields))).canonical)
    assert [element.path for element in found] == ["total", "net", "prices", "length", "home", "home.street"]
