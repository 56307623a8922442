"""Reads the partitions of indexed SSTables, merged or one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.files.sstables import SSTable, SSTableFile
from cassandra_storage.files.table_sstables import TableSSTables
from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.token_ranges import MINIMUM, TokenRange
from cassandra_storage.formats.rows.row import Row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cassandra_storage.formats.sstable.merge import MergePosition
    from tests.support.vectors.indexed_sstables import IndexedVectors

NOW = 2_000_000_000


def merged_keys(
    vectors: IndexedVectors,
    ranges: Iterable[TokenRange] = (TokenRange(MINIMUM, MINIMUM),),
    after: MergePosition | None = None,
) -> list[tuple[int, bytes, int]]:
    """(token, key, rows) of each merged partition."""
    sstables = TableSSTables(vectors.table, vectors.files())
    merged = sstables.merged(sstables.purger(NOW), ranges, after)
    return [
        (partition.token, partition.key, sum(isinstance(one, Row) for one in partition.unfiltereds))
        for partition in merged
    ]


def partition_places(file: SSTableFile, vectors: IndexedVectors) -> list[tuple[int, bytes, int]]:
    """(token, key, position) of each partition, read one by one."""
    with SSTable(file, vectors.table) as sstable:
        return [
            (decorated_token(partition.key), partition.key, partition.position) for partition in sstable.partitions()
        ]
