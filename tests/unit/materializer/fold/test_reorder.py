"""The reorder buffer: if writes wait long enough, they come out in write order, in whatever batches they arrive."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.rows.deletion import NO_DELETION_TIME, NO_TTL, LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.schema.tables import DroppedColumn
from tests.support.materializer.brute_model import Write
from tests.support.materializer.fold_checks import EXAMPLES, NEVER_PURGE, record
from tests.support.materializer.fold_run import FoldRun, events
from tests.support.materializer.raw_builder import TableWriter, catalog_of, int_bytes, raw_record
from tests.support.materializer.reorder_checks import BASE_MS, REORDERING, buffered, check_reorder
from tests.support.materializer.table_writes import BASE_S, BASE_US, FORWARD, PARTITIONS

if TYPE_CHECKING:
    from materializer.records import RawRecord

KEY = PARTITIONS[0]


def value(number: int, text: str, ms: int, *, ttl: int = 0, c: int = 0) -> RawRecord:
    """An UPDATE of column a with the timestamp BASE_US + number, in Kafka at BASE_MS + ms."""
    end = (BASE_S + ttl, ttl) if ttl else (NO_DELETION_TIME, NO_TTL)
    row = Row((int_bytes(c),), {"a": Cell(BASE_US + number, text.encode(), *end)})
    return raw_record(KEY, "row", row, offset=number, timestamp_ms=BASE_MS + ms, writer=FORWARD)


def texts(run: FoldRun) -> list[str | None]:
    return [None if event.after is None else event.after["a"].decode() for event in events(run.changes)]


def test_writes_within_the_reorder_time_come_out_in_write_order() -> None:
    run = FoldRun(FORWARD, REORDERING)
    run.chunk(value(3, "3", 0))
    run.chunk(value(1, "1", 1000))
    run.chunk(value(2, "2", 2999))
    assert (texts(run), buffered(run)) == ([], 3)
    run.heartbeat(BASE_MS + 3000)
    assert (texts(run), buffered(run)) == (["1", "2", "3"], 0)


def test_it_counts_from_the_arrival_and_not_from_the_write() -> None:
    run = FoldRun(FORWARD, REORDERING)
    run.chunk(value(-(10**12), "long ago", 0))
    run.chunk(value(10**15, "far ahead", 500))
    run.heartbeat(BASE_MS + 2999)
    assert texts(run) == []
    run.heartbeat(BASE_MS + 3000)
    assert texts(run) == ["long ago"]
    run.heartbeat(BASE_MS + 3500)
    assert texts(run) == ["long ago", "far ahead"]


def test_a_due_write_releases_nothing_of_other_partitions() -> None:
    run = FoldRun(FORWARD, REORDERING)
    row = Row((int_bytes(0),), {"a": Cell(BASE_US, b"other")})
    run.chunk(value(1, "1", 0), record(FORWARD, Write(PARTITIONS[1], "row", row), BASE_S + 1, 2))
    run.heartbeat(BASE_MS + 3000)
    assert (texts(run), buffered(run)) == (["1"], 1)
    run.heartbeat(BASE_MS + 4000)
    assert (texts(run), buffered(run)) == (["1", "other"], 0)


def test_a_row_that_expires_in_the_buffer_is_emitted_all_the_same() -> None:
    run = FoldRun(FORWARD, REORDERING)
    run.chunk(value(1, "short", 0, ttl=1))
    run.heartbeat(BASE_MS + 2500)
    run.heartbeat(BASE_MS + 3000)
    assert texts(run) == ["short"]
    run.heartbeat(BASE_MS + 4000)
    assert texts(run) == ["short", None]


def test_a_row_that_is_renewed_in_time_does_not_go_for_a_moment() -> None:
    run = FoldRun(FORWARD, REORDERING)
    run.chunk(value(1, "old", 0, ttl=2))
    run.chunk(value(2, "new", 1500, ttl=9))
    run.heartbeat(BASE_MS + 7000)
    assert texts(run) == ["old", "new"]


def test_a_brokers_clock_that_goes_back_turns_nothing_back() -> None:
    run = FoldRun(FORWARD, NEVER_PURGE)
    run.chunk(value(1, "1", 0, ttl=10))
    run.chunk(value(2, "2", 9000, ttl=10))
    assert run.chunk(value(3, "3", -3_600_000, ttl=10)).now_ms == BASE_MS + 9000
    assert run.heartbeat(BASE_MS + 8000).now_ms == BASE_MS + 9000
    assert texts(run) == ["1", "2", "3"]
    run.heartbeat(BASE_MS + 10_000)
    assert texts(run) == ["1", "2", "3", None]


def test_the_reorder_time_can_be_changed() -> None:
    run = FoldRun(FORWARD, REORDERING)
    run.chunk(value(2, "2", 0))
    run.fold_settings = NEVER_PURGE
    run.chunk(value(1, "1", 10))
    assert (texts(run), buffered(run)) == (["1", "2"], 0)
    run.fold_settings = REORDERING
    run.chunk(value(4, "4", 20))
    run.heartbeat(BASE_MS + 3019)
    assert texts(run) == ["1", "2"]
    run.heartbeat(BASE_MS + 3020)
    assert texts(run) == ["1", "2", "4"]


def test_an_insert_and_its_duplicates_are_buffered_once() -> None:
    row = Row((int_bytes(1),), {}, LivenessInfo(BASE_US))
    run = FoldRun(FORWARD, REORDERING)
    for ms in (0, 100):
        run.chunk(raw_record(KEY, "row", row, timestamp_ms=BASE_MS + ms, writer=FORWARD))
    assert buffered(run) == 1
    run.heartbeat(BASE_MS + 3000)
    assert (len(run.changes), buffered(run)) == (1, 0)


@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(data=st.data())
def test_every_event_comes_out_in_write_order(data: st.DataObject) -> None:
    check_reorder(data)


def test_a_buffered_write_is_read_by_the_schema_that_it_was_written_with() -> None:
    a, b = FORWARD.table.regular_columns[:2]
    others = FORWARD.table.regular_columns[2:]
    without_b = replace(
        FORWARD.table, regular_columns=(a, *others), dropped_columns={"b": DroppedColumn(b, BASE_US + 100)}
    )
    run = FoldRun(FORWARD, REORDERING)
    row = Row((int_bytes(0),), {"a": Cell(BASE_US, b"x"), "b": Cell(BASE_US, b"y")})
    run.chunk(raw_record(KEY, "row", row, timestamp_ms=BASE_MS, writer=FORWARD))
    run.catalog = catalog_of(FORWARD.table, without_b)
    run.heartbeat(BASE_MS + 3000)
    assert [event.after for event in events(run.changes)] == [{"a": b"x", "b": b"y"}]
    run.writer = TableWriter(without_b)
    run.heartbeat(BASE_MS + 6000, clock=2**62)
    assert [event.after for event in events(run.changes)] == [{"a": b"x", "b": b"y"}, {"a": b"x"}]
