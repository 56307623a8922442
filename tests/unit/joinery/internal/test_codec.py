"""Messages of the internal topic: they are read as they were written, and nothing else is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_common.errors.codes import CdcError, Code
from joinery.internal import codec
from joinery.internal.codec import CodecError, decode, encode
from joinery.joining.records import Group, Kind, Origin, Routed, Row
from tests.support.joinery.changelogs import mark_of

LONG = st.integers(-(1 << 63), (1 << 63) - 1)
NUMBER = st.integers(0, 1 << 40)
ROUTED = st.builds(
    Routed,
    st.sampled_from([Kind.PUT, Kind.UPDATE, Kind.RETRACT]),
    st.builds(Row, st.builds(Group, st.binary(max_size=9), st.binary(max_size=5)), st.binary(), st.binary()),
    st.builds(Origin, st.integers(0, 15), NUMBER, NUMBER, LONG, LONG, st.text(max_size=9)),
    st.booleans(),
    st.booleans(),
    st.integers(0, 0xFFFFFF),
)
ONE = Routed(Kind.PUT, Row(Group(b"ab"), b"c", b"d"), Origin(1, 2, 3, 4, 5, "write"))


@given(ROUTED)
def test_a_message_is_read_as_it_was_written(routed: Routed) -> None:
    assert decode(*encode(routed)) == routed


@pytest.mark.skipif(not codec.IS_NATIVE, reason="the core is not in use")
@given(ROUTED)
def test_the_core_reads_what_the_python_code_reads(routed: Routed) -> None:
    key, value = encode(routed)
    assert codec.native_decode(key, value) is not None  # type: ignore[attr-defined] # it is there with the core
    assert codec._decode(key, value) == decode(key, value)


def test_damaged_messages_are_refused() -> None:
    key, value = encode(ONE)
    for bad in [value[:end] for end in range(1, len(value))] + [value + b"\x00", value[:1] + b"\x06" + value[2:], b""]:
        with pytest.raises(CodecError):
            decode(key, bad)
    with pytest.raises(CodecError):
        decode(key[:1], value)


def test_a_later_version_is_named() -> None:
    key, value = encode(ONE)
    with pytest.raises(CdcError) as caught:
        decode(key, b"\x04" + value[1:])
    assert caught.value.code is Code.STATE_FORMAT


def test_a_mark_is_read_as_it_was_written() -> None:
    mark = mark_of(3, 2, partitions=300)
    assert decode(*encode(mark)) == mark
    row = mark.row
    for bad in (row._replace(ident=b"x"), row._replace(columns=b""), row._replace(columns=b"\x00"), ONE.row):
        with pytest.raises(CodecError):
            decode(*encode(mark._replace(row=bad)))
