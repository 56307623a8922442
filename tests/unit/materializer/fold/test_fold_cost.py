"""Messages that change nothing cost nothing: no changelog and no write to the state, but the time every few minutes."""

from __future__ import annotations

from cassandra_storage.formats.rows.deletion import NO_LIVENESS, DeletionTime, RowDeletion
from cassandra_storage.formats.rows.row import Cell, Row
from materializer.rows.keys import CLOCK, NOW, PUBLISHER
from materializer.rows.settings import FoldSettings
from tests.support.materializer.brute_model import Write
from tests.support.materializer.fold_checks import NEVER_PURGE, record
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.raw_builder import int_bytes
from tests.support.materializer.table_writes import BASE_S, BASE_US, FORWARD, PARTITIONS

KEY = PARTITIONS[0]
HOSTS = (1, 2, 3)
ROW = Write(KEY, "row", Row((int_bytes(0),), {"a": Cell(BASE_US, b"x", BASE_S + 500, 500)}))
STATIC = Write(KEY, "static", Row((), {"st": Cell(BASE_US, b"s")}))
DELETION = Write(KEY, "row", Row((int_bytes(1),), {}, NO_LIVENESS, RowDeletion(DeletionTime(BASE_US, BASE_S))))
WHOLE = Write(KEY, "partition_deletion", DeletionTime(BASE_US - 1, BASE_S))


def begun(fold_settings: FoldSettings) -> FoldRun:
    """A run that knows three publishers."""
    run = FoldRun(FORWARD, fold_settings)
    for host in HOSTS:
        run.heartbeat(BASE_S * 1000, host=host, clock=BASE_US)
    return run


def test_heartbeats_write_nothing_but_the_time_every_ten_minutes() -> None:
    run = begun(NEVER_PURGE)
    kept = []
    for second in range(10, 3600, 10):
        for host in HOSTS:
            writes = run.heartbeat((BASE_S + second) * 1000, host=host, clock=BASE_US + second * 1_000_000).writes
            assert all(key in {NOW, CLOCK} or key.startswith(PUBLISHER) for key in writes)
            if writes:
                kept.append(second)
    assert kept == [600, 1200, 1800, 2400, 3000]


def test_duplicates_write_nothing() -> None:
    run = begun(NEVER_PURGE)
    writes = [WHOLE, STATIC, ROW, DELETION]
    run.chunk(*(record(FORWARD, write, BASE_S, offset) for offset, write in enumerate(writes)))
    assert len(run.changes) == 3
    for host in HOSTS:
        copies = [record(FORWARD, write, BASE_S + 5, offset, host) for offset, write in enumerate(writes)]
        assert run.chunk(*copies).writes == {}
        assert run.chunk(*reversed(copies)).writes == {}


def test_a_purge_that_waits_for_a_stalled_publisher_writes_nothing() -> None:
    run = begun(FoldSettings(purge_margin_seconds=0))
    run.chunk(record(FORWARD, DELETION, BASE_S, 0))
    first = run.heartbeat((BASE_S + 100) * 1000, host=1, clock=BASE_US + 100_000_000).writes
    assert list(first) == [NOW, CLOCK, PUBLISHER + bytes([1]) * 16]  # it has passed what waits: that is remembered
    assert run.heartbeat((BASE_S + 110) * 1000, host=1, clock=BASE_US + 110_000_000).writes == {}
    assert run.heartbeat((BASE_S + 120) * 1000, host=2, clock=BASE_US + 120_000_000).writes
    assert run.heartbeat((BASE_S + 130) * 1000, host=2, clock=BASE_US + 130_000_000).writes == {}


def test_buffered_writes_wait_without_further_writes() -> None:
    run = begun(NEVER_PURGE._replace(reorder_ms=60_000))
    assert run.chunk(record(FORWARD, ROW, BASE_S + 1, 0)).writes
    assert run.heartbeat((BASE_S + 30) * 1000, clock=BASE_US).writes == {}
    assert run.chunk(record(FORWARD, ROW, BASE_S + 31, 0)).writes == {}
