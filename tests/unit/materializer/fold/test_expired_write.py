"""Writes that are delivered after their TTL has passed: the write comes out, and at once its expiry."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.rows.clustering import ClusteringBound, Kind
from cassandra_storage.formats.rows.deletion import NO_LIVENESS, DeletionTime, LivenessInfo, RangeTombstone
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData, Row
from tests.support.materializer.brute_model import BruteModel, Write
from tests.support.materializer.fold_checks import EXAMPLES, NEVER_PURGE, record
from tests.support.materializer.fold_run import FoldRun, events, in_any_order
from tests.support.materializer.raw_builder import int_bytes
from tests.support.materializer.reorder_checks import REORDER_MS, REORDERING
from tests.support.materializer.table_writes import BASE_S, BASE_US, FORWARD, PARTITIONS, WRITERS, Stamp, writes
from tests.support.materializer.wide_partition import bounded

if TYPE_CHECKING:
    from cdc_common.messages.changes import RowChange, RowImage
    from materializer.records import RawRecord
    from materializer.rows.settings import FoldSettings
    from tests.support.materializer.brute_model import Visible
    from tests.support.materializer.raw_builder import TableWriter

KEY = PARTITIONS[0]
TTL = 30
END = BASE_S + TTL
LATE = BASE_S + 60  # when Kafka is there again
TABLES = pytest.mark.parametrize("writer", WRITERS, ids=["forward", "reversed", "mixed", "single"])
SETTINGS = pytest.mark.parametrize(
    "fold_settings", [NEVER_PURGE, bounded(1), REORDERING, bounded(1, REORDERING)], ids=["", "cut", "reorder", "both"]
)


def cell(number: int, text: str, *, ttl: int = TTL) -> Cell:
    """A cell written at BASE_S with the timestamp BASE_US + number."""
    if not ttl:
        return Cell(BASE_US + number, text.encode())
    return Cell(BASE_US + number, text.encode(), BASE_S + ttl, ttl)


def row(c: int, number: int, *, ttl: int = TTL, is_insert: bool = True, **columns: Cell) -> Write:
    liveness = LivenessInfo(BASE_US + number, ttl, BASE_S + ttl) if ttl else LivenessInfo(BASE_US + number)
    return Write(KEY, "row", Row((int_bytes(c),), columns, liveness if is_insert else NO_LIVENESS))


def static(number: int, text: str, *, ttl: int = TTL) -> Write:
    return Write(KEY, "static", Row((), {"st": cell(number, text, ttl=ttl)}))


def mutation(*parts: Write, second: int = LATE, offset: int = 0) -> list[RawRecord]:
    """One mutation: its messages have one place in the log."""
    return [record(FORWARD, part, second, offset) for part in parts]


def summary(changes: list[RowChange]) -> list[tuple[str, RowImage | None, RowImage | None, str]]:
    return [(change.op, change.before, change.after, change.source.cause) for change in changes]


def run_late(fold_settings: FoldSettings, *records: RawRecord) -> FoldRun:
    run = FoldRun(FORWARD, fold_settings)
    run.chunk(*records)
    run.heartbeat(LATE * 1000 + REORDER_MS)
    return run


@SETTINGS
def test_an_insert_and_an_update_that_arrive_expired(fold_settings: FoldSettings) -> None:
    """The shortest form of an outage longer than a TTL."""
    first = record(FORWARD, row(1, 0, ttl=0, a=cell(0, "a", ttl=0)), BASE_S, 0)
    update = record(FORWARD, row(1, 1, is_insert=False, a=cell(1, "b")), LATE, 1)
    run = run_late(fold_settings, first, update, record(FORWARD, row(2, 2, a=cell(2, "c")), LATE, 2))
    assert summary(run.changes) == [
        ("c", None, {"a": b"a"}, "write"),
        ("u", {"a": b"a"}, {"a": b"b"}, "expired_write"),
        ("u", {"a": b"b"}, {}, "expiry"),
        ("c", None, {"a": b"c"}, "expired_write"),
        ("d", {"a": b"c"}, None, "expiry"),
    ]
    sources = [(change.source.ts_us, change.source.file) for change in run.changes[1:]]
    log = "CommitLog-7-1.log"
    assert sources == [(BASE_US + 1, log), (END * 1_000_000, ""), (BASE_US + 2, log), (END * 1_000_000, "")]


def test_each_ttl_of_a_write_ends_at_its_own_second() -> None:
    write = row(1, 1, a=cell(1, "a", ttl=20), b=cell(1, "b", ttl=10))
    run = run_late(NEVER_PURGE, record(FORWARD, write, LATE, 0))
    assert [(change.after, change.source.ts_us // 1_000_000 - BASE_S) for change in run.changes[1:]] == [
        ({"a": b"a"}, 10),
        ({}, 20),
        (None, 30),
    ]


def test_what_is_still_live_stays() -> None:
    write = row(1, 1, is_insert=False, a=cell(1, "expired"), b=cell(1, "live", ttl=90))
    run = run_late(NEVER_PURGE, record(FORWARD, write, LATE, 0))
    assert summary(run.changes) == [
        ("c", None, {"a": b"expired", "b": b"live"}, "expired_write"),
        ("u", {"a": b"expired", "b": b"live"}, {"b": b"live"}, "expiry"),
    ]
    assert summary(run.heartbeat((BASE_S + 90) * 1000).changes) == [("d", {"b": b"live"}, None, "expiry")]


def test_elements_of_collections_too() -> None:
    element = Cell(BASE_US, b"", END, TTL, b"x")
    data = ComplexColumnData(DeletionTime(BASE_US - 1, BASE_S), (element,))
    write = Write(KEY, "row", Row((int_bytes(1),), {"s": data}))
    run = run_late(NEVER_PURGE, record(FORWARD, write, LATE, 0))
    assert [change.after for change in run.changes] == [{"s": ((b"x", b""),)}, None]


@pytest.mark.parametrize("host", [1, 2], ids=["again", "of another replica"])
def test_a_copy_changes_nothing(host: int) -> None:
    write = row(1, 1, a=cell(1, "a"))
    run = run_late(NEVER_PURGE, record(FORWARD, write, LATE, 0))
    state = dict(run.state.data)
    copy = record(FORWARD, write, LATE, 0, host)
    assert run.chunk(copy, copy._replace(timestamp_ms=copy.timestamp_ms + 3_000_000)).changes == []
    data = {key: value for key, value in run.state.data.items() if key[:1] not in (b"m", b"o")}
    assert data == {key: value for key, value in state.items() if key[:1] not in (b"m", b"o")}


def test_a_copy_of_what_was_seen_live_changes_nothing() -> None:
    write = row(1, 1, a=cell(1, "a"))
    run = run_late(NEVER_PURGE, record(FORWARD, write, BASE_S, 0))
    assert [change.op for change in run.changes] == ["c", "d"]
    assert run.chunk(record(FORWARD, write, LATE + 60, 0, 2)).changes == []


@pytest.mark.parametrize("number", [1, 3])
def test_what_loses_to_another_write_or_a_deletion_is_not_shown(number: int) -> None:
    newer = row(1, 2, ttl=0, a=cell(2, "newer", ttl=0))
    deletion = Write(KEY, "partition_deletion", DeletionTime(BASE_US + 3, BASE_S))
    run = run_late(NEVER_PURGE, record(FORWARD, newer if number == 1 else deletion, LATE, 0))
    ops = [change.op for change in run.changes]
    late = record(FORWARD, row(1, number, is_insert=False, a=cell(number, "late")), LATE + 10, 1)
    assert run.chunk(late).changes == []
    assert ops == (["c"] if number == 1 else [])


def test_an_expired_write_of_the_same_value_is_one_change() -> None:
    first = record(FORWARD, row(1, 0, ttl=0, a=cell(0, "a", ttl=0)), BASE_S, 0)
    run = run_late(NEVER_PURGE, first, record(FORWARD, row(1, 1, is_insert=False, a=cell(1, "a")), LATE, 1))
    assert summary(run.changes[1:]) == [("u", {"a": b"a"}, {}, "expiry")]


def test_the_state_holds_what_was_written() -> None:
    """Whatever a chunk cuts or shows, the merged data are those of a write that arrived in time."""
    write = row(1, 1, a=cell(1, "a"))
    in_time = run_late(NEVER_PURGE, record(FORWARD, write, BASE_S, 0))
    late = run_late(NEVER_PURGE, record(FORWARD, write, LATE, 0))
    assert late.merged() == in_time.merged()
    timers = [{key for key in run.state.data if key[:1] in (b"x", b"g")} for run in (in_time, late)]
    assert timers[0] == timers[1]


def test_a_batch_is_shown_before_anything_of_it_expires() -> None:
    """The row that stands for the partition goes when the rows come, and comes back after them."""
    run = FoldRun(FORWARD, NEVER_PURGE)
    run.chunk(record(FORWARD, static(0, "s", ttl=0), BASE_S, 0))
    batch = mutation(row(1, 1, a=cell(1, "a")), row(2, 1, a=cell(1, "b")), static(1, "t", ttl=0), offset=1)
    changes = run.chunk(*batch).changes
    t, s = b"t", b"s"
    assert summary(changes) == [
        ("d", {"st": s}, None, "expired_write"),
        ("c", None, {"st": t, "a": b"a"}, "expired_write"),
        ("c", None, {"st": t, "a": b"b"}, "expired_write"),
        ("d", {"st": t, "a": b"a"}, None, "expiry"),
        ("d", {"st": t, "a": b"b"}, None, "expiry"),
        ("c", None, {"st": t}, "expiry"),
    ]


def test_a_batch_that_replaces_a_row_that_expires() -> None:
    first = record(FORWARD, row(1, 0, ttl=0, a=cell(0, "a", ttl=0)), BASE_S, 0)
    deletion = Write(KEY, "partition_deletion", DeletionTime(BASE_US + 1, BASE_S))
    run = run_late(NEVER_PURGE, first, *mutation(deletion, row(1, 2, b=cell(2, "b")), offset=1))
    assert summary(run.changes[1:]) == [
        ("u", {"a": b"a"}, {"b": b"b"}, "expired_write"),
        ("d", {"b": b"b"}, None, "expiry"),
    ]
    assert [change.row_sequence for change in run.changes] == [1, 2, 3]


def test_a_batch_that_covers_its_own_row_shows_nothing() -> None:
    bounds = (
        ClusteringBound(Kind.INCL_START_BOUND, (int_bytes(1),)),
        ClusteringBound(Kind.INCL_END_BOUND, (int_bytes(1),)),
    )
    covering = Write(KEY, "range_deletion", RangeTombstone(*bounds, DeletionTime(BASE_US + 1, BASE_S)))
    run = run_late(NEVER_PURGE, *mutation(row(1, 1, a=cell(1, "a")), covering))
    assert run.changes == []
    run.chunk(record(FORWARD, row(1, 2, ttl=0, a=cell(2, "b", ttl=0)), LATE + 10, 5))
    assert [change.row_sequence for change in run.changes] == [1]


@SETTINGS
def test_a_static_column_changes_once_without_the_value(fold_settings: FoldSettings) -> None:
    records = [
        record(FORWARD, static(0, "s", ttl=0), BASE_S, 0),
        record(FORWARD, row(1, 0, ttl=0), BASE_S, 1),
        record(FORWARD, row(2, 0, ttl=0), BASE_S, 2),
        record(FORWARD, static(5, "t"), LATE, 3),
    ]
    run = run_late(fold_settings, *records)
    assert summary(run.changes[-2:]) == [("u", {"st": b"s"}, {}, "expired_write")] * 2
    assert run.chunk(record(FORWARD, static(6, "u"), LATE + 60, 4)).changes == []


def test_an_expired_write_that_is_folded_in_a_part() -> None:
    """The work that is due before it and the write are together more than a chunk takes."""
    run = FoldRun(FORWARD, bounded(2))
    other = row(1, 0)._replace(partition_key=PARTITIONS[1])
    run.chunk(record(FORWARD, other, BASE_S, 0))
    changes = run.chunk(record(FORWARD, row(1, 1, a=cell(1, "a")), LATE, 1)).changes
    assert summary(changes) == [
        ("d", {}, None, "expiry"),
        ("c", None, {"a": b"a"}, "expired_write"),
        ("d", {"a": b"a"}, None, "expiry"),
    ]


def test_after_the_reorder_time_it_is_the_arrival_that_counts() -> None:
    """A write that arrives in time is shown as usual, although it expires while it is in the buffer."""
    run = FoldRun(FORWARD, REORDERING)
    run.chunk(record(FORWARD, row(1, 1, ttl=2, a=cell(1, "a", ttl=2)), BASE_S, 0))
    run.heartbeat(LATE * 1000)
    assert [change.source.cause for change in run.changes] == ["write", "expiry"]


def visible_until(model: BruteModel, write: Write, now: int, until: int) -> Visible:
    """The rows at `now`, if of this write only that had expired which expired by the second `until`."""
    if write.kind != "row":
        return model.visible(write.partition_key, now)

    def as_live(cell: Cell) -> Cell:
        lives = cell.ttl and until < cell.local_deletion_time <= now
        return cell._replace(local_deletion_time=now + 1) if lives else cell

    columns = {
        name: as_live(data) if isinstance(data, Cell) else data._replace(cells=tuple(map(as_live, data.cells)))
        for name, data in write.what.columns.items()
    }
    liveness = write.what.liveness
    if liveness.ttl and until < liveness.local_expiration_time <= now:
        liveness = liveness._replace(local_expiration_time=now + 1)
    shown = BruteModel(model.table)
    shown.writes = [*model.writes[:-1], write._replace(what=write.what._replace(columns=columns, liveness=liveness))]
    return shown.visible(write.partition_key, now)


@TABLES
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_late_writes_of_any_kind_are_shown_and_end(writer: TableWriter, data: st.DataObject) -> None:
    check_late_writes(writer, data)


def check_late_writes(writer: TableWriter, data: st.DataObject) -> None:
    """Against the model: every write that wins comes out, in any order of timestamps, and copies change nothing."""
    now = BASE_S + data.draw(st.integers(2, 6))
    timestamps = data.draw(st.lists(st.integers(0, 100), min_size=1, max_size=12, unique=True))
    fold_settings = data.draw(st.sampled_from([NEVER_PURGE, bounded(1), bounded(3)]))
    model, run = BruteModel(writer.table), FoldRun(writer, fold_settings)
    run.heartbeat(now * 1000)
    for offset, number in enumerate(timestamps):
        stamp = Stamp(BASE_US + 10 * number, data.draw(st.integers(BASE_S, now)))
        write = data.draw(writes(writer.table, stamp))
        pictures = [model.visible(write.partition_key, now)]
        model.writes.append(write)
        ends = [end for end in ends_of(model, write) if end <= now] if write.kind == "row" else []
        pictures += [visible_until(model, write, now, until) for until in (0, *ends)]
        emitted = len(run.changes)
        run.chunk(record(writer, write, now, offset))
        check_pictures(model, write, pictures, ends, run.changes[emitted:])
        assert run.visible(write.partition_key) == model.visible(write.partition_key, now)
        assert run.chunk(record(writer, write, now, offset, 2)).changes == []


def ends_of(model: BruteModel, write: Write) -> list[int]:
    one = BruteModel(model.table)
    one.writes = [write]
    return one.ends(0, 2**40)


def check_pictures(
    model: BruteModel, write: Write, pictures: list[Visible], ends: list[int], changes: list[RowChange]
) -> None:
    """The changes are those from one picture to the next: first the write's, then those of each end."""
    rest = list(changes)
    for place, (before, after) in enumerate(itertools.pairwise(pictures)):
        expected = model.expected(write.partition_key, before, after)
        step, rest = rest[: len(expected)], rest[len(expected) :]
        assert in_any_order(events(step)) == in_any_order(expected)
        if place:
            assert {(change.source.cause, change.source.ts_us) for change in step} <= {
                ("expiry", ends[place - 1] * 1_000_000)
            }
        elif step and any(picture != after for picture in pictures[place + 1 :]):
            assert {change.source.cause for change in step} == {"expired_write"}
    assert not rest
