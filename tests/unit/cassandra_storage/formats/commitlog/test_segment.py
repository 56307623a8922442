"""Segments: the same entries for all windows; incomplete is never an error; damage is reported and stepped over."""

from __future__ import annotations

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.commitlog.segment import (
    CommitLogEntry,
    CorruptEntry,
    Event,
    SegmentReader,
)
from cassandra_storage.formats.errors import FormatError
from tests.support.cassandra_storage.segment_builder import NAME, descriptor, entry, ints, marker, segment

MUTATIONS = st.lists(st.lists(st.binary(min_size=10, max_size=60), max_size=4), max_size=4)
HEADER_SIZE = len(descriptor())


def read_all(data: bytes, *, window: int = 1 << 20, resume_from: int = 0, is_completed: bool = True) -> list[Event]:
    """Read as a publisher does: windows of the file at the reader's position, until nothing moves."""
    reader = SegmentReader(NAME, resume_from)
    events: list[Event] = []
    length = len(data) if is_completed else None
    while not reader.is_ended:
        before = (reader.position, reader.wanted)
        events += reader.read(data[reader.position : reader.position + max(window, reader.wanted)], length)
        if before == (reader.position, reader.wanted):
            break
    assert reader.is_ended or not is_completed
    return events


def mutations_of(events: list[Event]) -> list[bytes]:
    return [event.mutation for event in events if isinstance(event, CommitLogEntry)]


@given(MUTATIONS, st.integers(1, 200), st.booleans())
def test_windows(sections: list[list[bytes]], window: int, is_completed: bool) -> None:  # noqa: FBT001  drawn
    data = segment(sections)
    events = read_all(data, window=window, is_completed=is_completed)
    assert mutations_of(events) == [mutation for section in sections for mutation in section]
    for event in events:
        assert isinstance(event, CommitLogEntry)
        assert data[event.position : event.end_position] == entry(event.mutation)


@given(MUTATIONS, st.data())
def test_growing_file(sections: list[list[bytes]], data: st.DataObject) -> None:
    """A live file is given up to some offset, again and again; each entry comes once, and zeroes are waited at."""
    whole = segment([*sections, [b"the last one"]], size=2000)
    reader = SegmentReader(NAME)
    found: list[Event] = []
    for offset in sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6))):
        given_bytes = whole[:offset] + bytes(data.draw(st.integers(0, 40)))  # zeroes that are not written yet
        found += reader.read(given_bytes[reader.position : offset])
        assert reader.position <= offset
    while not reader.is_ended:
        found += reader.read(whole[reader.position :], len(whole))
    assert mutations_of(found) == [m for section in sections for m in section] + [b"the last one"]


@given(MUTATIONS, st.integers(1, 100))
def test_resume(sections: list[list[bytes]], window: int) -> None:
    data = segment(sections)
    events = read_all(data)
    for index, event in enumerate(events):
        assert read_all(data, window=window, resume_from=event.end_position) == events[index + 1 :]


def test_resume_reads_little() -> None:
    """Sections that are done with are stepped over by their markers."""
    data = segment([[bytes(100_000)], [bytes(100_000)], [b"first wanted"]])
    reader = SegmentReader(NAME, resume_from=len(segment([[bytes(100_000)], [bytes(100_000)]])))
    asked = 0
    while not reader.is_ended:
        asked += reader.wanted
        found = list(reader.read(data[reader.position : reader.position + reader.wanted], len(data)))
        if found:
            assert mutations_of(found) == [b"first wanted"]
    assert asked < 200


@given(MUTATIONS, st.data(), st.integers(1, 100))
def test_damaged(sections: list[list[bytes]], data: st.DataObject, window: int) -> None:
    """Flipped bytes lose entries and never make others; the walk ends."""
    written = bytearray(segment(sections))
    for _ in range(data.draw(st.integers(1, 3))):
        written[data.draw(st.integers(0, len(written) - 1))] ^= data.draw(st.integers(1, 255))
    expected = {mutation for section in sections for mutation in section}
    try:
        events = read_all(bytes(written), window=window)
    except FormatError:
        return  # the descriptor
    assert set(mutations_of(events)) <= expected
    assert read_all(bytes(written)) == events
    positions = [(event.position, event.end_position) for event in events]
    assert all(start < end <= len(written) for start, end in positions)
    assert sorted(positions) == positions


@given(st.binary(max_size=200), st.booleans(), st.booleans())
def test_arbitrary(data: bytes, has_descriptor: bool, is_completed: bool) -> None:  # noqa: FBT001  drawn
    start = descriptor() if has_descriptor else b""
    try:
        events = read_all(start + data, window=7, is_completed=is_completed)
    except FormatError:
        assert not has_descriptor
        return
    assert not mutations_of(events)


@given(MUTATIONS, st.data())
def test_truncated_live_file(sections: list[list[bytes]], data: st.DataObject) -> None:
    """Incomplete is 'not yet': a prefix gives a prefix, and no complaint."""
    whole = segment(sections)
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    found = mutations_of(read_all(cut, is_completed=False))
    assert found == [m for section in sections for m in section][: len(found)]


def test_bad_mutation_crc_goes_on() -> None:
    data = bytearray(segment([[b"first entry", b"second entry", b"third entry"]]))
    at = data.index(b"second")
    data[at] ^= 1
    events = read_all(bytes(data))
    assert mutations_of(events) == [b"first entry", b"third entry"]
    corrupt = events[1]
    assert isinstance(corrupt, CorruptEntry)
    assert corrupt.mutation == b"recond entry"
    assert corrupt.position == at - 8


@pytest.mark.parametrize("offset", [-8, -5, -4, -1])
def test_bad_size_ends_the_section(offset: int) -> None:
    data = bytearray(segment([[b"first entry", b"second entry"], [b"third entry"]]))
    data[data.index(b"first") + offset] ^= 0x40
    events = read_all(bytes(data))
    assert mutations_of(events) == [b"third entry"]
    assert events[0] == CorruptEntry(HEADER_SIZE + 8, data.index(b"third") - 16, "bad entry size")


def test_sizes_that_are_not_believed() -> None:
    """A right CRC does not make a mutation of 9 bytes, or one that is longer than its section."""
    for size in (9, 1000, 0xFFFFFFFF):
        body = ints(size, crc32(ints(size))) + bytes(30)
        data = descriptor() + marker(HEADER_SIZE, HEADER_SIZE + 8 + len(body)) + body
        (event,) = read_all(data)
        assert isinstance(event, CorruptEntry)
        assert (event.position, event.end_position) == (HEADER_SIZE + 8, len(data))
        assert event.reason == (
            "bad entry size" if size < 2000 else f"entry of {size} bytes, more than {(64 << 20) - 12}"
        )


@pytest.mark.parametrize("size", range(4, 12))
def test_no_room_for_the_head_of_an_entry(size: int) -> None:
    """Less than four bytes are the end (below); with more there should be an entry."""
    body = entry(b"first entry") + b"\x00\x00\x01\x07and more"[:size]
    data = descriptor() + marker(HEADER_SIZE, HEADER_SIZE + 8 + len(body)) + body
    for is_completed in (False, True):
        first, corrupt = read_all(data, is_completed=is_completed)
        assert isinstance(first, CommitLogEntry)
        assert corrupt == CorruptEntry(first.end_position, len(data), "bad entry size")
    behind = marker(len(data), len(data) + 8 + len(entry(b"third entry"))) + entry(b"third entry")
    assert mutations_of(read_all(data + behind)) == [b"first entry", b"third entry"]


@pytest.mark.parametrize("size", range(4))
def test_less_than_a_size_ends_the_segment(size: int) -> None:
    body = entry(b"first entry") + b"\x00\x00\x01"[:size]
    data = descriptor() + marker(HEADER_SIZE, HEADER_SIZE + 8 + len(body)) + body
    (first,) = read_all(data)
    assert isinstance(first, CommitLogEntry)


@pytest.mark.parametrize("missing", [1, 4, 5, 15, 16, 19])
def test_an_entry_reaches_past_a_damaged_end(missing: int) -> None:
    """No checksum covers a section's end; Cassandra reads the entry that begins before it, from 4 bytes of it on."""
    data = bytearray(segment([[b"first entry", b"second entry"], [b"third entry"]]))
    end = data.index(b"third") - 16
    data[HEADER_SIZE : HEADER_SIZE + 4] = ints(end - missing)
    first, second, corrupt = read_all(bytes(data))
    assert mutations_of([first, second]) == [b"first entry", b"second entry"]
    assert corrupt == CorruptEntry(end - missing, len(data), "bad sync marker")
    first, corrupt = read_all(bytes(data), is_completed=False)
    assert mutations_of([first]) == [b"first entry"]
    assert isinstance(corrupt, CorruptEntry)


def test_only_one_entry_reaches_past_its_section() -> None:
    """Nested in one another they would be many times the file, and take as long."""

    def nested(level: int) -> bytes:
        at = HEADER_SIZE + 18 * level
        inner = b"--" + nested(level + 1) if level < 20 else bytes(20)
        return marker(at, at + 18) + entry(inner)

    data = descriptor() + nested(0)
    outer, *rest = read_all(data)
    assert mutations_of([outer]) == [data[HEADER_SIZE + 16 : -4]]
    assert rest
    assert mutations_of(rest) == []


def test_the_largest_mutation() -> None:
    """Half a segment, with what is around it."""
    largest, larger = bytes(500 - 12), bytes(501 - 12)
    for mutation in (largest, larger):
        data = segment([[mutation], [b"behind it!"]])
        events = list(SegmentReader(NAME, max_segment_size=1000).read(data, len(data)))
        assert mutations_of(events) == [*([largest] if mutation == largest else []), b"behind it!"]


def test_zero_size_ends_the_segment() -> None:
    first = segment([[b"first entry"]], size=200)
    data = first + marker(200, 200 + 8 + 24) + entry(b"never read!!")
    assert mutations_of(read_all(data)) == [b"first entry"]


def test_marker_without_crc() -> None:
    """Position and CRC are not written at once: waited for in a live file, read in a finished one."""
    data = bytearray(segment([[b"first entry"], [b"second entry"]]))
    at = data.index(b"second") - 12
    data[at : at + 4] = bytes(4)
    assert mutations_of(read_all(bytes(data), is_completed=False)) == [b"first entry"]
    assert mutations_of(read_all(bytes(data))) == [b"first entry", b"second entry"]


def test_bad_marker() -> None:
    data = bytearray(segment([[b"first entry"], [b"second entry"]]))
    at = data.index(b"second") - 16
    data[at + 5] ^= 1
    assert mutations_of(read_all(bytes(data), is_completed=False)) == [b"first entry"]
    events = read_all(bytes(data))
    assert mutations_of(events) == [b"first entry"]
    assert events[-1] == CorruptEntry(at, len(data), "bad sync marker")


def test_a_file_too_short_for_its_last_section() -> None:
    data = segment([[b"first entry"], [b"second entry"]])
    at = data.index(b"second") - 16
    events = read_all(data[:-1])
    assert mutations_of(events) == [b"first entry"]
    corrupt = events[-1]
    assert isinstance(corrupt, CorruptEntry)
    assert (corrupt.position, corrupt.is_truncation) == (at, True)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (descriptor(version=5), "commit log version 5 is not supported"),
        (descriptor(version=9), "commit log version 9 is not supported"),
        (descriptor(parameters={"compressionClass": "LZ4Compressor"}), "compressed by LZ4Compressor"),
        (descriptor(parameters={"encCipher": "AES", "encKeyAlias": "a", "encIV": ""}), "encrypted"),
        (descriptor(parameters={"encCipher": "AES", "encKeyAlias": "a"}), "wrong parameters"),
        (descriptor(parameters={"compressionClass": 1}), "wrong parameters"),
        (descriptor(segment_id=5), "segment id 5"),
        (descriptor()[:-1] + b"\x00", "wrong CRC"),
    ],
)
def test_refused_descriptors(header: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as raised:
        SegmentReader(NAME).read(header + bytes(100))
    assert raised.value.segment == NAME


def test_file_without_a_descriptor() -> None:
    for data in (b"", bytes(100), descriptor()[:-1]):
        reader = SegmentReader(NAME)
        assert not reader.read(data)
        with pytest.raises(FormatError, match="without a descriptor"):
            reader.read(data, len(data))
