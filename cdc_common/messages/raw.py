"""Raw messages: publishers send one for each row's update, and heartbeats and gaps between them.

They are Avro in the Confluent wire format. The first field is the format version, which determines the layout of the
others: a reader needs no registry, and reads its own version and all earlier ones.

All versions have the same fields. Version 2 has the kinds of a snapshot, version 3 those that end a table's rows, and
those that frame the repair of a Cassandra partition. Each message is written in the first version that has its kind, so
that an older reader still reads the log's messages, and stops at the first one that it does not know
(decision 0032, 0035 and 0041).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from io import BytesIO
from typing import Any, Literal, TypeAlias, get_args

from fastavro import parse_schema, schemaless_reader, schemaless_writer

from cdc_common.messages import wire
from cdc_common.messages.avro.encoding import encode_long
from cdc_common.messages.errors import MessageError, check_version

FORMAT_VERSION = 3
READABLE_VERSIONS = range(1, FORMAT_VERSION + 1)

LogKind: TypeAlias = Literal["row", "static", "partition_deletion", "range_deletion", "gap", "heartbeat"]
SnapshotKind: TypeAlias = Literal[
    "snapshot_row",
    "snapshot_static",
    "snapshot_partition_deletion",
    "snapshot_range_deletion",
    "snapshot_begin",
    "snapshot_end",
]
TruncationKind: TypeAlias = Literal["truncate", "truncated", "drop"]
RepairKind: TypeAlias = Literal["reset", "reset_end"]
Kind: TypeAlias = LogKind | SnapshotKind | TruncationKind | RepairKind

CONTROL_KINDS: frozenset[Kind] = frozenset({"snapshot_begin", "snapshot_end"})
"""They frame a snapshot and write nothing (cdc_common.messages.snapshots)."""
IMAGE_KINDS: frozenset[Kind] = frozenset(get_args(SnapshotKind)) - CONTROL_KINDS
"""The kinds of messages that a snapshot writes."""
TRUNCATION_KINDS: frozenset[Kind] = frozenset(get_args(TruncationKind))
"""They end the rows that a host wrote up to a place in its log (decision 0035)."""
SETTLED_KINDS: frozenset[Kind] = frozenset({"truncated", "drop"})
"""All that the host has after that place follows them."""
REPAIR_KINDS: frozenset[Kind] = frozenset(get_args(RepairKind))
"""They frame a host's images of a Cassandra partition that is replaced, and write nothing (messages.repairs)."""
_KINDS_BY_VERSION: dict[int, tuple[Kind, ...]] = {
    1: get_args(LogKind),
    2: get_args(SnapshotKind),
    3: (*get_args(TruncationKind), *get_args(RepairKind)),
}
_KINDS: tuple[Kind, ...] = tuple(kind for kinds in _KINDS_BY_VERSION.values() for kind in kinds)
_VERSIONS: dict[Kind, int] = {kind: version for version, kinds in _KINDS_BY_VERSION.items() for kind in kinds}


@dataclass(frozen=True, slots=True)
class RawMessage:
    """The content of a raw message."""

    # The kind of message. row, static, partition_deletion, range_deletion: one element of a mutation. gap: a
    # quarantined mutation. The messages of its replay have the same host, segment and position. A gap with an empty key
    # is a gap of every Cassandra partition. heartbeat: it says nothing about rows. snapshot_row and so on: the same as
    # without `snapshot_`, from an SSTable. truncate, truncated, drop: nothing is left of what the host's log had of the
    # table up to segment and position. After truncated or drop comes all that the log has after that position; what
    # comes before does not count.
    kind: Kind
    # The data. Of an element: a PartitionUpdate with that one element, in Cassandra's serialization. Of a gap: what is
    # known of the mutation, or, if `file` is empty, the place_id of the gap that this one resolves (decision 0013). Of
    # snapshot_begin and snapshot_end: messages.snapshots'. Of reset and reset_end: messages.repairs'. Of others: empty.
    update: bytes
    # The version of Cassandra's serialization in `update`.
    messaging_version: int
    # The table's UUID, 16 bytes.
    table_id: bytes
    # The digest of the table's schema, 16 bytes (cdc_common.messages.tables.digest).
    schema_digest: bytes
    # The time at which the host last truncated the table (`truncated_at` in system.local, in ms), as far as the
    # publisher has sent it; 0 if never. Of a snapshot: before its files were taken. Of the truncation kinds: their own.
    truncation_epoch: int
    # The host's UUID, 16 bytes.
    host_id: bytes
    # The id of the mutation's commit log segment. Of a snapshot: the time at which its host began to send, in µs.
    segment: int
    # The segment's name. Of a snapshot: messages.snapshots.file_name. Of a repair: messages.repairs.file_name.
    file: str
    # The offset of the mutation in the segment, in bytes. Of a snapshot: the number of the unit. The messages of one
    # unit are folded as one mutation.
    position: int
    # The number of the message in the mutation or the unit.
    index: int
    # The id of the segment up to which Kafka has acknowledged the host's log; 0 except in heartbeats.
    published_up_to_segment: int = 0
    # The offset in that segment, in bytes; 0 except in heartbeats.
    published_up_to_position: int = 0
    # The host's time when the message was made, in µs.
    clock: int = 0


_PLACE = struct.Struct(">16sqq")


def place_id(host_id: bytes, segment: int, position: int) -> bytes:
    """The id of a gap (16 bytes), from the place of the missing mutation."""
    return blake2b(_PLACE.pack(host_id, segment, position), digest_size=16).digest()


def _bytes16(name: str, doc: str) -> dict[str, Any]:
    """A field of 16 bytes. Avro's fixed would need a named type for each field, for no benefit."""
    return {"name": name, "type": "bytes", "doc": doc}


RAW_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "RawMessage",
    "namespace": "cassandra_cdc",
    "doc": "One row's update from one node's commit log, in Cassandra's own serialization.",
    "fields": [
        {"name": "format_version", "type": "int", "doc": "layout of what follows"},
        {
            "name": "kind",
            "type": {
                "type": "enum",
                "name": "Kind",
                "symbols": list(_KINDS),
            },
        },
        {"name": "update", "type": "bytes", "doc": "a serialized PartitionUpdate"},
        {"name": "messaging_version", "type": "int", "doc": "of the serialization of update"},
        _bytes16("table_id", "UUID"),
        _bytes16("schema_digest", "with table_id the key in the topic of table schemas"),
        {
            "name": "truncation_epoch",
            "type": "long",
            "doc": "the node's last truncation of the table, ms since the epoch",
        },
        _bytes16("host_id", "UUID of the node"),
        {"name": "segment", "type": "long", "doc": "commit log segment id"},
        {"name": "file", "type": "string", "doc": "file name of the segment"},
        {"name": "position", "type": "long", "doc": "of the mutation in the segment"},
        {"name": "index", "type": "int", "doc": "in the mutation"},
        {"name": "published_up_to_segment", "type": "long", "doc": "heartbeats: all before is acknowledged"},
        {"name": "published_up_to_position", "type": "long"},
        {"name": "clock", "type": "long", "doc": "the node's clock, µs since the epoch"},
    ],
}
_PARSED = parse_schema(RAW_SCHEMA)
_FIELDS = tuple(field.name for field in fields(RawMessage))
_VERSION_BYTES = frozenset(version << 1 for version in READABLE_VERSIONS)  # Avro's zigzag; one byte up to version 63
_KIND_AND_EMPTY_UPDATE = 2  # bytes; kinds have one up to the 64th
_ZERO_PLACE = bytes(7)  # all from `segment` on


def _start_of(kind: Kind) -> bytes:
    """The format version and the kind, with which such a message begins after the header."""
    return bytes([_VERSIONS[kind] << 1, _KINDS.index(kind) << 1])


_HEARTBEAT = _start_of("heartbeat")
_TRUNCATIONS = frozenset(map(_start_of, TRUNCATION_KINDS))
_REPAIR_STEPS = frozenset(map(_start_of, REPAIR_KINDS))


def encode(message: RawMessage, schema_id: int) -> bytes:
    """The message in the Confluent wire format under the registry's `schema_id` of RAW_SCHEMA."""
    record: dict[str, Any] = {name: getattr(message, name) for name in _FIELDS}
    record["format_version"] = _VERSIONS[message.kind]
    out = BytesIO()
    out.write(wire.header(schema_id))
    schemaless_writer(out, _PARSED, record)
    return out.getvalue()


def table_parts(message: RawMessage, schema_id: int) -> tuple[bytes, bytes]:
    """(the encoded message up to its kind, its bytes between `update` and `segment`): all messages of one table and
    messaging version have these in common, those of a snapshot or those of the log. `message`: any of them that is no
    heartbeat.
    """
    encoded = encode(replace(message, update=b"", segment=0, file="", position=0, index=0), schema_id)
    kind_at = wire.HEADER_SIZE + 1
    return encoded[:kind_at], encoded[kind_at + _KIND_AND_EMPTY_UPDATE : -len(_ZERO_PLACE)]


def segment_part(segment: int, file: str) -> bytes:
    """The bytes of the encoded fields `segment` and `file`, which stand before `position`."""
    name = file.encode()
    return encode_long(segment) + encode_long(len(name)) + name


def is_heartbeat(data: bytes) -> bool:
    """Whether this is a heartbeat, by two of its bytes; False for a message that cannot be read."""
    return data[wire.HEADER_SIZE : wire.HEADER_SIZE + 2] == _HEARTBEAT


def is_truncation(data: bytes) -> bool:
    """Whether this is of a truncation kind, by two of its bytes; False for a message that cannot be read."""
    return data[wire.HEADER_SIZE : wire.HEADER_SIZE + 2] in _TRUNCATIONS


def is_repair_step(data: bytes) -> bool:
    """Whether this is of a kind that frames a repair, as `is_truncation`."""
    return data[wire.HEADER_SIZE : wire.HEADER_SIZE + 2] in _REPAIR_STEPS


def decode(data: bytes) -> RawMessage:
    """The message in `data`; MessageError if it is damaged or of a format version that this build does not read."""
    wire.schema_id(data)
    _check_version(data)
    stream = BytesIO(data)
    stream.seek(wire.HEADER_SIZE)
    try:
        record: Any = schemaless_reader(stream, _PARSED, None)
        version = record.pop("format_version")
        message = RawMessage(**record)
        _check_ids(message)
        _check_kind(message, version)
    except Exception as error:  # fastavro raises EOFError, IndexError, ValueError and others
        raise MessageError(f"damaged raw message: {type(error).__name__}") from error
    if stream.tell() != len(data):
        raise MessageError("damaged raw message: bytes after its end")
    return message


def _check_ids(message: RawMessage) -> None:
    """Raise ValueError for an id of another size, which Avro's bytes may have."""
    if {len(message.table_id), len(message.schema_digest), len(message.host_id)} != {16}:
        raise ValueError("an id that has not 16 bytes")


def _check_kind(message: RawMessage, version: int) -> None:
    """Raise ValueError for a kind that a message of this version cannot have: each kind is written in one version."""
    if version != _VERSIONS[message.kind]:
        raise ValueError("a kind of another version")


def _check_version(data: bytes) -> None:
    """The first byte of the Avro part is the version: it stays below 64."""
    if len(data) <= wire.HEADER_SIZE:
        raise MessageError("damaged raw message: empty")
    if data[wire.HEADER_SIZE] not in _VERSION_BYTES:
        first = data[wire.HEADER_SIZE]
        check_version((first >> 1) ^ -(first & 1), READABLE_VERSIONS, "raw message")
