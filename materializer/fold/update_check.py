"""Checks that the fold can order, merge and show the update of a raw message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.row import Cell
from cassandra_storage.formats.types import counter

if TYPE_CHECKING:
    from cassandra_storage.formats.rows.partition import PartitionUpdate
    from cassandra_storage.formats.rows.row import Row
    from materializer.rows.catalog import KeyEncoders


def check_update(update: PartitionUpdate, encoders: KeyEncoders, *, is_counter: bool) -> None:
    """Raise FormatError for more than one element, a clustering or a path that has no place in the order, and a counter
    without a total.
    """
    static = update.static_row
    elements = len(update.rows) + len(update.range_tombstones)
    elements += (static is not None) + (not update.deletion.is_live)
    if elements > 1:
        raise FormatError(f"an update of {elements} elements in one message")
    for tombstone in update.range_tombstones:
        encoders.bound(tombstone.start)
        encoders.bound(tombstone.end)
    if static is not None:
        _check_cells(static, encoders, is_counter=is_counter)
    for row in update.rows:
        encoders.clustering(row.clustering)
        _check_cells(row, encoders, is_counter=is_counter)


def _check_cells(row: Row, encoders: KeyEncoders, *, is_counter: bool) -> None:
    if not encoders.paths and not is_counter:
        return
    for name, data in row.columns.items():
        if not isinstance(data, Cell):
            path_key = encoders.paths[name]
            for cell in data.cells:
                path_key(cell.path or b"")
        elif is_counter and not data.is_tombstone:
            counter.total(data.value)
