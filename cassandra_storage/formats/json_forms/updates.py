"""Partition updates as JSON, in Cassandra's own terms: docs/guides/inspect-commit-logs.md has the form.

Values (of cells, keys, clusterings and collection elements) are shown in full or as lengths. Everything but values is
always shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.json_forms.values import Json, hexadecimal, raw, value_json
from cassandra_storage.formats.rows.deletion import NO_DELETION_TIME, NO_TTL
from cassandra_storage.formats.rows.row import Cell
from cassandra_storage.formats.schema.partition_keys import partition_key_values
from cassandra_storage.formats.types import counter
from cassandra_storage.formats.types.cql_types import type_text
from cassandra_storage.formats.types.marshal import ListType, MapType, NativeType, SetType, UserType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cassandra_storage.formats.rows.clustering import ClusteringBound
    from cassandra_storage.formats.rows.deletion import DeletionTime, LivenessInfo
    from cassandra_storage.formats.rows.partition import PartitionUpdate
    from cassandra_storage.formats.rows.row import ColumnData, Row
    from cassandra_storage.formats.schema.tables import ColumnMetadata, TableMetadata
    from cassandra_storage.formats.types.marshal import CqlType


def update_json(update: PartitionUpdate, *, with_values: bool) -> Json:
    """One update, without the parts that it does not have (a partition deletion, a static row, rows, ranges)."""
    return UpdateForm(update.table, with_values=with_values).update(update)


class UpdateForm:
    """Parts of updates of one table as JSON. `with_values`: show values, otherwise their lengths."""

    def __init__(self, table: TableMetadata, *, with_values: bool) -> None:
        self._table = table
        self._with_values = with_values
        self._columns = {name: dropped.column for name, dropped in table.dropped_columns.items()}
        self._columns.update((column.name, column) for column in table.columns)
        self._current = {column.name for column in table.columns}

    def update(self, update: PartitionUpdate) -> Json:
        table = self._table
        shown = {
            "keyspace": table.keyspace,
            "table": table.name,
            "table_id": str(table.id),
            "partition_key": self.partition_key(update.partition_key),
        }
        if not update.deletion.is_live:
            shown["partition_deletion"] = deletion_json(update.deletion)
        if update.static_row is not None:
            shown["static_row"] = self.row(update.static_row)
        if update.rows:
            shown["rows"] = [self.row(row) for row in update.rows]
        if update.range_tombstones:
            shown["range_tombstones"] = [
                {"start": self.bound(start), "end": self.bound(end), **deletion_json(deletion)}
                for start, end, deletion in update.range_tombstones
            ]
        return shown

    def partition_key(self, key: bytes) -> Json:
        try:
            values = partition_key_values(self._table, key)
        except FormatError:
            return self._masked(raw(key), key)
        return self._named(self._table.partition_key, values)

    def _named(self, columns: Iterable[ColumnMetadata], values: Sequence[bytes | None]) -> Json:
        """Key or clustering columns; a bound may have fewer `values`."""
        named = zip(columns, values, strict=False)
        return {column.name: self._value(column.type, value) for column, value in named}

    def _value(self, type_: CqlType, value: bytes | None) -> Json:
        if value is None:
            return None
        return value_json(type_, value) if self._with_values else _mask(value)

    def _masked(self, shown: Json, value: bytes) -> Json:
        return shown if self._with_values else _mask(value)

    def bound(self, bound: ClusteringBound) -> Json:
        return {"kind": bound.kind.name, "clustering": self._named(self._table.clustering, bound.values)}

    def row(self, row: Row) -> Json:
        shown: dict[str, Json] = {}
        if self._table.clustering and row.clustering:
            shown["clustering"] = self._named(self._table.clustering, row.clustering)
        if not row.liveness.is_empty:
            shown["liveness"] = liveness_json(row.liveness)
        if not row.deletion.time.is_live:
            shown["deletion"] = deletion_json(row.deletion.time)
            if row.deletion.is_shadowable:
                shown["deletion"]["shadowable"] = True
        shown["columns"] = {name: self._column(self._columns[name], data) for name, data in row.columns.items()}
        return shown

    def _column(self, column: ColumnMetadata, data: ColumnData) -> Json:
        shown: dict[str, Json] = {"type": type_text(column.type)}
        if column.name not in self._current:
            shown["dropped"] = True
        if isinstance(data, Cell):
            return {**shown, **self._cell(column.type, data)}
        if not data.deletion.is_live:
            shown["complex_deletion"] = deletion_json(data.deletion)
        shown["cells"] = [self._element(column.type, cell) for cell in data.cells]
        return shown

    def _element(self, type_: CqlType, cell: Cell) -> Json:
        """A cell of a multi-cell column: its path is a list's timeuuid, a set's element, a map's key, a field."""
        assert cell.path is not None
        match type_:
            case ListType(elements, _):
                return {"path": self._value(NativeType("timeuuid"), cell.path), **self._cell(elements, cell)}
            case SetType(elements, _):
                return {"path": self._value(elements, cell.path), **self._cell(NativeType("empty"), cell)}
            case MapType(keys, values, _):
                return {"path": self._value(keys, cell.path), **self._cell(values, cell)}
            case UserType():
                index = int.from_bytes(cell.path, "big")
                if len(cell.path) == 2 and index < len(type_.field_names):
                    return {"field": type_.field_names[index], **self._cell(type_.field_types[index], cell)}
        return {"path": self._masked(raw(cell.path), cell.path), **self._cell(type_, cell)}

    def _cell(self, type_: CqlType, cell: Cell) -> Json:
        kind = "tombstone" if cell.is_tombstone else "expiring" if cell.is_expiring else "live"
        shown: dict[str, Json] = {"kind": kind, "timestamp": cell.timestamp}
        if cell.ttl != NO_TTL:
            shown["ttl"] = cell.ttl
        if cell.local_deletion_time != NO_DELETION_TIME:
            shown["local_deletion_time"] = cell.local_deletion_time
        if cell.is_tombstone and not cell.value:
            return shown
        shown["length"] = len(cell.value)
        if self._with_values:
            shown["value"] = value_json(type_, cell.value)
            if type_ == NativeType("counter"):
                shown["shards"] = _shards_json(cell.value)
        return shown


def deletion_json(deletion: DeletionTime) -> Json:
    """Return a deletion as JSON: `marked_for_delete_at` in µs, `local_deletion_time` in s."""
    return {
        "marked_for_delete_at": deletion.marked_for_delete_at,
        "local_deletion_time": deletion.local_deletion_time,
    }


def liveness_json(liveness: LivenessInfo) -> Json:
    """Return a liveness as JSON: `timestamp` in µs; `ttl` and `local_expiration_time`, if it expires, in s."""
    shown = {"timestamp": liveness.timestamp}
    if liveness.ttl != NO_TTL:
        shown |= {"ttl": liveness.ttl, "local_expiration_time": liveness.local_expiration_time}
    return shown


def _mask(value: bytes) -> Json:
    return {"length": len(value)}


def _shards_json(context: bytes) -> Json:
    try:
        shards = counter.shards(context)
    except FormatError:
        return []
    return [
        {"id": hexadecimal(shard.id), "kind": shard.kind.name.lower(), "clock": shard.clock, "count": shard.value}
        for shard in shards
    ]
