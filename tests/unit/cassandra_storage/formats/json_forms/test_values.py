"""Values as JSON: nothing is lost, nothing is refused."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.json_forms.values import value_json
from cassandra_storage.formats.types.cql_types import parse_type
from cassandra_storage.formats.types.marshal import ListType, MapType, NativeType, SetType, TupleType, UserType
from tests.support.cassandra_storage.commitlog.json_values import serialized, varint
from tests.support.cdc_common.messages.cql_values import NATIVE, values
from tests.support.cdc_common.messages.strategies import FROZEN_TYPES

if TYPE_CHECKING:
    from cassandra_storage.formats.types.marshal import CqlType

PERSON = UserType("ks", "person", ("name", "age"), (NativeType("text"), NativeType("int")), is_multi_cell=False)


def shown(type_: CqlType, value: bytes) -> object:
    return json.loads(json.dumps(value_json(type_, value)))


@given(st.data())
def test_values_come_back_from_their_json(data: st.DataObject) -> None:
    type_ = data.draw(FROZEN_TYPES)
    value, _ = data.draw(values(type_))
    assert serialized(type_, shown(type_, value)) == value


@given(st.sampled_from(sorted(NATIVE)), st.binary(max_size=40))
def test_any_bytes_are_shown(name: str, value: bytes) -> None:
    for type_ in (NativeType(name), ListType(NativeType(name), is_multi_cell=False), PERSON):
        shown(type_, value)


@pytest.mark.parametrize(
    ("type_text", "value", "expected"),
    [
        ("int", b"\x00\x00\x00\x2a", 42),
        ("int", b"", ""),
        ("int", b"\x01", {"$raw": "0x01"}),
        ("text", b"\xff", {"$raw": "0xff"}),
        ("blob", b"", "0x"),
        ("decimal", struct.pack(">i", 2) + varint(100), "1.00"),
        ("decimal", struct.pack(">i", -3) + varint(1), "1E+3"),
        ("varint", b"\x7f" * 1025, {"$raw": "0x" + "7f" * 1025}),
        ("float", bytes.fromhex("7fc00000"), "NaN"),
        ("float", bytes.fromhex("ffc00001"), {"$raw": "0xffc00001"}),
        ("double", struct.pack(">d", float("-inf")), "-Infinity"),
        ("timestamp", struct.pack(">q", -1), "1969-12-31 23:59:59.999Z"),
        ("timestamp", struct.pack(">q", -62_135_596_800_000), "0001-01-01 00:00:00.000Z"),
        ("timestamp", struct.pack(">q", 2**63 - 1), 2**63 - 1),
        ("date", struct.pack(">I", 2**31 + 1), "1970-01-02"),
        ("date", bytes(4), -(2**31)),
        ("time", struct.pack(">q", 29_574_123_456_789), "08:12:54.123456789"),
        ("frozen<map<int, text>>", bytes.fromhex("00000001 00000004 00000001 00000001 61"), [[1, "a"]]),
    ],
)
def test_forms(type_text: str, value: bytes, expected: object) -> None:
    assert shown(parse_type(type_text, "ks", {}), value) == expected


def test_missing_fields_are_not_null() -> None:
    name = struct.pack(">i", 1) + b"a"
    null = struct.pack(">i", -1)
    assert shown(PERSON, name) == {"name": "a"}
    assert shown(PERSON, name + null) == {"name": "a", "age": None}
    assert shown(TupleType(PERSON.field_types), name) == ["a"]


def test_a_text_map_that_no_object_can_say_is_pairs() -> None:
    twice = struct.pack(">i", 2) + 2 * (struct.pack(">i", 1) + b"k" + struct.pack(">i", 1) + b"v")
    of = MapType(NativeType("text"), NativeType("text"), is_multi_cell=False)
    assert shown(of, twice) == [["k", "v"], ["k", "v"]]
    assert shown(SetType(NativeType("text"), is_multi_cell=False), b"\x00") == {"$raw": "0x00"}
