"""Compressed and encrypted segments: entries and positions of a plain one, whatever the windows; damage is reported and
stepped over; nothing is believed of a length.
"""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.files.codecs import SegmentCodecs
from cassandra_storage.formats.commitlog.segment import CommitLogEntry, CorruptEntry, Event, SegmentReader
from cassandra_storage.formats.errors import FormatError, UnsupportedError
from tests.support.cassandra_storage.files.coded import CODECS, ENCRYPTION, FORMS, Form, lz4
from tests.support.cassandra_storage.segment_builder import NAME, coded_segment, descriptor, entry, ints, marker

MUTATIONS = st.lists(st.lists(st.binary(min_size=10, max_size=60), max_size=6), max_size=4)
FORM = st.sampled_from(FORMS)


def expected(form: Form, sections: list[list[bytes]]) -> list[CommitLogEntry]:
    """Positions as if the segment were plain."""
    entries = []
    position = form.header_size
    for section in sections:
        position += 8
        for mutation in section:
            end = position + len(entry(mutation))
            entries.append(CommitLogEntry(position, end, mutation))
            position = end
    return entries


def read_all(data: bytes, *, window: int = 1 << 20, resume_from: int = 0) -> list[Event]:
    reader = SegmentReader(NAME, resume_from, codecs=CODECS, max_segment_size=1 << 20)
    events: list[Event] = []
    while not reader.is_ended:
        before = (reader.position, reader.wanted)
        events += reader.read(data[reader.position : reader.position + max(window, reader.wanted)], len(data))
        assert (reader.position, reader.wanted) != before or reader.is_ended
    return events


@given(FORM, MUTATIONS, st.integers(1, 300))
def test_windows(form: Form, sections: list[list[bytes]], window: int) -> None:
    assert read_all(form.segment(sections), window=window) == expected(form, sections)


@given(FORM, MUTATIONS)
def test_resume(form: Form, sections: list[list[bytes]]) -> None:
    data = form.segment(sections)
    entries = expected(form, sections)
    for index, done in enumerate(entries):
        assert read_all(data, window=20, resume_from=done.end_position) == entries[index + 1 :]


@given(FORM, MUTATIONS, st.data())
def test_growing_file(form: Form, sections: list[list[bytes]], data: st.DataObject) -> None:
    """The file grows by any amount, and the index by whole sections after it: each entry comes once, as soon as its
    section is there and durable, and nothing is an error.
    """
    whole = form.segment(sections)
    entries = expected(form, sections)
    ends = [form.header_size]
    for section in sections:
        ends.append(ends[-1] + 8 + sum(len(entry(mutation)) for mutation in section))
    file_ends = [len(form.segment(sections[:count])) for count in range(len(sections) + 1)]
    reader = SegmentReader(NAME, codecs=CODECS)
    found: list[Event] = []
    durable = 0
    for size in sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6))):
        there = [end for end, file_end in zip(ends, file_ends, strict=True) if file_end <= size]
        durable = max(durable, data.draw(st.sampled_from([0, *there])))
        while True:
            before = (reader.position, reader.wanted)
            found += reader.read(whole[reader.position : size], durable=durable)
            if (reader.position, reader.wanted) == before:
                break
        assert found == [one for one in entries if one.end_position <= durable]
        assert not reader.is_ended
    while not reader.is_ended:
        found += reader.read(whole[reader.position :], len(whole))
    assert found == entries


@given(FORM, MUTATIONS, st.data(), st.integers(1, 100))
def test_damaged(form: Form, sections: list[list[bytes]], data: st.DataObject, window: int) -> None:
    """Flipped bytes lose entries and never make others; the walk ends, and goes on after a section it cannot read."""
    written = bytearray(form.segment(sections))
    for _ in range(data.draw(st.integers(1, 3))):
        written[data.draw(st.integers(0, len(written) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        events = read_all(bytes(written), window=window)
    except FormatError:
        return  # the descriptor
    mutations = {event.mutation for event in events if isinstance(event, CommitLogEntry)}
    assert mutations <= {mutation for section in sections for mutation in section}
    assert read_all(bytes(written)) == events


@pytest.mark.parametrize("form", [form for form in FORMS if form.name != "Noop"], ids=lambda form: form.name)
def test_a_section_that_cannot_be_read_is_stepped_over(form: Form) -> None:
    sections = [[b"first entry", b"second entry"], [b"third entry"], [b"fourth entry"]]
    data = bytearray(form.segment(sections))
    start = len(form.segment(sections[:1]))
    at = len(form.segment(sections[:2])) - 3
    for offset in range(at, at + 3):
        data[offset] ^= 0xFF
    first, second, corrupt, fourth = read_all(bytes(data))
    assert [first, second, fourth] == [one for one in expected(form, sections) if one.mutation != b"third entry"]
    assert isinstance(corrupt, CorruptEntry)
    assert corrupt.section_offset == start
    third = expected(form, sections)[2]
    assert (corrupt.position, corrupt.end_position) == (third.position, third.end_position)


def test_the_blocks_before_a_damaged_one_are_read() -> None:
    """Each block of an encrypted section is decrypted by itself."""
    sections = [[b"mutation of 23 bytes %02d" % number for number in range(20)], [b"in another section"]]
    data = bytearray(FORMS[-1].segment(sections))
    at = len(FORMS[-1].segment(sections[:1])) // 2
    data[at : at + 40] = bytes(byte ^ 0xFF for byte in data[at : at + 40])
    *read, corrupt, last = read_all(bytes(data))
    entries = expected(FORMS[-1], sections)
    assert 5 < len(read) < 15
    assert [*read, last] == [*entries[: len(read)], entries[-1]]
    assert isinstance(corrupt, CorruptEntry)
    assert (corrupt.position, corrupt.end_position) == (entries[len(read)].position, entries[-2].end_position)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("size", range(4, 12))
def test_no_room_for_the_head_of_an_entry(form: Form, size: int) -> None:
    content = entry(b"first entry") + b"\x00\x00\x01\x07and more"[:size]
    data = descriptor(parameters=form.parameters)
    body = ints(len(content)) + form.encode(content)
    data += marker(len(data), len(data) + 8 + len(body)) + body
    first, corrupt = read_all(data)
    assert isinstance(first, CommitLogEntry)
    assert isinstance(corrupt, CorruptEntry)
    assert (corrupt.position, corrupt.end_position) == (first.end_position, first.end_position + size)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_section_of_nothing(form: Form) -> None:
    """The servers' DeflateCompressor writes such a section without entries."""
    nothing = Form(form.name, form.parameters, lambda content: form.encode(content) if content else b"")
    sections = [[], [b"mutation" * 3], [], []]
    assert read_all(nothing.segment(sections)) == expected(form, sections)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_torn_end(form: Form) -> None:
    """A section that the file holds only in part is waited for, and in a completed file it is one corrupt end."""
    sections = [[b"first entry"], [b"second entry"]]
    whole, start = form.segment(sections), len(form.segment(sections[:1]))
    for size in range(start + 8, len(whole)):
        *entries, corrupt = read_all(whole[:size])
        assert entries == expected(form, sections)[:1]
        assert isinstance(corrupt, CorruptEntry)
        assert corrupt.section_offset == start
        live = SegmentReader(NAME, codecs=CODECS)
        assert list(live.read(whole[:size], durable=10**9)) == entries
        assert live.position == start
    assert read_all(whole[: start + 7]) == expected(form, sections)[:1]  # no room for a marker


BOMBS = {
    "section": ("LZ4", ints(0xFFFFFFFF) + lz4(b"x" * 100)),
    "LZ4": ("LZ4", ints(1 << 20) + (1 << 30).to_bytes(4, "little") + b"\xff" * 50),
    "LZ4, of nothing": ("LZ4", ints(1 << 20) + (1 << 20).to_bytes(4, "little") + b"\x00"),
    "Snappy": ("Snappy", ints(1 << 20) + b"\xff\xff\xff\xff\x07" + b"\x00" * 50),
    "Deflate": ("Deflate", ints(100) + FORMS[2].encode(bytes(50_000_000))),
    "Zstd": ("Zstd", ints(100) + FORMS[3].encode(bytes(50_000_000))),
    "block": ("encrypted", ints(100) + ints(0x7FFFFFFF, 0x7FFFFFFF) + bytes(64)),
    "held": ("encrypted", ints(100) + ints(64, 0x7FFFFFFF) + bytes(64)),
    "no length": ("LZ4", b"\x00\x00"),
}


@pytest.mark.parametrize(("name", "body"), BOMBS.values(), ids=BOMBS)
def test_lengths_are_not_believed(name: str, body: bytes) -> None:
    (form,) = [form for form in FORMS if form.name == name]
    head = descriptor(parameters=form.parameters)
    data = head + marker(len(head), len(head) + 8 + len(body)) + body
    data += form.segment([[b"behind it!"]])[len(head) + 8 :]  # its marker has another position, so it is not read
    tracemalloc.start()
    try:
        events = read_all(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert events
    assert all(isinstance(event, CorruptEntry) for event in events)
    assert peak < 4 << 20


def test_unsupported() -> None:
    for parameters in (
        {"compressionClass": "com.example.MyCompressor"},
        {**ENCRYPTION, "encCipher": "DESede/CBC/PKCS5Padding"},
        {**ENCRYPTION, "encKeyAlias": "another"},
    ):
        data = coded_segment([], parameters, bytes)
        with pytest.raises(UnsupportedError) as raised:
            SegmentReader(NAME, codecs=CODECS).read(data)
        assert raised.value.segment == NAME
        with pytest.raises(UnsupportedError):
            SegmentReader(NAME).read(data)


def test_another_key() -> None:
    """Each section is a corrupt one: nothing tells a wrong key from damage."""
    form = FORMS[-1]
    reader = SegmentReader(NAME, codecs=SegmentCodecs({"alias": bytes(32)}))
    data = form.segment([[b"first entry"], [b"second entry"]])
    list(reader.read(data[: form.header_size], len(data)))
    events = list(reader.read(data[form.header_size :], len(data)))
    assert [type(event) for event in events] == [CorruptEntry, CorruptEntry]


def test_full_class_name() -> None:
    form = FORMS[0]
    parameters = {"compressionClass": f"org.apache.cassandra.io.compress.{form.parameters['compressionClass']}"}
    data = coded_segment([[b"first entry"]], parameters, form.encode)
    assert [event.mutation for event in read_all(data)] == [b"first entry"]
