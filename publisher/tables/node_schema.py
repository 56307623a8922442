"""The tables of the node: read from system_schema, and stored in `schema.json`.

A dropped table stays known, also after a restart: the log may still hold its mutations. The newest schema of an altered
table is enough: older updates are read with its dropped columns, whose types it has (except one kind: see
publisher.tables.dropped_columns). Updates name neither keys nor the fields of user types, and Cassandra never alters a
type so that it is serialized differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from time import sleep, time_ns
from typing import TYPE_CHECKING, NamedTuple

import structlog

from cassandra_storage.formats.commitlog.segment import CommitLogPosition
from cassandra_storage.formats.schema.schema_rows import UnreadableTable
from cdc_common.errors.codes import Code
from publisher.tables.as_written import TablesAsWritten
from publisher.tables.cdc_switches import CdcSwitches
from publisher.tables.dropped_columns import DroppedColumns
from publisher.tables.per_table import PerTable
from publisher.tables.published_table import PublishedTable, digest_of, make_published
from publisher.tables.refusals import is_unreadable, refusal
from publisher.tables.roles import RoleRules
from publisher.tables.row_ends import LogSegments, RowEnds
from publisher.tables.schema_file import SchemaFile, StoredSchema, TableNotes
from publisher.tables.schema_reader import SchemaReader
from publisher.tables.selection import ALL_TABLES
from publisher.tables.snapshot_marks import SnapshotMarks

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cassandra_storage.formats.schema.tables import TableMetadata
    from publisher.tables.row_ends import RowsEnd
    from publisher.tables.selection import Selection
    from publisher.tables.system_schema import NodeTables, RunQuery

log = structlog.get_logger(__name__)

_NO_SEGMENTS = LogSegments()
_RETRY_SECONDS = 0.1  # for a table that cannot be read: it may just be made or altered


class _OnNode(NamedTuple):
    """The node's tables at the last read."""

    ids: AbstractSet[bytes] = frozenset()
    # the tables that this build cannot read now
    unreadable: Mapping[bytes, UnreadableTable] = {}
    # when the read ended, in µs
    read_at: int = 0


class NodeSchema:
    """The node's tables, and its dropped tables. `edition` changes with every change of the tables and of their ends.

    Its parts: `switches`, `row_ends` and `marks` are noted of the tables, `as_written` chooses those that a mutation is
    decoded with, and `roles` says what is done with each. A table without `cdc` that is unreadable is an ignored one.
    """

    def __init__(
        self,
        file: Path,
        run_query: RunQuery,
        filler: tuple[str, str],
        selection: Selection = ALL_TABLES,
        segments: LogSegments = _NO_SEGMENTS,
    ) -> None:
        self._file = SchemaFile(file)
        self._reader = SchemaReader(run_query)
        self._rules = RoleRules(filler, selection)
        self._digests = PerTable(digest_of)
        self._on_node = _OnNode()
        self.marks = SnapshotMarks()
        self.switches = CdcSwitches(segments.newest)
        self.row_ends = RowEnds(segments)
        self._dropped_columns = DroppedColumns()
        self.as_written = TablesAsWritten()
        self.edition = 0
        # all known tables by the 16 bytes of their ids
        self.tables: dict[bytes, TableMetadata] = {}
        self.roles = self._rules.assign({}, (), ())
        # the tables whose updates are sent, and those that are neither sent nor the filler's
        self.published: dict[bytes, PublishedTable] = {}
        self.ignored: set[bytes] = set()
        self._unseen_dropped: set[bytes] = set()
        self._were_published: set[bytes] = set()

    def published_as(self, table: TableMetadata) -> PublishedTable | None:
        """The published table that `as_written.tables_for` has returned; None if it is not published."""
        known = self.published.get(table.id.bytes)
        return None if known is None else self.as_written.published_as(table, known)

    def find_known(self, table_id: bytes) -> PublishedTable | None:
        """A table of this node, also one that the settings exclude now; None if it is not known."""
        published, table = self.published.get(table_id), self.tables.get(table_id)
        return make_published(table) if published is None and table is not None else published

    def find_on_node(self, table_id: bytes) -> PublishedTable | None:
        """Return the table as find_known does, if it was on the node at the last read."""
        return self.find_known(table_id) if table_id in self._on_node.ids else None

    def learn(self, tables: Mapping[bytes, TableMetadata]) -> None:
        """Decode the mutations of these tables, too, as if they were dropped now: another publisher has seen them."""
        self._set_tables({**tables, **self.tables})

    def note_mutation(self, mutation: bytes, messaging_version: int, segment: int, position: int) -> None:
        """Take note of what a mutation does to the schema. `position`: its end."""
        place = CommitLogPosition(segment, position)
        is_switch = self.switches.note_mutation(mutation, messaging_version, place, self.published)
        published = [table.table for table in self.published.values()]
        is_drop = self.row_ends.note_mutation(mutation, messaging_version, place, published)
        if is_switch or is_drop:
            self._save()
            self.edition += is_drop

    def load(self) -> None:
        """Read the tables that earlier runs have seen."""
        stored = self._file.read(self._notes())
        if stored is None:
            return
        self._were_published = set(stored.were_published)
        for table_id in stored.excluded & stored.tables.keys():
            if self._rules.is_selected(stored.tables[table_id]):
                self.marks.require(stored.tables[table_id], time_ns() // 1000)
        self._set_tables(stored.tables)
        if self.roles.excluded != stored.excluded:
            self._save()

    def refresh(self) -> bool:
        """Call `read_changes` until no table is in doubt; True if a table changed."""
        has_changed = self.read_changes()
        while self._reader.has_doubts:
            sleep(_RETRY_SECONDS)
            has_changed = self.read_changes() or has_changed
        return has_changed

    def read_changes(self) -> bool:
        """Read the node's schema if its version has changed since the last read; True if a table changed.

        All data that is durable in the log before this call can be decoded after it, except that of tables in doubt.
        The next call reads these again. A table whose `cdc` was switched on before this call is published from its
        first update on.
        """
        read_at = time_ns() // 1000
        read = self._reader.read_if_changed(self.tables, self._on_node.unreadable)
        has_changed = read is not None and self._merge(read)
        if self.row_ends.note_records(self._reader.truncations, self._were_published, read_at):
            self._save()
            self.edition += 1
        self._on_node = self._on_node._replace(read_at=max(self._on_node.read_at, time_ns() // 1000))
        return has_changed

    def forget_version(self) -> None:
        """Make the next refresh read the schema even if its version is unchanged."""
        self._reader.forget_version()

    def current_tables(self) -> list[PublishedTable]:
        """The published tables that were on the node at the last read, without unreadable ones."""
        not_now = self.switches.tables | self._on_node.unreadable.keys()
        return [
            table
            for table_id, table in self.published.items()
            if table_id in self._on_node.ids and table_id not in not_now
        ]

    def unreadable_tables(self) -> dict[bytes, UnreadableTable]:
        """The tables on the node that are to be published, and that this build cannot read."""
        return {
            table_id: table
            for table_id, table in self._on_node.unreadable.items()
            if table.cdc and self._rules.is_selected(table) and not self._rules.is_filler(table)
        }

    def tables_at(self, segment: int, position: int) -> list[PublishedTable]:
        """The published tables that a mutation at this place may be of, except dropped ones."""
        return [
            table
            for table_id, table in self.published.items()
            if table_id in self._on_node.ids and self.switches.is_published_at(table_id, segment, position)
        ]

    def excluded_names(self) -> list[str]:
        """The names of the tables on the node that have `cdc = true` and that the settings exclude."""
        return sorted(self.tables[table_id].qualified_name for table_id in self.roles.excluded & self._on_node.ids)

    def names_needing_snapshot(self) -> list[str]:
        """The names of the published tables on the node that are marked as needing a snapshot."""
        return sorted(table.table.qualified_name for table in self.current_tables() if table.needs_snapshot_since)

    def refusals(self) -> dict[str, str]:
        """The tables on the node that have `cdc = true` and cannot be published, by name, with the reason."""
        return {
            self.tables[table_id].qualified_name: reason
            for table_id, reason in self.roles.refusals.items()
            if table_id in self._on_node.ids
        }

    def ignore_table(self, table_id: bytes) -> None:
        """Skip the mutations of a table that was dropped before the publisher saw it."""
        self._unseen_dropped.add(table_id)
        self.ignored.add(table_id)
        self.edition += 1

    def note_snapshot(self, table_id: bytes, begun: int) -> None:
        """A snapshot that began at `begun` (µs) has ended on all hosts: what was missing before then is sent."""
        if self.marks.note_snapshot(table_id, begun):
            self._set_tables(self.tables)
            self._save()

    def require_snapshots(self, table_ids: Iterable[bytes]) -> None:
        """Mark these tables as needing a snapshot: this node's log lacks some of their rows."""
        now = time_ns() // 1000
        for table_id in self.tables.keys() & set(table_ids):
            self.marks.require(self.tables[table_id], now)
        self._set_tables(self.tables)
        self._save()

    def note_request(self, table_id: bytes, lost_at: int) -> bool:
        """Note a request as SnapshotMarks.note_request does; a mark is the same on all nodes. True if the mark of the
        last loss is dropped.
        """
        table = self.published.get(table_id)
        if table is None or not self.marks.note_request(table.table, lost_at):
            return False
        self._set_tables(self.tables)
        self._save()
        return not lost_at

    def mark_end_announced(self, table_id: bytes, end: RowsEnd) -> None:
        """A `truncate` is sent: what follows in the log needs no more attention."""
        self.row_ends.announced[table_id] = end
        self.edition += 1

    def mark_end_sent(self, table_id: bytes, end: RowsEnd) -> None:
        """Note that an end is sent; see RowEnds.mark_sent."""
        self.row_ends.mark_sent(table_id, end)
        self._set_tables(self.tables)
        self._save()

    def _merge(self, read: NodeTables) -> bool:
        """Add what is on the node to what was; an unchanged table keeps its object."""
        has_trouble = read.unreadable != self._on_node.unreadable
        current = read.tables | self._stepped_over(read.unreadable)
        gone = [self.published[table_id].table for table_id in self.published.keys() - current.keys()]
        self._on_node = self._on_node._replace(ids=set(current), unreadable=read.unreadable)
        has_dropped = self.row_ends.note_drops(gone)
        current = {
            table_id: known if (known := self.tables.get(table_id)) == table else table
            for table_id, table in current.items()
        }
        for table_id, table in current.items():
            before = self.tables.get(table_id)
            if table is not before:
                self._note_cdc(before, table)
                self._dropped_columns.note_change(before, table)
            if table.cdc:
                self.switches.switch_on(table_id)
        tables = self.tables | current
        if tables == self.tables and not has_dropped and not has_trouble:
            return False
        self._set_tables(tables)
        self._save()
        return True

    def _stepped_over(self, unreadable: Mapping[bytes, UnreadableTable]) -> dict[bytes, TableMetadata]:
        """Unreadable tables as far as they are known: enough to step over their updates."""
        found = {}
        for table_id, table in unreadable.items():
            known = self.tables.get(table_id)
            if table.stepped_over is not None:
                found[table_id] = table.stepped_over
            elif known is not None:
                found[table_id] = replace(known, cdc=table.cdc)
        return found

    def _notes(self) -> TableNotes:
        return TableNotes(self.marks, self.switches, self._dropped_columns, self.row_ends)

    def _save(self) -> None:
        self._file.write(StoredSchema(self.tables, self.roles.excluded, self._were_published), self._notes())

    def _note_cdc(self, before: TableMetadata | None, table: TableMetadata) -> None:
        """Log what happens to a table's changes, and require a snapshot if some are missing."""
        table_id, reason = table.id.bytes, self._rules.refusal_of(table, self._on_node.unreadable)
        was_published = before if before is not None and before.cdc and _is_publishable(before) else None
        if reason and (was_published or before is None or not before.cdc):
            log.warning(
                "table is not published",
                code=Code.TABLE_NOT_PUBLISHED.text,
                table=table.qualified_name,
                reason=reason,
            )
        elif was_published and not table.cdc:
            if self._rules.is_selected(table):
                self.switches.switch_off(table_id, was_published.altered_at)
            log.warning("cdc was switched off", code=Code.TABLE_CDC_DISABLED.text, table=table.qualified_name)
        elif before is not None and not was_published and table.cdc and not reason:
            # It is not yet on for a snapshot that was asked for before the last read, and on for the worker of a later
            # one. The ALTER has another node's time.
            self.marks.require(table, self._on_node.read_at or time_ns() // 1000)

    def _set_tables(self, tables: dict[bytes, TableMetadata]) -> None:
        self.tables = tables
        self.roles = self._rules.assign(tables, self._on_node.unreadable, self.switches.tables)
        published = {
            table_id: PublishedTable(
                table, table_id, self._digests.of(table), self.marks.since(table_id), self.row_ends.sent_at(table_id)
            )
            for table_id, table in self.roles.published.items()
        }
        # One object for each state of a table: an unchanged table keeps its object.
        self.published = {
            table_id: known if (known := self.published.get(table_id)) == table else table
            for table_id, table in published.items()
        }
        self._were_published |= self.published.keys()
        self.row_ends.published = self.published.keys()
        self.as_written.set_tables(tables, self._dropped_columns.doubts(tables))
        self.edition += 1
        self.ignored = (tables.keys() | self._unseen_dropped) - self.published.keys() - self.roles.filler_ids


def _is_publishable(table: TableMetadata) -> bool:
    """An unreadable table waits until it can be read, and lacks nothing then."""
    return not refusal(table) or is_unreadable(table)
