"""The core's Avro forms of values and keys of clusterings are those of the Python code, also of what is no value."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata
from cassandra_storage.formats.types.marshal import NativeType
from cassandra_storage.formats.types.native_order import KEY_TYPES
from cdc_common.messages.avro.cql_values import NATIVE_ENCODERS
from tests.support.materializer.native_forms import (
    check_any_value,
    check_component,
    check_in_forms,
    check_paths,
    check_value,
)

keys = pytest.importorskip("cdc_native.formats.keys")
values = pytest.importorskip("cdc_native.fold.values")


GROUPS = st.lists(st.sampled_from(["0000", "0001", "ffff", "0a0b"]), min_size=8, max_size=8)
ZEROS = st.lists(st.sampled_from(b"\0\1\xff"), max_size=16).map(bytes)
NATIVE = sorted(set(NATIVE_ENCODERS) - {"counter"})


@settings(max_examples=2000)
@given(seed=st.integers(0, 2**64))
def test_values_of_any_type(seed: int) -> None:
    rng = random.Random(seed)
    check_any_value(rng)


@pytest.mark.parametrize("name", NATIVE)
@given(value=st.binary(max_size=20))
def test_any_bytes_as_a_native_value(name: str, value: bytes) -> None:
    check_value(NativeType(name), value)
    check_in_forms(NativeType(name), value)


@given(value=st.one_of(st.text().map(str.encode), st.binary(max_size=8), st.binary(min_size=60, max_size=70)))
def test_text(value: bytes) -> None:
    check_value(NativeType("text"), value)


@pytest.mark.parametrize("first", range(256))
def test_each_beginning_of_a_character(first: int) -> None:
    for second in (0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0):
        for more in (b"", b"\x80", b"\x80\x80", b"\xbf\xbf", b"a"):
            check_value(NativeType("text"), bytes((first, second)) + more)


@given(value=st.one_of(st.binary(min_size=16, max_size=16), GROUPS.map("".join).map(bytes.fromhex)))
def test_addresses(value: bytes) -> None:
    check_value(NativeType("inet"), value)
    check_value(NativeType("inet"), bytes(10) + b"\xff\xff" + value[:4])


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize("name", sorted(KEY_TYPES))
@given(data=st.data())
def test_clusterings(name: str, is_reversed: bool, data: st.DataObject) -> None:  # noqa: FBT001 - a parameter
    column = ColumnMetadata("c", NativeType(name), ColumnKind.CLUSTERING, 0, is_reversed)
    size = KEY_TYPES[name][1]
    sizes = {"min_size": size, "max_size": size} if size else {"max_size": 12}
    value = data.draw(st.one_of(st.none(), st.binary(**sizes), st.binary(max_size=17), ZEROS))
    check_component(column, value)


@pytest.mark.parametrize("name", sorted(KEY_TYPES))
@settings(max_examples=300)
@given(seed=st.integers(0, 2**64))
def test_paths(name: str, seed: int) -> None:
    check_paths(random.Random(seed), name)
