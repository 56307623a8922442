"""Updates as they are read back in messaging version 13: what its serialization cannot say of deletion times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.rows.row import Cell, ColumnData, Row

if TYPE_CHECKING:
    from cassandra_storage.formats.rows.deletion import DeletionTime
    from cassandra_storage.formats.rows.header import EncodingStats
    from cassandra_storage.formats.rows.partition import PartitionUpdate

INVALID_DELETION_TIME = 2**32 - 2  # Cell.INVALID_DELETION_TIME


def time_as_read(time: DeletionTime, stats: EncodingStats) -> DeletionTime:
    """A difference to the least that needs 32 bits is read as negative, and DeletionTime.build takes it for damage;
    cells and livenesses go another way (Cell.decodeLocalDeletionTime).
    """
    if time.is_live or time.local_deletion_time - stats.min_local_deletion_time < 2**31:
        return time
    return time._replace(local_deletion_time=INVALID_DELETION_TIME)


def row_as_read(row: Row, stats: EncodingStats) -> Row:
    deletion = row.deletion._replace(time=time_as_read(row.deletion.time, stats))
    return row._replace(columns={name: _data(data, stats) for name, data in row.columns.items()}, deletion=deletion)


def _data(data: ColumnData, stats: EncodingStats) -> ColumnData:
    if isinstance(data, Cell):
        return data
    return data._replace(deletion=time_as_read(data.deletion, stats))


def update_as_read(update: PartitionUpdate, stats: EncodingStats) -> PartitionUpdate:
    return update._replace(
        deletion=time_as_read(update.deletion, stats),
        static_row=update.static_row and row_as_read(update.static_row, stats),
        rows=tuple(row_as_read(row, stats) for row in update.rows),
        range_tombstones=tuple(
            one._replace(deletion=time_as_read(one.deletion, stats)) for one in update.range_tombstones
        ),
    )
