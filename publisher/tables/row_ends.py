"""Find the place in the log up to which a truncated or dropped table has lost its rows (decision 0035).

For a TRUNCATE this is `replayAfter`, which the node keeps in system.local: up to there the node itself replays nothing
of the table. It does not apply hints and batches from before `truncatedAt`, and what it applies later is in the log
after `replayAfter`. For a DROP it is the mutation of system_schema that drops the table. That mutation may be in a
segment without CDC data, which never reaches cdc_raw. Then it is the end of the newest segment at the time when the
drop was first seen.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from time import time_ns
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import structlog

from cassandra_storage.formats.commitlog.segment import CommitLogPosition
from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.mutation import first_table, read_mutation
from cassandra_storage.formats.schema.schema_keyspace import KEYSPACE, SCHEMA_TABLES, system_table_id
from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from cassandra_storage.formats.schema.tables import TableMetadata

EndKind: TypeAlias = Literal["truncate", "drop"]

_TABLES = system_table_id(KEYSPACE, "tables").bytes
LAST_POSITION = 2**31 - 1
_RECORD = struct.Struct(">qiq")  # SystemKeyspace.truncationAsMapEntry: replayAfter, and the time in ms

log = structlog.get_logger(__name__)


class LogSegments(NamedTuple):
    """Tells the numbers of a node's commit log segments."""

    # Returns the oldest segment that the publisher may still read; 0 if it is unknown.
    oldest: Callable[[], int] = int
    # Returns the newest segment that the node has begun.
    newest: Callable[[], int] = int


class RowsEnd(NamedTuple):
    """The end of all rows that a table had in the log up to a position."""

    # Why they end.
    kind: EndKind
    # The position in the log.
    position: CommitLogPosition
    # when it was truncated or dropped, in ms
    at: int
    # when the publisher saw it, in µs
    noticed_at: int


class _Truncation(NamedTuple):
    """The last record of a table in system.local."""

    # Its time (ms). It is 1 ms after that of the record before if the node's clock was set back since, so that a later
    # end always has a later time.
    at: int
    # None if the publisher's version before this one has stored it
    position: CommitLogPosition | None


class _Drop(NamedTuple):
    """A deletion of rows of system_schema.tables in the log; `table` None: of the whole keyspace. dropped_at: µs."""

    keyspace: str
    table: str | None
    dropped_at: int


class RowEnds:
    """The ends of this node's tables. `announced`: those that are pending and whose `truncate` is sent.
    `records_read_at`: up to when (µs) the truncation records are known. `published`: the ids of the tables that are
    published.
    """

    def __init__(self, segments: LogSegments) -> None:
        self._segments = segments
        self._truncated: dict[bytes, _Truncation] = {}
        self._dropped: dict[bytes, int] = {}
        self._sent: dict[bytes, int] = {}
        self._records: Mapping[UUID, bytes] = {}
        self._knows_records = False
        self._was_loaded = False
        self._pending: dict[bytes, RowsEnd] = {}
        self._later_drops: dict[bytes, RowsEnd] = {}  # of tables whose truncation is pending, which is sent first
        self.published: Collection[bytes] = ()
        self.announced: dict[bytes, RowsEnd] = {}
        self.records_read_at = 0

    @property
    def pending(self) -> dict[bytes, RowsEnd]:
        """Return the ends that not all raw partitions have, by the ids of their tables. That of a table which is not
        published any more waits until it is published again: it keeps no segment, and nothing is sent.
        """
        return {table_id: end for table_id, end in self._pending.items() if table_id in self.published}

    def sent_at(self, table_id: bytes) -> int:
        """The time (ms) of the last end that every raw partition of the table has; 0 if there is none."""
        return self._sent.get(table_id, 0)

    def recorded_at(self, table_id: bytes) -> int:
        """When the node last truncated the table (ms); 0 if never, as far as it remembers."""
        known = self._truncated.get(table_id)
        return 0 if known is None else known.at

    def recorded_to(self, table_id: bytes) -> CommitLogPosition:
        """Return the place in the log up to which the last truncation ended the table's rows; the first place if none
        is known.
        """
        known = self._truncated.get(table_id)
        return CommitLogPosition(0, 0) if known is None or known.position is None else known.position

    def clock_before(self, table_id: bytes, clock: int) -> int:
        """A time (µs) up to which all raw partitions of the table have everything: an end that is not sent is not."""
        end = self.pending.get(table_id)
        return clock if end is None else min(clock, end.at * 1000, end.noticed_at)

    @property
    def unannounced(self) -> set[bytes]:
        """The tables that need a message at a place in the log."""
        return {table_id for table_id, end in self.pending.items() if self.announced.get(table_id) != end}

    @property
    def followed_by_drop(self) -> list[bytes]:
        """The tables whose pending truncation a drop follows. No other truncation does: what the log has after it can
        be sent.
        """
        return [table_id for table_id in self._later_drops if table_id in self.published]

    def is_followed_by_drop(self, table_id: bytes) -> bool:
        """Whether a drop follows the table's pending truncation."""
        return table_id in self._later_drops

    def skip_to_drop(self, table_id: bytes, position: CommitLogPosition) -> None:
        """Let the drop replace the truncation before it, for what the log has of a table with the same id after it."""
        drop = self._later_drops.get(table_id)
        if drop is not None and position > drop.position:
            self._pending[table_id] = self._later_drops.pop(table_id)

    @property
    def first_needed_segment(self) -> int | None:
        """The log from this segment on may have to be read again; None if none of it. After a drop nothing follows."""
        truncations = (end for end in self.pending.values() if end.kind == "truncate")
        return min((end.position.segment_id for end in truncations), default=None)

    def note_records(self, records: Mapping[UUID, bytes], published: Collection[bytes], read_at: int) -> bool:
        """Take note of system.local's truncated_at, read at a time (µs); True if that changes something.

        published: the ids of the tables that are or were published. Truncations from before the publisher's time are no
        events: the log that it reads has nothing from before them.
        """
        self.records_read_at = read_at
        if self._knows_records and records == self._records:
            return False
        self._records = dict(records)
        has_changed = False
        for table_id, record in records.items():
            position, at = _parse(record)
            known = self._truncated.get(table_id.bytes)
            is_known = known is not None and known.position is None and known.at == at
            if known is not None and known.position is not None and position > known.position:
                at = max(at, known.at + 1)
            elif known is not None and at <= known.at and not is_known:
                continue
            has_changed = True
            self._truncated[table_id.bytes] = _Truncation(at, position)
            if table_id.bytes in published and not is_known and not self._is_old(position):
                self._end(table_id.bytes, "truncate", position, at)
        self._knows_records = self._was_loaded = True
        return has_changed

    def note_drops(self, gone: Iterable[TableMetadata]) -> bool:
        """Note that these published tables are no longer on the node; return True if one was not known to be dropped.

        Drops from before the publisher followed them are no events.
        """
        has_changed, now_ms = False, -(-time_ns() // 1_000_000)
        for table in gone:
            if self._dropped.get(table.id.bytes, -1) * 1000 >= table.altered_at:
                continue
            has_changed = True
            if self._was_loaded:
                self._drop(table, CommitLogPosition(self._segments.newest(), LAST_POSITION), now_ms)
            else:
                self._dropped[table.id.bytes] = now_ms
        return has_changed

    def note_mutation(
        self, mutation: bytes, messaging_version: int, position: CommitLogPosition, published: Iterable[TableMetadata]
    ) -> bool:
        """Take note of the published tables that a mutation of system_schema drops; True if there is one."""
        if first_table(mutation) not in SCHEMA_TABLES:
            return False
        has_changed = False
        for drop in _drops(mutation, messaging_version):
            for table in published:
                if table.keyspace != drop.keyspace or drop.table not in {None, table.name}:
                    continue
                if table.altered_at >= drop.dropped_at:
                    continue  # it was created after that
                ends = self._later_drops if table.id.bytes in self._later_drops else self._pending
                pending = ends.get(table.id.bytes)
                if pending is not None and pending.kind == "drop":
                    ends[table.id.bytes] = pending._replace(position=min(pending.position, position))
                    self._dropped[table.id.bytes] = max(self._dropped[table.id.bytes], -(-drop.dropped_at // 1000))
                    has_changed = True
                elif self._dropped.get(table.id.bytes, -1) * 1000 < drop.dropped_at:
                    self._drop(table, position, -(-drop.dropped_at // 1000))
                    has_changed = True
        return has_changed

    def mark_sent(self, table_id: bytes, end: RowsEnd) -> None:
        """Every raw partition of the table has acknowledged the end, and what was sent again after it."""
        self._sent[table_id] = max(end.at, self._sent.get(table_id, 0))
        if self._pending.get(table_id) == end:
            del self._pending[table_id]
            self.announced.pop(table_id, None)
            if table_id in self._later_drops:
                self._pending[table_id] = self._later_drops.pop(table_id)

    def to_json(self) -> dict[str, Any]:
        return {
            "truncated": {table_id.hex(): known.at for table_id, known in self._truncated.items()},
            "truncated_places": {
                table_id.hex(): [*known.position]
                for table_id, known in self._truncated.items()
                if known.position is not None
            },
            "dropped": {table_id.hex(): at for table_id, at in self._dropped.items()},
            "sent": {table_id.hex(): at for table_id, at in self._sent.items()},
            "pending": _ends_to_json(self._pending),
            "later_drops": _ends_to_json(self._later_drops),
        }

    def load(self, stored: Mapping[str, Any] | None) -> None:
        """Load to_json's value; None if the publisher did not follow truncations when it ran last. KeyError,
        ValueError, AttributeError or TypeError if it is damaged.
        """
        if stored is None:
            self._segments = self._segments._replace(oldest=_after_all)
            return
        self._was_loaded = True
        places = stored.get("truncated_places", {})
        self._truncated = {
            bytes.fromhex(table_id): _Truncation(int(at), _place(places[table_id]) if table_id in places else None)
            for table_id, at in stored["truncated"].items()
        }
        self._dropped, self._sent = (
            {bytes.fromhex(table_id): int(at) for table_id, at in stored[name].items()} for name in ("dropped", "sent")
        )
        self._pending = _ends_of_json(stored["pending"])
        self._later_drops = _ends_of_json(stored.get("later_drops", {}))

    def _is_old(self, position: CommitLogPosition) -> bool:
        return not self._was_loaded and position.segment_id < self._segments.oldest()

    def _drop(self, table: TableMetadata, position: CommitLogPosition, at: int) -> None:
        self._dropped[table.id.bytes] = at
        self._end(table.id.bytes, "drop", position, at)
        log.warning("a table was dropped", table=table.qualified_name)

    def _end(self, table_id: bytes, kind: EndKind, position: CommitLogPosition, at: int) -> None:
        """A later end of a table includes the one before, but a drop does not: the log may have writes between."""
        before = self._pending.get(table_id)
        end = RowsEnd(kind, position, at, time_ns() // 1000)
        if before is not None and before.kind == "truncate" and kind == "drop":
            self._later_drops[table_id] = end
        elif before is None or position >= before.position:
            self._pending[table_id] = end


def _ends_to_json(ends: Mapping[bytes, RowsEnd]) -> dict[str, list[Any]]:
    return {table_id.hex(): [end.kind, *end.position, end.at, end.noticed_at] for table_id, end in ends.items()}


def _ends_of_json(stored: Mapping[str, Sequence[Any]]) -> dict[bytes, RowsEnd]:
    return {
        bytes.fromhex(table_id): RowsEnd(kind, _place((segment, position)), int(at), int(noticed_at))
        for table_id, (kind, segment, position, at, noticed_at) in stored.items()
    }


def _place(stored: Sequence[Any]) -> CommitLogPosition:
    segment, position = stored
    return CommitLogPosition(int(segment), int(position))


def _after_all() -> int:
    return 2**63 - 1


def _parse(record: bytes) -> tuple[CommitLogPosition, int]:
    """replayAfter and truncatedAt (ms). CdcError CASSANDRA_QUERY for another form."""
    if len(record) != _RECORD.size:
        raise CdcError(
            Code.CASSANDRA_QUERY,
            f"A record of truncated_at in system.local has {len(record)} bytes, not {_RECORD.size}.",
            "This build supports Cassandra 3.11 to 5.0; report the node's version.",
        )
    segment, position, at = _RECORD.unpack(record)
    return CommitLogPosition(segment, position), at


def _drops(mutation: bytes, messaging_version: int) -> Iterator[_Drop]:
    """Yield the drops. Yield nothing if the mutation cannot be read: the newest segment is the end then."""
    try:
        updates = read_mutation(mutation, messaging_version, SCHEMA_TABLES)
    except FormatError:
        return
    for update in updates:
        if update.table.id.bytes != _TABLES:
            continue
        keyspace = update.partition_key.decode()
        if not update.deletion.is_live:
            yield _Drop(keyspace, None, update.deletion.marked_for_delete_at)
        for row in update.rows:
            [name] = row.clustering
            # CREATE and ALTER delete what was there before, and write it again (Row.SimpleBuilder.deletePrevious).
            if not row.deletion.time.is_live and not row.columns and name is not None:
                yield _Drop(keyspace, name.decode(), row.deletion.time.marked_for_delete_at)
