"""Frozen vectors of Kafka messages: raw messages of every kind, their steps, table schemas, changes, dead letters."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any, get_args
from uuid import UUID

from fastavro import parse_schema, schemaless_reader

from cassandra_storage.formats.rows.clustering import ClusteringBound
from cassandra_storage.formats.rows.clustering import Kind as BoundKind
from cassandra_storage.formats.rows.deletion import DeletionTime, LivenessInfo, RangeTombstone
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData, Row
from cdc_common.messages import raw, repairs, snapshots, tables, watermarks, wire
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.changes import Cause, RowChange, Source
from cdc_common.messages.envelope import ChangeEncoder, key_schema, schema_text, value_schema
from cdc_common.messages.raw import RawMessage
from cdc_common.messages.watermarks import TableWatermark, Watermark
from materializer.fold.gaps import DeadLetter
from materializer.output import dead_letters
from materializer.records import RawPartition
from tests.support.frozen.vectors import Format, Vector, hosts, plain
from tests.support.materializer.raw_builder import TABLE, WRITER, int_bytes, partition_update

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cassandra_storage.formats.schema.tables import TableMetadata
    from cdc_common.messages.changes import RowImage
    from cdc_common.messages.raw import Kind

WRITTEN_US = 1_795_000_000_000_000
SECOND = WRITTEN_US // 1_000_000
KEY = int_bytes(42)
HOST, OTHER = hosts(1, 2)
SCHEMA_ID = 7


def row(c: int, **columns: Cell | ComplexColumnData) -> Row:
    return Row((int_bytes(c),), columns, LivenessInfo(WRITTEN_US))


ROW = row(
    1,
    a=Cell(WRITTEN_US, b"tea"),
    b=Cell(WRITTEN_US, b"cup", SECOND + 60, 60),
    s=ComplexColumnData(DeletionTime(WRITTEN_US - 1, SECOND), (Cell(WRITTEN_US, b"", path=b"x"),)),
)
STATIC = Row((), {"st": Cell(WRITTEN_US, b"shop")})
DELETION = DeletionTime(WRITTEN_US + 5, SECOND)
RANGE = RangeTombstone(
    ClusteringBound(BoundKind.INCL_START_BOUND, (int_bytes(2),)),
    ClusteringBound(BoundKind.EXCL_END_BOUND, (int_bytes(9),)),
    DELETION,
)
WRITES: dict[str, object] = {
    "row": ROW,
    "static": STATIC,
    "partition_deletion": DELETION,
    "range_deletion": RANGE,
}
SNAPSHOT_STEP = snapshots.SnapshotStep(UUID(int=0x5A), (HOST, OTHER), "given_up")
REPAIR_STEP = repairs.RepairStep(
    UUID(int=0x4E), (HOST, OTHER), 1_795_000_300_000, "ended", (1_795_000_000_000, 4711), 2
)


def make_raw() -> list[Vector]:
    found = []
    for kind in (
        get_args(raw.LogKind) + get_args(raw.SnapshotKind) + get_args(raw.TruncationKind) + get_args(raw.RepairKind)
    ):
        message = raw_message(kind)
        found.append(Vector(kind, raw.encode(message, SCHEMA_ID), plain(message)))
    return found


def raw_message(kind: Kind) -> RawMessage:
    write = WRITES.get(kind.removeprefix("snapshot_"))
    update = b""
    if write is not None:
        [logged] = [write for write in WRITES if write == kind.removeprefix("snapshot_")]
        update = partition_update(KEY, logged, write)  # type: ignore[arg-type] # its keys are kinds
    elif kind in raw.CONTROL_KINDS:
        update = snapshots.encode_step(SNAPSHOT_STEP)
    elif kind in raw.REPAIR_KINDS:
        update = repairs.encode_step(REPAIR_STEP)
    return RawMessage(
        kind=kind,
        update=update,
        messaging_version=12,
        table_id=TABLE.id.bytes,
        schema_digest=WRITER.digest,
        truncation_epoch=1_794_999_000_000,
        host_id=HOST,
        segment=1_794_999_000_000,
        file="CommitLog-7-1794999000000.log",
        position=4096,
        index=3,
        published_up_to_segment=1_794_999_000_000,
        published_up_to_position=2048,
        clock=WRITTEN_US,
    )


def read_raw(name: str, data: Mapping[str, bytes]) -> Any:  # noqa: ANN401 - JSON
    return plain(raw.decode(data[name]))


def make_steps() -> list[Vector]:
    return [
        Vector("snapshot", snapshots.encode_step(SNAPSHOT_STEP), plain(SNAPSHOT_STEP)),
        Vector("repair", repairs.encode_step(REPAIR_STEP), plain(REPAIR_STEP)),
    ]


def read_steps(name: str, data: Mapping[str, bytes]) -> Any:  # noqa: ANN401 - JSON
    return plain(snapshots.decode_step(data[name]) if name == "snapshot" else repairs.decode_step(data[name]))


TABLES = {"orders": replace(TABLE, altered_at=WRITTEN_US, gc_grace_seconds=3600)}


def make_tables() -> list[Vector]:
    table = TABLES["orders"]
    return [
        Vector("orders", tables.to_json(table, "main"), _table_meaning(table)),
        Vector("mark", tables.mark_to_json(WRITTEN_US), WRITTEN_US),
        Vector("request", tables.request_to_json(WRITTEN_US), WRITTEN_US),
        Vector("key", tables.message_key(table), (TABLE.id.bytes + WRITER.digest).hex()),
        Vector("request key", tables.request_key(table.id.bytes), table.id.bytes.hex()),
    ]


def read_tables(name: str, data: Mapping[str, bytes]) -> Any:  # noqa: ANN401 - JSON
    if name == "mark":
        return tables.mark_from_json(data[name])
    if name == "request":
        return tables.request_from_json(data[name])
    if name == "request key":
        return plain(tables.requested_table(data[name]))
    if name == "key":
        return tables.message_key(tables.from_json(data["orders"])).hex()
    return _table_meaning(tables.from_json(data[name]))


def _table_meaning(table: TableMetadata) -> Any:  # noqa: ANN401 - JSON
    return {**plain(table), "digest": tables.digest(tables.canonical(table)).hex()}


def changes() -> Iterator[tuple[str, RowChange]]:
    """One for each operation, and one for each cause."""
    source = Source(WRITTEN_US, HOST, "CommitLog-7-1794999000000.log", 4096)
    key = KEY, (int_bytes(1),)
    small: RowImage = {"st": b"shop", "a": b"tea"}
    large: RowImage = {**small, "b": b"cup", "s": ((b"x", b""), (b"y", b""))}
    yield "create", RowChange(*key, "c", None, large, 1, source)
    yield "update", RowChange(*key, "u", large, small, 2, source)
    yield "delete", RowChange(*key, "d", small, None, 3, source)
    yield (
        "read",
        RowChange(*key, "r", None, small, 1, source._replace(snapshot=True, file=f"snapshot-{UUID(int=0x5A)}")),
    )
    yield "static", RowChange(KEY, None, "c", None, {"st": b"shop"}, 1, source)
    for cause in get_args(Cause):
        yield f"cause {cause}", RowChange(*key, "u", small, large, 2, source._replace(cause=cause, incomplete=True))


def make_changes() -> list[Vector]:
    """Each message with its key, under the schemas that are vectors too."""
    encoder = ChangeEncoder(TABLE, "cdc", SCHEMA_ID, SCHEMA_ID + 1, "main", forms=EXACT)
    schemas = {"key schema": key_schema(TABLE, "cdc", EXACT), "value schema": value_schema(TABLE, "cdc", EXACT)}
    found = [Vector(name, schema_text(schema).encode(), schema) for name, schema in schemas.items()]
    for name, change in changes():
        message = encoder.encode(change, WRITTEN_US // 1000)
        assert message is not None
        for part, data in zip(("key", "value"), message[:2], strict=True):
            schema = schemas[f"{part} schema"]
            found.append(Vector(f"{part} of {name}", data, _decoded(data, schema, schema)))
    return found


def read_changes(name: str, data: Mapping[str, bytes]) -> Any:  # noqa: ANN401 - JSON
    """Read the data with the present schema of the same table, as Avro resolves it: consumers that have it read old
    messages.
    """
    if name in ("key schema", "value schema"):
        return json.loads(data[name])
    part = name.partition(" ")[0]
    now = key_schema(TABLE, "cdc", EXACT) if part == "key" else value_schema(TABLE, "cdc", EXACT)
    return _decoded(data[name], json.loads(data[f"{part} schema"]), now)


def _decoded(data: bytes, writer: dict[str, Any], reader: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    stream = BytesIO(data[wire.HEADER_SIZE :])
    content = schemaless_reader(stream, parse_schema(writer), parse_schema(reader))
    assert not stream.read()
    return {"schema_id": wire.schema_id(data), "content": plain(content)}


LETTER = DeadLetter(b"\x05" * 16, KEY, b"\x00unreadable", 4711, 1_795_000_000_000, "CDC-080", "an unknown column")
RAW = RawPartition("cdc.raw.shop.orders", 3)


def make_dead_letters() -> list[Vector]:
    """The headers, as one JSON object."""
    headers = {name: value.decode() for name, value in dead_letters._headers(RAW, LETTER)}
    meaning = {**plain(LETTER), "id": LETTER.id.hex(), "where": plain(RAW)}
    del meaning["timestamp_ms"]
    return [Vector("headers", json.dumps(headers).encode(), meaning)]


def read_dead_letters(name: str, data: Mapping[str, bytes]) -> Any:  # noqa: ANN401 - JSON
    headers = {header: value.encode() for header, value in json.loads(data[name]).items()}
    return plain(dead_letters._decode(headers, LETTER.key, LETTER.value or b""))


WATERMARK = Watermark(
    HOST,
    WRITTEN_US,
    1_794_999_000_000,
    4096,
    {
        b"\x11" * 16: TableWatermark(b"\x22" * 16, WRITTEN_US),
        b"\x33" * 16: TableWatermark(b"\x44" * 16, WRITTEN_US - 5),
    },
)


def make_watermarks() -> list[Vector]:
    """A host's watermark, of a table that is as far as the host and of one that is behind it."""
    [(key, value)] = watermarks.encode(WATERMARK)
    return [Vector("key", key, plain(key)), Vector("watermark", value, _watermark(value))]


def read_watermarks(name: str, data: Mapping[str, bytes]) -> Any:  # noqa: ANN401 - JSON
    return plain(data[name]) if name == "key" else _watermark(data[name])


def _watermark(value: bytes) -> Any:  # noqa: ANN401 - JSON
    read = watermarks.decode(value)
    return plain({**read._asdict(), "tables": {key.hex(): table._asdict() for key, table in read.tables.items()}})


FORMATS = (
    Format("dead-letters", (), make_dead_letters, read_dead_letters),
    Format("raw-messages", ("cdc_common/messages/raw.py",), make_raw, read_raw),
    Format("steps", ("cdc_common/messages/snapshots.py", "cdc_common/messages/repairs.py"), make_steps, read_steps),
    Format("tables-topic", ("cassandra_storage/formats/json_forms/tables.py",), make_tables, read_tables),
    Format("change-messages", (), make_changes, read_changes),
    Format("watermarks", ("cdc_common/messages/watermarks.py",), make_watermarks, read_watermarks),
)
