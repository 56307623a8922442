"""The summary of a segment that `info` shows, from one pass in constant memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from cassandra_storage.commands.commitlog.mutations import Damaged, Undecoded
from cassandra_storage.commands.json_lines import iso_time
from cassandra_storage.formats.errors import FormatError, UnknownTableError
from cassandra_storage.formats.rows.deletion import NO_TIMESTAMP
from cassandra_storage.formats.rows.mutation import first_table
from cassandra_storage.formats.rows.row import Cell
from cassandra_storage.formats.versions import commit_log_format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cassandra_storage.commands.commitlog.mutations import Decoded
    from cassandra_storage.commands.commitlog.segments import SegmentWalk
    from cassandra_storage.formats.rows.partition import PartitionUpdate
    from cassandra_storage.formats.rows.row import Row


@dataclass(slots=True)
class TableSummary:
    """The updates of one table."""

    # The number of mutations with an update of the table.
    updates: int = 0
    # The bytes of these updates.
    size: int = 0


@dataclass(slots=True)
class SegmentSummary:
    """The content of one segment."""

    # The number of mutations.
    entries: int = 0
    # The number of mutations that could not be decoded without a schema.
    unknown: int = 0
    # The updates of each table, by its name, or by its id if the schema is unknown.
    tables: dict[str, TableSummary] = field(default_factory=dict)
    # The smallest write timestamp, in µs; None if no update has one.
    min_timestamp: int | None = None
    # The largest write timestamp, in µs; None if no update has one.
    max_timestamp: int | None = None
    # The first damaged parts.
    problems: list[Damaged] = field(default_factory=list)
    # The number of damaged parts after those.
    more_problems: int = 0

    def add(self, event: Decoded | Undecoded | Damaged) -> None:
        if isinstance(event, Damaged):
            self._add_problem(event)
            return
        self.entries += 1
        if isinstance(event, Undecoded):
            self.unknown += 1
            self._count(_unknown_table(event), len(event.entry.mutation))
            return
        for update, size in event.updates:
            self._count(update.table.qualified_name, size)
            for timestamp in write_timestamps(update):
                if self.min_timestamp is None or self.max_timestamp is None:
                    self.min_timestamp = self.max_timestamp = timestamp
                elif timestamp < self.min_timestamp:
                    self.min_timestamp = timestamp
                elif timestamp > self.max_timestamp:
                    self.max_timestamp = timestamp

    def _count(self, table: str, size: int) -> None:
        summary = self.tables.setdefault(table, TableSummary())
        summary.updates += 1
        summary.size += size

    def _add_problem(self, problem: Damaged) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(problem)
        else:
            self.more_problems += 1


_MOST_PROBLEMS = 100  # enough for a file that is damaged everywhere


def _unknown_table(event: Undecoded) -> str:
    """The table whose schema is missing, by its id. If only a column is unknown: the mutation's first table."""
    error = event.error
    table_id = error.table_id if isinstance(error, UnknownTableError) else first_table(event.entry.mutation)
    return f"unknown {UUID(bytes=table_id)}"


def write_timestamps(update: PartitionUpdate) -> Iterator[int]:
    """All write timestamps of the update, in µs."""
    if not update.deletion.is_live:
        yield update.deletion.marked_for_delete_at
    for tombstone in update.range_tombstones:
        yield tombstone.deletion.marked_for_delete_at
    if update.static_row is not None:
        yield from _row_timestamps(update.static_row)
    for row in update.rows:
        yield from _row_timestamps(row)


def _row_timestamps(row: Row) -> Iterator[int]:
    if not row.liveness.is_empty:
        yield row.liveness.timestamp
    if not row.deletion.time.is_live:
        yield row.deletion.time.marked_for_delete_at
    for data in row.columns.values():
        if isinstance(data, Cell):
            yield data.timestamp
            continue
        if data.deletion.marked_for_delete_at != NO_TIMESTAMP:
            yield data.deletion.marked_for_delete_at
        for cell in data.cells:
            yield cell.timestamp


def summary_json(walk: SegmentWalk, summary: SegmentSummary) -> dict[str, Any]:
    """The output of `info --json` for a segment; docs/guides/inspect-commit-logs.md describes the fields."""
    descriptor = walk.descriptor
    version = walk.file.version if descriptor is None else descriptor.version
    return {
        "segment": walk.file.path.name,
        "path": str(walk.file.path),
        "version": version,
        "written_by": _written_by(version),
        "messaging_version": None if descriptor is None else descriptor.messaging_version,
        "id": walk.file.id,
        "id_time": iso_time(walk.file.id * 1000),
        "compression": None if descriptor is None else descriptor.compression,
        "encryption": None if descriptor is None or descriptor.encryption is None else descriptor.encryption.cipher,
        "key_alias": None if descriptor is None or descriptor.encryption is None else descriptor.encryption.key_alias,
        "size": walk.size,
        "index": walk.index_problem or _index_text(walk),
        "sections": walk.sections,
        "entries": summary.entries,
        "unknown": summary.unknown,
        "tables": {
            name: {"mutations": table.updates, "bytes": table.size} for name, table in sorted(summary.tables.items())
        },
        "min_timestamp": summary.min_timestamp,
        "max_timestamp": summary.max_timestamp,
        "ending": {"kind": walk.ending.value, "position": walk.end_position},
        "problems": [{"position": problem.position, "reason": problem.reason} for problem in summary.problems],
        "more_problems": summary.more_problems,
    }


def _written_by(version: int) -> str | None:
    try:
        return commit_log_format(version).written_by
    except FormatError:
        return None


def _index_text(walk: SegmentWalk) -> str | None:
    if walk.index is None:
        return None
    return "COMPLETED" if walk.index.is_completed else f"durable up to {walk.index.offset}"
