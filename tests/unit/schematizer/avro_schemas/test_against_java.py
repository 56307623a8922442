"""Avro for Java, which Confluent's registry uses, judges what is a schema, which are one, and which can read which."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, assume, given, settings

from schematizer.avro_schemas.compatibility import Level, conflicts
from schematizer.avro_schemas.parsing import AvroSchema, InvalidSchemaError, parse
from tests.support.schematizer.avro_strategies import Schema, evolved, maybe_schemas
from tests.support.schematizer.java_avro import JavaAvro

if TYPE_CHECKING:
    from collections.abc import Iterator

STRICTER = ("is defined twice", "nor defined before")
"""Avro 1.12 for Java lets a type be defined again inside itself, and be used before it is defined; the specification,
other libraries and earlier versions do not."""

in_one_jvm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


@pytest.fixture(scope="module")
def java() -> Iterator[JavaAvro]:
    with JavaAvro() as running:
        yield running


def ours(text: str) -> AvroSchema | str:
    """The schema, or why it is none."""
    try:
        return parse(text)
    except InvalidSchemaError as error:
        return str(error)


@in_one_jvm
@given(schema=maybe_schemas)
def test_both_accept_the_same_schemas(java: JavaAvro, schema: Schema) -> None:
    text = json.dumps(schema)
    theirs, parsed = java.parse(text), ours(text)
    if isinstance(parsed, str):
        assert theirs is None or any(reason in parsed for reason in STRICTER), parsed
    else:
        assert theirs is not None
        again = java.parse(parsed.canonical)
        assert again is not None
        assert again.equals(theirs)
        assert parse(parsed.canonical) == parsed


@in_one_jvm
@given(pair=maybe_schemas.flatmap(lambda schema: evolved(schema).map(lambda other: (schema, other))))
def test_both_find_the_same_schemas_compatible(java: JavaAvro, pair: tuple[Schema, Schema]) -> None:
    texts = [json.dumps(schema) for schema in pair]
    one, two = (ours(text) for text in texts)
    assume(isinstance(one, AvroSchema) and isinstance(two, AvroSchema))
    assert isinstance(one, AvroSchema)
    assert isinstance(two, AvroSchema)
    java_one, java_two = (java.parse(text) for text in texts)
    for level, reader, writer in ((Level.BACKWARD, java_two, java_one), (Level.FORWARD, java_one, java_two)):
        theirs = java.can_read(reader, writer)
        if theirs is not None:
            assert (not conflicts(level, two, [(1, one)])) == theirs
