"""The tables of the node: read from system_schema, and stored in `schema.json`.

A dropped table stays known, also after a restart: the log may still hold its mutations. The newest schema of an altered
table is enough: older updates are read with its dropped columns, whose types it has (except one kind: see
publisher.tables.dropped_columns). Updates name neither keys nor the fields of user types, and Cassandra never alters a
type so that it is serialized differently.
"""

from __future__ import annotations

from dataclasses import replace
from time import sleep, time_ns
from typing import TYPE_CHECKING, NamedTuple

import structlog

from cassandra_storage.formats.commitlog.segment import CommitLogPosition
from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.readings import Readings
from cassandra_storage.formats.schema.tables import TableMetadata
from cassandra_storage.formats.versions import VERSION_3014
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages import tables as table_messages
from cdc_common.messages.errors import MessageError
from publisher import state_files
from publisher.tables.cdc_switches import CdcSwitches
from publisher.tables.dropped_columns import DroppedColumns
from publisher.tables.half_read import HalfRead
from publisher.tables.per_table import PerTable
from publisher.tables.refusals import is_unreadable, refusal
from publisher.tables.row_ends import LogSegments, RowEnds
from publisher.tables.selection import ALL_TABLES
from publisher.tables.snapshot_marks import SnapshotMarks
from publisher.tables.stored_tables import table_to_json, tables_from_json
from publisher.tables.system_schema import SystemSchema, read_local

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from uuid import UUID

    from cassandra_storage.formats.schema.schema_rows import UnreadableTable
    from publisher.tables.row_ends import RowsEnd
    from publisher.tables.selection import Selection
    from publisher.tables.system_schema import NodeTables, RunQuery

log = structlog.get_logger(__name__)

_NO_SEGMENTS = LogSegments()
_RETRY_SECONDS = 0.1  # for a table that cannot be read: it may just be made or altered


class PublishedTable(NamedTuple):
    """A table with `cdc = true`, the bytes of its id, and the digest of its schema. `needs_snapshot_since`: rows are
    missing, for example because `cdc` was off, and a snapshot brings them that is asked for after that time (µs, of
    this machine); 0 if the table needs none. `truncated_at`: see RowEnds.sent_at.
    """

    table: TableMetadata
    id: bytes
    digest: bytes
    needs_snapshot_since: int = 0
    truncated_at: int = 0


class NodeSchema:
    """The node's tables, and its dropped tables.

    `tables`: all known tables by the 16 bytes of their ids; `published`: those whose updates are sent; `filler_ids`:
    the filler's tables; `ignored`: all others; `excluded`: the ignored ones with `cdc = true`, which the settings
    exclude; `unreadable`: those on the node that this build cannot read now. A table without `cdc` that is unreadable
    is one of the ignored ones. `edition` changes with every change of the tables and of their ends.
    """

    def __init__(
        self,
        file: Path,
        run_query: RunQuery,
        filler: tuple[str, str],
        selection: Selection = ALL_TABLES,
        segments: LogSegments = _NO_SEGMENTS,
    ) -> None:
        self._file = file
        self._run_query = run_query
        self._system_schema = SystemSchema(run_query)
        self._stored = PerTable(table_to_json)
        self._states = PerTable(_digest_of)
        self._refused = PerTable(refusal)
        self._filler = filler
        self._selection = selection
        self._version: UUID | None = None
        self._looked_at = 0  # µs
        self._current: set[bytes] = set()
        self.edition = 0
        self.tables: dict[bytes, TableMetadata] = {}
        self.published: dict[bytes, PublishedTable] = {}
        self.filler_ids: set[bytes] = set()
        self.ignored: set[bytes] = set()
        self.excluded: set[bytes] = set()
        self.unreadable: dict[bytes, UnreadableTable] = {}
        self._unseen_dropped: set[bytes] = set()
        self._marks = SnapshotMarks()
        self._refusals: dict[bytes, str] = {}
        self._were_published: set[bytes] = set()
        self._switches = CdcSwitches(segments.newest)
        self.row_ends = RowEnds(segments)
        self._half_read = HalfRead()
        self._dropped_columns = DroppedColumns()
        self._readings = Readings({}, {})
        self._in_doubt: frozenset[bytes] = frozenset()
        self._as_written: dict[int, PublishedTable] = {}

    def in_doubt(self, messaging_version: int) -> frozenset[bytes]:
        """The tables whose updates may have columns whose type system_schema no longer shows."""
        return self._in_doubt if messaging_version <= VERSION_3014 else frozenset()  # only 3.11 drops such columns

    def tables_for(self, mutation: bytes, messaging_version: int) -> Mapping[bytes, TableMetadata]:
        """The tables to decode a mutation with: `tables`, except for those that it has with columns whose
        type system_schema no longer shows. FormatError: see Readings.find_tables.
        """
        if not self.in_doubt(messaging_version) or not self._readings.concern(mutation):
            return self.tables
        return {**self.tables, **self._readings.find_tables(mutation, messaging_version)}

    def published_as(self, table: TableMetadata) -> PublishedTable | None:
        """The published table that `tables_for` has returned; None if it is not published."""
        table_id = table.id.bytes
        known = self.published.get(table_id)
        if known is None or table is known.table:
            return known
        if id(table) not in self._as_written:
            self._as_written[id(table)] = _published(table, known.needs_snapshot_since, known.truncated_at)
        return self._as_written[id(table)]

    def find_known(self, table_id: bytes) -> PublishedTable | None:
        """A table of this node, also one that the settings exclude now; None if it is not known."""
        published, table = self.published.get(table_id), self.tables.get(table_id)
        return _published(table) if published is None and table is not None else published

    def find_on_node(self, table_id: bytes) -> PublishedTable | None:
        """As find_known, of the tables that were on the node at the last read."""
        return self.find_known(table_id) if table_id in self._current else None

    def learn(self, tables: Mapping[bytes, TableMetadata]) -> None:
        """Decode the mutations of these tables, too, as if they were dropped now: another publisher has seen them."""
        self._set_tables({**tables, **self.tables})

    def is_published_at(self, table_id: bytes, segment: int, position: int) -> bool:
        """Return False if a mutation of a published table at this place was written after its cdc was switched off."""
        return self._switches.is_published_at(table_id, segment, position)

    def follow_log(self, mutation: bytes, messaging_version: int, segment: int, position: int) -> None:
        """Take note of what a mutation does to the schema. `position`: its end."""
        place = CommitLogPosition(segment, position)
        is_switch = self._switches.follow_log(mutation, messaging_version, place, self.published)
        published = [each.table for each in self.published.values()]
        is_drop = self.row_ends.follow_log(mutation, messaging_version, place, published)
        if is_switch or is_drop:
            self._save()
            self.edition += is_drop

    def load(self) -> None:
        """Read the tables that earlier runs have seen."""
        stored = state_files.read(self._file)
        if stored is None:
            return
        try:
            known = tables_from_json(stored["tables"])
            self._marks.load(stored)
            excluded = {bytes.fromhex(table) for table in stored["excluded"]}
            self._switches.load(stored.get("switched_off", {}))
            self._dropped_columns.load(stored.get("dropped_columns", {}))
            self.row_ends.load(stored.get("row_ends"))
            self._were_published = {bytes.fromhex(table) for table in stored.get("were_published", ())}
        except (KeyError, TypeError, ValueError, AttributeError, MessageError) as error:
            raise CdcError(
                Code.POSITION_FILE,
                f"The schema file {self._file} is damaged.",
                "Restore it. Without it, mutations of dropped tables cannot be decoded, and what was to be sent of a"
                " TRUNCATE, a DROP or a switch of cdc is lost.",
            ) from error
        if "were_published" not in stored:  # as far as an earlier build has stored it
            self._were_published = {table_id for table_id, table in known.items() if table.cdc} - excluded
        for table_id in excluded & known.keys():
            if self._is_selected(known[table_id]):
                self._marks.require(known[table_id], time_ns() // 1000)
        self._set_tables(known)
        if self.excluded != excluded:
            self._save()

    def refresh(self) -> bool:
        """As `follow`, until no table is in doubt."""
        has_changed = self.follow()
        while self._half_read.is_any:
            sleep(_RETRY_SECONDS)
            has_changed = self.follow() or has_changed
        return has_changed

    def follow(self) -> bool:
        """Read the node's schema if its version has changed since the last read; True if a table changed.

        All data that is durable in the log before this call can be decoded after it, except that of tables in doubt. A
        table whose `cdc` was switched on before this call is published from its first update on.

        A node writes the tables of system_schema one after the other, and its new version last: a half change may be
        read with the old version. The tables that it leaves in doubt are read again by the next call.
        """
        has_changed, read_at = False, time_ns() // 1000
        version, records = read_local(self._run_query)
        while version != self._version or self._half_read.is_any:
            current = self._read_tables()
            before, (version, _) = version, read_local(self._run_query)
            if version == before:
                self._version = version
                has_changed = self._merge(self._half_read.settle(current, self.tables, self.unreadable)) or has_changed
                break
        if self.row_ends.follow_records(records, self._were_published, read_at):
            self._save()
            self.edition += 1
        self._looked_at = max(self._looked_at, time_ns() // 1000)
        return has_changed

    def _read_tables(self) -> NodeTables:
        try:
            return self._system_schema.read()
        except FormatError as error:
            raise _unparsable(error) from error

    def current_tables(self) -> list[PublishedTable]:
        """The published tables that were on the node at the last read, without unreadable ones."""
        not_now = self._switches.tables | self.unreadable.keys()
        return [
            table for table_id, table in self.published.items() if table_id in self._current and table_id not in not_now
        ]

    def unreadable_tables(self) -> dict[bytes, UnreadableTable]:
        """The tables on the node that are to be published, and that this build cannot read."""
        return {
            table_id: table
            for table_id, table in self.unreadable.items()
            if table.cdc
            and self._selection.includes(table.keyspace, table.name)
            and (table.keyspace, table.name) != self._filler
        }

    def unpublished_in(self, segment: int) -> dict[bytes, bool]:
        """See CdcSwitches.unpublished_in."""
        return self._switches.unpublished_in(segment)

    def tables_at(self, segment: int, position: int) -> list[PublishedTable]:
        """The published tables that a mutation at this place may be of, except dropped ones."""
        return [
            table
            for table_id, table in self.published.items()
            if table_id in self._current and self.is_published_at(table_id, segment, position)
        ]

    def excluded_names(self) -> list[str]:
        """The names of the tables on the node that have `cdc = true` and that the settings exclude."""
        return sorted(self.tables[table_id].qualified_name for table_id in self.excluded & self._current)

    def names_needing_snapshot(self) -> list[str]:
        """The names of the published tables on the node that are marked as needing a snapshot."""
        return sorted(each.table.qualified_name for each in self.current_tables() if each.needs_snapshot_since)

    def refusals(self) -> dict[str, str]:
        """The tables on the node that have `cdc = true` and cannot be published, by name, with the reason."""
        return {
            self.tables[table_id].qualified_name: reason
            for table_id, reason in self._refusals.items()
            if table_id in self._current
        }

    def forget_version(self) -> None:
        """Make the next refresh read the schema even if its version is unchanged."""
        self._version = None

    def name_in_log(self, table_id: bytes, otherwise: str = "unknown") -> str:
        """The name of a table by the schema changes in the log; `otherwise` if these have not shown it."""
        return self._switches.names.get(table_id, otherwise)

    def ignore_table(self, table_id: bytes) -> None:
        """Skip the mutations of a table that was dropped before the publisher saw it."""
        self._unseen_dropped.add(table_id)
        self.ignored.add(table_id)
        self.edition += 1

    def note_snapshot(self, table_id: bytes, begun: int) -> None:
        """A snapshot that began at `begun` (µs) has ended on all hosts: what was missing before then is sent."""
        if self._marks.note_snapshot(table_id, begun):
            self._set_tables(self.tables)
            self._save()

    def require_snapshots(self, table_ids: Iterable[bytes]) -> None:
        """What this node has of these tables cannot all be sent from its log."""
        now = time_ns() // 1000
        for table_id in self.tables.keys() & set(table_ids):
            self._marks.require(self.tables[table_id], now)
        self._set_tables(self.tables)
        self._save()

    def requested_at(self, table_id: bytes) -> int:
        """See SnapshotMarks.requested_at."""
        return self._marks.requested_at(table_id)

    def note_request(self, table_id: bytes, lost_at: int) -> bool:
        """See SnapshotMarks.note_request; a mark is the same on all nodes. True if the mark of the last loss is
        dropped.
        """
        table = self.published.get(table_id)
        if table is None or not self._marks.note_request(table.table, lost_at):
            return False
        self._set_tables(self.tables)
        self._save()
        return not lost_at

    def mark_end_announced(self, table_id: bytes, end: RowsEnd) -> None:
        """A `truncate` is sent: what follows in the log needs no more attention."""
        self.row_ends.announced[table_id] = end
        self.edition += 1

    def mark_end_sent(self, table_id: bytes, end: RowsEnd) -> None:
        """See RowEnds.mark_sent."""
        self.row_ends.mark_sent(table_id, end)
        self._set_tables(self.tables)
        self._save()

    def _merge(self, read: NodeTables) -> bool:
        """Add what is on the node to what was; an unchanged table keeps its object."""
        has_trouble = read.unreadable != self.unreadable
        self.unreadable = read.unreadable
        current = read.tables | self._stepped_over(read.unreadable)
        gone = [self.published[table_id].table for table_id in self.published.keys() - current.keys()]
        self._current = set(current)
        has_dropped = self.row_ends.follow_drops(gone)
        current = {
            table_id: known if (known := self.tables.get(table_id)) == table else table
            for table_id, table in current.items()
        }
        for table_id, table in current.items():
            before = self.tables.get(table_id)
            if table is not before:
                self._follow_cdc(before, table)
                self._dropped_columns.follow(before, table)
            if table.cdc:
                self._switches.switch_on(table_id)
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

    def _save(self) -> None:
        excluded = sorted(table_id.hex() for table_id in self.excluded)
        state_files.write(
            self._file,
            {
                "tables": [self._stored.of(table) for table in self.tables.values()],
                **self._marks.to_json(),
                "excluded": excluded,
                "were_published": sorted(table_id.hex() for table_id in self._were_published),
                "switched_off": self._switches.to_json(),
                "dropped_columns": self._dropped_columns.to_json(),
                "row_ends": self.row_ends.to_json(),
            },
        )

    def _follow_cdc(self, before: TableMetadata | None, table: TableMetadata) -> None:
        """Log what happens to a table's changes, and require a snapshot if some are missing."""
        table_id, reason = table.id.bytes, self._refusal(table)
        was_published = before if before is not None and before.cdc and _is_publishable(before) else None
        if reason and (was_published or before is None or not before.cdc):
            log.warning(
                "table is not published",
                code=Code.TABLE_NOT_PUBLISHED.text,
                table=table.qualified_name,
                reason=reason,
            )
        elif was_published and not table.cdc:
            if self._is_selected(table):
                self._switches.switch_off(table_id, was_published.altered_at)
            log.warning("cdc was switched off", code=Code.TABLE_CDC_DISABLED.text, table=table.qualified_name)
        elif before is not None and not was_published and table.cdc and not reason:
            # It is not yet on for a snapshot that was asked for before the last look, and on for the worker of a later
            # one. The ALTER has another node's time.
            self._marks.require(table, self._looked_at or time_ns() // 1000)

    def _refusal(self, table: TableMetadata) -> str:
        """Why a table with `cdc = true` is not published; an unreadable one waits instead."""
        return self._refused.of(table) if table.cdc and table.id.bytes not in self.unreadable else ""

    def _is_selected(self, table: TableMetadata) -> bool:
        return self._selection.includes(table.keyspace, table.name)

    def _set_tables(self, tables: dict[bytes, TableMetadata]) -> None:
        self.tables = tables
        self.filler_ids = {
            table_id for table_id, table in tables.items() if (table.keyspace, table.name) == self._filler
        }
        reasons = {table_id: self._refusal(table) for table_id, table in tables.items()}
        self._refusals = {table_id: reason for table_id, reason in reasons.items() if reason}
        switched_off = self._switches.tables
        tracked = {
            table_id: table
            for table_id, table in tables.items()
            if (table.cdc or table_id in switched_off)
            and table_id not in self._refusals
            and table_id not in self.filler_ids
        }
        self.excluded = {table_id for table_id, table in tracked.items() if not self._is_selected(table)}
        published = {
            table_id: PublishedTable(
                table, table_id, self._states.of(table), self._marks.since(table_id), self.row_ends.sent_at(table_id)
            )
            for table_id, table in tracked.items()
            if table_id not in self.excluded
        }
        # One object for each state of a table: an unchanged table keeps its object.
        self.published = {
            table_id: known if (known := self.published.get(table_id)) == table else table
            for table_id, table in published.items()
        }
        self._were_published |= self.published.keys()
        self.row_ends.published = self.published.keys()
        doubts = self._dropped_columns.doubts(tables)
        self._readings = Readings(tables, doubts)
        self._in_doubt = frozenset(doubts)
        self._as_written = {}
        self.edition += 1
        self.ignored = (tables.keys() | self._unseen_dropped) - self.published.keys() - self.filler_ids


def _is_publishable(table: TableMetadata) -> bool:
    """An unreadable table waits until it can be read, and lacks nothing then."""
    return not refusal(table) or is_unreadable(table)


def _published(table: TableMetadata, needs_snapshot_since: int = 0, truncated_at: int = 0) -> PublishedTable:
    return PublishedTable(table, table.id.bytes, _digest_of(table), needs_snapshot_since, truncated_at)


def _digest_of(table: TableMetadata) -> bytes:
    return table_messages.digest(table_messages.canonical(table))


def _unparsable(error: FormatError) -> CdcError:
    return CdcError(
        Code.CASSANDRA_QUERY,
        f"The node's system_schema cannot be parsed: {error.reason}.",
        "This build supports Cassandra 3.11 to 5.0; report the error with the table's DESCRIBE.",
    )
