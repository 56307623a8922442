"""The fold: (state, raw messages, now) -> (state, changes), a pure function without Spark, Kafka or RocksDB.

A chunk of one raw partition is decoded, put in write order and folded message by message into an Overlay over the
committed state: each message that changes what `SELECT` would show gives one RowChange for each row that it changes.
What is too much for one chunk is folded in several: fewer records, or a part of one record's work.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from materializer.fold.clock import Clock
from materializer.fold.gaps import Incomplete
from materializer.fold.parts import fold_part
from materializer.fold.publishers import Hosts
from materializer.fold.reorder import due_updates, forget_held
from materializer.fold.result import ChunkResult
from materializer.fold.row_updates import decode_records, row_updates
from materializer.fold.schema_change import shown_table
from materializer.fold.table import ChunkFold, Work
from materializer.fold.table_runs import by_table
from materializer.rows.budget import Budget, OverBudgetError
from materializer.rows.keys import UNFINISHED
from materializer.rows.overlay import Overlay
from materializer.rows.settings import DEFAULT_RULES, FoldRules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdc_messages.changes import RowChange
    from materializer.records import RawRecord, RowUpdate
    from materializer.rows.catalog import TableCatalog
    from materializer.rows.overlay import StateReader


def fold_chunk(
    reader: StateReader, records: Sequence[RawRecord], catalog: TableCatalog, rules: FoldRules = DEFAULT_RULES
) -> ChunkResult:
    """Fold records of one raw partition (at least one), in the order of their offsets: all of them or, where that is
    too much, as many as the result says; it may be only a part of what the first one asks for.

    CdcError with SCHEMA_UNKNOWN, DEAD_LETTERS, RAW_MESSAGE, STATE_DAMAGED, STATE_FORMAT or NOT_SUPPORTED; nothing of
    the chunk may be used then.
    """
    count = 0 if reader.get(UNFINISHED) is not None else len(records)
    while count:
        try:
            result = _fold_all(reader, records[:count], catalog, rules)
            return result._replace(left=len(records) - count)
        except OverBudgetError as over:  # nearly in write order: about as many records as updates are too many
            count = min(count // 2, max(over.args[0], 1))
    result = fold_part(reader, records[0], catalog, rules)
    return result._replace(left=result.left + len(records) - 1)


def _fold_all(
    reader: StateReader, records: Sequence[RawRecord], catalog: TableCatalog, rules: FoldRules
) -> ChunkResult:
    """All of these records, or OverBudgetError."""
    overlay = Overlay(reader)
    clock = Clock(overlay, records, rules.reorder_ms)
    hosts = Hosts(overlay, clock, rules)
    incomplete = Incomplete(overlay, rules.max_dead_letters)
    messages, arrivals = decode_records(records, clock.arrivals, incomplete)
    for (_, message), arrival_ms in zip(messages, arrivals, strict=True):
        hosts.note(message, arrival_ms)
    changes: list[RowChange] = []
    budget = Budget(rules, can_cut=False)
    waiting = None
    runs = by_table(shown_table(overlay), messages, arrivals, catalog)
    for run in runs:
        if run.is_made_anew:
            forget_held(overlay, budget)
            incomplete.forget()
        fold = ChunkFold(overlay, catalog, run.table_id, clock, Work(changes, budget, is_stepwise=False))
        arrived = row_updates(run.messages, run.arrivals, catalog, incomplete.bury)
        updates = due_updates(overlay, catalog, clock, arrived, budget)
        incomplete.settle(update for _, update in updates)
        fold.prefetch(update for _, update in updates)
        for (second, *_), mutation in groupby(updates, key=_mutation):
            fold.apply([update for _, update in mutation], second)
        fold.expire()
        if run is runs[-1]:
            waiting = fold.close(hosts, rules)
        fold.encode_rows()
    if overlay.writes or clock.has_moved_by(rules.keep_time_ms) or hosts.must_keep(waiting):
        clock.keep()
        hosts.keep()
    return ChunkResult(overlay.writes, incomplete.told(changes), clock.now_ms, hosts.silent(), incomplete.letters)


def _mutation(timed: tuple[int, RowUpdate]) -> tuple[int, bytes, tuple[object, ...]]:
    """What two messages have in common that are of one mutation to one partition."""
    second, update = timed
    return second, update.partition_key, update.order[1:4]
