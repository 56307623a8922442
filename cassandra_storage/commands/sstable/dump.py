"""Partitions, rows and markers as JSON lines: docs/guides/inspect-sstables.md has the form."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.json_forms.updates import UpdateForm, deletion_json
from cassandra_storage.formats.json_forms.values import hexadecimal, value_json
from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.rows.row import Row
from cassandra_storage.formats.schema.partition_keys import partition_key_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cassandra_storage.files.sstables import SSTable
    from cassandra_storage.files.table_sstables import TableSSTables
    from cassandra_storage.formats.merge.purge import Purger
    from cassandra_storage.formats.rows.unfiltered import Marker, Unfiltered
    from cassandra_storage.formats.schema.tables import TableMetadata
    from cassandra_storage.formats.sstable.merge import MergedPartition
    from cassandra_storage.formats.sstable.reader import Partition

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Filter:
    """The partitions to show."""

    # The partition key as key_text, or 0x and bytes; None for all partitions.
    key: str | None = None

    def includes(self, table: TableMetadata, key: bytes) -> bool:
        return self.key is None or self.key in (hexadecimal(key), key_text(table, key))


def key_text(table: TableMetadata, key: bytes) -> str | None:
    """A partition key in nodetool's form: the values of its columns, separated by colons."""
    try:
        values = partition_key_values(table, key)
    except FormatError:
        return None
    shown = (value_json(column.type, value) for column, value in zip(table.partition_key, values, strict=True))
    return ":".join(value if isinstance(value, str) else json.dumps(value) for value in shown)


def sstable_lines(sstable: SSTable, chosen: Filter, *, with_values: bool) -> Iterator[Line]:
    """A line for each partition, and after it one for each of its rows and range tombstone markers."""
    table = sstable.schema.table
    form = UpdateForm(table, with_values=with_values)
    name, names = sstable.file.data_path.name, _sstable_names(sstable)
    for partition in sstable.partitions():
        if chosen.includes(table, partition.key):
            source = {"sstable": name, "position": partition.position, **names}
            yield from _partition_lines(form, source, {"sstable": name}, partition, sstable.rows())


def merged_lines(sstables: TableSSTables, purger: Purger, chosen: Filter, *, with_values: bool) -> Iterator[Line]:
    """Yield the lines that sstable_lines yields, for all SSTables of the table merged into one."""
    form = UpdateForm(sstables.table, with_values=with_values)
    for partition in sstables.merged(purger):
        if chosen.includes(sstables.table, partition.key):
            yield from _partition_lines(form, _table_name(sstables.table), {}, partition, partition.unfiltereds)


def _sstable_names(sstable: SSTable) -> Line:
    keyspace, table, _ = sstable.file.table_name
    if sstable.is_index:
        return {"keyspace": keyspace, "table": table, "index": sstable.file.index_name}
    return _table_name(sstable.schema.table)


def _table_name(table: TableMetadata) -> Line:
    return {"keyspace": table.keyspace, "table": table.name}


def _partition_lines(
    form: UpdateForm,
    source: Line,
    row_source: Line,
    partition: Partition | MergedPartition,
    unfiltereds: Iterable[Unfiltered],
) -> Iterator[Line]:
    """`source`, `row_source`: where the partition and its rows come from."""
    key = form.partition_key(partition.key)
    line: Line = {**source, "partition_key": key, "token": decorated_token(partition.key)}
    if not partition.deletion.is_live:
        line["partition_deletion"] = deletion_json(partition.deletion)
    if partition.static_row is not None:
        line["static_row"] = form.row(partition.static_row)
    yield line
    for unfiltered in unfiltereds:
        if isinstance(unfiltered, Row):
            yield {**row_source, "partition_key": key, "row": form.row(unfiltered)}
        else:
            yield {**row_source, "partition_key": key, "range_tombstone_marker": _marker(form, unfiltered)}


def _marker(form: UpdateForm, marker: Marker) -> Line:
    """The bound that it closes, the one that it opens, or both."""
    ends = (("close", marker.close), ("open", marker.open_))
    return {name: {**form.bound(end[0]), **deletion_json(end[1])} for name, end in ends if end is not None}
