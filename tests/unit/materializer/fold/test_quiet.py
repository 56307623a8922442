"""Which raw partitions a worker runs, and when: heartbeats wait, and nothing else does."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.rows import Cell, Row
from cdc_messages.raw import Kind, RawMessage, encode, is_heartbeat
from cdc_program.settings import MaterializerSettings
from materializer.exactly_once.partition_task import Report
from materializer.fold.next_timer import next_timer_ms
from materializer.job.backlog import Waiting
from materializer.job.worker_loop import heartbeat_wait
from materializer.records import RawPartition, RawRecord
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.raw_builder import int_bytes, raw_record
from tests.support.materializer.table_writes import BASE_S, BASE_US, FORWARD
from tests.unit.materializer.fold.test_fold_model import NEVER_PURGE

if TYPE_CHECKING:
    from collections.abc import Iterable

PARTITIONS = [RawPartition("cdc.raw.ks.t", number) for number in range(3)]
RAW, OTHER, _ = PARTITIONS
WAIT = 60.0
BEATEN = raw_record(b"", "heartbeat", None).value
WRITTEN = raw_record(int_bytes(1), "row", Row((int_bytes(1),), {"a": Cell(1, b"x")})).value
NOTHING_DUE = Report(0, 1, 1, 0, 1, 0.1)


def heartbeat(offset: int, ms: int = 0) -> RawRecord:
    return RawRecord(b"", BEATEN, offset, ms)


def write(offset: int, ms: int = 0) -> RawRecord:
    return RawRecord(b"k", WRITTEN, offset, ms)


def settled(*partitions: RawPartition, most: int = 1000, now: float = 0.0) -> Waiting:
    """Partitions of which nothing is due, run now."""
    waiting = Waiting(WAIT, most)
    for partition in partitions:
        waiting.add(partition, now)
        waiting.put(partition, [heartbeat(0)])
        waiting.done(partition, waiting.records(partition, 10), NOTHING_DUE, now)
    return waiting


def test_a_heartbeat_is_known_by_its_bytes() -> None:
    for kind in get_args(Kind):
        message = RawMessage(kind, b"", 1, bytes(16), bytes(16), 0, bytes(16), 1, "f", 1, 0)
        assert is_heartbeat(encode(message, 7)) == (kind == "heartbeat")
    assert not is_heartbeat(b"")
    assert not is_heartbeat(b"v")


def test_heartbeats_wait_and_a_write_does_not() -> None:
    waiting = settled(RAW, OTHER)
    waiting.put(RAW, [heartbeat(1)])
    assert (waiting.busy(), waiting.quiet(WAIT / 2)) == ([], [])
    assert waiting.quiet(WAIT) == [RAW]
    waiting.put(OTHER, [heartbeat(1), write(2), heartbeat(3)])
    assert (waiting.busy(), waiting.backlog) == ([OTHER], (3, 2 * len(BEATEN) + len(WRITTEN)))
    records = waiting.records(OTHER, 2)
    assert [record.offset for record in records] == [1, 2]
    waiting.done(OTHER, records, NOTHING_DUE, WAIT)
    assert (waiting.busy(), waiting.backlog) == ([], (0, 0))
    assert [record.offset for record in waiting.records(OTHER, 2)] == [3]


def test_a_partition_just_taken_over_is_run_with_its_first_message() -> None:
    waiting = Waiting(WAIT, 1000)
    waiting.add(RAW, 0)
    assert waiting.quiet(2 * WAIT) == []
    waiting.put(RAW, [heartbeat(0)])
    assert waiting.quiet(0) == [RAW]


def test_one_that_has_made_a_version_is_run_once_more() -> None:
    waiting = settled(RAW)
    for versions, due in ((1, [RAW]), (0, [])):
        waiting.done(RAW, [], NOTHING_DUE._replace(versions=versions), 0)
        waiting.put(RAW, [heartbeat(1)])
        assert waiting.quiet(1) == due
        waiting.done(RAW, waiting.records(RAW, 10), NOTHING_DUE, 0)


def test_what_is_due_at_a_time_is_run_with_the_first_message_from_then_on() -> None:
    waiting = settled(RAW)
    waiting.done(RAW, [], NOTHING_DUE._replace(next_timer_ms=5000), 0)
    waiting.put(RAW, [heartbeat(1, 4999)])
    assert waiting.quiet(1) == []
    waiting.put(RAW, [heartbeat(2, 5000)])
    assert waiting.quiet(1) == [RAW]


def test_a_changed_table_is_followed_with_the_next_message() -> None:
    waiting = settled(RAW)
    waiting.put(RAW, [heartbeat(1)])
    waiting.urge("cdc.raw.ks.other")
    assert waiting.quiet(1) == []
    waiting.urge(RAW.topic)
    assert waiting.quiet(1) == [RAW]


def test_no_more_wait_than_may() -> None:
    waiting = settled(*PARTITIONS, most=3)
    for partition in PARTITIONS:
        waiting.put(partition, [heartbeat(1)])
    assert waiting.quiet(1) == []
    waiting.put(RAW, [heartbeat(2)])
    assert waiting.quiet(1) == PARTITIONS


def test_partitions_begun_together_do_not_stay_together() -> None:
    many = [RawPartition("cdc.raw.ks.t", number) for number in range(400)]
    waiting = settled(*many)
    for partition in many:
        waiting.put(partition, [heartbeat(1)])
    counts = [len(waiting.quiet(WAIT * (0.75 + 0.05 * step))) for step in range(6)]
    assert counts[0] == 0
    assert counts[-1] == 400
    assert all(50 <= after - before <= 110 for before, after in pairwise(counts))


@given(
    st.lists(
        st.tuples(st.sampled_from(PARTITIONS), st.lists(st.booleans(), max_size=4), st.integers(1, 3)), max_size=30
    )
)
def test_all_are_run_once_and_in_order(steps: list[tuple[RawPartition, list[bool], int]]) -> None:
    """Each step some messages come, and all partitions that ask for it are run, of each so many messages."""
    waiting = settled(*PARTITIONS)
    came = dict.fromkeys(PARTITIONS, 1)
    done = dict.fromkeys(PARTITIONS, 1)
    for now, (partition, kinds, most) in enumerate(steps):
        waiting.put(partition, (write(came[partition] + at) if kind else heartbeat(0) for at, kind in enumerate(kinds)))
        came[partition] += len(kinds)
        for each in [*waiting.busy(), *waiting.quiet(now)]:
            records = waiting.records(each, most)
            assert records
            waiting.done(each, records, NOTHING_DUE, now)
            done[each] += len(records)
    end = len(steps) + WAIT + 1
    while due := [*waiting.busy(), *waiting.quiet(end)]:
        for each in due:
            records = waiting.records(each, 100)
            waiting.done(each, records, NOTHING_DUE, end - WAIT - 1)
            done[each] += len(records)
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
def test_until_it_is_due_a_state_has_nothing_to_tell_and_then_it_has(
    reorder_ms: int, rows: list[tuple[int, int]]
) -> None:
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


def test_heartbeats_wait_for_less_than_what_goes_by_them() -> None:
    def waits(values: Iterable[tuple[str, object]]) -> float:
        return heartbeat_wait(MaterializerSettings.model_validate(dict(values)))

    assert waits([]) == MaterializerSettings().idle_commit_seconds
    assert waits([("stalled_publisher_seconds", 20)]) == 5
    assert waits([("max_clock_jump_hours", 0.01)]) == 9
    assert waits([("idle_commit_seconds", 0)]) == 0
