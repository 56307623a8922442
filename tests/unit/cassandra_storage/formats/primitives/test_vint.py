"""VIntCoding: known bytes, round trips, and errors on what is no integer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives import vint

KNOWN = {
    0: "00",
    127: "7f",
    128: "8080",
    16_383: "bfff",
    16_384: "c04000",
    2**56 - 1: "feffffffffffffff",
    2**56: "ff0100000000000000",
    2**64 - 1: "ffffffffffffffffff",
}


@pytest.mark.parametrize(("value", "encoded"), KNOWN.items())
def test_known_bytes(value: int, encoded: str) -> None:
    assert vint.write_unsigned_vint(value).hex() == encoded
    assert vint.read_unsigned_vint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@given(st.integers(0, 64).flatmap(lambda bits: st.integers(0, (1 << bits) - 1)), st.binary(max_size=3))
def test_unsigned_round_trip(value: int, lead: bytes) -> None:
    encoded = vint.write_unsigned_vint(value)
    assert vint.read_unsigned_vint(lead + encoded + b"\xff", len(lead)) == (value, len(lead) + len(encoded))
    assert vint.SIZES[encoded[0]] == len(encoded)


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_round_trip(value: int) -> None:
    encoded = vint.write_vint(value)
    assert vint.read_vint(encoded, 0) == (value, len(encoded))


@given(st.integers(-(2**31), 2**31 - 1))
def test_int_round_trip(value: int) -> None:
    encoded = vint.write_int(value)
    assert vint.read_int(encoded, 0) == (value, len(encoded))


@given(st.binary(max_size=300))
def test_sized_round_trip(value: bytes) -> None:
    encoded = vint.write_sized(value)
    assert vint.read_sized(encoded, 0) == (value, len(encoded))


@given(st.binary(max_size=12), st.integers(0, 14))
def test_arbitrary_bytes(data: bytes, pos: int) -> None:
    for read in (vint.read_unsigned_vint, vint.read_vint, vint.read_int, vint.read_sized):
        try:
            _, end = read(data, pos)
        except FormatError:
            continue
        assert pos < end <= len(data)


@pytest.mark.parametrize(
    ("written", "read"),
    [(2**31, -(2**31)), (2**32 - 1, -1), (2**32 + 5, 5), (2**63, 0), (2**64 - 2**31 - 1, 2**31 - 1)],
)
def test_an_int_of_more_than_32_bits_is_cast(written: int, read: int) -> None:
    """The cast is that of `(int) readUnsignedVInt()` in Cassandra 3.0 to 4.1."""
    encoded = vint.write_unsigned_vint(written)
    assert vint.read_int(encoded, 0) == (read, len(encoded))


@pytest.mark.parametrize("value", [-1, 2**64])
def test_not_writable(value: int) -> None:
    with pytest.raises(ValueError, match="64"):
        vint.write_unsigned_vint(value)
