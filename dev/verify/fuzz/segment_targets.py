"""Segments and what lies beside them as fuzz targets: everything up to the bytes of a mutation."""

from __future__ import annotations

from zlib import crc32

from cassandra_storage.formats.commitlog.descriptor import parse_cdc_index, parse_file_name, read_descriptor
from cassandra_storage.formats.commitlog.segment import CommitLogEntry, Event, SegmentReader
from cassandra_storage.formats.rows.mutation import split_mutation
from cassandra_storage.formats.versions import VERSION_40
from dev.verify.fuzz.target import Target, first_mutations, is_read
from tests.support.cassandra_storage import segment_builder
from tests.support.cassandra_storage.files.coded import CODECS, FORMS


def segment() -> Target:
    """Whole segments, in one piece and in windows while they are written: with checksums as they fall, and with right
    ones over the damage.
    """
    _, mutations = first_mutations()
    seeds = [segment_builder.segment([mutations[i : i + 2], mutations[i + 2 : i + 3]]) for i in range(0, 200, 3)]

    def run(data: bytes) -> bool:
        return is_read(lambda: _walk(sealed(data) if len(data) % 2 else data))

    return Target(run, [*seeds, *(seed + bytes(100) for seed in seeds)])


def sealed(data: bytes) -> bytes:
    """Return a segment with correct checksums of whatever the bytes say that they hold."""
    start = len(segment_builder.descriptor())
    fixed = bytearray(segment_builder.descriptor() + data[start:])
    while start + 8 <= len(fixed):
        end = int.from_bytes(fixed[start : start + 4], "big")
        fixed[start : start + 8] = segment_builder.marker(start, end)
        _seal(fixed, start + 8, min(end, len(fixed)))
        if end <= start:
            break
        start = end
    return bytes(fixed)


def _seal(fixed: bytearray, at: int, end: int) -> None:
    """The entries that begin before `end`."""
    while at + 12 <= end:
        size = int.from_bytes(fixed[at : at + 4], "big")
        entry = segment_builder.entry(bytes(fixed[at + 8 : at + 8 + size]))
        fixed[at + 4 : at + 8] = segment_builder.size_checksum(size)
        if at + 12 + size <= len(fixed):
            fixed[at : at + 12 + size] = entry
        at += 12 + size


def section() -> Target:
    """The damaged content of a section, written again in the form that the first byte chooses: what is behind its last
    whole entry is the end of the file.
    """
    _, mutations = first_mutations()

    def run(data: bytes) -> bool:
        number, content = data[0] % (len(FORMS) + 1) if data else 0, bytearray(data[1:])
        if len(data) % 2:
            _seal(content, 0, len(content))
        parameters, body = {}, bytes(content)
        if number:
            form = FORMS[number - 1]
            parameters, body = form.parameters, segment_builder.ints(len(content)) + form.encode(bytes(content))
        head = segment_builder.descriptor(parameters=parameters)
        whole = head + segment_builder.marker(len(head), len(head) + 8 + len(body)) + body
        events = list(SegmentReader(segment_builder.NAME, codecs=CODECS).read(whole, len(whole)))
        assert sum(len(event.mutation or b"") for event in events) <= len(content)
        return any(isinstance(event, CommitLogEntry) for event in events)

    seeds = []
    for start in range(0, 100, 5):
        content = b"".join(map(segment_builder.entry, mutations[start : start + 3]))
        seeds += [bytes((number,)) + content for number in range(len(FORMS) + 1)]
    return Target(run, seeds)


def _walk(data: bytes) -> None:
    events = SegmentReader(segment_builder.NAME).read(data, len(data))
    assert sum(len(event.mutation or b"") for event in events) <= 2 * len(data)  # one entry reaches past its section
    reader, place = SegmentReader(segment_builder.NAME), None
    live: list[Event] = []
    while not reader.is_ended and place != (reader.position, reader.wanted):
        place = (reader.position, reader.wanted)
        live += reader.read(data[reader.position : reader.position + max(64, reader.wanted)])
    assert sum(len(event.mutation or b"") for event in live) <= len(data)


def coded() -> Target:
    """Compressed and encrypted sections: the first byte chooses how, the rest is behind a right marker."""
    _, mutations = first_mutations()

    def run(data: bytes) -> bool:
        head = descriptors[data[0] % len(FORMS)] if data else descriptors[0]
        end = len(head) + 8 + len(data) - 1
        content = head + segment_builder.marker(len(head), end) + data[1:]
        events = SegmentReader(segment_builder.NAME, codecs=CODECS).read(content, len(content))
        return any(isinstance(event, CommitLogEntry) for event in events)

    descriptors = [segment_builder.descriptor(parameters=form.parameters) for form in FORMS]
    seeds = []
    for number, form in enumerate(FORMS):
        for start in range(0, 100, 5):
            section = form.segment([mutations[start : start + 3]])[form.header_size + 8 :]
            seeds.append(bytes((number,)) + section)
    return Target(run, seeds)


def entry() -> Target:
    """A damaged mutation under a right checksum, up to what would be sent."""
    tables, seeds = first_mutations()

    def run(data: bytes) -> bool:
        content = segment_builder.segment([[data, seeds[0]]])
        events = SegmentReader(segment_builder.NAME).read(content, len(content))
        found = [event.mutation for event in events if isinstance(event, CommitLogEntry)]
        assert found == ([data, seeds[0]] if len(data) >= 10 else [])
        return bool(found) and is_read(lambda: split_mutation(data, VERSION_40, tables))

    return Target(run, seeds)


def descriptor() -> Target:
    """Read the descriptor as it is, and with the correct length and checksum of its parameters."""

    def run(data: bytes) -> bool:
        is_read(lambda: read_descriptor(data))
        head, parameters = data[:12], data[14:-4]
        fixed = head + len(parameters).to_bytes(2, "big")
        if len(fixed) < 14:
            return False
        crc = crc32(fixed[:4] + fixed[8:12] + fixed[4:8] + bytes(2) + fixed[12:] + parameters)
        return is_read(lambda: read_descriptor(fixed + parameters + crc.to_bytes(4, "big")))

    made = [segment_builder.descriptor(version, parameters={"x": [1, {"y": "z"}]}) for version in (6, 7, 8)]
    return Target(run, [*made, segment_builder.descriptor(parameters={"compressionClass": "LZ4Compressor"})])


def index() -> Target:
    def run(data: bytes) -> bool:
        text = data.decode("latin-1")
        is_read(lambda: parse_file_name(text))
        return is_read(lambda: parse_cdc_index(data))

    return Target(run, [b"12345\n", b"12345\nCOMPLETED", b"CommitLog-7-1.log", b""])
