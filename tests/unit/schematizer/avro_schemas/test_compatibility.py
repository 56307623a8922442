"""The seven levels, and Confluent's own expectations of each (see also test_against_java.py)."""

from __future__ import annotations

import json
from time import process_time
from typing import TYPE_CHECKING

import avro.compatibility
import avro.errors
import avro.schema
import pytest

from schematizer.avro_schemas.compatibility import Level, conflicts
from schematizer.avro_schemas.elements import check_number, elements
from schematizer.avro_schemas.parsing import AvroSchema, InvalidSchemaError, parse

if TYPE_CHECKING:
    from tests.support.schematizer.avro_strategies import Schema


def field(name: str, type_: Schema, **more: Schema) -> Schema:
    return {"name": name, "type": type_, **more}


def record(*fields: Schema, **more: Schema) -> Schema:
    return {"type": "record", "name": "R", "fields": list(fields), **more}


def enum(*symbols: str, **more: Schema) -> Schema:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def schema(tree: Schema) -> AvroSchema:
    return parse(json.dumps(tree))


def can_read(reader: Schema, writer: Schema) -> bool:
    return not conflicts(Level.BACKWARD, schema(reader), [(1, schema(writer))])


def library_alone_can_read(reader: Schema, writer: Schema) -> bool:
    try:
        reading, writing = (avro.schema.parse(json.dumps(tree)) for tree in (reader, writer))
        checker = avro.compatibility.ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]  # the library's
        result = checker.get_compatibility(reading, writing)
    except avro.errors.AvroException:
        return False
    return result.compatibility is avro.compatibility.SchemaCompatibilityType.compatible


A = record(field("a", "string"))
AB = record(field("a", "string"), field("b", "string", default="x"))
AB_REQUIRED = record(field("a", "string"), field("b", "string"))
A_OR_NULL = record(field("a", ["null", "string"]))
ABC = record(field("a", "string"), field("b", "string", default="x"), field("c", "string", default="x"))


@pytest.mark.parametrize(
    ("level", "earlier", "new", "allowed"),
    [
        (Level.NONE, [A], "int", True),
        (Level.BACKWARD, [], A, True),
        (Level.BACKWARD, [A], AB, True),
        (Level.BACKWARD, [AB], A, True),
        (Level.BACKWARD, [A], AB_REQUIRED, False),
        (Level.BACKWARD, [A], A_OR_NULL, True),
        (Level.BACKWARD, [A_OR_NULL], A, False),
        (Level.BACKWARD, [A, AB], AB_REQUIRED, True),
        (Level.BACKWARD_TRANSITIVE, [A, AB], AB_REQUIRED, False),
        (Level.BACKWARD_TRANSITIVE, [A, AB], ABC, True),
        (Level.FORWARD, [A], AB_REQUIRED, True),
        (Level.FORWARD, [AB_REQUIRED], A, False),
        (Level.FORWARD, [AB], A, True),
        (Level.FORWARD, [AB_REQUIRED, AB], A, True),
        (Level.FORWARD_TRANSITIVE, [AB_REQUIRED, AB], A, False),
        (Level.FULL, [A], AB, True),
        (Level.FULL, [A], AB_REQUIRED, False),
        (Level.FULL, [AB_REQUIRED], A, False),
        (Level.FULL, [A, AB], AB_REQUIRED, True),
        (Level.FULL_TRANSITIVE, [A, AB], AB_REQUIRED, False),
        (Level.FULL_TRANSITIVE, [A, AB], ABC, True),
    ],
)
def test_levels(level: Level, earlier: list[Schema], new: Schema, *, allowed: bool) -> None:
    versions = [(number, schema(tree)) for number, tree in enumerate(earlier, 1)]
    assert (not conflicts(level, schema(new), versions)) == allowed


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        ("long", "int", True),
        ("float", "long", True),
        ("double", "float", True),
        ("int", "long", False),
        ("string", "bytes", True),
        ("bytes", "string", True),
        ("string", "int", False),
        ({"type": "long", "logicalType": "timestamp-millis"}, "int", True),
        (["null", "int"], "int", True),
        ("int", ["int", "null"], False),
        ("long", ["int", "long"], True),
        (["null", "long"], ["null", "int"], True),
        (["null", "int"], ["null", "int", "string"], False),
        ([], [], True),
        (enum("X", "Y"), enum("X"), True),
        (enum("X"), enum("X", "Y"), False),
        (enum("X", default="X"), enum("X", "Y"), True),
        (enum("X", name="F"), enum("X"), False),
        (enum("X", name="F", aliases=["E"]), enum("X"), True),
        ({"type": "fixed", "name": "F", "size": 2}, {"type": "fixed", "name": "F", "size": 1}, False),
        ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}, True),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "long"}, False),
        (record(field("b", "int", aliases=["a"])), record(field("a", "int")), True),
        (record(field("n", ["null", "R"])), record(field("n", ["null", "R"])), True),
        # A schema's own name counts without its namespace, as in Avro for Java.
        (record(namespace="m"), record(namespace="n"), True),
    ],
)
def test_reading(reader: Schema, writer: Schema, *, expected: bool) -> None:
    assert can_read(reader, writer) == expected


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        # Each of these the avro library gets wrong, or refuses, when it is given the schema as it was written.
        (record(name="Renamed", aliases=["R"], namespace="n"), record(namespace="n")),
        (record(type="error"), record(type="error")),
        (record(type="error"), record()),
        (record(field("a", {"type": {"type": "int"}})), record(field("a", "int"))),
        (
            record(field("a", record(name="S", namespace="")), field("b", "S"), namespace="n"),
            record(field("a", record(name="S", namespace="")), field("b", {"type": "S"}), namespace="n"),
        ),
    ],
)
def test_what_the_library_is_helped_with(reader: Schema, writer: Schema) -> None:
    assert can_read(reader, writer)
    assert not library_alone_can_read(reader, writer), "the library has been fixed: do not help it any more"


def test_a_conflict_says_what_where_and_with_which_version() -> None:
    (message,) = conflicts(Level.BACKWARD, schema(AB_REQUIRED), [(4, schema(A))])
    assert message == (
        "READER_FIELD_MISSING_DEFAULT_VALUE: the new schema cannot read data of version 4: b (at /fields/1)"
    )


def test_a_recursive_schema_comes_to_an_end() -> None:
    tree = record(field("left", ["null", "R"], default=None), field("right", ["null", "R"], default=None))
    wider = record(*tree["fields"], field("value", "int", default=0))
    assert can_read(wider, tree)
    assert can_read(tree, wider)


def test_the_time_to_compare_rises_with_the_fields() -> None:
    """Not with their square: a writer holds the database while it registers. Parsing takes most of it."""
    wide = schema(record(*(field(f"a{number}", "int") for number in range(4000))))
    started = process_time()
    assert not conflicts(Level.FULL, wide, [(1, wide)])
    assert process_time() - started < 4


def test_schemas_that_are_too_large_to_be_compared() -> None:
    """Each branch of one union is compared with each of the other's: 4,000 branches in 300 kB take an hour."""
    union, other = (schema([record(name=f"{name}{number}") for number in range(400)]) for name in "AB")
    with pytest.raises(InvalidSchemaError, match="more than 100,000 comparisons to say whether the new schema cannot"):
        conflicts(Level.BACKWARD, union, [(1, other)])


def called_from(depth: int, deep: AvroSchema) -> None:
    if depth:
        called_from(depth - 1, deep)
    else:
        assert not conflicts(Level.FULL, deep, [(1, deep)])
        assert elements(deep.canonical)
        check_number(deep.canonical)


@pytest.mark.parametrize("shape", ["array", "map", "record", "union"])
def test_what_can_be_read_can_be_compared_and_shown(shape: str) -> None:
    """The deepest schema, further down the stack than any request."""
    deepest = None
    made: Schema = "int"
    for level in range(100):
        try:
            deepest = schema(made)
        except InvalidSchemaError as error:
            assert "nested too deeply" in str(error)  # noqa: PT017 - the loop's end
            break
        made = {
            "array": {"type": "array", "items": made},
            "map": {"type": "map", "values": made},
            "record": record(field("a", made), name=f"R{level}"),
            "union": ["null", record(field("a", made), name=f"R{level}")],
        }[shape]
        if shape == "union" and level % 2:
            made = {"type": "array", "items": made}
    assert deepest is not None
    called_from(300, deepest)
