"""The end of a repair: what it holds replaces a Cassandra partition, and each row that differs is emitted.

The rows keep their row_sequences, so that each chain continues. If this is too much for one chunk, the next one
continues: the rows that are not replaced yet are still held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.rows.deletion import NO_LIVENESS, NO_ROW_DELETION, NO_TIMESTAMP, DeletionTime
from cassandra_storage.formats.rows.row import Row
from materializer.fold.partition import RANGES_AT_ONCE, PartitionFold
from materializer.rows.continuation import FanOut
from materializer.rows.keys import FACTS_SECTION, RANGES_SECTION, ROWS_END, ROWS_SECTION, STATIC_SECTION
from materializer.rows.ranges import DeletedRange

if TYPE_CHECKING:
    from materializer.fold.held import HeldPartition
    from materializer.fold.tools import Event, TableTools
    from materializer.rows.overlay import RowValue
    from materializer.rows.partition_state import PartitionState

_DELETION, _STATIC_ROW = FACTS_SECTION, FACTS_SECTION + b"\x01"  # places where a part begins


class PartitionReplacement(PartitionFold):
    """Call `replace` or `resume`, once. BudgetSpentError as PartitionFold, with a continuation."""

    def __init__(self, tools: TableTools, state: PartitionState, event: Event, held: HeldPartition) -> None:
        super().__init__(tools, state, event)
        self._held = held
        self._gone = DeletionTime(NO_TIMESTAMP, event.now.after)  # deletes nothing; its second starts gc_grace

    def replace(self) -> None:
        """Replace the deletion and the static row; then the range tombstones and the rows, maybe in parts."""
        self._spend(None)
        self._fan_out(FanOut("repair", repair=self._held.repair.id.bytes), _DELETION)
        self._finish()

    def _fan_out(self, fan_out: FanOut, at: bytes) -> None:
        """`at`: _DELETION or _STATIC_ROW; in RANGES_SECTION old range tombstones are dropped; STATIC_SECTION stands for
        the adding of new ones, from a clustering on.
        """
        if at == _DELETION:
            self._replace_deletion(fan_out)
            at = _STATIC_ROW
        if at == _STATIC_ROW:
            self._replace_static(fan_out)
            at = RANGES_SECTION
        if at[:1] == RANGES_SECTION:
            self._drop_old_ranges(fan_out, at[1:])
            at = STATIC_SECTION
        if at[:1] == STATIC_SECTION:
            self._add_new_ranges(fan_out, at[1:])
            at = ROWS_SECTION
        self._replace_rows(fan_out, at[1:])

    def _replace_deletion(self, fan_out: FanOut) -> None:
        deletion = self._held.take_deletion()
        if deletion is None:
            self._stop(fan_out, _DELETION)
        self._state.put_facts(self._state.facts._replace(deletion=deletion))

    def _replace_static(self, fan_out: FanOut) -> None:
        static, is_whole = self._held.take_static()
        if not is_whole:
            self._stop(fan_out, _STATIC_ROW)
        deletion = self._state.facts.deletion
        self._put_static(None if static is None else self._tools.merger.merge((static,), deletion))

    def _drop_old_ranges(self, fan_out: FanOut, first: bytes) -> None:
        if not self._state.facts.has_ranges:
            return
        for piece in self._state.ranges.pieces(first):
            self._stop_if_spent(fan_out, RANGES_SECTION + piece.first)
            self._tools.budget.spend(len(piece.last))
            self._state.ranges.drop(piece)
        self._state.put_facts(self._state.facts._replace(has_ranges=False))

    def _add_new_ranges(self, fan_out: FanOut, first: bytes) -> None:
        """first: where the rest of the first one begins; empty for its own beginning."""
        for key, tombstone in self._held.ranges():
            if tombstone is None:
                self._held.delete(key)
                self._stop_if_spent(fan_out, STATIC_SECTION)
                continue
            last = self._tools.bound_key(tombstone.end)
            first = first or self._tools.bound_key(tombstone.start)
            if tombstone.deletion.supersedes(self._state.facts.deletion):
                self._state.put_facts(self._state.facts._replace(has_ranges=True))
                while first < last:
                    self._stop_if_spent(fan_out, STATIC_SECTION + first)
                    most = max(2, min(RANGES_AT_ONCE, self._tools.budget.rows))
                    first, touched = self._state.ranges.add(DeletedRange(first, last, tombstone.deletion), most)
                    self._tools.budget.spend(0, touched)
            self._held.delete(key)
            first = b""
            self._stop_if_spent(fan_out, STATIC_SECTION)

    def _replace_rows(self, fan_out: FanOut, first: bytes) -> None:
        prefix = self._state.prefix
        start = len(prefix) + 1
        stored = self._tools.overlay.scan_rows(prefix + ROWS_SECTION + first, prefix + ROWS_END)
        held = self._held.rows(first)
        old = next(stored, None)
        while old is not None or held.clustering_key is not None:
            keys = [key for key in (None if old is None else old[0][start:], held.clustering_key) if key is not None]
            clustering_key = min(keys)
            self._stop_if_spent(fan_out, ROWS_SECTION + clustering_key)
            new, is_whole = held.take() if held.clustering_key == clustering_key else (None, True)
            if not is_whole:
                self._stop(fan_out, ROWS_SECTION + clustering_key)
            value: RowValue | None = None
            if old is not None and old[0][start:] == clustering_key:
                value, old = old[1], next(stored, None)
            self._replace_one(clustering_key, value, new)

    def _replace_one(self, clustering_key: bytes, value: RowValue | None, new: Row | None) -> None:
        """value: of the row in the state; new: what is held of it."""
        stored = None if value is None else self._tools.codec.decode(value, is_static=False)
        self._spend(stored)
        active = self._active_deletion(clustering_key)
        if new is not None:
            merged = self._tools.merger.merge((new,), active)
        elif stored is not None:
            merged = Row(stored.row.clustering, {}, NO_LIVENESS, NO_ROW_DELETION)
        else:
            return
        key = self._state.prefix + ROWS_SECTION + clustering_key
        self._replace_row(key, stored, merged, self._gone if active.is_live else active)
