"""PartitionUpdate (org.apache.cassandra.db.partitions): one mutation's writes to one Cassandra partition of a table."""

from __future__ import annotations

from typing import NamedTuple

from cassandra_storage.deletion import LIVE, DeletionTime, RangeTombstone
from cassandra_storage.rows import Row
from cassandra_storage.schema import TableMetadata


class PartitionUpdate(NamedTuple):
    """PartitionUpdate: `range_tombstones` and `rows` in clustering order, as serialized."""

    table: TableMetadata
    partition_key: bytes
    deletion: DeletionTime = LIVE
    static_row: Row | None = None
    rows: tuple[Row, ...] = ()
    range_tombstones: tuple[RangeTombstone, ...] = ()
