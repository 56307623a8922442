"""Messages by schema: what is encoded is decoded, and errors name fields, never values."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_common.clients.by_schema.messages import Decoder, Encoder, MisfitError
from cdc_common.clients.registry.errors import not_found

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = {"name": "name", "type": ["null", "string"], "default": None}
PLACE = {"name": "place", "type": {"type": "record", "name": "place", "fields": [{"name": "x", "type": "long"}]}}
SECRET = "4111-secret"


def record(*fields: object) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": "id", "type": "int"}, *fields]})


class Schemas:
    """The service, as far as a decoder asks it."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        self.texts = texts
        self.asked: list[int] = []

    def schema_text(self, schema_id: int) -> str:
        self.asked.append(schema_id)
        if schema_id not in self.texts:
            raise not_found("There is no such schema.", "None.")
        return self.texts[schema_id]


def decoder(texts: Mapping[int, str], reader: str | None = None) -> Decoder:
    return Decoder(Schemas(texts), reader)  # type: ignore[arg-type] # as far as it asks


@given(
    st.integers(-(2**31), 2**31 - 1), st.none() | st.text(), st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**31 - 1)
)
def test_what_is_encoded_is_decoded(number: int, name: str | None, x: int, schema_id: int) -> None:
    text = record(NAME, PLACE)
    value = {"id": number, "name": name, "place": {"x": x}}
    data = Encoder(schema_id, text).encode(value)
    assert data[:5] == struct.pack(">BI", 0, schema_id)
    assert decoder({schema_id: text}).decode(data) == (schema_id, value)


def test_a_value_is_resolved_to_the_reader_s_schema() -> None:
    """Fields that the reader lacks are left out, those that the writer lacks have their defaults."""
    data = Encoder(1, record(PLACE)).encode({"id": 1, "place": {"x": 2}})
    assert decoder({1: record(PLACE)}, record(NAME)).decode(data) == (1, {"id": 1, "name": None})


def test_each_schema_is_asked_for_once() -> None:
    schemas = Schemas({1: record(), 2: record(NAME)})
    reads = Decoder(schemas)  # type: ignore[arg-type] # as far as it asks
    for schema_id in (1, 2, 1, 2):
        reads.decode(Encoder(schema_id, schemas.texts[schema_id]).encode({"id": 1}))
    assert schemas.asked == [1, 2]


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"id": SECRET}, "id"),
        ({"id": 2**31}, "id"),
        ({"name": SECRET}, "id"),
        ({"id": 1, "name": 5}, "name"),
        ({"id": 1, "nmae": SECRET}, "a field that the schema does not have"),
        (SECRET, "of another type"),
    ],
)
def test_a_value_that_does_not_fit(value: object, named: str) -> None:
    with pytest.raises(MisfitError, match=named) as caught:
        Encoder(1, record(NAME)).encode(value)
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None  # nor in a trace


@given(st.binary(max_size=40) | st.binary(max_size=30).map(lambda data: struct.pack(">BI", 0, 1) + data))
def test_any_bytes_are_a_value_or_an_error(data: bytes) -> None:
    try:
        schema_id, value = decoder({1: record(NAME, PLACE)}).decode(data)
    except MisfitError:
        return
    assert schema_id == 1
    assert set(value) == {"id", "name", "place"}


@pytest.mark.parametrize(
    ("data", "reader", "reason"),
    [
        (b"plain", None, "not in the Confluent wire format"),
        (struct.pack(">BI", 0, 9), None, "no schema 9"),
        (struct.pack(">BI", 0, 1) + b"\x02\x02", None, "bytes are left"),
        (struct.pack(">BI", 0, 1) + b"\x02", record({"name": "more", "type": "int"}), "SchemaResolutionError"),
    ],
)
def test_a_message_that_cannot_be_read(data: bytes, reader: Any, reason: str) -> None:  # noqa: ANN401 - a text or None
    with pytest.raises(MisfitError, match=reason):
        decoder({1: record()}, reader).decode(data)


def test_what_is_no_schema() -> None:
    for text in ('{"type": "nothing"}', "no JSON"):
        with pytest.raises(MisfitError, match="no Avro schema"):
            Encoder(1, text)
