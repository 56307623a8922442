"""Every public reader of cassandra_storage as a function of bytes, with seeds that it reads.

A target may raise FormatError and nothing else, and asserts what must hold of whatever it could read.
"""

from __future__ import annotations

import json
import random
from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from cassandra_storage.byte_comparable import bound_encoder, clustering_encoder, value_encoder
from cassandra_storage.clustering import ClusteringBound, Kind
from cassandra_storage.commitlog import (
    CommitLogEntry,
    Event,
    SegmentReader,
    parse_cdc_index,
    parse_file_name,
    read_descriptor,
)
from cassandra_storage.counter import merge_contexts, total
from cassandra_storage.cql_types import UserTypeDefinition, parse_type, type_text
from cassandra_storage.errors import FormatError
from cassandra_storage.header import SerializationHeader
from cassandra_storage.marshal import CqlType, decoder
from cassandra_storage.mutation import only_table, read_mutation, split_mutation
from cassandra_storage.partition_update import read_partition_update
from cassandra_storage.schema import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.schema_rows import tables_from_rows
from cassandra_storage.unfiltered import read_row, write_row
from cassandra_storage.versions import VERSION_40, VERSION_50, VERSION_3014
from tests.files.coded import CODECS, FORMS
from tests.oracle.type_values import COMPARABLE, KEYSPACE, USER_TYPES, TypeValues
from tests.storage import segment_builder
from tests.storage.split_parts import joined
from tests.vectors.load import FOLDER, load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cassandra_storage.partition import PartitionUpdate

MESSAGING = (VERSION_3014, VERSION_40, VERSION_50)
SEED_BYTES = 2000  # larger ones are slow and hold nothing else
TYPES = 200


class Target(NamedTuple):
    """`run` tells whether it could read the bytes."""

    run: Callable[[bytes], bool]
    seeds: list[bytes]


def _is_read(read: Callable[[], object]) -> bool:
    try:
        read()
    except FormatError:
        return False
    return True


@cache
def _mutations() -> tuple[Mapping[bytes, TableMetadata], list[bytes]]:
    """One mutation for each table and shape, the shorter the sooner."""
    vectors = load("5.0")
    found = sorted({entry.mutation for segment in vectors.segments for entry in segment.entries()}, key=len)
    return vectors.tables, [mutation for mutation in found if len(mutation) < SEED_BYTES]


def mutation() -> Target:
    """read_mutation and split_mutation refuse the same, and the parts are the whole."""
    tables, seeds = _mutations()

    def run(data: bytes) -> bool:
        _is_read(lambda: only_table(data))
        version = MESSAGING[len(data) % 3]
        try:
            split = split_mutation(data, version, tables)
        except FormatError:
            assert not _is_read(lambda: read_mutation(data, version, tables))
            return False
        whole = read_mutation(data, version, tables)
        assert [table for table, _ in split] == [update.table for update in whole]
        for update, (table, parts) in zip(whole, split, strict=True):
            assert same(joined(parts, table, update.partition_key, version), update)
        return True

    return Target(run, seeds)


def same(joined_parts: PartitionUpdate, update: PartitionUpdate) -> bool:
    """A deletion that deletes nothing is no part."""
    return joined_parts._replace(deletion=update.deletion) == update and (
        joined_parts.deletion == update.deletion or update.deletion.is_live
    )


def update() -> Target:
    tables, seeds = _mutations()
    ids = sorted(tables)

    def run(data: bytes) -> bool:
        """The first byte chooses the table, so that damage is never just an unknown one."""
        rest = ids[data[0] % len(ids)] + data[1:] if data else data
        return _is_read(lambda: read_partition_update(rest, 0, MESSAGING[len(data) % 3], tables))

    return Target(run, [bytes((ids.index(seed[1:17]),)) + seed[17:] for seed in seeds if seed[0] == 1])


def row() -> Target:
    """The first byte chooses the table and the messaging version."""
    tables, mutations = _mutations()
    headers = [
        (table, SerializationHeader.of_table(table, messaging_version=version))
        for table in sorted(tables.values(), key=lambda table: table.id)
        if table.keyspace == "vectors"
        for version in MESSAGING
    ]

    def run(data: bytes) -> bool:
        _, header = headers[data[0] % len(headers)] if data else headers[0]
        _is_read(lambda: read_row(data, 1, header, is_static=True))
        return _is_read(lambda: read_row(data, 1, header))

    seeds = []
    for mutation in mutations:
        for update in read_mutation(mutation, VERSION_40, tables):
            for number, (table, header) in enumerate(headers):
                if update.table is table and not table.dropped_columns:
                    seeds += [bytes((number,)) + write_row(row, header) for row in update.rows]
    return Target(run, sorted(set(seeds), key=len)[::5])


def segment() -> Target:
    """Whole segments, in one piece and in windows while they are written: with checksums as they fall, and with right
    ones over the damage.
    """
    _, mutations = _mutations()
    seeds = [segment_builder.segment([mutations[i : i + 2], mutations[i + 2 : i + 3]]) for i in range(0, 200, 3)]

    def run(data: bytes) -> bool:
        return _is_read(lambda: _walk(sealed(data) if len(data) % 2 else data))

    return Target(run, [*seeds, *(seed + bytes(100) for seed in seeds)])


def sealed(data: bytes) -> bytes:
    """With the checksums of whatever the bytes say that they hold."""
    start = len(segment_builder.descriptor())
    fixed = bytearray(segment_builder.descriptor() + data[start:])
    while start + 8 <= len(fixed):
        end = int.from_bytes(fixed[start : start + 4], "big")
        fixed[start : start + 8] = segment_builder.marker(start, end)
        at = start + 8
        while at + 12 <= min(end, len(fixed)):
            size = int.from_bytes(fixed[at : at + 4], "big")
            entry = segment_builder.entry(bytes(fixed[at + 8 : at + 8 + size]))
            fixed[at + 4 : at + 8] = segment_builder.size_checksum(size)
            if at + 12 + size <= len(fixed):
                fixed[at : at + 12 + size] = entry
            at += 12 + size
        if end <= start:
            break
        start = end
    return bytes(fixed)


def _walk(data: bytes) -> None:
    events = SegmentReader(segment_builder.NAME).read(data, len(data))
    assert sum(len(event.mutation or b"") for event in events) <= len(data)
    reader, place = SegmentReader(segment_builder.NAME), None
    live: list[Event] = []
    while not reader.is_ended and place != (reader.position, reader.wanted):
        place = (reader.position, reader.wanted)
        live += reader.read(data[reader.position : reader.position + max(64, reader.wanted)])
    assert sum(len(event.mutation or b"") for event in live) <= len(data)


def coded() -> Target:
    """Compressed and encrypted sections: the first byte chooses how, the rest is behind a right marker."""
    _, mutations = _mutations()

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
    """A damaged mutation behind a right checksum, up to what would be sent."""
    tables, seeds = _mutations()

    def run(data: bytes) -> bool:
        content = segment_builder.segment([[data, seeds[0]]])
        events = SegmentReader(segment_builder.NAME).read(content, len(content))
        found = [event.mutation for event in events if isinstance(event, CommitLogEntry)]
        assert found == ([data, seeds[0]] if len(data) >= 10 else [])
        return bool(found) and _is_read(lambda: split_mutation(data, VERSION_40, tables))

    return Target(run, seeds)


def descriptor() -> Target:
    """As it is, and with the length and the checksum that its parameters would have."""

    def run(data: bytes) -> bool:
        _is_read(lambda: read_descriptor(data))
        head, parameters = data[:12], data[14:-4]
        fixed = head + len(parameters).to_bytes(2, "big")
        if len(fixed) < 14:
            return False
        crc = crc32(fixed[:4] + fixed[8:12] + fixed[4:8] + bytes(2) + fixed[12:] + parameters)
        return _is_read(lambda: read_descriptor(fixed + parameters + crc.to_bytes(4, "big")))

    made = [segment_builder.descriptor(version, parameters={"x": [1, {"y": "z"}]}) for version in (6, 7, 8)]
    return Target(run, [*made, segment_builder.descriptor(parameters={"compressionClass": "LZ4Compressor"})])


def index() -> Target:
    def run(data: bytes) -> bool:
        text = data.decode("latin-1")
        _is_read(lambda: parse_file_name(text))
        return _is_read(lambda: parse_cdc_index(data))

    return Target(run, [b"12345\n", b"12345\nCOMPLETED", b"CommitLog-7-1.log", b""])


@cache
def _types() -> list[tuple[CqlType, list[bytes]]]:
    """Types and some values of each."""
    drawn = []
    for number in range(TYPES):
        values = TypeValues(random.Random(number), is_plain=number % 2 == 0)
        type_ = values.type(depth=3)
        drawn.append((type_, [values.value(type_) for _ in range(5)]))
    return drawn


def value() -> Target:
    """The first byte chooses the type."""
    types = [(decoder(type_), value_encoder(type_)) for type_, _ in _types()]

    def run(data: bytes) -> bool:
        if not data:
            return False
        decode, encode = types[data[0] % TYPES]
        content = data[1:]
        _is_read(lambda: encode(content))
        return _is_read(lambda: decode(content))

    return Target(run, [bytes((i,)) + value for i, (_, values) in enumerate(_types()) for value in values])


def clustering() -> Target:
    """Keys of clusterings and bounds of arbitrary values: the first byte chooses the columns, and each value is behind
    its length.
    """
    encoders = []
    for number in range(64):
        values = TypeValues(random.Random(number), is_plain=False)
        columns = tuple(
            ColumnMetadata(f"c{i}", values.type(COMPARABLE, 1), ColumnKind.CLUSTERING, i, is_reversed=i % 2 == 1)
            for i in range(1 + number % 3)
        )
        encoders.append((clustering_encoder(columns), bound_encoder(columns)))

    def run(data: bytes) -> bool:
        encode, encode_bound = encoders[data[0] % 64] if data else encoders[0]
        values, at = [], 1
        while at < len(data):
            size = data[at]
            values.append(None if size == 0xFF else data[at + 1 : at + 1 + size])
            at += 1 + size
        bound = ClusteringBound(Kind(len(data) % 8), tuple(values))
        _is_read(lambda: encode_bound(bound))
        return _is_read(lambda: encode(tuple(values)))

    seeds = []
    for number in range(64):
        values = TypeValues(random.Random(number), is_plain=False)
        drawn = [values.value(values.type(COMPARABLE, 1))[:254] for _ in range(1 + number % 3)]
        seeds.append(bytes((number,)) + b"".join(bytes((len(value),)) + value for value in drawn))
    return Target(run, seeds)


def counter() -> Target:
    """Two contexts, the first byte being the first one's length."""

    def run(data: bytes) -> bool:
        left, right = (data[1 : 1 + data[0]], data[1 + data[0] :]) if data else (data, data)
        _is_read(lambda: merge_contexts(left, right))
        return _is_read(lambda: total(left))

    shard = bytes(16) + b"\0\0\0\0\0\0\0\1" * 2
    contexts = (b"\0\0" + shard, b"\0\1\0\0" + shard, b"\0\1\x80\0" + shard, b"\xff\xff\0\0" + shard * 2)
    return Target(run, [bytes((len(left),)) + left + right for left in contexts for right in contexts])


def cql_type() -> Target:
    """A text, and in what follows a zero byte the fields of a user type that it may name."""

    def run(data: bytes) -> bool:
        text, *fields = data.decode("utf-8", "replace").split("\0")
        user_types = {
            **USER_TYPES,
            "u": UserTypeDefinition(KEYSPACE, "u", tuple(map(str, range(len(fields)))), (*fields,)),
        }
        try:
            type_ = parse_type(text, KEYSPACE, user_types)
        except FormatError:
            return False
        assert parse_type(type_text(type_), KEYSPACE, user_types) == type_
        return True

    texts = [type_text(type_) for type_, _ in _types()]
    texts += ["u\0frozen<map<text, point>>\0list<int>", "list<frozen<u>>\0vector<float, 3>", "u\0u", '"Odd name"']
    return Target(run, [text.encode() for text in texts])


def schema_rows() -> Target:
    """Rows of system_schema as JSON, damaged as text. A value of another type than its column's stands for null: no
    driver gives it.
    """
    names = ("tables", "columns", "types", "dropped_columns")
    schema = json.loads((FOLDER / "5.0" / "expected.json").read_text())["schema"]
    types = {name: {type(row[name]) for of in names for row in schema[of] if name in row} for name in _names(schema)}

    def row_of(pairs: list[tuple[str, object]]) -> dict[str, object]:
        return {name: value if type(value) in types.get(name, ()) else None for name, value in pairs}

    def run(data: bytes) -> bool:
        try:
            rows = json.loads(data, object_pairs_hook=row_of)
        except (ValueError, RecursionError):
            return False
        if not isinstance(rows, list) or len(rows) != 4:
            return False
        typed = [[row for row in of if isinstance(row, dict)] if isinstance(of, list) else [] for of in rows]
        for row in typed[3]:
            row["dropped_time"] = len(data) if row.get("dropped_time") else None
        return _is_read(lambda: tables_from_rows(*typed))

    def seed(table: str) -> bytes:
        return json.dumps(
            [[row for row in schema[of] if row.get("table_name", table) == table] for of in names]
        ).encode()

    return Target(run, [seed(row["table_name"]) for row in schema["tables"] if row["keyspace_name"] == "vectors"])


def _names(schema: dict[str, list[dict[str, object]]]) -> set[str]:
    return {name for rows in schema.values() for row in rows for name in row}


TARGETS: dict[str, Callable[[], Target]] = {
    target.__name__: target
    for target in (
        mutation,
        update,
        row,
        segment,
        coded,
        entry,
        descriptor,
        index,
        value,
        clustering,
        counter,
        cql_type,
        schema_rows,
    )
}
