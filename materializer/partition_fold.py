"""One write, or one second's expiry, folded into one partition: which of its rows change, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.deletion import RowDeletion
from cdc_messages.changes import RowChange, change_op
from materializer.partition_state import StoredRow
from materializer.ranges import covering
from materializer.state_keys import ROWS_END, ROWS_SECTION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cassandra_storage.clustering import Clustering, ClusteringBound
    from cassandra_storage.deletion import DeletionTime
    from cassandra_storage.merge import RowMerger
    from cassandra_storage.rows import Row
    from cdc_messages.changes import ColumnImage, RowImage, Source
    from materializer.images import RowImager
    from materializer.lifetimes import Moment
    from materializer.overlay import Overlay
    from materializer.partition_state import PartitionState, RowCodec, SequenceFloor
    from materializer.queues import Queues
    from materializer.ranges import DeletedRange


class TableTools(NamedTuple):
    """What folding into any partition of one table needs."""

    overlay: Overlay
    codec: RowCodec
    merger: RowMerger
    imager: RowImager
    schema: bytes  # the digest
    clustering_key: Callable[[Clustering], bytes]
    bound_key: Callable[[ClusteringBound], bytes]
    has_clustering: bool
    queues: Queues
    floor: SequenceFloor


class PartitionFold:
    """One event in one partition. Call exactly one of its public methods, once: it returns what the event changes."""

    def __init__(
        self, tools: TableTools, state: PartitionState, partition_key: bytes, source: Source, moment: Moment
    ) -> None:
        self._tools = tools
        self._state = state
        self._partition_key = partition_key
        self._source = source
        self._moment = moment
        self._statics_before = self._static_columns(moment.before)
        self._statics_after = self._statics_before
        self._visible_before = state.facts.visible_rows
        self._visible = self._visible_before
        self._changes: list[RowChange] = []

    def row(self, update: Row) -> list[RowChange]:
        """Merge a row."""
        clustering_key = self._tools.clustering_key(update.clustering)
        key = self._state.prefix + ROWS_SECTION + clustering_key
        value = self._tools.overlay.get(key)
        stored = None if value is None else self._tools.codec.decode(value, is_static=False)
        rows = (update,) if stored is None else (stored.row, update)
        active = self._active_deletion(clustering_key)
        self._move(key, stored, self._tools.merger.merge(rows, active), active)
        return self._finish()

    def static(self, update: Row) -> list[RowChange]:
        """Merge the static row; what it changes is a change of every row."""
        rows = (update,) if self._state.static is None else (self._state.static, update)
        self._put_static(self._tools.merger.merge(rows, self._state.facts.deletion))
        if self._statics_before != self._statics_after:
            self._move_all(self._rows())
        return self._finish()

    def range(self, deleted: DeletedRange) -> list[RowChange]:
        """Delete a range of rows."""
        if not deleted.deletion.supersedes(self._state.facts.deletion):
            return []
        self._state.add_range(deleted)
        self._move_all(self._rows(deleted.first, deleted.last), deleted.deletion)
        return self._finish()

    def partition(self, deletion: DeletionTime) -> list[RowChange]:
        """Delete the partition, its static row included."""
        if not deletion.supersedes(self._state.facts.deletion):
            return []
        self._state.keep_ranges(lambda ranged: ranged.supersedes(deletion))
        self._state.put_facts(self._state.facts._replace(deletion=deletion))
        if self._state.static is not None:
            self._put_static(self._tools.merger.merge((self._state.static,), deletion))
        self._move_all(self._rows(), deletion)
        return self._finish()

    def expiry(self, data_keys: Iterable[bytes]) -> list[RowChange]:
        """What of these rows, or of the static row, expires between the two moments."""
        keys = set(data_keys)
        if self._state.static_key in keys:
            keys.remove(self._state.static_key)
            self._put_static(self._state.static)
        if self._statics_before != self._statics_after:
            self._move_all(self._rows())
        else:
            self._move_all((key, value) for key in sorted(keys) if (value := self._tools.overlay.get(key)) is not None)
        return self._finish()

    def _active_deletion(self, clustering_key: bytes) -> DeletionTime:
        """The deletion that is over a row from outside it."""
        deletion = self._state.facts.deletion
        ranged = covering(self._state.ranges, clustering_key)
        return ranged if ranged.supersedes(deletion) else deletion

    def _static_columns(self, now: int) -> Mapping[str, ColumnImage]:
        return {} if self._state.static is None else self._tools.imager.columns(self._state.static, now)

    def _put_static(self, merged: Row | None) -> None:
        self._state.put_static(merged, self._moment)
        self._statics_after = self._static_columns(self._moment.after)

    def _rows(self, first: bytes = b"", last: bytes | None = None) -> Iterable[tuple[bytes, bytes]]:
        """The stored rows whose clustering keys lie in [first, last)."""
        end = self._state.prefix + (ROWS_END if last is None else ROWS_SECTION + last)
        return self._tools.overlay.scan(self._state.prefix + ROWS_SECTION + first, end)

    def _move_all(self, rows: Iterable[tuple[bytes, bytes]], deletion: DeletionTime | None = None) -> None:
        """Move rows to what is left of them under `deletion` and the static columns of afterwards."""
        for key, value in rows:
            stored = self._tools.codec.decode(value, is_static=False)
            merged = stored.row if deletion is None else self._tools.merger.merge((stored.row,), deletion)
            self._move(key, stored, merged, deletion)

    def _move(self, key: bytes, stored: StoredRow | None, merged: Row, active: DeletionTime | None) -> None:
        """Replace one row by its merged version, under the deletion that it was merged under: emit the change, if one
        is visible, and store. A row of which nothing is left keeps that deletion, and is purged with it.
        """
        before = None if stored is None else self._image(stored.row, self._moment.before, self._statics_before)
        after = self._image(merged, self._moment.after, self._statics_after)
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
        self._state.put_row(key, stored, StoredRow(merged, sequence), self._moment)

    def _image(self, row: Row, now: int, statics: Mapping[str, ColumnImage]) -> RowImage | None:
        columns = self._tools.imager.image(row, now)
        return {**statics, **columns} if columns is not None and statics else columns

    def _emit(
        self, clustering: Clustering | None, before: RowImage | None, after: RowImage | None, sequence: int
    ) -> None:
        op = change_op(before, after)
        change = RowChange(
            self._partition_key, clustering, op, before, after, sequence, self._source, self._tools.schema
        )
        self._changes.append(change)

    def _finish(self) -> list[RowChange]:
        """Account for the visible rows, and for the row that stands for a partition which has only statics."""
        if not self._tools.has_clustering:
            return self._changes
        facts = self._state.facts._replace(visible_rows=self._visible)
        before = self._statics_before if self._statics_before and not self._visible_before else None
        after = self._statics_after if self._statics_after and not self._visible else None
        if before != after:
            facts = facts._replace(static_sequence=(facts.static_sequence or self._tools.floor.value) + 1)
            self._emit(None, before, after, facts.static_sequence)
            if after is None:  # it goes before the rows come that take its place
                self._changes.insert(0, self._changes.pop())
        self._state.put_facts(facts)
        return self._changes
