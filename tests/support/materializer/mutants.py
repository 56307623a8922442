"""Seeded defects of the fold: each replaces a piece of the source of one function, in this process."""

from __future__ import annotations
import __future__

import inspect
import textwrap
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.rows import byte_comparable, dropped_columns
from materializer.fold import reorder, row_updates, schema_version, update_check
from materializer.fold.chunk_fold import ChunkFold
from materializer.fold.clock import Clock
from materializer.fold.gaps import IncompletePartitions
from materializer.fold.net_changes import net_changes
from materializer.fold.part import Part
from materializer.fold.partition import PartitionFold
from materializer.fold.partition_schema_change import PartitionSchemaChange
from materializer.fold.publishers import PublisherWatermarks
from materializer.fold.purge import PartitionPurge
from materializer.fold.reorder import ReorderBuffer
from materializer.fold.snapshots import SnapshotProgress
from materializer.fold.table import TableFold
from materializer.rows import expired_write, expiry, ranges, shown_forms
from materializer.rows.catalog import TableCatalog
from materializer.rows.expired_write import ExpiredParts
from materializer.rows.partition_state import PartitionState
from materializer.rows.range_tombstones import PartitionRanges
from materializer.rows.timers import Timers
from stream_runtime.exactly_once import chunks

if TYPE_CHECKING:
    from types import CodeType, FunctionType

    import pytest


class Mutant(NamedTuple):
    """The defect: `old`, which must stand once in the source of `function`, becomes `new`."""

    name: str
    function: object
    old: str
    new: str


def seed(mutant: Mutant, patch: pytest.MonkeyPatch) -> None:
    """Put the defect into the function, wherever that is referred to."""
    function = mutant.function
    assert inspect.isfunction(function)
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(mutant.old) == 1, f"{mutant.name}: its place is no longer in {function.__qualname__}"
    patch.setattr(function, "__code__", _compiled(source.replace(mutant.old, mutant.new), function))


def _compiled(source: str, function: FunctionType) -> CodeType:
    names: dict[str, FunctionType] = {}
    code = compile(source, function.__code__.co_filename, "exec", flags=__future__.annotations.compiler_flag)
    exec(code, dict(function.__globals__), names)  # noqa: S102 - it is our own source
    return names[function.__name__].__code__


MUTANTS = [
    # The design's own.
    Mutant(
        "every second intermediate change is dropped",
        ChunkFold.fold,
        "self._finished_changes(), is_in_snapshot",
        "[change for n, change in enumerate(self._changes, 1) if n % 2 or n == len(self._changes)], is_in_snapshot",
    ),
    Mutant("a task's last message is skipped", chunks.chunks, "if chunk:\n        yield chunk", "yield chunk[:-1]"),
    Mutant(
        "range tombstones are ignored",
        PartitionFold._active_deletion,
        "ranged if ranged.supersedes(deletion) else deletion",
        "deletion",
    ),
    Mutant("statics are forgotten", PartitionFold._image, "{**statics, **columns} if", "columns if"),
    # What changes, and which changes are emitted.
    Mutant("a static change skips a row", PartitionFold.merge_static, "ROWS_SECTION)", 'ROWS_SECTION + b"A")'),
    Mutant(
        "a range deletion skips a row",
        PartitionFold._fan_out,
        "else ROWS_SECTION + fan_out.last",
        "else ROWS_SECTION + fan_out.first",
    ),
    Mutant(
        "a partition deletion keeps its statics",
        PartitionFold.delete_partition,
        "self._state.static is not None",
        "False",
    ),
    Mutant(
        "a duplicate is an event", PartitionFold._replace_row, "if before != after:", "if stored or before != after:"
    ),
    Mutant(
        "the paths of a list are shown",
        shown_forms.cells_form,
        '(b"", element(value)) for _, value',
        "(path, element(value)) for path, value",
    ),
    Mutant("every spelling is shown", shown_forms.value_form, "None if form is None else", "None if True else"),
    Mutant("before is taken after", PartitionFold._replace_row, "self._image(stored.row,", "self._image(merged,"),
    Mutant(
        "visible rows are counted wrong",
        PartitionFold._replace_row,
        "(after is not None) - (before is not None)",
        "after is not None",
    ),
    Mutant("the row of statics goes too late", PartitionFold._finish, "if after is None:", "if False:"),
    Mutant("a row of statics is not emitted", PartitionFold._finish, "if before != after:", "if before and not after:"),
    Mutant("each part of a mutation is emitted", TableFold.apply_mutation, "len(mutation) > 1", "False"),
    Mutant("what is not emitted is counted", net_changes, "sequences[clustering] -= 1", "pass"),
    Mutant("a counter stays behind", PartitionState.put_row_sequences, "row_sequence=row_sequence", ""),
    # Ranges.
    Mutant(
        "bounds are inclusive for exclusive and the other way round",
        byte_comparable.bound_encoder,
        "_ENDS[bound.kind]",
        "_ENDS[Kind(7 - bound.kind)]",
    ),
    Mutant(
        "reversed order is ignored",
        byte_comparable._component,
        "reversed_component if is_reversed else component",
        "component",
    ),
    Mutant(
        "the later range wins",
        ranges.add_range,
        "old.deletion if not new.deletion.supersedes(old.deletion) else new.deletion",
        "new.deletion",
    ),
    Mutant("a range covers the row after it", PartitionRanges._stretch_of, "clustering_key < piece.last", "True"),
    # Time.
    Mutant("expiry is a second late", Timers.pop_expired, "expiring[0][0] <= until", "expiring[0][0] < until"),
    Mutant(
        "expiry is not emitted",
        TableFold._expire_keys,
        "NowInSeconds(second - 1, second)",
        "NowInSeconds(second, second)",
    ),
    Mutant(
        "a renewed TTL is not followed",
        Timers.update_timers,
        "before.expires != after.expires",
        "before.expires is None",
    ),
    Mutant("a batch is folded at its end", reorder._with_seconds, "update.arrival_ms)", "clock.clock_ms)"),
    Mutant(
        "expiry comes after the writes", TableFold.apply_mutation, "self.expire_until(partition_key, second)", "pass"
    ),
    # Order and the reorder buffer.
    Mutant(
        "arrival is the order",
        reorder.release_in_write_order,
        "key=lambda update: update.order",
        "key=lambda update: 0",
    ),
    Mutant("the reorder time is ignored", Clock.__init__, "self.now_ms - reorder_ms", "self.now_ms"),
    Mutant(
        "the reorder time counts from the write",
        reorder.release_in_write_order,
        "update.arrival_ms <= clock.clock_ms",
        "update.source.ts_us <= clock.clock_ms * 1000",
    ),
    Mutant("a buffered write stays", ReorderBuffer.release, "self._overlay.put(key, None)", "pass"),
    Mutant("a buffered write is lost", ReorderBuffer.arrived_between, "last_ms + 1", "last_ms - 1000"),
    # Purging.
    Mutant("gc_grace is ignored", TableFold._purge, "self._table.gc_grace_seconds + ", ""),
    Mutant(
        "a purge is a second early", TableFold._purge, "lowest_second() - kept_for", "lowest_second() - kept_for + 1"
    ),
    Mutant("stalled publishers are ignored", PublisherWatermarks.lowest_second, "self._awaited().values()", "()"),
    Mutant("a publisher's lag is ignored", PublisherWatermarks.observe_arrival, "message.clock)", "arrival_ms * 1000)"),
    Mutant(
        "the floor is not raised", PartitionPurge._purge_row, "self._tools.floor.raise_to(stored.row_sequence)", "0"
    ),
    Mutant(
        "the floor is ignored",
        PartitionFold._replace_row,
        "self._tools.floor.value if stored is None",
        "0 if not stored",
    ),
    Mutant(
        "the counter of the row of statics begins again",
        PartitionPurge.purge_facts,
        "self._tools.floor.raise_to(facts.static_sequence)",
        "pass",
    ),
    Mutant("timestamps of the future are ignored", expiry.purge_second, "-(-timestamp // _MICROS), ", ""),
    Mutant("a purge takes younger tombstones too", expiry.purged, "if not is_gone(data)", "if data.is_live(now)"),
    Mutant("a purge takes younger elements too", expiry.purged, "if not is_gone(cell)", "if cell.is_live(now)"),
    Mutant("a row that is emptied never goes", PartitionFold._replace_row, "if active is not None:", "if False:"),
    Mutant("a tombstone has no timer", PartitionRanges._put, "self._timers.update_purge_timer(key, *seconds)", "pass"),
    # Work that is cut.
    Mutant("a cut skips a row", PartitionFold._stop, "fan_out, at, source", 'fan_out, at + b"\\x00", source'),
    Mutant("a cut forgets the statics", PartitionFold._stop, "if before is None", "if True"),
    Mutant("a cut forgets the visible rows", PartitionFold.resume, "continuation.visible_before", "self._visible"),
    Mutant(
        "a record is finished too early", ChunkFold.fold, "0 if self._are_records_folded else len(self._records)", "0"
    ),
    Mutant("the time goes ahead of the work", Part._store_times, "store_progress(self._reached_ms)", "store()"),
    Mutant("a buffered write is lost in a cut", Part._release_buffered, "self.budget.check()", "pass"),
    Mutant(
        "a cut is finished under the newest schema", TableCatalog.as_of, "schema.digest", "self.newest_of(schema[0])[0]"
    ),
    # Snapshots.
    Mutant("a snapshot does not hold purging back", ChunkFold._fold_tables, "not self._snapshots.is_running", "True"),
    Mutant("one host ends a snapshot", SnapshotProgress.is_running, "any(", "all("),
    Mutant("a late step takes a host back", SnapshotProgress.with_step, "= max(", "= min("),
    Mutant("a begin starts a snapshot again", SnapshotProgress.with_step, " | dict(self.hosts)", ""),
    Mutant("changes in a snapshot have no mark", ChunkFold.fold, "self._snapshots.was_running", "False"),
    Mutant("a row image is a change like any other", PartitionFold._emit, "source.snapshot", "False"),
    Mutant("an expired row image is shown", PartitionFold._expired_parts, "self._event.source.snapshot", "False"),
    Mutant("a row image waits for its turn", reorder.release_in_write_order, "update.is_snapshot or (", "("),
    Mutant("a row image pulls writes back", reorder._with_seconds, "update.is_snapshot", "False"),
    Mutant("a row image swallows an event", row_updates._update, "SNAPSHOT_TIMESTAMP if", "timestamp if"),
    Mutant("a unit is not one mutation", net_changes, "last.source.snapshot", "False"),
    Mutant(
        "a snapshot makes a publisher known",
        PublisherWatermarks.observe_arrival,
        "message.kind in _WITHOUT_WATERMARK",
        "False",
    ),
    Mutant("a row image closes a gap", IncompletePartitions.resolve, "update.is_snapshot", "False"),
    # What arrives after it has expired.
    Mutant(
        "an expired write is swallowed",
        PartitionFold.merge_row,
        "merged if expired is None else expired.shown(merged, self._now.after)",
        "merged",
    ),
    Mutant("an expired write is shown once more", expired_write.expired_parts, "cells.difference_update", "list"),
    Mutant(
        "an expired write stays", TableFold.apply_mutation, "self._expire_writes(partition_key, expired, second)", "0"
    ),
    Mutant(
        "an expired write stays in a cut",
        TableFold.apply_record,
        "self._expire_writes(update.partition_key, self._merge(update, event), second)",
        "self._merge(update, event)",
    ),
    Mutant("an expired write ends late", ExpiredParts.hidden, "cell.local_deletion_time <= until", "False"),
    Mutant("an expired write has no mark", PartitionFold._mark_as_expired, "expired_write", "write"),
    # Tables that are created again, and columns that are dropped.
    Mutant(
        "the former table's rows expire beside the new one's",
        Clock.split,
        "max(start_ms, arrival_ms - self._reorder_ms)",
        "self.clock_ms",
    ),
    Mutant(
        "the TTL rows of a recreated table are forgotten",
        PartitionSchemaChange._delete_row,
        "before = self._old",
        "before = None if stored.row.liveness.ttl else self._old",
    ),
    Mutant(
        "an equal row stays in the former table's encoding",
        PartitionSchemaChange._delete_row,
        "self._tools.overlay.put_row(key, StoredRow(row, sequence))",
        "pass",
    ),
    Mutant(
        "the newer type of a dropped column is taken",
        dropped_columns.without_dropped,
        "if _fits(data, column) else None",
        "",
    ),
    Mutant(
        "another record of a drop is not followed",
        schema_version.shows_rows_differently,
        "columns[name].is_complex != column.is_complex",
        "False",
    ),
    # What has no place in the order.
    Mutant("a path without a place is let through", update_check._check_cells, 'path_key(cell.path or b"")', "pass"),
    Mutant(
        "what a changed schema makes unreadable is lost",
        ReorderBuffer.release,
        "self._catalog, self._on_unreadable)",
        "self._catalog, lambda *_: None)",
    ),
    # Cost.
    Mutant("heartbeats are stored", ChunkFold._store_times, "self._overlay.has_writes", "True"),
    Mutant("a duplicate is stored", PartitionState.put_row, "if before != after:", "if True:"),
]
