"""One write, or the expiry of one second, in one Cassandra partition: which rows change, and how."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NoReturn

from cassandra_storage.formats.rows.deletion import RowDeletion
from cdc_common.messages.changes import RowChange, change_op
from materializer.fold.native_fold import RowsChange
from materializer.rows.budget import BudgetSpentError, row_size
from materializer.rows.continuation import FanOut, FanOutContinuation, store_continuation
from materializer.rows.expired_write import ExpiredParts, ExpiredWrite, expired_parts
from materializer.rows.keys import RANGES_SECTION, ROWS_END, ROWS_SECTION
from materializer.rows.overlay import StoredRow
from materializer.rows.ranges import DeletedRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cassandra_storage.formats.rows.clustering import Clustering
    from cassandra_storage.formats.rows.deletion import DeletionTime
    from cassandra_storage.formats.rows.row import Row
    from cdc_common.messages.changes import ColumnImage, RowImage
    from materializer.fold.native_fold import NativeFold
    from materializer.fold.tools import Event, TableTools
    from materializer.rows.overlay import RowValue
    from materializer.rows.partition_state import PartitionState

_ROWS_AT_ONCE = 256
RANGES_AT_ONCE = 1000  # range tombstones that are merged with a wider one in one step


class PartitionFold:
    """One event in one Cassandra partition. Call exactly one of its public methods, once.

    It adds the changes to `tools.changes`. A method that may affect many rows raises BudgetSpentError where the budget
    ends, with a stored continuation for `resume`.
    """

    def __init__(
        self, tools: TableTools, state: PartitionState, event: Event, native: NativeFold | None = None
    ) -> None:
        self._tools = tools
        self._native = native
        self._state = state
        self._event = event
        self._now = event.now
        self._static_before = state.static
        self._statics_before = self._static_columns(state.static, event.now.before)
        self._statics_after = self._statics_before
        self._statics_size = row_size(state.static)
        self._visible_before = state.facts.visible_rows
        self._visible = self._visible_before
        self._first = len(tools.changes)

    def merge_row(self, update: Row) -> ExpiredWrite | None:
        """Merge a row. Its result, if the row now shows what has expired before it arrived: pass it to `expire_writes`
        at the end of the mutation.
        """
        clustering_key = self._tools.clustering_key(update.clustering)
        key = self._state.prefix + ROWS_SECTION + clustering_key
        value = self._tools.overlay.get_row(key)
        stored = None if value is None else self._tools.codec.decode(value, is_static=False)
        self._spend(stored)
        rows = (update,) if stored is None else (stored.row, update)
        active = self._active_deletion(clustering_key)
        merged = self._tools.merger.merge(rows, active)
        expired = self._expired_parts(update, None if stored is None else stored.row)
        shown = merged if expired is None else expired.shown(merged, self._now.after)
        if expired is None or shown == merged:
            self._replace_row(key, stored, merged, active)
            self._finish()
            return None
        self._mark_as_expired()
        self._replace_row(key, stored, shown, active)
        self._finish()
        return ExpiredWrite(key, expired)

    def expire_writes(self, writes: Iterable[ExpiredWrite], until: int) -> None:
        """Emit the expiry, by the second `until`, of what the rows of a mutation show although it has expired."""
        for key, parts in writes:
            value = self._tools.overlay.get_row(key)
            if value is not None:
                stored = self._tools.codec.decode(value, is_static=False)
                self._spend(stored)
                self._replace_row(key, stored, parts.hidden(stored.row, self._now.after, until), None)
        self._finish()

    def merge_static(self, update: Row) -> None:
        """Merge the static row. A visible change of it changes every row.

        What has expired before it arrived is not shown: showing it and ending it might change every row twice.
        """
        self._spend(None)
        rows = (update,) if self._state.static is None else (self._state.static, update)
        merged = self._tools.merger.merge(rows, self._state.facts.deletion)
        expired = self._expired_parts(update, self._state.static)
        if expired is not None and expired.shown(merged, self._now.after) != merged:
            self._mark_as_expired()
        self._put_static(merged)
        if self._statics_before != self._statics_after:
            self._fan_out(FanOut("static"), ROWS_SECTION)
        self._finish()

    def delete_range(self, deleted: DeletedRange) -> None:
        self._spend(None)
        if deleted.deletion.supersedes(self._state.facts.deletion):
            self._fan_out(FanOut("range", *deleted), RANGES_SECTION + deleted.first)
            self._finish()

    def delete_partition(self, deletion: DeletionTime) -> None:
        """Delete the Cassandra partition, including its static row."""
        self._spend(None)
        if not deletion.supersedes(self._state.facts.deletion):
            return
        self._state.put_facts(self._state.facts._replace(deletion=deletion))
        if self._state.static is not None:
            self._put_static(self._tools.merger.merge((self._state.static,), deletion))
        self._fan_out(FanOut("partition", deletion=deletion), RANGES_SECTION)
        self._finish()

    def expire_rows(self, data_keys: Iterable[bytes]) -> None:
        """Emit what expires in these rows, or in the static row, between the two seconds of `now`."""
        keys = set(data_keys)
        if self._state.static_key in keys:
            keys.remove(self._state.static_key)
            self._put_static(self._state.static)
        if self._statics_before != self._statics_after:
            self._fan_out(FanOut("static"), ROWS_SECTION)
        else:
            for key in sorted(keys):
                value = self._tools.overlay.get_row(key)
                if value is not None:
                    self._update_row(key, value, None)
        self._finish()

    def resume(self, continuation: FanOutContinuation) -> None:
        """Continue what an earlier chunk has begun."""
        stored = continuation.static_before
        self._static_before = self._tools.codec.decode(stored, is_static=True).row if stored else None
        self._statics_before = self._static_columns(self._static_before, self._now.before)
        self._statics_after = self._static_columns(self._state.static, self._now.after)
        self._visible_before = continuation.visible_before
        self._fan_out(continuation.fan_out, continuation.at)
        self._finish()

    def _expired_parts(self, update: Row, stored: Row | None) -> ExpiredParts | None:
        """The expired parts of a write, to be shown. Nothing for a snapshot's row image, because it was not written
        now.
        """
        return None if self._event.source.snapshot else expired_parts(update, stored, self._now.after)

    def _mark_as_expired(self) -> None:
        self._event = self._event._replace(source=self._event.source._replace(cause="expired_write"))

    def _active_deletion(self, clustering_key: bytes) -> DeletionTime:
        """The deletion of the partition, or of a range, that covers a row."""
        deletion = self._state.facts.deletion
        ranged = self._state.ranged_deletion(clustering_key)
        return ranged if ranged.supersedes(deletion) else deletion

    def _static_columns(self, static: Row | None, now: int) -> Mapping[str, ColumnImage]:
        return {} if static is None else self._tools.imager.columns(static, now)

    def _put_static(self, merged: Row | None) -> None:
        self._state.put_static(merged, self._now)
        self._statics_after = self._static_columns(self._state.static, self._now.after)
        self._statics_size = max(self._statics_size, row_size(merged))

    def _spend(self, stored: StoredRow | None) -> None:
        size = 0 if stored is None else row_size(stored.row)
        self._tools.budget.spend(size + self._statics_size)

    def _fan_out(self, fan_out: FanOut, at: bytes) -> None:
        """Update everything that a change affects, from `at` (section and clustering) on."""
        if at[:1] == RANGES_SECTION:
            if fan_out.kind == "range":
                self._add_range(fan_out, at[1:])
            else:
                self._drop_ranges(fan_out, at[1:])
            at = ROWS_SECTION + fan_out.first
        end = ROWS_END if fan_out.last is None else ROWS_SECTION + fan_out.last
        prefix = self._state.prefix
        rows = self._tools.overlay.scan_rows(prefix + at, prefix + end)
        while some := list(islice(rows, _ROWS_AT_ONCE)):
            for key, value in some[self._update_natively(some, fan_out.deletion) :]:
                self._stop_if_spent(fan_out, key[len(prefix) :])
                self._update_row(key, value, fan_out.deletion)

    def _update_natively(self, rows: list[tuple[bytes, RowValue]], deletion: DeletionTime | None) -> int:
        """Update rows with the native core, from the first on; return how many it has updated."""
        if self._native is None:
            return 0
        differ = self._statics_before != self._statics_after
        change = RowsChange(deletion, self._static_before, self._state.static, differ, self._statics_size)
        done, visible = self._native.fan_out(self._event, rows, change)
        self._visible += visible
        return done

    def _add_range(self, fan_out: FanOut, first: bytes) -> None:
        assert fan_out.deletion is not None
        assert fan_out.last is not None
        self._state.put_facts(self._state.facts._replace(has_ranges=True))
        while first < fan_out.last:
            self._stop_if_spent(fan_out, RANGES_SECTION + first)
            most = max(2, min(RANGES_AT_ONCE, self._tools.budget.rows))
            first, touched = self._state.ranges.add(DeletedRange(first, fan_out.last, fan_out.deletion), most)
            self._tools.budget.spend(0, touched)

    def _drop_ranges(self, fan_out: FanOut, first: bytes) -> None:
        """Delete the range tombstones that the deletion of the partition supersedes."""
        assert fan_out.deletion is not None
        if not self._state.facts.has_ranges:
            return
        for piece in self._state.ranges.pieces(first):
            self._stop_if_spent(fan_out, RANGES_SECTION + piece.first)
            self._tools.budget.spend(len(piece.last))
            if not piece.deletion.supersedes(fan_out.deletion):
                self._state.ranges.drop(piece)
        self._state.put_facts(self._state.facts._replace(has_ranges=not self._state.ranges.is_empty))

    def _stop_if_spent(self, fan_out: FanOut, at: bytes) -> None:
        """Call `_stop` if the budget is spent."""
        if self._tools.budget.is_spent:
            self._stop(fan_out, at)

    def _stop(self, fan_out: FanOut, at: bytes) -> NoReturn:
        """End the chunk before `at`, with a continuation."""
        tools = self._tools
        before = self._static_before
        stored = b"" if before is None else tools.codec.encode(StoredRow(before, 0), is_static=True)
        partition_key, source, now, completes_record = self._event
        continuation = FanOutContinuation(
            partition_key, tools.schema, fan_out, at, source, now, stored, self._visible_before, completes_record
        )
        store_continuation(tools.overlay, continuation)
        if tools.has_clustering:
            self._state.put_facts(self._state.facts._replace(visible_rows=self._visible))
        raise BudgetSpentError

    def _update_row(self, key: bytes, value: RowValue, deletion: DeletionTime | None) -> None:
        """Apply a deletion, and the static columns of afterwards, to a row."""
        stored = self._tools.codec.decode(value, is_static=False)
        self._spend(stored)
        merged = stored.row if deletion is None else self._tools.merger.merge((stored.row,), deletion)
        self._replace_row(key, stored, merged, deletion)

    def _replace_row(self, key: bytes, stored: StoredRow | None, merged: Row, active: DeletionTime | None) -> None:
        """Store a merged row and emit its change, if a visible one.

        An empty row keeps the deletion `active` that it was merged under, and is purged with it.
        """
        before = None if stored is None else self._image(stored.row, self._now.before, self._statics_before)
        after = self._image(merged, self._now.after, self._statics_after)
        sequence = self._tools.floor.value if stored is None else stored.row_sequence
        if before != after:
            sequence += 1
            self._visible += (after is not None) - (before is not None)
            self._emit(merged.clustering, before, after, sequence)
        if merged.is_empty:
            if stored is None:
                return
            if active is not None:
                merged = merged._replace(deletion=RowDeletion(active))
        self._state.put_row(key, stored, StoredRow(merged, sequence), self._now)

    def _image(self, row: Row, now: int, statics: Mapping[str, ColumnImage]) -> RowImage | None:
        columns = self._tools.imager.image(row, now)
        return {**statics, **columns} if columns is not None and statics else columns

    def _emit(
        self, clustering: Clustering | None, before: RowImage | None, after: RowImage | None, sequence: int
    ) -> None:
        key, source = self._event.partition_key, self._event.source
        op = change_op(before, after, is_snapshot=source.snapshot)
        digest = self._tools.schema.digest
        self._tools.changes.append(RowChange(key, clustering, op, before, after, sequence, source, digest))

    def _finish(self) -> None:
        """Store the number of visible rows, and emit the change of the row that stands for a partition without rows."""
        if not self._tools.has_clustering:
            return
        facts = self._state.facts._replace(visible_rows=self._visible)
        before = self._statics_before if self._statics_before and not self._visible_before else None
        after = self._statics_after if self._statics_after and not self._visible else None
        if before != after:
            facts = facts._replace(static_sequence=(facts.static_sequence or self._tools.floor.value) + 1)
            self._emit(None, before, after, facts.static_sequence)
            if after is None:  # its delete comes before the rows that take its place
                self._tools.changes.insert(self._first, self._tools.changes.pop())
        self._state.put_facts(facts)
