"""Updates as java/Description.java describes them: the same compact JSON text for the same content."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cassandra_storage.formats.rows.row import Cell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cassandra_storage.formats.rows.clustering import Clustering, ClusteringBound
    from cassandra_storage.formats.rows.partition import PartitionUpdate
    from cassandra_storage.formats.rows.row import ColumnData, Row
    from cassandra_storage.formats.rows.unfiltered import Marker

Described = dict[str, Any]

compact = json.JSONEncoder(separators=(",", ":")).encode


def described(update: PartitionUpdate) -> Described:
    return {
        "table": update.table.qualified_name,
        "key": update.partition_key.hex(),
        "deletion": update.deletion,
        "static": None if update.static_row is None else described_row(update.static_row),
        "rows": [described_row(row) for row in update.rows],
        "ranges": [[_bound(one.start), _bound(one.end), one.deletion] for one in update.range_tombstones],
    }


def plain(updates: Iterable[PartitionUpdate]) -> list[Described]:
    """Return the updates as JSON returns them, comparable with what Cassandra said."""
    found: list[Described] = json.loads(compact([described(update) for update in updates]))
    return found


def described_row(row: Row) -> Described:
    return {
        "clustering": _values(row.clustering),
        "liveness": row.liveness,
        "deletion": row.deletion,
        "columns": {name: _data(data) for name, data in row.columns.items()},
    }


def described_marker(marker: Marker) -> list[Any]:
    """The bound that it closes and the one that it opens, each with its deletion, or None."""
    return [None if end is None else [_bound(end[0]), end[1]] for end in marker]


def _data(data: ColumnData) -> list[Any]:
    if isinstance(data, Cell):
        return _cell(data)
    return [data.deletion, [_cell(cell) for cell in data.cells]]


def _cell(cell: Cell) -> list[Any]:
    timestamp, value, local_deletion_time, ttl, path = cell
    return [timestamp, value.hex(), local_deletion_time, ttl, None if path is None else path.hex()]


def _bound(bound: ClusteringBound) -> list[Any]:
    return [bound.kind.name, _values(bound.values)]


def _values(values: Clustering) -> list[str | None]:
    return [None if value is None else value.hex() for value in values]
