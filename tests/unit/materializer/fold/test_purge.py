"""Purging: what is dead for gc_grace and longer leaves the state, and nothing visible changes by it."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.rows.clustering import ClusteringBound, Kind
from cassandra_storage.formats.rows.deletion import (
    LIVE,
    NO_DELETION_TIME,
    NO_LIVENESS,
    NO_TTL,
    DeletionTime,
    LivenessInfo,
    RangeTombstone,
    RowDeletion,
)
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData, Row
from materializer.rows.keys import EXPIRY, FLOOR, PARTITION, PURGE
from materializer.rows.settings import FoldSettings
from tests.support.materializer.brute_model import BruteModel, Write
from tests.support.materializer.fold_checks import EXAMPLES, PASSING, record
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.raw_builder import TableWriter, catalog_of, int_bytes
from tests.support.materializer.table_writes import BASE_S, BASE_US, FORWARD, MIXED, PARTITIONS, WRITERS, Stamp, writes

KEY = PARTITIONS[0]
GC_GRACE = FORWARD.table.gc_grace_seconds
MARGIN = 2
KEPT = GC_GRACE + MARGIN
RULES = FoldSettings(purge_margin_seconds=MARGIN)


def insert(second: int, c: int = 0, *, ttl: int = 0, timestamp: int | None = None) -> Write:
    stamp = timestamp or second * 1_000_000
    end = (second + ttl, ttl) if ttl else (NO_DELETION_TIME, NO_TTL)
    liveness = LivenessInfo(stamp, ttl, second + ttl) if ttl else LivenessInfo(stamp)
    return Write(KEY, "row", Row((int_bytes(c),), {"a": Cell(stamp, b"x", *end)}, liveness))


def delete(second: int, c: int = 0, timestamp: int | None = None) -> Write:
    deletion = DeletionTime(timestamp or second * 1_000_000 + 1, second)
    return Write(KEY, "row", Row((int_bytes(c),), {}, NO_LIVENESS, RowDeletion(deletion)))


def delete_partition(second: int) -> Write:
    return Write(KEY, "partition_deletion", DeletionTime(second * 1_000_000 + 1, second))


class Purging(FoldRun):
    """Time passes by heartbeats of one publisher that has published all."""

    def __init__(self, writer: TableWriter = FORWARD, fold_settings: FoldSettings = RULES) -> None:
        super().__init__(writer, fold_settings)
        self._offset = 0

    def write(self, second: int, *written: Write, host: int = 1) -> None:
        for write in written:
            self._offset += 1
            self.chunk(record(self.writer, write, second, self._offset, host))

    def pass_to(self, second: int, host: int = 1, clock: int | None = None) -> None:
        self.heartbeat(second * 1000, host=host, clock=1_000_000 * (second if clock is None else clock))

    def keys(self, *sections: bytes) -> list[bytes]:
        return [key for key in self.state.data if key[:1] in sections]


def left(run: Purging) -> list[bytes]:
    """Return the keys that are left of Cassandra partitions, and of them in the queues."""
    return run.keys(PARTITION, PURGE, EXPIRY)


def test_a_deleted_row_goes_and_its_number_is_never_used_again() -> None:
    run = Purging()
    run.write(BASE_S, insert(BASE_S), delete(BASE_S))
    run.pass_to(BASE_S + KEPT + 1)
    assert left(run)
    run.pass_to(BASE_S + KEPT + 2)
    assert left(run) == []
    assert int.from_bytes(run.state.data[FLOOR], "big") == 2
    run.write(BASE_S + 20, insert(BASE_S + 20))
    assert [change.row_sequence for change in run.changes] == [1, 2, 3]


@pytest.mark.parametrize("reorder_ms", [0, 5000])
def test_a_clock_that_was_ahead_and_is_set_back_still_holds_purging_back(reorder_ms: int) -> None:
    """The node's log since then is not published, whatever its clock has shown before."""
    run = Purging(fold_settings=RULES._replace(reorder_ms=reorder_ms))
    run.write(BASE_S, insert(BASE_S), delete(BASE_S))
    for second in range(KEPT // 2):
        run.pass_to(BASE_S + second)
        run.pass_to(BASE_S + second, host=2, clock=BASE_S + 10_000)
    for second in range(KEPT // 2, KEPT):
        run.pass_to(BASE_S + second)
        run.pass_to(BASE_S + second, host=2, clock=BASE_S + 1)
    for second in range(60, 100, 10):
        run.pass_to(BASE_S + second)
    run.write(BASE_S + 100, insert(BASE_S), host=2)  # its copy of the write
    run.pass_to(BASE_S + 110)
    assert run.visible(KEY) == {}
    for second in range(120, 160, 10):
        run.pass_to(BASE_S + second)
        run.pass_to(BASE_S + second, host=2)
    assert left(run) == []


def test_a_row_that_was_never_purged_goes_on_counting_from_where_it_was() -> None:
    run = Purging()
    run.write(BASE_S, insert(BASE_S, 0), delete(BASE_S, 0), insert(BASE_S, 1))
    run.pass_to(BASE_S + 20)
    run.write(BASE_S + 21, Write(KEY, "row", Row((int_bytes(1),), {"a": Cell((BASE_S + 21) * 1_000_000, b"z")})))
    assert [change.row_sequence for change in run.changes] == [1, 2, 1, 2]


def test_a_deleted_partition_leaves_nothing() -> None:
    run = Purging()
    static = Write(KEY, "static", Row((), {"st": Cell(BASE_US, b"s")}))
    run.write(BASE_S, static, insert(BASE_S, 0), insert(BASE_S, 1), delete_partition(BASE_S))
    assert run.visible(KEY) == {}
    run.pass_to(BASE_S + KEPT + 1)
    run.pass_to(BASE_S + KEPT + 2)
    assert left(run) == []
    # The row that stood for the partition while it had only statics has used 1 and 2.
    run.write(BASE_S + 20, static._replace(what=Row((), {"st": Cell(BASE_US + 10**8, b"t")})))
    assert run.changes[-1].row_sequence == 3


def test_the_counter_of_the_row_of_statics_is_never_used_again() -> None:
    def static(second: int) -> Write:
        return Write(KEY, "static", Row((), {"st": Cell(second * 1_000_000, b"%d" % second)}))

    run = Purging()
    run.write(BASE_S, static(BASE_S), static(BASE_S + 1), delete_partition(BASE_S + 1))
    run.pass_to(BASE_S + KEPT + 10)
    assert left(run) == []
    run.write(BASE_S + 20, static(BASE_S + 20))
    assert [(change.op, change.row_sequence) for change in run.changes] == [("c", 1), ("u", 2), ("d", 3), ("c", 4)]


def test_younger_tombstones_of_the_row_stay() -> None:
    def cells(timestamp: int, value: bytes, gone: int = NO_DELETION_TIME) -> Write:
        elements = ComplexColumnData(LIVE, tuple(Cell(timestamp, b"", gone, path=path) for path in (b"p", b"q")))
        return Write(KEY, "row", Row((int_bytes(0),), {"b": Cell(timestamp, value, gone), "s": elements}))

    run, later = Purging(), BASE_S + 3
    old = Cell(BASE_US, b"", BASE_S)
    element = ComplexColumnData(LIVE, (Cell(BASE_US, b"", BASE_S, path=b"o"),))
    run.write(BASE_S, Write(KEY, "row", Row((int_bytes(0),), {"a": old, "s": element})))
    run.write(later, cells(later * 1_000_000, b"", gone=later))
    run.pass_to(BASE_S + KEPT + 1)
    assert len(run.keys(PURGE)) == 1
    run.write(BASE_S + KEPT + 2, cells(BASE_US + 5, b"late"))
    assert run.changes == []
    run.pass_to(later + KEPT + 1)
    assert left(run) == []


def test_what_expired_goes_too() -> None:
    run = Purging()
    run.write(BASE_S, insert(BASE_S, ttl=3))
    run.pass_to(BASE_S + 3 + KEPT)
    assert [change.op for change in run.changes] == ["c", "d"]
    assert run.keys(PURGE)
    run.pass_to(BASE_S + 3 + KEPT + 1)
    run.pass_to(BASE_S + 3 + KEPT + 2)
    assert left(run) == []


def test_a_tombstone_of_the_future_stays_until_its_time_has_come() -> None:
    run, ahead = Purging(), BASE_S + 100
    run.write(BASE_S, delete(BASE_S, timestamp=ahead * 1_000_000))
    run.pass_to(BASE_S + 50)
    run.write(BASE_S + 60, insert(BASE_S + 60))
    assert run.changes == []
    run.pass_to(ahead + KEPT)
    assert left(run)
    run.pass_to(ahead + KEPT + 1)
    assert left(run) == []


def test_a_stalled_publisher_holds_it_back_and_is_reported_until_it_returns() -> None:
    run = Purging(fold_settings=RULES._replace(stalled_publisher_ms=30_000))
    run.pass_to(BASE_S, host=2)
    run.write(BASE_S, insert(BASE_S), delete(BASE_S))
    run.pass_to(BASE_S + 30)
    assert left(run)
    assert run.heartbeat((BASE_S + 30) * 1000, host=1, clock=(BASE_S + 30) * 1_000_000).stalled_publishers == ()
    stalled = run.heartbeat((BASE_S + 31) * 1000, host=1, clock=(BASE_S + 31) * 1_000_000).stalled_publishers
    assert stalled == (str(UUID(bytes=bytes([2]) * 16)),)
    assert left(run)
    returned = run.heartbeat((BASE_S + 40) * 1000, host=2, clock=(BASE_S + 40) * 1_000_000)
    assert returned.stalled_publishers == ()
    assert left(run) == []


def test_eight_quiet_days_are_no_publishers_silence_and_purge_nothing_too_early() -> None:
    run = Purging(fold_settings=RULES._replace(stalled_publisher_ms=30_000, keep_time_ms=15_000))
    for host in (1, 2):
        run.pass_to(BASE_S, host=host)
    run.write(BASE_S, delete(BASE_S))
    back = BASE_S + 8 * 24 * 3600

    def heartbeat(second: int, host: int, clock: int) -> tuple[str, ...]:
        return run.heartbeat(second * 1000, host=host, clock=clock * 1_000_000).stalled_publishers

    assert heartbeat(back, 1, back) == ()
    assert heartbeat(back + 10, 2, BASE_S) == ()  # it catches up
    run.write(back + 11, insert(BASE_S), host=2)  # what the tombstone shadows
    assert run.changes == []
    assert left(run)
    assert heartbeat(back + 20, 2, back + 20) == ()
    assert left(run) == []


def test_a_publisher_that_stays_away_after_quiet_days_is_reported() -> None:
    run = Purging(fold_settings=RULES._replace(stalled_publisher_ms=30_000, keep_time_ms=15_000))
    for host in (1, 2):
        run.pass_to(BASE_S, host=host)
    run.write(BASE_S, delete(BASE_S))
    back = BASE_S + 8 * 24 * 3600
    reports = [run.heartbeat((back + second) * 1000).stalled_publishers for second in (0, 10, 20)]
    assert reports == [(), (str(UUID(bytes=bytes([2]) * 16)),), (str(UUID(bytes=bytes([2]) * 16)),)]
    assert left(run)


def test_a_publisher_that_lags_holds_it_back_though_it_is_heard() -> None:
    run = Purging()
    run.write(BASE_S, insert(BASE_S), delete(BASE_S))
    run.pass_to(BASE_S + 30, clock=BASE_S + KEPT + 1)
    assert left(run)
    run.pass_to(BASE_S + 31, clock=BASE_S + KEPT + 2)
    assert left(run) == []


def test_a_publisher_of_which_only_writes_are_known_holds_it_back() -> None:
    run = Purging()
    run.write(BASE_S, insert(BASE_S), delete(BASE_S), host=2)
    run.pass_to(BASE_S + 30, host=1)
    assert left(run)
    run.pass_to(BASE_S + 31, host=2)
    assert left(run) == []


def test_a_publisher_that_was_forgotten_does_not() -> None:
    run = Purging()
    run.pass_to(BASE_S, host=2)
    run.write(BASE_S, insert(BASE_S), delete(BASE_S))
    run.pass_to(BASE_S + 30)
    assert left(run)
    run.fold_settings = RULES._replace(forgotten_publishers=frozenset({bytes([2]) * 16}))
    run.pass_to(BASE_S + 31)
    assert left(run) == []
    assert not any(key.endswith(bytes([2]) * 16) for key in run.state.data)
    assert run.heartbeat((BASE_S + 10_000) * 1000, host=1, clock=(BASE_S + 10_000) * 1_000_000).stalled_publishers == ()


def test_a_changed_gc_grace_is_followed() -> None:
    for gc_grace, is_left in ((GC_GRACE - 2, False), (GC_GRACE + 2, True)):
        run = Purging()
        run.write(BASE_S, insert(BASE_S), delete(BASE_S))
        run.catalog = catalog_of(replace(FORWARD.table, gc_grace_seconds=gc_grace))
        run.pass_to(BASE_S + KEPT + (2 if is_left else -1))
        run.pass_to(BASE_S + KEPT + (3 if is_left else 0))
        assert bool(left(run)) == is_left


def test_a_chunk_purges_no_more_than_its_bound() -> None:
    run = Purging(fold_settings=RULES._replace(purged_per_chunk=10))
    for c in range(25):
        run.write(BASE_S, insert(BASE_S, c), delete(BASE_S, c))
    counts = []
    for second in range(4):
        run.pass_to(BASE_S + KEPT + 10 + second)
        counts.append(len(run.keys(PURGE)))
    assert counts == [15, 5, 0, 0]
    assert left(run) == []


def test_buffered_writes_are_folded_before_what_shadows_them_goes() -> None:
    run = Purging(fold_settings=RULES._replace(reorder_ms=20_000))
    run.write(BASE_S, insert(BASE_S), delete(BASE_S))
    run.pass_to(BASE_S + KEPT + 1)
    run.write(BASE_S + KEPT + 2, insert(BASE_S, timestamp=BASE_US - 5))  # shadowed by the deletion, which is due
    run.pass_to(BASE_S + KEPT + 3)
    for second in range(BASE_S + 20, BASE_S + 80, 5):
        run.pass_to(second)
    assert [change.op for change in run.changes] == ["c", "d"]
    assert left(run) == []


@pytest.mark.parametrize("writer", WRITERS, ids=["forward", "reversed", "mixed", "single"])
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_nothing_visible_changes_and_nothing_dead_stays(writer: TableWriter, data: st.DataObject) -> None:
    check_purge(writer, data)


def check_purge(writer: TableWriter, data: st.DataObject) -> None:
    """Writes in order and at their time, purging among them: rows as without; in the end, what is visible is all."""
    model, run = BruteModel(writer.table), Purging(writer)
    now = BASE_S
    for number in range(data.draw(st.integers(1, 16))):
        now += data.draw(PASSING | st.just(KEPT + 1))
        run.pass_to(now)
        write = data.draw(writes(writer.table, Stamp(now * 1_000_000 + 10 * number, now)))
        model.writes.append(write)
        run.write(now, write)
        for key in PARTITIONS:
            assert run.visible(key) == model.visible(key, now)
    now += 10
    everything = [Write(key, "partition_deletion", DeletionTime(now * 1_000_000, now)) for key in PARTITIONS]
    if data.draw(st.booleans()):
        run.write(now, *everything)
        model.writes += everything
    for passed in (1, KEPT + 20, KEPT + 21):
        run.pass_to(now + passed)
    for key in PARTITIONS:
        assert run.visible(key) == model.visible(key, now + KEPT + 21)
    assert not run.keys(PURGE)
    assert not run.keys(EXPIRY)
    if not any(run.visible(key) for key in PARTITIONS):
        assert not run.keys(PARTITION)
    merged = run.merged()
    for key in PARTITIONS:
        assert (key in merged) == bool(run.visible(key))


def test_range_tombstones_go_piece_by_piece() -> None:
    def rows_from_one_to(last: int, second: int) -> Write:
        start = ClusteringBound(Kind.INCL_START_BOUND, (int_bytes(1),))  # c is in reversed order
        end = ClusteringBound(Kind.INCL_END_BOUND, (int_bytes(last),))
        deletion = DeletionTime(second * 1_000_000, second)
        return Write(KEY, "range_deletion", RangeTombstone(start, end, deletion))

    run = Purging(MIXED)
    run.write(BASE_S, rows_from_one_to(-1, BASE_S))
    run.write(BASE_S + 5, rows_from_one_to(0, BASE_S + 5))
    assert len(run.keys(PURGE)) == 2
    run.pass_to(BASE_S + KEPT + 2)
    assert len(run.keys(PURGE)) == 1
    run.pass_to(BASE_S + KEPT + 7)
    assert left(run) == []
