"""Computes what SELECT shows after some updates: the plainest fold, for comparing with a real server."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.merge.reconciliation import RowMerger
from cassandra_storage.formats.rows.byte_comparable import bound_keys, clustering_encoder
from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime, RangeTombstone
from cassandra_storage.formats.rows.row import Cell, ColumnData, ComplexColumnData, Row
from cassandra_storage.formats.types.counter import total
from cassandra_storage.formats.types.marshal import ListType, MapType, SetType, UserType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cassandra_storage.formats.rows.clustering import Clustering
    from cassandra_storage.formats.rows.partition import PartitionUpdate
    from cassandra_storage.formats.schema.tables import ColumnMetadata, TableMetadata
    from cassandra_storage.formats.types.marshal import CqlType


class Shown(NamedTuple):
    """One value of a SELECT: serialized, its write timestamp (None for collections) and whether it expires."""

    value: bytes
    written: int | None
    expires: bool


def fold(
    table: TableMetadata, updates: Iterable[PartitionUpdate], now: int, *, is_strict: bool = False
) -> list[dict[str, Shown | bytes | None]]:
    """The rows of SELECT: key columns as bytes, others as Shown. `is_strict`: only liveness makes a row be there, as in
    views (TableMetadata.enforceStrictLiveness).
    """
    partitions: dict[bytes, list[PartitionUpdate]] = {}
    for update in updates:
        partitions.setdefault(update.partition_key, []).append(update)
    return [
        row for key, of_key in partitions.items() for row in _partition(table, key, of_key, now, is_strict=is_strict)
    ]


def _partition(
    table: TableMetadata, key: bytes, updates: list[PartitionUpdate], now: int, *, is_strict: bool
) -> Iterator[dict[str, Shown | bytes | None]]:
    merger = RowMerger({column.name: column for column in table.columns}, is_counter=table.is_counter)
    encode = clustering_encoder(table.clustering)
    deletion = max((update.deletion for update in updates), default=LIVE)
    ranges = [one for update in updates for one in update.range_tombstones]
    keys = dict(zip((column.name for column in table.partition_key), _components(table, key), strict=True))
    statics: dict[str, Shown | bytes | None] = dict.fromkeys((column.name for column in table.static_columns), None)
    versions = [update.static_row for update in updates if update.static_row is not None]
    if versions:
        statics |= _shown(table.static_columns, merger.merge(versions, deletion), now)
    rows: dict[bytes, list[Row]] = {}
    for update in updates:
        for row in update.rows:
            rows.setdefault(encode(row.clustering), []).append(row)
    any_row = False
    for place in sorted(rows):
        row = merger.merge(rows[place], max(deletion, _covering(table, ranges, place)))
        values = _shown(table.regular_columns, row, now)
        if row.liveness.is_live(now) or (values and not is_strict):
            any_row = True
            yield {**keys, **statics, **_clustering(table, row.clustering), **_nulls(table), **values}
    if not any_row and any(value is not None for value in statics.values()):
        yield keys | statics | _clustering(table, (None,) * len(table.clustering)) | _nulls(table)


def _covering(table: TableMetadata, ranges: list[RangeTombstone], place: bytes) -> DeletionTime:
    covering = [LIVE]
    for one in ranges:
        first, last = bound_keys(table.clustering, one.start, one.end)
        if first <= place < last:
            covering.append(one.deletion)
    return max(covering)


def _components(table: TableMetadata, key: bytes) -> list[bytes]:
    """A partition key's values: one as it is, several each with its length before and a zero after."""
    if len(table.partition_key) == 1:
        return [key]
    found, pos = [], 0
    while pos < len(key):
        end = pos + 2 + int.from_bytes(key[pos : pos + 2], "big")
        found.append(key[pos + 2 : end])
        pos = end + 1
    return found


def _clustering(table: TableMetadata, values: Clustering) -> dict[str, bytes | None]:
    return {column.name: value for column, value in zip(table.clustering, values, strict=True)}


def _nulls(table: TableMetadata) -> dict[str, None]:
    return dict.fromkeys((column.name for column in table.regular_columns), None)


def _shown(columns: Iterable[ColumnMetadata], row: Row, now: int) -> dict[str, Shown]:
    found = {column.name: _value(column.type, row.columns.get(column.name), now) for column in columns}
    return {name: value for name, value in found.items() if value is not None}


def _value(type_: CqlType, data: ColumnData | None, now: int) -> Shown | None:
    if isinstance(data, Cell):
        if not data.is_live(now):
            return None
        if getattr(type_, "name", None) == "counter":
            return Shown(total(data.value).to_bytes(8, "big", signed=True), None, expires=False)
        return Shown(data.value, data.timestamp, data.is_expiring)
    if not isinstance(data, ComplexColumnData):
        return None
    cells = [cell for cell in data.cells if cell.is_live(now)]
    return Shown(_collection(type_, cells), None, expires=False) if cells else None


def _collection(type_: CqlType, cells: list[Cell]) -> bytes:
    if isinstance(type_, UserType):
        by_field = {int.from_bytes(cell.path or b"", "big"): cell.value for cell in cells}
        return b"".join(_sized(by_field.get(index)) for index in range(len(type_.field_types)))
    parts: list[bytes] = []
    for cell in cells:
        if isinstance(type_, SetType | MapType):
            parts.append(_sized(cell.path))
        if isinstance(type_, ListType | MapType):
            parts.append(_sized(cell.value))
    return len(cells).to_bytes(4, "big") + b"".join(parts)


def _sized(value: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if value is None else len(value).to_bytes(4, "big") + value
