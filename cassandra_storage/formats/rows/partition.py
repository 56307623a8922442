"""PartitionUpdate (org.apache.cassandra.db.partitions): one mutation's writes to one Cassandra partition of a table."""

from __future__ import annotations

from typing import NamedTuple

from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime, RangeTombstone
from cassandra_storage.formats.rows.row import Row
from cassandra_storage.formats.schema.tables import TableMetadata


class PartitionUpdate(NamedTuple):
    """PartitionUpdate: the writes to one Cassandra partition."""

    # The table that is written to.
    table: TableMetadata
    # The serialized partition key.
    partition_key: bytes
    # The deletion of the whole Cassandra partition; LIVE if there is none.
    deletion: DeletionTime = LIVE
    # The write to the static row; None if there is none.
    static_row: Row | None = None
    # The writes to rows, in clustering order.
    rows: tuple[Row, ...] = ()
    # The deletions of ranges of rows, in clustering order.
    range_tombstones: tuple[RangeTombstone, ...] = ()
