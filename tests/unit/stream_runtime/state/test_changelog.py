"""Changelog files: what is written is read, and anything else is noticed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.state import changelog
from stream_runtime.state.changelog import Changelog, DamagedDataError, Head
from stream_runtime.state.versions import NOTHING, next_version

WRITES = st.dictionaries(st.binary(max_size=40), st.none() | st.binary(max_size=200), max_size=20)


def an_entry(writes: dict[bytes, bytes | None]) -> Changelog:
    return Changelog(Head("0000000001-0badcafe", 12, 1_700_000_000_000, 8), NOTHING, 5, writes)


@given(WRITES)
def test_is_read_as_it_was_written(writes: dict[bytes, bytes | None]) -> None:
    entry = an_entry(writes)
    assert changelog.decode(changelog.encode(entry)) == entry


@given(WRITES, st.data())
def test_a_flipped_bit_is_damage(writes: dict[bytes, bytes | None], data: st.DataObject) -> None:
    content = bytearray(changelog.encode(an_entry(writes)))
    bit = data.draw(st.integers(0, len(content) * 8 - 1))
    content[bit // 8] ^= 1 << bit % 8
    with pytest.raises(DamagedDataError):
        changelog.decode(bytes(content))


@given(WRITES, st.data())
def test_a_cut_off_file_is_damage(writes: dict[bytes, bytes | None], data: st.DataObject) -> None:
    content = changelog.encode(an_entry(writes))
    with pytest.raises(DamagedDataError):
        changelog.decode(content[: data.draw(st.integers(0, len(content) - 1))])


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_damage(content: bytes) -> None:
    with pytest.raises(DamagedDataError):
        changelog.decode(content)


def test_a_newer_format_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(changelog, "FORMAT_VERSION", changelog.FORMAT_VERSION + 1)
        content = changelog.encode(an_entry({}))
        head = changelog.encode_head(an_entry({}).head)
    for read in (lambda: changelog.decode(content), lambda: changelog.decode_head(head)):
        with pytest.raises(CdcError) as raised:
            read()
        assert raised.value.code is Code.STATE_FORMAT


def test_the_format_before_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = an_entry({b"k": b"v"})
    content, head = changelog.encode(entry), changelog.encode_head(entry.head)
    with monkeypatch.context() as newer:
        newer.setattr(changelog, "FORMAT_VERSION", changelog.FORMAT_VERSION + 1)
        assert changelog.decode(content) == entry
        assert changelog.decode_head(head) == entry.head
    with monkeypatch.context() as newer:
        newer.setattr(changelog, "FORMAT_VERSION", changelog.FORMAT_VERSION + 2)
        with pytest.raises(CdcError) as raised:
            changelog.decode(content)
        assert raised.value.code is Code.STATE_FORMAT


def test_file_names_tell_version_and_parent() -> None:
    version = next_version(NOTHING)
    assert changelog.parse_file_name(changelog.file_name(version, NOTHING)) == (version, NOTHING)
    assert changelog.parse_file_name("something.else.txt") is None
