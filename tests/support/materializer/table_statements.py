"""Raw messages of numbered statements on one Cassandra partition of the table of raw_builder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cassandra_storage.formats.rows.clustering import ClusteringBound, Kind
from cassandra_storage.formats.rows.deletion import NO_LIVENESS, DeletionTime, LivenessInfo, RangeTombstone, RowDeletion
from cassandra_storage.formats.rows.row import Cell, Row
from tests.support.materializer.raw_builder import int_bytes, raw_record

if TYPE_CHECKING:
    from materializer.records import RawRecord

BASE_US = 1_700_000_000_000_000
BASE_S = BASE_US // 1_000_000
PARTITION = int_bytes(1)


def at(number: int) -> int:
    """The write timestamp of the statement with this number, µs."""
    return BASE_US + number


def tombstone(number: int) -> DeletionTime:
    return DeletionTime(at(number), BASE_S)


def insert(number: int, c: int, **columns: str | None) -> RawRecord:
    row = Row((int_bytes(c),), cells(number, columns), LivenessInfo(at(number)))
    return raw_record(PARTITION, "row", row, offset=number, timestamp_ms=BASE_S * 1000)


def update(number: int, c: int, **columns: str | None) -> RawRecord:
    row = Row((int_bytes(c),), cells(number, columns))
    return raw_record(PARTITION, "row", row, offset=number, timestamp_ms=BASE_S * 1000)


def cells(number: int, columns: dict[str, str | None]) -> dict[str, Any]:
    return {
        name: Cell(at(number), b"", BASE_S) if value is None else Cell(at(number), value.encode())
        for name, value in columns.items()
    }


def delete_row(number: int, c: int) -> RawRecord:
    row = Row((int_bytes(c),), {}, NO_LIVENESS, RowDeletion(tombstone(number)))
    return raw_record(PARTITION, "row", row, offset=number, timestamp_ms=BASE_S * 1000)


def delete_range(number: int, first: int, last: int) -> RawRecord:
    """Rows with first <= c < last."""
    start = ClusteringBound(Kind.INCL_START_BOUND, (int_bytes(first),))
    end = ClusteringBound(Kind.EXCL_END_BOUND, (int_bytes(last),))
    write = RangeTombstone(start, end, tombstone(number))
    return raw_record(PARTITION, "range_deletion", write, offset=number, timestamp_ms=BASE_S * 1000)


def delete_partition(number: int) -> RawRecord:
    return raw_record(PARTITION, "partition_deletion", tombstone(number), offset=number, timestamp_ms=BASE_S * 1000)


def set_static(number: int, value: str | None) -> RawRecord:
    row = Row((), cells(number, {"st": value}))
    return raw_record(PARTITION, "static", row, offset=number, timestamp_ms=BASE_S * 1000)
