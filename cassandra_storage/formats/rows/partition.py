"""PartitionUpdate (org.apache.cassandra.db.partitions): one mutation's writes to one Cassandra partition of a table."""

from __future__ import annotations

from typing import NamedTuple

from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime, RangeTombstone
from cassandra_storage.formats.rows.row import Row
from cassandra_storage.formats.schema.tables import TableMetadata


class PartitionUpdate(NamedTuple):
    """PartitionUpdate: `range_tombstones` and `rows` in clustering order, as serialized."""

    table: TableMetadata
    partition_key: bytes
    deletion: DeletionTime = LIVE
    static_row: Row | None = None
    rows: tuple[Row, ...] = ()
    range_tombstones: tuple[RangeTombstone, ...] = ()
