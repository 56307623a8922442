"""Mutations as JSON lines: docs/guides/inspect-commit-logs.md has the form."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from cassandra_storage.commands.commitlog.mutations import Decoded, Undecoded
from cassandra_storage.formats.commitlog.segment import CommitLogPosition
from cassandra_storage.formats.errors import FormatError, UnknownTableError
from cassandra_storage.formats.json_forms.updates import update_json
from cassandra_storage.formats.json_forms.values import hexadecimal, value_json
from cassandra_storage.formats.schema.partition_keys import partition_key_values

if TYPE_CHECKING:
    from cassandra_storage.commands.commitlog.segments import SegmentFile
    from cassandra_storage.formats.commitlog.segment import CommitLogEntry
    from cassandra_storage.formats.rows.partition import PartitionUpdate


@dataclass(frozen=True, slots=True)
class Bound:
    """`--from` or `--to`: a position in one segment or in every segment."""

    # The mutation's position, an offset in bytes.
    position: int
    # The id of the segment; None for every segment.
    segment_id: int | None = None

    def position_in(self, segment: SegmentFile) -> CommitLogPosition:
        return CommitLogPosition(segment.id if self.segment_id is None else self.segment_id, self.position)


@dataclass(frozen=True, slots=True)
class Filter:
    """The mutations to show. Bounds are inclusive."""

    # The tables, as keyspace.table or by id; empty for all.
    tables: frozenset[str] = frozenset()
    # The partition key as key_text, or 0x and bytes; None for all.
    key: str | None = None
    # The first position to show; None shows from the beginning.
    from_: Bound | None = None
    # The last position to show; None shows up to the end.
    to: Bound | None = None

    def includes_position(self, segment: SegmentFile, position: int) -> bool:
        here = CommitLogPosition(segment.id, position)
        return (self.from_ is None or here >= self.from_.position_in(segment)) and (
            self.to is None or here <= self.to.position_in(segment)
        )

    def includes_update(self, update: PartitionUpdate) -> bool:
        table = update.table
        if self.tables and not self.tables & {table.qualified_name, str(table.id)}:
            return False
        return self.key is None or self.key in (hexadecimal(update.partition_key), key_text(update))

    def includes_undecoded(self, event: Undecoded) -> bool:
        """A mutation that could not be decoded is shown if the filter does not need its content."""
        return self.key is None and (not self.tables or str(unknown_table(event)) in self.tables)


def key_text(update: PartitionUpdate) -> str | None:
    """A partition key in nodetool's form: the values of its columns, separated by colons."""
    try:
        values = partition_key_values(update.table, update.partition_key)
    except FormatError:
        return None
    shown = (value_json(column.type, value) for column, value in zip(update.table.partition_key, values, strict=True))
    return ":".join(value if isinstance(value, str) else json.dumps(value) for value in shown)


def unknown_table(event: Undecoded) -> UUID | None:
    """The id of the table whose schema is missing; None if only a column is unknown."""
    return UUID(bytes=event.error.table_id) if isinstance(event.error, UnknownTableError) else None


def mutation_json(
    segment: SegmentFile, event: Decoded | Undecoded, chosen: Filter, *, with_values: bool
) -> dict[str, Any] | None:
    """The object of one line; None if the filter excludes the mutation."""
    if not chosen.includes_position(segment, event.entry.end_position):
        return None
    head = _head(segment, event.entry)
    if isinstance(event, Undecoded):
        if not chosen.includes_undecoded(event):
            return None
        return {**head, "not_decoded": event.error.reason}
    updates = [sized.update for sized in event.updates if chosen.includes_update(sized.update)]
    if not updates:
        return None
    shown = [update_json(update, with_values=with_values) for update in updates]
    return {**head, "count": len(event.updates), "updates": shown}


def _head(segment: SegmentFile, entry: CommitLogEntry) -> dict[str, Any]:
    return {"segment": segment.path.name, "position": entry.end_position, "size": len(entry.mutation)}
