"""Seeded defects of the fold: each is one function with a piece of its source replaced, in this process."""

from __future__ import annotations
import __future__

import inspect
import textwrap
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage import byte_comparable
from materializer.exactly_once import chunks
from materializer.fold import chunk, reorder
from materializer.fold.clock import Clock
from materializer.fold.net_changes import net_changes
from materializer.fold.partition import PartitionFold
from materializer.fold.parts import _PartFold
from materializer.fold.publishers import Hosts
from materializer.fold.purge import PartitionPurge
from materializer.fold.reorder import HeldWrites
from materializer.fold.table import ChunkFold
from materializer.rows import expiry, ranges
from materializer.rows.catalog import TableCatalog
from materializer.rows.partition_state import PartitionState
from materializer.rows.range_tombstones import PartitionRanges
from materializer.rows.timers import Queues

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
    assert source.count(mutant.old) == 1, f"{mutant.name}: its place is not in {function.__qualname__} any more"
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
        chunk._fold_all,
        "incomplete.told(changes)",
        "[each for n, each in enumerate(changes, 1) if n % 2 or n == len(changes)]",
    ),
    Mutant("a task's last message is skipped", chunks.chunks, "if chunk:\n        yield chunk", "yield chunk[:-1]"),
    Mutant(
        "range tombstones are ignored",
        PartitionFold._active_deletion,
        "ranged if ranged.supersedes(deletion) else deletion",
        "deletion",
    ),
    Mutant("statics are forgotten", PartitionFold._image, "{**statics, **columns} if", "columns if"),
    # What changes, and how it is told.
    Mutant("a static change skips a row", PartitionFold.static, "ROWS_SECTION)", 'ROWS_SECTION + b"A")'),
    Mutant(
        "a range deletion skips a row",
        PartitionFold._fan_out,
        "else ROWS_SECTION + reach.last",
        "else ROWS_SECTION + reach.first",
    ),
    Mutant(
        "a partition deletion keeps its statics", PartitionFold.partition, "self._state.static is not None", "False"
    ),
    Mutant("a duplicate is an event", PartitionFold._move, "if before != after:", "if stored or before != after:"),
    Mutant("before is taken after", PartitionFold._move, "self._image(stored.row,", "self._image(merged,"),
    Mutant(
        "visible rows are counted wrong",
        PartitionFold._move,
        "(after is not None) - (before is not None)",
        "after is not None",
    ),
    Mutant("the row of statics goes too late", PartitionFold._finish, "if after is None:", "if False:"),
    Mutant("a row of statics is not told", PartitionFold._finish, "if before != after:", "if before and not after:"),
    Mutant("each part of a mutation is told", ChunkFold.apply, "len(mutation) > 1", "False"),
    Mutant("what is not told is counted", net_changes, "sequences[clustering] -= 1", "pass"),
    Mutant("a counter stays behind", PartitionState.renumber, "row_sequence=row_sequence", ""),
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
    Mutant("a range covers the row behind it", PartitionRanges._stretch_of, "clustering_key < piece.last", "True"),
    # Time.
    Mutant("expiry is a second late", Queues.expiring, "due[0][0] <= until", "due[0][0] < until"),
    Mutant("expiry is not told", ChunkFold._expire_keys, "Moment(second - 1, second)", "Moment(second, second)"),
    Mutant("a renewed TTL is not followed", Queues.move, "before.expires != after.expires", "before.expires is None"),
    Mutant("a batch is folded at its end", reorder._with_seconds, "update.arrival_ms)", "clock.clock_ms)"),
    Mutant("expiry comes after the writes", ChunkFold.apply, "self._expire(partition_key, second)", "pass"),
    # Order and hold.
    Mutant("arrival is the order", reorder.due_updates, "key=lambda update: update.order", "key=lambda update: 0"),
    Mutant("hold is ignored", Clock.__init__, "self.now_ms - reorder_ms", "self.now_ms"),
    Mutant(
        "hold counts from the write",
        reorder.due_updates,
        "update.arrival_ms <= clock.clock_ms",
        "update.source.ts_us <= clock.clock_ms * 1000",
    ),
    Mutant("a held write stays", HeldWrites.take, "self._overlay.put(key, None)", "pass"),
    Mutant("a held write is lost", HeldWrites.due, "last_ms + 1", "last_ms - 1000"),
    # Purging.
    Mutant("gc_grace is ignored", ChunkFold._purge, "self._table.gc_grace_seconds + ", ""),
    Mutant("a purge is a second early", ChunkFold._purge, "purge_time() - kept_for", "purge_time() - kept_for + 1"),
    Mutant("silent publishers are ignored", Hosts.purge_time, "self._awaited().values()", "()"),
    Mutant("a publisher's lag is ignored", Hosts.note, "message.clock)", "arrival_ms * 1000)"),
    Mutant(
        "the floor is not raised", PartitionPurge._purge_row, "self._tools.floor.raise_to(stored.row_sequence)", "0"
    ),
    Mutant(
        "the floor is not minded", PartitionFold._move, "self._tools.floor.value if stored is None", "0 if not stored"
    ),
    Mutant(
        "the counter of the row of statics begins anew",
        PartitionPurge.finish,
        "self._tools.floor.raise_to(facts.static_sequence)",
        "pass",
    ),
    Mutant("timestamps of the future are ignored", expiry.purge_second, "-(-timestamp // _MICROS), ", ""),
    Mutant("a purge takes younger tombstones too", expiry.purged, "if not is_gone(data)", "if data.is_live(now)"),
    Mutant("a purge takes younger elements too", expiry.purged, "if not is_gone(cell)", "if cell.is_live(now)"),
    Mutant("a row that is emptied never goes", PartitionFold._move, "if active is not None:", "if False:"),
    Mutant("a tombstone is not queued", PartitionRanges._put, "self._queues.move_purge(key, *seconds)", "pass"),
    # Work that is cut.
    Mutant("a cut skips a row", PartitionFold._cut_if_spent, "reach, at, source", 'reach, at + b"\\x00", source'),
    Mutant("a cut forgets the statics", PartitionFold._cut_if_spent, "if before is None", "if True"),
    Mutant("a cut forgets the visible rows", PartitionFold.resume, "fanout.visible_before", "self._visible"),
    Mutant("a record is taken too early", _PartFold.fold, "0 if self._is_taken else 1", "0"),
    Mutant("the time goes ahead of the work", _PartFold.fold, "keep_reached(self._reached_ms)", "keep()"),
    Mutant("a held write is lost in a cut", _PartFold._release, "self._budget.check()", "pass"),
    Mutant(
        "a cut is finished under the newest schema", TableCatalog.as_of, "schema.digest", "self.newest_of(schema[0])[0]"
    ),
    # Cost.
    Mutant("heartbeats are stored", chunk._fold_all, "if overlay.writes or", "if True or"),
    Mutant("a duplicate is stored", PartitionState.put_row, "if before != after:", "if True:"),
]
