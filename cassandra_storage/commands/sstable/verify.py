"""Checks for `verify`, besides the checksums, that all rows can be read and have the order that Cassandra relies on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.rows.row import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cassandra_storage.files.sstables import SSTable
    from cassandra_storage.formats.rows.deletion import DeletionTime
    from cassandra_storage.formats.rows.unfiltered import Unfiltered

_MURMUR3 = "org.apache.cassandra.dht.Murmur3Partitioner"


@dataclass(slots=True)
class Checked:
    """Counts of what was read."""

    # The number of Cassandra partitions.
    partitions: int = 0
    # The number of rows. Static rows do not count.
    rows: int = 0
    # The number of range tombstone markers.
    markers: int = 0


def check_order(sstable: SSTable, total: Checked) -> Iterator[Unfiltered | None]:
    """Reads all of the SSTable: partitions by token and key (Murmur3Partitioner), range tombstones opened before they
    are closed. Gives each row and marker, and None for a partition. FormatError at the first problem.
    """
    is_murmur3 = sstable.statistics.partitioner == _MURMUR3
    before: tuple[int, bytes] | None = None
    for partition in sstable.partitions():
        total.partitions += 1
        yield None
        place = (decorated_token(partition.key), partition.key)
        if is_murmur3 and before is not None and place <= before:
            raise _error(sstable, "a partition that is out of order", partition.position)
        before = place
        yield from _check_rows(sstable, total, partition.position)


def _check_rows(sstable: SSTable, total: Checked, position: int) -> Iterator[Unfiltered]:
    opened: DeletionTime | None = None
    for unfiltered in sstable.rows():
        if isinstance(unfiltered, Row):
            total.rows += 1
        else:
            total.markers += 1
            if (None if unfiltered.close is None else unfiltered.close[1]) != opened:
                raise _error(sstable, "a range tombstone that is closed and not the one that was opened", position)
            opened = None if unfiltered.open_ is None else unfiltered.open_[1]
        yield unfiltered
    if opened is not None:
        raise _error(sstable, "a range tombstone that is not closed", position)


def _error(sstable: SSTable, reason: str, position: int) -> FormatError:
    return FormatError(reason, position=position, segment=sstable.file.data_path.name)
