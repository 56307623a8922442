"""Readers and writers of cdc_native/formats/buffers.pxd do what cassandra_storage.formats.primitives.vint does, and
never leave their bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives import vint
from cdc_common.messages.avro.encoding import encode_long

vints = pytest.importorskip(
    "cdc_native.formats.vints", reason="the native core is not compiled: test_compiled.py says so"
)

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
MAX_VINT = (1 << 64) - 1
MAX_LONG = (1 << 63) - 1
ANY_BYTES = st.binary(max_size=24)
ANY_SCRIPT = st.lists(st.sampled_from(b"bvis"), max_size=8).map(bytes)
# As many bits as numbers have, not as many as are likely.
NUMBERS = st.integers(0, 64).flatmap(lambda bits: st.integers(0, (1 << bits) - 1))


def or_none(read: Callable[[bytes, int], T], data: bytes, pos: int) -> T | None:
    """Return the value that the Python code reads; None where it raises FormatError."""
    try:
        return read(data, pos)
    except FormatError:
        return None


@given(NUMBERS)
@example(MAX_VINT)
def test_a_vint_is_written_alike_and_read_again(value: int) -> None:
    written = vints.write_unsigned_vint(value)
    assert written == vint.write_unsigned_vint(value)
    assert vints.read_unsigned_vint(written, 0) == (value, len(written))
    for end in range(len(written)):
        assert vints.read_unsigned_vint(written[:end], 0) is None


def test_vints_at_every_change_of_size() -> None:
    for bits in range(65):
        for value in {max(0, (1 << bits) + more) for more in (-1, 0, 1)}:
            if value <= MAX_VINT:
                assert vints.write_unsigned_vint(value) == vint.write_unsigned_vint(value)


def test_what_does_not_fit_is_refused() -> None:
    for value in (-1, MAX_VINT + 1):
        with pytest.raises(OverflowError):
            vints.write_unsigned_vint(value)
    for value in (-MAX_LONG - 2, MAX_LONG + 1):
        with pytest.raises(OverflowError):
            vints.write_avro_long(value)


@given(ANY_BYTES, st.integers(0, 30))
@example(b"\xff" * 9, 0)
@example(b"\xff" * 8, 0)
@example(b"", 0)
def test_hostile_bytes_are_read_alike(data: bytes, pos: int) -> None:
    if pos > len(data):
        with pytest.raises(IndexError):
            vints.read_unsigned_vint(data, pos)
        return
    assert vints.read_unsigned_vint(data, pos) == or_none(vint.read_unsigned_vint, data, pos)
    assert vints.read_int(data, pos) == or_none(vint.read_int, data, pos)
    assert vints.read_sized(data, pos) == or_none(vint.read_sized, data, pos)


@pytest.mark.parametrize("first", range(256))
def test_every_first_byte_with_every_end(first: int) -> None:
    for more in (b"", b"\x00" * 8, b"\xff" * 8, b"\x7f\xff\xff\xff\x80\x00\x00\x00"):
        for end in range(len(more) + 1):
            data = bytes((first,)) + more[:end]
            assert vints.read_unsigned_vint(data, 0) == or_none(vint.read_unsigned_vint, data, 0)
            assert vints.read_int(data, 0) == or_none(vint.read_int, data, 0)


@given(st.integers(-(1 << 31), (1 << 31) - 1))
@example(-(1 << 31))
@example((1 << 31) - 1)
def test_an_int_of_32_bits_is_read(value: int) -> None:
    written = vint.write_int(value)
    assert vints.read_int(written, 0) == vint.read_int(written, 0) == (value, len(written))


@given(st.integers(0, MAX_VINT))
@example(1 << 31)
@example((1 << 32) + 5)
@example(MAX_LONG)
@example(1 << 63)
@example(MAX_VINT - (1 << 31))
def test_an_int_of_more_bits_is_cast(value: int) -> None:
    written = vint.write_unsigned_vint(value)
    assert vints.read_int(written, 0) == vint.read_int(written, 0)


@given(ANY_BYTES, ANY_SCRIPT)
@example(b"\xff" * 9 + b"abc", b"sbvi")
@example(vint.write_unsigned_vint(MAX_LONG), b"s")
def test_a_cursor_that_is_bad_stays_bad(data: bytes, script: bytes) -> None:
    assert vints.read_script(data, script) == scripted(data, script)


READERS: dict[int, Callable[[bytes, int], tuple[object, int]]] = {
    ord("v"): vint.read_unsigned_vint,
    ord("i"): vint.read_int,
    ord("s"): vint.read_sized,
}


def scripted(data: bytes, script: bytes) -> int | None:
    """The oracle of read_script."""
    pos = 0
    for step in script:
        if step == ord("b"):
            if pos >= len(data):
                return None
            pos += 1
            continue
        found = or_none(READERS[step], data, pos)
        if found is None:
            return None
        pos = found[1]
    return pos


@given(st.lists(st.one_of(NUMBERS, st.binary(max_size=300), st.none()), max_size=40))
def test_a_writer_grows(parts: list[int | bytes | None]) -> None:
    assert vints.write_all(parts) == b"".join(
        b"\xff"
        if part is None
        else vint.write_sized(part)
        if isinstance(part, bytes)
        else vint.write_unsigned_vint(part)
        for part in parts
    )


def test_a_large_value_is_written() -> None:
    large = bytes(1 << 20)
    assert vints.write_all([large, b"", large]) == vint.write_sized(large) + b"\x00" + vint.write_sized(large)


def test_a_part_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(OverflowError):
        vints.write_all([b"x" * 100, -1])


@given(NUMBERS, st.booleans())
@example(MAX_LONG, True)
def test_an_avro_long_is_written_alike(number: int, is_negative: bool) -> None:  # noqa: FBT001  Hypothesis takes arguments in order
    value = min(number, MAX_LONG)
    value = ~value if is_negative else value
    assert vints.write_avro_long(value) == encode_long(value)
