"""Raw messages of the table of raw_builder, and that table after a column was dropped."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cassandra_storage.formats.rows.deletion import NO_LIVENESS, LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.schema.tables import DroppedColumn, TableMetadata
from cdc_common.messages.raw import decode, encode
from cdc_common.messages.tables import canonical, digest
from tests.support.materializer.raw_builder import TABLE, int_bytes, raw_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdc_common.messages.raw import Kind
    from materializer.records import RawRecord
    from materializer.rows.catalog import TableCatalog

BASE_US = 1_700_000_000_000_000
BASE_MS = BASE_US // 1000
A, B, S = TABLE.regular_columns
OTHERS = (A, S)


def without_b(dropped: int) -> TableMetadata:
    """The table after b was dropped at this statement."""
    return replace(TABLE, regular_columns=OTHERS, dropped_columns={"b": DroppedColumn(B, BASE_US + dropped)})


def row(number: int, p: int, c: int, *, is_insert: bool = True, **columns: str) -> RawRecord:
    cells = {name: Cell(BASE_US + number, value.encode("utf-8", "surrogateescape")) for name, value in columns.items()}
    liveness = LivenessInfo(BASE_US + number) if is_insert else NO_LIVENESS
    return record(p, "row", Row((int_bytes(c),), cells, liveness))


def static(number: int, p: int, value: str) -> RawRecord:
    return record(p, "static", Row((), {"st": Cell(BASE_US + number, value.encode())}))


def record(p: int, kind: Kind, write: object) -> RawRecord:
    return raw_record(int_bytes(p), kind, write, timestamp_ms=BASE_MS)


HEARTBEAT = raw_record(b"", "heartbeat", None, timestamp_ms=BASE_MS)


def of_table(raw: RawRecord, table: TableMetadata) -> RawRecord:
    """The same write to another table with the same columns."""
    message = decode(raw.value)
    update = table.id.bytes + message.update[16:] if message.update else b""
    moved = replace(message, table_id=table.id.bytes, schema_digest=digest(canonical(table)), update=update)
    return raw._replace(value=encode(moved, 1))


def named(raw: RawRecord, catalog: TableCatalog) -> RawRecord:
    """The record as a publisher sends it that knows the newest schema of its table."""
    message = decode(raw.value)
    newest = catalog.newest.get(message.table_id, message.schema_digest)
    return raw._replace(value=encode(replace(message, schema_digest=newest, clock=message.clock or 2**62), 1))


def heartbeats_named(records: Iterable[RawRecord], catalog: TableCatalog) -> list[RawRecord]:
    """The records, with heartbeats of publishers that know the newest schema."""
    return [named(record, catalog) if decode(record.value).kind == "heartbeat" else record for record in records]
