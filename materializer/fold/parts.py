"""The work of one record that is too much for one chunk, part by part: what is due before it, and then it itself.

Each part ends where its budget does and is whole in itself: the state's clock tells up to when all is done, its queues
hold what is still due, and what is under way in a partition is kept as `Unfinished`. The record is taken with the part
that finishes it. A mutation of which several messages are due is told message by message here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from materializer.fold.clock import Clock
from materializer.fold.gaps import Incomplete
from materializer.fold.publishers import Hosts
from materializer.fold.reorder import HeldWrites, forget_held
from materializer.fold.result import ChunkResult
from materializer.fold.row_updates import decode_records, row_updates
from materializer.fold.schema_change import shown_table
from materializer.fold.table import ChunkFold, Work
from materializer.fold.table_runs import by_table
from materializer.rows.budget import Budget, CutShortError
from materializer.rows.continuation import Fanout, read_unfinished
from materializer.rows.overlay import Overlay

if TYPE_CHECKING:
    from cdc_messages.changes import RowChange
    from materializer.fold.table_runs import TableRun
    from materializer.records import RawRecord
    from materializer.rows.catalog import TableCatalog
    from materializer.rows.continuation import Unfinished
    from materializer.rows.overlay import StateReader
    from materializer.rows.settings import FoldRules


def fold_part(reader: StateReader, record: RawRecord, catalog: TableCatalog, rules: FoldRules) -> ChunkResult:
    """As fold_chunk."""
    return _PartFold(reader, record, catalog, rules).fold()


class _PartFold:
    """One part."""

    def __init__(self, reader: StateReader, record: RawRecord, catalog: TableCatalog, rules: FoldRules) -> None:
        self._catalog = catalog
        self._rules = rules
        self._overlay = Overlay(reader)
        self._clock = Clock(self._overlay, [record], rules.reorder_ms)
        self._reached_ms = self._clock.start_ms
        self._hosts = Hosts(self._overlay, self._clock, rules)
        self._incomplete = Incomplete(self._overlay, rules.max_dead_letters)
        self._messages, self._arrivals = decode_records([record], self._clock.arrivals, self._incomplete)
        self._changes: list[RowChange] = []
        self._budget = Budget(rules, can_cut=True)
        self._is_taken = False

    def fold(self) -> ChunkResult:
        unfinished = read_unfinished(self._overlay)
        if unfinished is not None:
            self._resume(unfinished)
        else:
            self._begin()
        if self._is_taken:
            self._clock.keep()
            self._hosts.keep()
        else:
            self._clock.keep_reached(self._reached_ms)
        left = 0 if self._is_taken else 1
        changes, silent = self._incomplete.told(self._changes), self._hosts.silent()
        return ChunkResult(
            self._overlay.writes, changes, self._clock.now_ms, silent, self._incomplete.letters, left=left
        )

    def _resume(self, unfinished: Unfinished) -> None:
        """Under the schema that it was begun under, whichever may be the newest by now."""
        fold = self._chunk_fold(self._catalog.as_of(unfinished.schema), unfinished.schema.table_id)
        try:
            fold.resume(unfinished)
            if isinstance(unfinished, Fanout) and unfinished.is_record:
                self._take()
        except CutShortError:
            pass
        fold.encode_rows()

    def _begin(self) -> None:
        runs = by_table(shown_table(self._overlay), self._messages, self._arrivals, self._catalog)
        try:
            for run in runs:
                if run.is_made_anew:
                    forget_held(self._overlay, self._budget)
                    self._incomplete.forget()
                self._fold_run(run, is_last=run is runs[-1])
            if not runs:  # nothing has ever been read of a table
                self._take()
        except CutShortError:
            pass

    def _fold_run(self, run: TableRun, *, is_last: bool) -> None:
        fold = self._chunk_fold(self._catalog, run.table_id)
        try:
            self._catch_up(fold)
            self._fold_record(fold, run)
            if is_last:
                self._take()
                fold.close(self._hosts, self._rules)
        finally:
            fold.encode_rows()

    def _catch_up(self, fold: ChunkFold) -> None:
        """Whatever is due before the record, in the order of time: what expires at a second comes before its writes."""
        held = HeldWrites(self._overlay, self._catalog)
        first_ms, clock = 0, self._clock
        while True:
            arrival = next(held.due(first_ms, clock.clock_ms), None)
            expiry = fold.next_expiry(self._reached_ms // 1000)
            if arrival is None and expiry is None:
                return
            held_second = None if arrival is None else max(arrival[0], clock.start_ms) // 1000
            second = min(each for each in (held_second, expiry) if each is not None)
            self._budget.check()
            self._reached_ms = max(self._reached_ms, second * 1000)
            fold.expire_at(second)
            if second == held_second:
                last_ms = min(second * 1000 + 999, clock.clock_ms)
                self._release(fold, held, (first_ms, last_ms), second)
                first_ms = last_ms + 1

    def _release(self, fold: ChunkFold, held: HeldWrites, span: tuple[int, int], second: int) -> None:
        """Fold the held writes that came in a span of time, each after those of its partition that belong before it."""
        for _, partition_key, limit in held.due(*span):
            fold.prepare(partition_key, second)
            taken = held.take(partition_key, limit)
            while True:
                self._budget.check()  # what is taken must be folded
                update = next(taken, None)
                if update is None:
                    break
                self._incomplete.settle([update])
                fold.apply([update], second)

    def _fold_record(self, fold: ChunkFold, run: TableRun) -> None:
        clock = self._clock
        for update in row_updates(run.messages, run.arrivals, self._catalog, self._incomplete.bury):
            if update.arrival_ms <= clock.clock_ms:
                second = max(update.arrival_ms, clock.start_ms) // 1000
                fold.prepare(update.partition_key, second)
                self._budget.check()
                self._incomplete.settle([update])
                fold.is_record = True
                fold.apply([update], second)
            else:
                HeldWrites(self._overlay, self._catalog).put(update)

    def _take(self) -> None:
        """The record is done; what is done beyond it has a budget of its own."""
        self._is_taken = True
        self._budget.renew(can_cut=True)
        for (_, message), arrival_ms in zip(self._messages, self._arrivals, strict=True):
            self._hosts.note(message, arrival_ms)

    def _chunk_fold(self, catalog: TableCatalog, table_id: bytes) -> ChunkFold:
        work = Work(self._changes, self._budget, is_stepwise=True)
        return ChunkFold(self._overlay, catalog, table_id, self._clock, work)
