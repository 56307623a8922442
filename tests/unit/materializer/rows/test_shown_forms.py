"""The one form of a value: the same for all spellings that SELECT shows alike, and another one for all others."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.types.marshal import CqlType, MapType, NativeType, TupleType, VectorType, decode
from cdc_common.messages.avro.cql_types import AvroTypes
from cdc_common.messages.avro.cql_values import EmptyValueError
from cdc_common.messages.avro.type_forms import DEFAULT_FORMS, EXACT
from dev.verify.oracle.type_values import TypeValues
from materializer.rows.shown_forms import value_form
from tests.support.materializer.respelled import respelled

INT, TEXT, BOOLEAN = NativeType("int"), NativeType("text"), NativeType("boolean")
PAIR = TupleType((INT, TEXT))
NULL, ONE = b"\xff\xff\xff\xff", b"\0\0\0\4\0\0\0\1"
A, B = b"\0\0\0\1a", b"\0\0\0\1b"
SAME = {
    "any byte but 0 is true": (BOOLEAN, b"\x01", b"\x7f"),
    "a varint's zeros": (NativeType("varint"), b"\x01", b"\0\0\x01"),
    "a negative varint": (NativeType("varint"), b"\x80", b"\xff\x80"),
    "a decimal's zeros": (NativeType("decimal"), b"\0\0\0\1\x05", b"\0\0\0\1\0\x05"),
    "a tuple's last nulls": (PAIR, ONE, ONE + NULL),
    "nulls alone": (PAIR, NULL, NULL + NULL),
    "a duration in longer numbers": (NativeType("duration"), b"\x02\0\0", b"\x80\x02\0\0"),
    "a map in another order": (
        MapType(TEXT, INT, is_multi_cell=False),
        b"\0\0\0\2" + A + ONE + B + ONE,
        b"\0\0\0\2" + B + ONE + A + ONE,
    ),
    "in a vector": (VectorType(BOOLEAN, 2), b"\x01\x00", b"\x02\x00"),
}
OTHER = {
    "decimals of two scales": (NativeType("decimal"), b"\0\0\0\1\x0a", b"\0\0\0\2\x64"),
    "a varint of another sign": (NativeType("varint"), b"\x80", b"\0\x80"),
    "empty is not null": (PAIR, NULL, b""),
    "an empty field is not null": (PAIR, b"\0\0\0\0", NULL),
    "zeros of two signs": (NativeType("double"), bytes(8), b"\x80" + bytes(7)),
    "a list in another order": (TupleType((PAIR, PAIR)), NULL + b"\0\0\0\4" + NULL, b"\0\0\0\4" + NULL + NULL),
}


def form(type_: CqlType, value: bytes) -> bytes:
    found = value_form(type_)
    return value if found is None else found(value)


@pytest.mark.parametrize(("type_", "left", "right"), SAME.values(), ids=SAME)
def test_shown_alike(type_: CqlType, left: bytes, right: bytes) -> None:
    assert form(type_, left) == form(type_, right)


@pytest.mark.parametrize(("type_", "left", "right"), OTHER.values(), ids=OTHER)
def test_not_shown_alike(type_: CqlType, left: bytes, right: bytes) -> None:
    assert form(type_, left) != form(type_, right)


@settings(max_examples=1000)
@given(seed=st.integers(0, 2**64))
def test_every_spelling_has_the_form_and_shows_the_same(seed: int) -> None:
    rng = random.Random(seed)
    types = TypeValues(rng, is_plain=False)
    type_ = types.type()
    value = types.value(type_)
    other = respelled(rng, type_, value)
    found = form(type_, value)
    assert form(type_, other) == form(type_, found) == found, (type_, value, other)
    assert shown(type_, found) == shown(type_, value), (type_, value)


@settings(max_examples=1000)
@given(seed=st.integers(0, 2**64))
def test_what_has_one_avro_form_has_one_form(seed: int) -> None:
    """So no message's before and after are the same."""
    rng = random.Random(seed)
    types = TypeValues(rng, is_plain=False)
    type_ = types.type()
    encode = AvroTypes("a", rng.choice((EXACT, DEFAULT_FORMS))).column("c", type_).encode
    found: dict[bytes, bytes] = {}
    for _ in range(8):
        value = form(type_, types.value(type_))
        try:
            encoded = encode(value)
        except (EmptyValueError, FormatError):
            continue
        assert found.setdefault(encoded, value) == value, type_


def shown(type_: CqlType, value: bytes) -> str:
    try:
        return repr(in_order(decode(type_, value)))
    except FormatError:
        return "no value"


def in_order(value: object) -> object:
    """The entries of maps, which are pairs in a list, in one order, of each key the last."""
    if isinstance(value, list):
        items = [in_order(item) for item in value]
        entries = {repr(item[0]): item for item in items if isinstance(item, tuple) and len(item) == 2}
        is_map = all(isinstance(item, tuple) and len(item) == 2 for item in items)
        return sorted(entries.values(), key=repr) if is_map else items
    return tuple(map(in_order, value)) if type(value) is tuple else value
