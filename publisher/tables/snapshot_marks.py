"""Marks the tables that need a snapshot, with the time up to which they lack changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from cdc_common.errors.codes import Code

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra_storage.formats.schema.tables import TableMetadata

log = structlog.get_logger(__name__)


class SnapshotMarks:
    """The marks of one node's tables, by the tables' ids. Times are in µs."""

    def __init__(self) -> None:
        self._since: dict[bytes, int] = {}
        self._requested: dict[bytes, int] = {}

    def load(self, stored: Mapping[str, Any]) -> None:
        """Read what `to_json` has made. KeyError, TypeError, ValueError or AttributeError if it is damaged."""
        self._since = {bytes.fromhex(table): int(since) for table, since in stored["need_snapshot"].items()}
        self._requested = {bytes.fromhex(table): int(at) for table, at in stored.get("requested", {}).items()}

    def to_json(self) -> dict[str, Any]:
        return {
            "need_snapshot": {table_id.hex(): since for table_id, since in self._since.items()},
            "requested": {table_id.hex(): at for table_id, at in self._requested.items()},
        }

    def since(self, table_id: bytes) -> int:
        """Return the time before which a snapshot would be too early; 0 if the table needs none."""
        return self._since.get(table_id, 0)

    def requested_at(self, table_id: bytes) -> int:
        """Return the time of the last request that has marked the table; 0 if there was none."""
        return self._requested.get(table_id, 0)

    def require(self, table: TableMetadata, since: int) -> None:
        """Mark the table."""
        self._since[table.id.bytes] = since
        log.warning("table needs a snapshot", code=Code.NEEDS_SNAPSHOT.text, table=table.qualified_name)

    def note_snapshot(self, table_id: bytes, begun: int) -> bool:
        """A snapshot that began at `begun` has ended on all hosts. True if the table's mark is gone by it."""
        if not 0 < self.since(table_id) <= begun:
            return False
        del self._since[table_id]
        return True

    def note_request(self, table: TableMetadata, lost_at: int) -> bool:
        """The materializer lacks rows of the table since `lost_at`, or does not any more (0). Each loss marks the table
        once. True if the marks have changed.
        """
        table_id = table.id.bytes
        known, since = self.requested_at(table_id), self.since(table_id)
        if lost_at > known:
            self._requested[table_id] = lost_at
            self.require(table, max(lost_at, since))
            return True
        if not lost_at and since == known != 0:
            del self._since[table_id]
            return True
        return False
