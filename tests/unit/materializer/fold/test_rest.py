"""While a state rests, heartbeats change only the time; when its rest is over, they do."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.rows.deletion import (
    NO_DELETION_TIME,
    NO_LIVENESS,
    NO_TTL,
    DeletionTime,
    LivenessInfo,
    RowDeletion,
)
from cassandra_storage.formats.rows.row import Cell, Row
from materializer.fold.rest import find_rest
from materializer.rows.keys import CLOCK, NOW, PUBLISHER, PURGE, SNAPSHOT
from materializer.rows.settings import FoldSettings
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.mutants import Mutant, seed
from tests.support.materializer.raw_builder import int_bytes, raw_record
from tests.support.materializer.table_writes import BASE_S, BASE_US, FORWARD

if TYPE_CHECKING:
    from materializer.records import RawRecord
    from stream_runtime.records import Rest

MARGIN = 2
HOSTS = (1, 2)
MUTANTS = [
    Mutant("a purge is never due", find_rest, "1000 * (split_timer_key", "10**6 * (split_timer_key"),
    Mutant("an expiry is never due", find_rest, "next_timer_ms(state, settings.reorder_ms)", "None"),
]


def write(second: int, c: int, lives: int, host: int) -> RawRecord:
    """A row without an end (lives 0), with a TTL, or its deletion (negative)."""
    stamp = BASE_US + second * 1_000_000
    if lives < 0:
        row = Row((int_bytes(c),), {}, NO_LIVENESS, RowDeletion(DeletionTime(stamp + 1, BASE_S + second)))
    else:
        end = (BASE_S + second + lives, lives) if lives else (NO_DELETION_TIME, NO_TTL)
        liveness = LivenessInfo(stamp, lives, BASE_S + second + lives) if lives else LivenessInfo(stamp)
        row = Row((int_bytes(c),), {"a": Cell(stamp, b"x", *end)}, liveness)
    ms = (BASE_S + second) * 1000
    return raw_record(b"key!", "row", row, offset=second, timestamp_ms=ms, host=host, writer=FORWARD)


def heartbeats(ms: int) -> list[RawRecord]:
    return [
        raw_record(b"", "heartbeat", None, timestamp_ms=ms, host=host, clock=ms * 1000, writer=FORWARD)
        for host in HOSTS
    ]


def rest_of(run: FoldRun) -> Rest | None:
    return find_rest(run.state, run.catalog, run.fold_settings, 7)


def work_of(run: FoldRun, ms: int) -> set[bytes]:
    """The keys that heartbeats of this time write, without the times."""
    writes = run.chunk(*heartbeats(ms)).writes
    return {key for key in writes if key not in {NOW, CLOCK} and not key.startswith(PUBLISHER)}


def check_rests(reorder_ms: int, writes: list[tuple[int, int, int, int]]) -> None:
    run = FoldRun(FORWARD, FoldSettings(purge_margin_seconds=MARGIN, reorder_ms=reorder_ms))
    for arguments in sorted(writes):
        run.chunk(write(*arguments))
    now = (BASE_S + max(second for second, *_ in writes)) * 1000
    for _ in range(100):
        rest = rest_of(run)
        if rest is None or rest.hosts < {crc32(bytes([host]) * 16) for host in HOSTS}:
            now += 1000
            run.chunk(*heartbeats(now))
            continue
        ends = [end for end in (rest.due_ms, rest.purge_ms) if end is not None]
        if not ends:
            break
        if min(ends) - 1 > now:
            before = len(run.changes)
            now = min(ends) - 1
            assert not work_of(run, now)
            assert len(run.changes) == before
        is_due = rest.due_ms is not None and rest.due_ms <= max(now, min(ends))
        now = max(now, min(ends))
        waits = 0  # seconds: a purge waits for the next second and, with a reorder buffer, for later heartbeats
        while not work_of(run, now):
            waits += 1
            assert waits <= 1 + 2 * reorder_ms // 1000
            assert not is_due
            now += 1000
    else:
        raise AssertionError("it never rests without limit")
    assert run.visible(b"key!") == {}
    assert next(run.state.scan(PURGE, PURGE + b"\xff" * 20), None) is None


WRITES = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 2), st.sampled_from([-1, 1, 5, 30]), st.sampled_from(HOSTS)),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("reorder_ms", [0, 3000])
@given(writes=WRITES)
def test_nothing_happens_before_a_rest_is_over_and_something_then(
    reorder_ms: int, writes: list[tuple[int, int, int, int]]
) -> None:
    check_rests(reorder_ms, writes)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_rest_that_is_too_long_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    seed(mutant, monkeypatch)
    with pytest.raises(AssertionError):
        check_rests(0, [(0, 1, 5, 1)])


def test_a_row_without_an_end_rests_for_ever_and_names_the_publishers() -> None:
    run = FoldRun(FORWARD)
    run.chunk(write(0, 1, 0, 1))
    run.chunk(*heartbeats((BASE_S + 1) * 1000))
    rest = rest_of(run)
    assert rest is not None
    assert (rest.due_ms, rest.purge_ms, rest.rules) == (None, None, 7)
    assert rest.hosts == {crc32(bytes([host]) * 16) for host in HOSTS}


def test_what_waits_for_publishers_is_looked_at_from_time_to_time() -> None:
    run = FoldRun(FORWARD)
    run.chunk(write(0, 1, 0, 1))
    run.state.apply({SNAPSHOT + b"s": b"a snapshot that runs"})
    rest = rest_of(run)
    assert rest is not None
    assert (rest.due_ms, rest.purge_ms) == (None, 0)
