"""The core's Avro forms of values and keys of clusterings are those of the Python code, also of what is no value."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassandra_storage.byte_comparable import clustering_encoder, path_encoder
from cassandra_storage.errors import FormatError
from cassandra_storage.marshal import ListType, MapType, NativeType, SetType
from cassandra_storage.schema import ColumnKind, ColumnMetadata
from cdc_messages.avro_types import AvroTypes
from cdc_messages.avro_values import NATIVE_ENCODERS, EmptyValueError
from materializer.rows.native_plan import KEY_TYPES, path_form, type_form
from verify.fuzz.mutate import mutated
from verify.oracle.type_values import TypeValues

keys = pytest.importorskip("cdc_native.keys")
values = pytest.importorskip("cdc_native.values")

if TYPE_CHECKING:
    from cassandra_storage.marshal import CqlType
    from cdc_messages.avro_values import Encoder

EMPTY, UNREADABLE = 1, 2
GROUPS = st.lists(st.sampled_from(["0000", "0001", "ffff", "0a0b"]), min_size=8, max_size=8)
ZEROS = st.lists(st.sampled_from(b"\0\1\xff"), max_size=16).map(bytes)
NATIVE = sorted(set(NATIVE_ENCODERS) - {"counter"})


def expected(encode: Encoder, value: bytes) -> bytes | int:
    try:
        return encode(value)
    except EmptyValueError:
        return EMPTY
    except FormatError:
        return UNREADABLE


def check(type_: CqlType, value: bytes) -> None:
    encode = AvroTypes("a").column("c", type_).encode
    assert values.encode(type_form(type_), value) == expected(encode, value), (type_, value)


@settings(max_examples=2000)
@given(seed=st.integers(0, 2**64))
def test_values_of_any_type(seed: int) -> None:
    rng = random.Random(seed)
    types = TypeValues(rng, is_plain=False)
    type_ = types.type()
    value = types.value(type_)
    check(type_, value)
    check(type_, mutated(rng, value, [b"\0"]))


@pytest.mark.parametrize("name", NATIVE)
@given(value=st.binary(max_size=20))
def test_any_bytes_as_a_native_value(name: str, value: bytes) -> None:
    check(NativeType(name), value)


@given(value=st.one_of(st.text().map(str.encode), st.binary(max_size=8), st.binary(min_size=60, max_size=70)))
def test_text(value: bytes) -> None:
    check(NativeType("text"), value)


@pytest.mark.parametrize("first", range(256))
def test_each_beginning_of_a_character(first: int) -> None:
    for second in (0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0):
        for more in (b"", b"\x80", b"\x80\x80", b"\xbf\xbf", b"a"):
            check(NativeType("text"), bytes((first, second)) + more)


@given(value=st.one_of(st.binary(min_size=16, max_size=16), GROUPS.map("".join).map(bytes.fromhex)))
def test_addresses(value: bytes) -> None:
    check(NativeType("inet"), value)
    check(NativeType("inet"), bytes(10) + b"\xff\xff" + value[:4])


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize("name", sorted(KEY_TYPES))
@given(data=st.data())
def test_clusterings(name: str, is_reversed: bool, data: st.DataObject) -> None:  # noqa: FBT001 - a parameter
    column = ColumnMetadata("c", NativeType(name), ColumnKind.CLUSTERING, 0, is_reversed)
    size = KEY_TYPES[name][1]
    sizes = {"min_size": size, "max_size": size} if size else {"max_size": 12}
    value = data.draw(st.one_of(st.none(), st.binary(**sizes), st.binary(max_size=17), ZEROS))
    try:
        key: bytes | None = clustering_encoder([column])((value,))
    except FormatError:
        key = None
    found = keys.component((*KEY_TYPES[name], is_reversed), value)
    assert found == (None if key is None else key[:-1])


@pytest.mark.parametrize("name", sorted(KEY_TYPES))
@settings(max_examples=300)
@given(seed=st.integers(0, 2**64))
def test_paths(name: str, seed: int) -> None:
    rng = random.Random(seed)
    types = TypeValues(rng, is_plain=False)
    of = NativeType(name)
    for type_ in (
        SetType(of, is_multi_cell=True),
        MapType(of, of, is_multi_cell=True),
        ListType(of, is_multi_cell=True),
    ):
        path_type = NativeType("timeuuid") if isinstance(type_, ListType) else of
        left, right = types.value(path_type), types.value(path_type)
        if rng.random() < 0.2:
            left = mutated(rng, left, [b"\0", right])
        encode = path_encoder(type_)
        try:
            x, y = encode(left), encode(right)
        except FormatError:
            order = None
        else:
            order = (x > y) - (x < y)
        assert keys.order(path_form(type_), left, right) == order
