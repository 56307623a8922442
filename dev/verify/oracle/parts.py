"""Split updates as Cassandra's own PartitionUpdate.serializer reads them and writes them again.

It writes an update with the columns and statistics that it was read with: the same bytes, or ours are not what it makes
for the same row, columns and statistics. Not asked of mutations that no statement makes: deletion times that are out of
range come back as Cell.INVALID_DELETION_TIME.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cassandra_storage.formats.commitlog.segment import CommitLogEntry
from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.mutation import split_mutation
from cassandra_storage.formats.rows.partition_update import read_partition_update
from dev.verify.oracle.described import compact, described, plain
from dev.verify.oracle.judge import Tally, events_of, first_difference, normalised
from tests.support.cassandra_storage.split_parts import header_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from cassandra_storage.formats.rows.partition import PartitionUpdate
    from cassandra_storage.formats.rows.partition_update import SingleRowUpdate
    from cassandra_storage.formats.schema.tables import TableMetadata
    from dev.verify.oracle.commitlog_oracle import CommitLogOracle

Serialized = tuple[str, int, bytes]  # where it is from, messaging version, mutation


def mutations_of(paths: Iterable[Path], keys: Mapping[str, bytes], every: int) -> Iterator[Serialized]:
    """Every so many mutations of the segments."""
    count = 0
    for path in paths:
        for event in events_of(path, keys):
            if isinstance(event, tuple) and isinstance(event[0], CommitLogEntry):
                count += 1
                if count % every == 0:
                    yield f"{path.name}:{event[0].end_position}", event[1], event[0].mutation


def judge_parts(
    oracle: CommitLogOracle, mutations: Iterable[Serialized], tables: Mapping[bytes, TableMetadata]
) -> Tally:
    tally = Tally()
    for where, version, mutation in mutations:
        try:
            split = split_mutation(mutation, version, tables)
        except FormatError:
            continue  # the judge of mutations compares what both refuse
        for table, parts in split:
            for part in parts:
                tally.parts += 1
                difference = _difference(oracle, part, version, table)
                if difference:
                    tally.differ(f"{where}: {part.kind} of {table.qualified_name}: {difference}")
    return tally


def _difference(oracle: CommitLogOracle, part: SingleRowUpdate, version: int, table: TableMetadata) -> str | None:
    said = oracle.update(version, part.update)
    if "update" not in said:
        return f"Cassandra refuses it: {said}"
    read, _ = read_partition_update(part.update, 0, version, {table.id.bytes: table})
    ours = {"updates": [json.loads(compact(described(read)))]}
    difference = first_difference(normalised(ours), normalised({"updates": [said["update"]]}))
    if difference or said["left"]:
        return difference or f"{said['left']} bytes left over"
    again = bytes.fromhex(said["again"])
    if again == part.update or table.dropped_columns:  # whose cells it leaves out
        return None
    if _names_nothing(part, read, version):
        read_again, _ = read_partition_update(again, 0, version, {table.id.bytes: table})
        return first_difference(plain([_meaning(read)]), plain([_meaning(read_again)]))
    return f"{part.update.hex()} is written again as {again.hex()}"


def _names_nothing(part: SingleRowUpdate, read: PartitionUpdate, version: int) -> bool:
    """Whether the row names a column and says nothing of it: 4.x and later log so a collection that is overwritten at
    the first of all timestamps, and leave it out when they read it.
    """
    header = header_of(part.update, read.table, version)
    if part.kind == "static":
        named, rows = header.static_columns, [read.static_row] if read.static_row else []
    else:
        named, rows = header.regular_columns, list(read.rows)
    return len(named.layouts) > sum(len(row.columns) for row in rows)


def _meaning(update: PartitionUpdate) -> PartitionUpdate:
    """Return the update without empty rows."""
    static_row = update.static_row
    return update._replace(
        static_row=None if static_row is None or static_row.is_empty else static_row,
        rows=tuple(row for row in update.rows if not row.is_empty),
    )
