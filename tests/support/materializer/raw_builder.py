"""Raw messages made by hand, for tests of the pure fold: one table, one write, one record."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from cassandra_storage.formats.primitives.vint import write_sized
from cassandra_storage.formats.rows.clustering_prefix import write_bound
from cassandra_storage.formats.rows.deletion import DeletionTime, RangeTombstone
from cassandra_storage.formats.rows.header import SerializationHeader, write_deletion_time, write_stats
from cassandra_storage.formats.rows.row import Row
from cassandra_storage.formats.rows.unfiltered import write_row
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.marshal import NativeType, SetType
from cassandra_storage.formats.versions import VERSION_50
from cdc_common.messages import repairs
from cdc_common.messages.raw import IMAGE_KINDS, RawMessage, decode, encode
from cdc_common.messages.repairs import RepairStep
from cdc_common.messages.snapshots import SnapshotStep, encode_step, file_name
from cdc_common.messages.tables import canonical, digest
from materializer.records import RawRecord
from materializer.rows.catalog import TableCatalog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.formats.types.marshal import CqlType
    from cdc_common.messages.raw import Kind, TruncationKind
    from cdc_common.messages.snapshots import HostState

TEXT, INT = NativeType("text"), NativeType("int")


def column(name: str, type_: CqlType, kind: ColumnKind, position: int = -1) -> ColumnMetadata:
    return ColumnMetadata(name, type_, kind, position)


TABLE = TableMetadata(
    keyspace="shop",
    name="orders",
    id=UUID(int=7),
    partition_key=(column("k", INT, ColumnKind.PARTITION_KEY, 0),),
    clustering=(column("c", INT, ColumnKind.CLUSTERING, 0),),
    static_columns=(column("st", TEXT, ColumnKind.STATIC),),
    regular_columns=(
        column("a", TEXT, ColumnKind.REGULAR),
        column("b", TEXT, ColumnKind.REGULAR),
        column("s", SetType(TEXT, is_multi_cell=True), ColumnKind.REGULAR),
    ),
)


def catalog_of(*tables: TableMetadata) -> TableCatalog:
    """Versions of one table's schema, the newest last."""
    digests = {digest(canonical(table)): table for table in tables}
    table_id = tables[0].id.bytes
    return TableCatalog(
        {(table_id, digest): table for digest, table in digests.items()},
        {table_id: list(digests)[-1]},
        dict.fromkeys(digests, "cdc.shop.orders"),
    )


def catalog_of_recreated(*tables: TableMetadata) -> TableCatalog:
    """Tables that followed one another under one name, each with another id, the newest last."""
    digests = [digest(canonical(table)) for table in tables]
    ids = [table.id.bytes for table in tables]
    return TableCatalog(
        dict(zip(zip(ids, digests, strict=True), tables, strict=True)),
        dict(zip(ids, digests, strict=True)),
        dict.fromkeys(digests, "cdc.shop.orders"),
    )


CATALOG = catalog_of(TABLE)

_PARTITION_DELETION, _STATIC_ROW, _ESTIMATE, _MARKER, _END = 0x04, 0x08, 0x10, b"\x02", b"\x01"


def int_bytes(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


class TableWriter:
    """Serializes the writes of one table."""

    def __init__(self, table: TableMetadata) -> None:
        self.table = table
        self.header = SerializationHeader.of_table(table)
        self.digest = digest(canonical(table))


WRITER = TableWriter(TABLE)


def partition_update(partition_key: bytes, kind: Kind, write: object, writer: TableWriter = WRITER) -> bytes:
    """A serialized PartitionUpdate of one row, static row, range or partition deletion."""
    header = writer.header
    flags = _ESTIMATE
    columns = header.regular_columns.raw
    body = b""
    if kind == "row":
        assert isinstance(write, Row)
        body = b"\x01" + write_row(write, header)
    elif kind == "static":
        assert isinstance(write, Row)
        flags |= _STATIC_ROW
        columns = header.static_columns.raw + columns
        body = write_row(write, header, is_static=True) + b"\x00"
    elif kind == "range_deletion":
        assert isinstance(write, RangeTombstone)
        deletion = write_deletion_time(write.deletion, header)
        bounds = (write_bound(bound, header.clustering_lengths) for bound in (write.start, write.end))
        body = b"\x00" + b"".join(_MARKER + bound + deletion for bound in bounds)
    else:
        assert isinstance(write, DeletionTime)
        flags |= _PARTITION_DELETION
        body = write_deletion_time(write, header) + b"\x00"
    start = writer.table.id.bytes + write_sized(partition_key) + bytes([flags]) + write_stats(header.stats)
    return start + columns + body + _END


def raw_record(
    partition_key: bytes,
    kind: Kind,
    write: object,
    *,
    offset: int = 0,
    timestamp_ms: int = 0,
    host: int = 1,
    writer: TableWriter = WRITER,
    clock: int = 0,
    index: int = 0,
) -> RawRecord:
    update = b"" if kind == "heartbeat" else partition_update(partition_key, kind, write, writer)
    message = RawMessage(
        kind=kind,
        update=update,
        messaging_version=VERSION_50,
        table_id=writer.table.id.bytes,
        schema_digest=writer.digest,
        truncation_epoch=0,
        host_id=bytes([host]) * 16,
        segment=1,
        file="CommitLog-7-1.log",
        position=offset,
        index=index,
        clock=clock,
    )
    return RawRecord(partition_key, encode(message, 1), offset, timestamp_ms)


def rows_end(
    at: int,
    *,
    position: int,
    host: int = 1,
    ms: int = 0,
    kind: TruncationKind = "truncated",
    writer: TableWriter = WRITER,
) -> RawRecord:
    """A truncation or drop at a time (ms): what the host's log had up to the position is gone."""
    message = RawMessage(
        kind=kind,
        update=b"",
        messaging_version=0,
        table_id=writer.table.id.bytes,
        schema_digest=writer.digest,
        truncation_epoch=at,
        host_id=bytes([host]) * 16,
        segment=1,
        file="",
        position=position,
        index=0,
    )
    return RawRecord(b"", encode(message, 1), 0, ms)


SNAPSHOT = UUID(int=0x5A)
HOSTS = (bytes([1]) * 16, bytes([2]) * 16)
"""The host ids of the hosts 1 and 2 of `raw_record`."""


def as_image(
    record: RawRecord,
    *,
    snapshot: UUID = SNAPSHOT,
    unit: int | None = None,
    index: int = 0,
    truncated_at: int = 0,
    repair: UUID | None = None,
) -> RawRecord:
    """The record of a log's write as a snapshot's or a repair's row image, by default of a unit of its own."""
    message = decode(record.value)
    [kind] = [kind for kind in IMAGE_KINDS if kind == f"snapshot_{message.kind}"]
    image = replace(
        message,
        kind=kind,
        segment=1_700_000_000_000_000,
        file=file_name(snapshot) if repair is None else repairs.file_name(repair),
        position=message.position if unit is None else unit,
        index=index,
        truncation_epoch=truncated_at,
    )
    return record._replace(value=encode(image, 1))


def snapshot_step(
    state: HostState,
    *,
    ms: int = 0,
    host: int = 1,
    hosts: Sequence[int] = (1,),
    snapshot: UUID = SNAPSHOT,
    writer: TableWriter = WRITER,
) -> RawRecord:
    """A snapshot_begin (`running`) or snapshot_end of one host."""
    step = SnapshotStep(snapshot, tuple(bytes([host]) * 16 for host in hosts), state)
    return step_record(step, bytes([host]) * 16, ms, writer)


def step_record(step: SnapshotStep, host_id: bytes, ms: int, writer: TableWriter = WRITER) -> RawRecord:
    message = RawMessage(
        kind="snapshot_begin" if step.state == "running" else "snapshot_end",
        update=encode_step(step),
        messaging_version=VERSION_50,
        table_id=writer.table.id.bytes,
        schema_digest=writer.digest,
        truncation_epoch=0,
        host_id=host_id,
        segment=1_700_000_000_000_000,
        file=file_name(step.snapshot),
        position=0,
        index=0,
    )
    return RawRecord(b"", encode(message, 1), 0, ms)


REPAIR = UUID(int=0x4E)


def repair_step(
    partition_key: bytes,
    state: HostState,
    *,
    ms: int = 0,
    host: int = 1,
    hosts: Sequence[int] = (1,),
    flushed_to: int = 0,
    replicas: int | None = None,
    until_ms: int = 2**62,
    repair: UUID = REPAIR,
    writer: TableWriter = WRITER,
) -> RawRecord:
    """A reset (`running`) or reset_end of one host. flushed_to: the position in segment 1. replicas: None if all hosts
    have the Cassandra partition.
    """
    ids = tuple(bytes([host]) * 16 for host in hosts)
    step = RepairStep(repair, ids, until_ms, state, (1, flushed_to), len(hosts) if replicas is None else replicas)
    message = RawMessage(
        kind="reset" if state == "running" else "reset_end",
        update=repairs.encode_step(step),
        messaging_version=VERSION_50,
        table_id=writer.table.id.bytes,
        schema_digest=writer.digest,
        truncation_epoch=0,
        host_id=bytes([host]) * 16,
        segment=1_700_000_000_000_000,
        file=repairs.file_name(repair),
        position=0,
        index=0,
        clock=ms * 1000,
    )
    return RawRecord(partition_key, encode(message, 1), 0, ms)
