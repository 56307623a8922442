"""Which raw partitions a worker folds, and when: heartbeats wait, and nothing else does."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.messages.raw import LogKind, RawMessage, SnapshotKind, encode, is_heartbeat
from materializer.fold.next_timer import next_timer_ms
from materializer.records import RawPartition, RawRecord
from materializer.settings import MaterializerSettings
from materializer.worker.backlog import RawBacklog
from materializer.worker.worker_loop import max_heartbeat_wait
from stream_runtime.exactly_once.report import Report, StateReport
from stream_runtime.records import Rest
from tests.support.materializer.fold_checks import NEVER_PURGE
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.raw_builder import int_bytes, raw_record
from tests.support.materializer.table_writes import BASE_S, BASE_US, FORWARD

if TYPE_CHECKING:
    from collections.abc import Iterable

PARTITIONS = [RawPartition("cdc.raw.ks.t", number) for number in range(3)]
RAW, OTHER, _ = PARTITIONS
WAIT = 60.0
BEATEN = raw_record(b"", "heartbeat", None).value
WRITTEN = raw_record(int_bytes(1), "row", Row((int_bytes(1),), {"a": Cell(1, b"x")})).value
RESTING = Rest(None, None, frozenset({1}), 7)
NOTHING_DUE = Report(0, 1, 1, 0, 1, 0.1, state=StateReport(rest=RESTING))


def heartbeat(offset: int, ms: int = 0) -> RawRecord:
    return RawRecord(b"", BEATEN, offset, ms)


def write(offset: int, ms: int = 0) -> RawRecord:
    return RawRecord(b"k", WRITTEN, offset, ms)


def idle_backlog(*partitions: RawPartition, most: int = 1000, now: float = 0.0) -> RawBacklog:
    """Raw partitions that were folded now and have nothing due."""
    backlog = RawBacklog(WAIT, most)
    for partition in partitions:
        backlog.add(partition, now)
        backlog.append(partition, [heartbeat(0)])
        backlog.mark_folded(partition, backlog.first_records(partition, 10), NOTHING_DUE, now)
    return backlog


def test_a_heartbeat_is_known_by_its_bytes() -> None:
    for kind in (*get_args(LogKind), *get_args(SnapshotKind)):
        message = RawMessage(kind, b"", 1, bytes(16), bytes(16), 0, bytes(16), 1, "f", 1, 0)
        assert is_heartbeat(encode(message, 7)) == (kind == "heartbeat")
    assert not is_heartbeat(b"")
    assert not is_heartbeat(b"v")


def test_heartbeats_wait_and_a_write_does_not() -> None:
    backlog = idle_backlog(RAW, OTHER)
    backlog.append(RAW, [heartbeat(1)])
    assert (backlog.active(), backlog.ready_idle(WAIT / 2)) == ([], [])
    assert backlog.ready_idle(WAIT) == [RAW]
    backlog.append(OTHER, [heartbeat(1), write(2), heartbeat(3)])
    assert (backlog.active(), backlog.active_size) == ([OTHER], (3, 2 * len(BEATEN) + len(WRITTEN)))
    records = backlog.first_records(OTHER, 2)
    assert [record.offset for record in records] == [1, 2]
    backlog.mark_folded(OTHER, records, NOTHING_DUE, WAIT)
    assert (backlog.active(), backlog.active_size) == ([], (0, 0))
    assert [record.offset for record in backlog.first_records(OTHER, 2)] == [3]


def test_an_added_partition_is_folded_with_its_first_message() -> None:
    backlog = RawBacklog(WAIT, 1000)
    backlog.add(RAW, 0)
    assert backlog.ready_idle(2 * WAIT) == []
    backlog.append(RAW, [heartbeat(0)])
    assert backlog.ready_idle(0) == [RAW]


def test_a_partition_with_a_new_version_is_folded_once_more() -> None:
    backlog = idle_backlog(RAW)
    for busy, due in ((True, [RAW]), (False, [])):
        backlog.mark_folded(RAW, [], NOTHING_DUE._replace(state=NOTHING_DUE.state._replace(versions=1, busy=busy)), 0)
        backlog.append(RAW, [heartbeat(1)])
        assert backlog.ready_idle(1) == due
        backlog.mark_folded(RAW, backlog.first_records(RAW, 10), NOTHING_DUE, 0)


def test_a_due_partition_is_folded_with_the_first_message_after_its_time() -> None:
    backlog = idle_backlog(RAW)
    backlog.mark_folded(RAW, [], NOTHING_DUE._replace(state=StateReport(rest=RESTING._replace(due_ms=5000))), 0)
    backlog.append(RAW, [heartbeat(1, 4999)])
    assert backlog.ready_idle(1) == []
    backlog.append(RAW, [heartbeat(2, 5000)])
    assert backlog.ready_idle(1) == [RAW]


def test_a_changed_table_is_folded_with_the_next_message() -> None:
    backlog = idle_backlog(RAW)
    backlog.append(RAW, [heartbeat(1)])
    backlog.mark_ready({"cdc.raw.ks.other"})
    assert backlog.ready_idle(1) == []
    backlog.mark_ready({RAW.topic})
    assert backlog.ready_idle(1) == [RAW]


def test_no_more_heartbeats_wait_than_the_limit() -> None:
    backlog = idle_backlog(*PARTITIONS, most=3)
    for partition in PARTITIONS:
        backlog.append(partition, [heartbeat(1)])
    assert backlog.ready_idle(1) == []
    backlog.append(RAW, [heartbeat(2)])
    assert backlog.ready_idle(1) == PARTITIONS


def test_partitions_added_together_drift_apart() -> None:
    many = [RawPartition("cdc.raw.ks.t", number) for number in range(400)]
    backlog = idle_backlog(*many)
    for partition in many:
        backlog.append(partition, [heartbeat(1)])
    counts = [len(backlog.ready_idle(WAIT * (0.75 + 0.05 * step))) for step in range(6)]
    assert counts[0] == 0
    assert counts[-1] == 400
    assert all(50 <= after - before <= 110 for before, after in pairwise(counts))


@given(
    st.lists(
        st.tuples(st.sampled_from(PARTITIONS), st.lists(st.booleans(), max_size=4), st.integers(1, 3)), max_size=30
    )
)
def test_each_message_is_folded_once_and_in_order(steps: list[tuple[RawPartition, list[bool], int]]) -> None:
    """Each step adds messages and folds every ready partition, a limited number of messages each."""
    backlog = idle_backlog(*PARTITIONS)
    came = dict.fromkeys(PARTITIONS, 1)
    done = dict.fromkeys(PARTITIONS, 1)
    for now, (partition, kinds, most) in enumerate(steps):
        records = [write(came[partition] + at) if kind else heartbeat(0) for at, kind in enumerate(kinds)]
        backlog.append(partition, records)
        came[partition] += len(kinds)
        for raw_partition in [*backlog.active(), *backlog.ready_idle(now)]:
            records = backlog.first_records(raw_partition, most)
            assert records
            backlog.mark_folded(raw_partition, records, NOTHING_DUE, now)
            done[raw_partition] += len(records)
    end = len(steps) + WAIT + 1
    while due := [*backlog.active(), *backlog.ready_idle(end)]:
        for raw_partition in due:
            records = backlog.first_records(raw_partition, 100)
            backlog.mark_folded(raw_partition, records, NOTHING_DUE, end - WAIT - 1)
            done[raw_partition] += len(records)
    assert done == came


def ttl(second: int, lives: int, host: int = 1) -> RawRecord:
    row = Row(
        (int_bytes(second),),
        {"a": Cell(BASE_US + second, b"x", local_deletion_time=BASE_S + second + lives, ttl=lives)},
    )
    ms = (BASE_S + second) * 1000
    return raw_record(b"key!", "row", row, offset=second, timestamp_ms=ms, host=host, writer=FORWARD)


@pytest.mark.parametrize("reorder_ms", [0, 3000])
@given(rows=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 30)), min_size=1, max_size=5))
def test_a_state_publishes_nothing_before_it_is_due(reorder_ms: int, rows: list[tuple[int, int]]) -> None:
    run = FoldRun(FORWARD, NEVER_PURGE._replace(reorder_ms=reorder_ms))
    for second, lives in sorted(rows):
        run.chunk(ttl(second, lives))
    newest = (BASE_S + max(second for second, _ in rows)) * 1000
    while (due := next_timer_ms(run.state, reorder_ms)) is not None:
        if due - 1 > newest:
            before = len(run.changes)
            run.heartbeat(due - 1)
            assert len(run.changes) == before
        newest = max(newest, due)
        assert run.heartbeat(newest).writes
    assert run.visible(b"key!") == {}
    before = len(run.changes)
    run.heartbeat(newest + 10**6)
    assert len(run.changes) == before


def test_heartbeats_wait_less_than_the_limits_that_depend_on_them() -> None:
    def waits(values: Iterable[tuple[str, object]]) -> float:
        return max_heartbeat_wait(MaterializerSettings.model_validate(dict(values)))

    assert waits([]) == MaterializerSettings().idle_commit_seconds
    assert waits([("stalled_publisher_seconds", 20)]) == 5
    assert waits([("idle_commit_seconds", 0)]) == 0
