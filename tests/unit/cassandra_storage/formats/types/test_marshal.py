"""Values of CQL types: lengths, decoding, and what is refused."""

from __future__ import annotations

import contextlib
import random
from ipaddress import IPv4Address, IPv6Address
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.types.marshal import (
    LEXICAL_UUID_TYPE,
    BigDecimal,
    CqlType,
    CustomType,
    Duration,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
    decode,
    elements,
    fields,
    fixed_length,
    pairs,
    vector_elements,
)
from cassandra_storage.formats.types.serializers import NATIVE_DECODERS
from dev.verify.oracle.type_values import TypeValues

INT, TEXT = NativeType("int"), NativeType("text")
ONE_AND_A = b"\x00\x00\x00\x04\x00\x00\x00\x01\x00\x00\x00\x01a"

types = st.integers().map(lambda seed: TypeValues(random.Random(seed), is_plain=False).type())


@pytest.mark.parametrize(
    ("type_", "length"),
    [
        (NativeType("boolean"), 1),
        (INT, 4),
        (NativeType("float"), 4),
        *((NativeType(name), 8) for name in ("bigint", "double", "timestamp")),
        *((NativeType(name), 16) for name in ("uuid", "timeuuid")),
        (CustomType(LEXICAL_UUID_TYPE), 16),
        (NativeType("empty"), 0),
        (VectorType(NativeType("float"), 3), 12),
        (VectorType(VectorType(INT, 2), 3), 24),
        *((NativeType(name), None) for name in ("date", "time", "smallint", "tinyint", "counter", "inet", "text")),
        (VectorType(TEXT, 3), None),
        (TupleType((INT,)), None),
        (ListType(INT, is_multi_cell=False), None),
    ],
    ids=str,
)
def test_only_some_types_have_a_fixed_length(type_: CqlType, length: int | None) -> None:
    assert fixed_length(type_) == length


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("int", b"\xff\xff\xff\xfe", -2),
        ("bigint", b"\x00\x00\x00\x00\x00\x00\x01\x00", 256),
        ("smallint", b"\x80\x00", -(2**15)),
        ("tinyint", b"\x7f", 127),
        ("varint", b"\xff\x00", -256),
        ("text", "Zoë".encode(), "Zoë"),
        ("ascii", b"a", "a"),
        ("blob", b"\x00", b"\x00"),
        ("boolean", b"\x00", False),
        ("boolean", b"\x02", True),
        ("float", b"\x3f\x80\x00\x00", 1.0),
        ("double", b"\x80\x00\x00\x00\x00\x00\x00\x00", -0.0),
        ("timestamp", b"\xff\xff\xff\xff\xff\xff\xff\xff", -1),
        ("date", b"\x80\x00\x00\x01", 1),
        ("date", b"\x7f\xff\xff\xff", -1),
        ("time", b"\x00\x00\x00\x00\x00\x00\x00\x01", 1),
        ("uuid", bytes(15) + b"\x01", UUID(int=1)),
        ("decimal", b"\xff\xff\xff\xff\xff", BigDecimal(-1, -1)),
        ("inet", b"\x7f\x00\x00\x01", IPv4Address("127.0.0.1")),
        ("inet", bytes(15) + b"\x01", IPv6Address("::1")),
        ("duration", b"\x02\x03\x05", None),
        ("duration", b"\x02\x04\x06", Duration(1, 2, 3)),
        ("duration", b"\x01\x03\x05", Duration(-1, -2, -3)),
        ("counter", b"\x00\x00" + bytes(16) + bytes(15) + b"\x07", 7),
    ],
)
def test_native_values(name: str, value: bytes, expected: object) -> None:
    if expected is None:
        with pytest.raises(FormatError):
            decode(NativeType(name), value)
    else:
        assert decode(NativeType(name), value) == expected


NO_EMPTY = {"tinyint", "smallint", "date", "time", "duration"}
EMPTY_IS_A_VALUE = {"text": "", "ascii": "", "blob": b""}


@pytest.mark.parametrize("name", sorted(NATIVE_DECODERS))
def test_an_empty_value_is_none_where_the_type_allows_it(name: str) -> None:
    if name in NO_EMPTY:
        with pytest.raises(FormatError):
            decode(NativeType(name), b"")
    else:
        assert decode(NativeType(name), b"") == EMPTY_IS_A_VALUE.get(name)


def test_composite_values() -> None:
    pair = UserType("ks", "pair", ("a", "b"), (INT, TEXT), is_multi_cell=False)
    assert decode(pair, ONE_AND_A) == (1, "a")
    assert decode(TupleType((INT, TEXT)), ONE_AND_A[:8]) == (1, None)
    assert decode(TupleType((INT, TEXT)), b"\xff\xff\xff\xff" + ONE_AND_A[8:]) == (None, "a")
    assert decode(pair, b"") is None
    assert decode(ListType(INT, is_multi_cell=False), b"\x00\x00\x00\x01" + ONE_AND_A[:8]) == [1]
    assert decode(SetType(TEXT, is_multi_cell=False), bytes(4)) == []
    assert decode(MapType(INT, TEXT, is_multi_cell=False), b"\x00\x00\x00\x01" + ONE_AND_A) == [(1, "a")]
    assert decode(VectorType(INT, 2), bytes(7) + b"\x01") == [0, 1]
    assert decode(VectorType(TEXT, 2), b"\x01a\x00") == ["a", ""]
    assert decode(CustomType("x.Y"), b"any") == b"any"


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x00\x00\x00",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x01",
        b"\x7f\xff\xff\xff",
        b"\x00\x00\x00\x01\xff\xff\xff\xff",
        b"\x00\x00\x00\x01\x00\x00\x00\x02a",
        b"\x00\x00\x00\x00a",
    ],
)
def test_a_malformed_collection(value: bytes) -> None:
    with pytest.raises(FormatError):
        elements(value)
    with pytest.raises(FormatError):
        pairs(value)


@pytest.mark.parametrize("value", [b"\x00", b"\x00\x00\x00\x02a", bytes(4) * 3])
def test_a_malformed_tuple(value: bytes) -> None:
    with pytest.raises(FormatError):
        fields(value, 2)


@pytest.mark.parametrize("value", [b"", b"\x01", b"\x01a\x02b", b"\x01a\x01bc"])
def test_a_malformed_vector(value: bytes) -> None:
    with pytest.raises(FormatError):
        vector_elements(VectorType(TEXT, 2), value)
    with pytest.raises(FormatError):
        vector_elements(VectorType(INT, 2), value)


@given(types, st.binary(max_size=40))
def test_arbitrary_bytes_give_a_value_or_a_format_error(type_: CqlType, value: bytes) -> None:
    with contextlib.suppress(FormatError):
        decode(type_, value)
    fixed_length(type_)
