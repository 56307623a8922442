"""Chunks with a small budget: work that is cut gives the same changes as work that is not."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.rows.clustering import ClusteringBound, Kind
from cassandra_storage.formats.rows.deletion import NO_LIVENESS, DeletionTime, RangeTombstone, RowDeletion
from cassandra_storage.formats.rows.row import Row
from cassandra_storage.formats.schema.tables import DroppedColumn
from materializer.rows.keys import CONTINUATION, RANGES_SECTION, partition_prefix
from tests.support.materializer.brute_model import Write
from tests.support.materializer.fold_checks import (
    EXAMPLES,
    NEVER_PURGE,
    check_batches,
    check_step_by_step,
    record,
    timed_writes,
)
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.raw_builder import TableWriter, catalog_of, int_bytes
from tests.support.materializer.reorder_checks import REORDERING, check_reorder
from tests.support.materializer.table_writes import BASE_S, BASE_US, FORWARD, WRITERS
from tests.support.materializer.wide_partition import KEY, ROWS, bounded, insert, static

if TYPE_CHECKING:
    from cdc_common.messages.changes import RowChange
    from materializer.rows.settings import FoldSettings

BOUNDS = st.integers(1, 5)
TABLES = pytest.mark.parametrize("writer", WRITERS, ids=["forward", "reversed", "mixed", "single"])


def by_key(changes: list[RowChange]) -> dict[tuple[bytes, object], list[RowChange]]:
    ordered = sorted(changes, key=lambda change: (change.partition_key, change.clustering or ()))
    return {key: list(of) for key, of in groupby(ordered, key=lambda change: (change.partition_key, change.clustering))}


def run_pair(writer: TableWriter, data: st.DataObject, *, rising: bool) -> tuple[FoldRun, FoldRun]:
    """The same writes and some silence, each record a chunk, without a bound and with one."""
    made = data.draw(timed_writes(writer.table, rising=rising))
    whole, cut = FoldRun(writer, NEVER_PURGE), FoldRun(writer, bounded(data.draw(BOUNDS)))
    for run in (whole, cut):
        for offset, (second, write) in enumerate(made):
            run.chunk(record(writer, write, second, offset))
        run.heartbeat((made[-1][0] + 10) * 1000)
        run.heartbeat((made[-1][0] + 1000) * 1000)  # so late that the time is stored
    return whole, cut


@TABLES
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_a_bound_changes_nothing(writer: TableWriter, data: st.DataObject) -> None:
    whole, cut = run_pair(writer, data, rising=data.draw(st.booleans()))
    assert by_key(cut.changes) == by_key(whole.changes)
    assert cut.state.data == whole.state.data
    assert CONTINUATION not in cut.state.data


@TABLES
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data(), most=BOUNDS)
def test_a_bounded_fold_is_what_the_model_says(writer: TableWriter, data: st.DataObject, most: int) -> None:
    check_step_by_step(writer, data, bounded(most))


@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data(), most=BOUNDS)
def test_batches_are_cut_where_they_are_too_much(data: st.DataObject, most: int) -> None:
    check_batches(FORWARD, data, bounded(most))


@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data(), most=BOUNDS)
def test_buffered_writes_come_out_in_their_order(data: st.DataObject, most: int) -> None:
    check_reorder(data, bounded(most, REORDERING))


def range_deletion(first: int, last: int, timestamp: int) -> Write:
    bounds = (
        ClusteringBound(Kind.INCL_START_BOUND, (int_bytes(first),)),
        ClusteringBound(Kind.INCL_END_BOUND, (int_bytes(last),)),
    )
    return Write(KEY, "range_deletion", RangeTombstone(*bounds, DeletionTime(timestamp, BASE_S)))


def wide(most: int, *, ttl: int = 0, fold_settings: FoldSettings = NEVER_PURGE) -> FoldRun:
    """ROWS rows and a static one."""
    run = FoldRun(FORWARD, bounded(most, fold_settings))
    write(run, static(b"s", BASE_US), *(insert(c, ttl=ttl) for c in range(ROWS)))
    run.parts.clear()
    return run


def write(run: FoldRun, *writes: Write, second: int = BASE_S) -> None:
    run.chunk(*(record(FORWARD, mutation, second, offset) for offset, mutation in enumerate(writes)))


def sizes(run: FoldRun) -> list[int]:
    """How many changes each part has."""
    return [len(part.changes) for part in run.parts]


def test_a_partition_deletion_is_cut() -> None:
    run = wide(4)
    write(run, Write(KEY, "partition_deletion", DeletionTime(BASE_US + 1, BASE_S)))
    assert sizes(run) == [3, 4, 3]
    assert [part.left for part in run.parts] == [1, 1, 0]
    assert run.visible(KEY) == {}


def test_a_static_update_is_cut_and_the_records_after_it_wait() -> None:
    run = wide(4)
    write(run, static(b"t", BASE_US + 1), insert(ROWS))
    assert sizes(run) == [3, 4, 3, 1]
    assert [part.left for part in run.parts] == [2, 2, 1, 0]


def test_a_range_deletion_over_many_others_is_cut() -> None:
    run = wide(4)
    write(run, *(range_deletion(2 * c, 2 * c, BASE_US + 1 + c) for c in range(ROWS)))
    ranges = [key for key in run.state.data if key.startswith(partition_prefix(KEY) + RANGES_SECTION)]
    assert len(ranges) == ROWS
    run.parts.clear()
    write(run, range_deletion(-100, 100, BASE_US + 1000))
    assert len(run.parts) > ROWS / 4
    assert run.visible(KEY) == {None: {"st": b"s"}}
    ranges = [key for key in run.state.data if key.startswith(partition_prefix(KEY) + RANGES_SECTION)]
    assert len(ranges) == 1


def test_the_row_that_stands_for_the_partition_is_emitted_if_the_last_row_went_in_an_earlier_part() -> None:
    run = wide(ROWS + 1)
    deletion = RowDeletion(DeletionTime(BASE_US, BASE_S))
    write(run, Write(KEY, "row", Row((int_bytes(ROWS),), {}, NO_LIVENESS, deletion)))
    run.parts.clear()
    write(run, range_deletion(0, ROWS, BASE_US + 1))
    assert sizes(run) == [ROWS, 1]
    assert run.visible(KEY) == {None: {"st": b"s"}}


def test_rows_that_expire_at_one_second_are_cut() -> None:
    run = wide(4, ttl=5)
    run.heartbeat((BASE_S + 20) * 1000)
    assert sizes(run) == [4, 4, 3]
    assert {change.source.ts_us for part in run.parts for change in part.changes} == {(BASE_S + 5) * 1_000_000}
    assert run.visible(KEY) == {None: {"st": b"s"}}


def test_buffered_writes_that_are_released_at_once_are_cut() -> None:
    run = wide(4, fold_settings=REORDERING)
    run.heartbeat((BASE_S + 60) * 1000)
    assert max(sizes(run)) <= 5  # the first row ends the row that stood for the partition
    assert len(run.visible(KEY)) == ROWS


def test_the_bytes_of_rows_count_too() -> None:
    run = wide(1000)
    run.fold_settings = run.fold_settings._replace(max_bytes=50)
    write(run, static(b"t", BASE_US + 1))
    assert len(run.parts) > 3


def test_what_is_cut_is_finished_after_the_reorder_time_was_raised() -> None:
    """A row that has expired is not there again because the clock is set back."""
    whole, cut = wide(1000, ttl=5), wide(4, ttl=5)
    beat = record(FORWARD, static(b"t", BASE_US + 1), BASE_S + 20, 0)
    assert len(cut.part(beat).changes) == 4
    cut.fold_settings = bounded(3, REORDERING._replace(reorder_ms=1_000_000))
    cut.chunk(beat)
    whole.chunk(beat)
    for run in (whole, cut):
        run.heartbeat((BASE_S + 2_000_000) * 1000)
    assert by_key(cut.changes) == by_key(whole.changes)


def test_what_is_cut_is_finished_under_the_schema_it_was_begun_under() -> None:
    """Only then is a column dropped that was dropped since."""
    run = wide(4)
    update = record(FORWARD, static(b"t", BASE_US + 1), BASE_S, 0)
    (schema,) = {change.schema for change in run.part(update).changes}
    a, *others = FORWARD.table.regular_columns
    dropped = {"a": DroppedColumn(a, BASE_US + 100)}
    newer = replace(FORWARD.table, regular_columns=tuple(others), dropped_columns=dropped)
    run.catalog = catalog_of(FORWARD.table, newer)
    changes = run.chunk(update).changes
    assert [(change.schema, change.after) for change in changes] == [(schema, {"st": b"t", "a": b"x"})] * (ROWS - 3)
    run.writer = TableWriter(newer)
    for _ in range(2):  # what the first one begins beyond itself, the next one finishes
        run.heartbeat(BASE_S * 1000, clock=2**62)
    assert run.visible(KEY) == {(int_bytes(c),): {"st": b"t"} for c in range(ROWS)}
    assert CONTINUATION not in run.state.data
