"""The check of the reorder buffer: in any batches, writes come out as one log in write order gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from materializer.rows.keys import REORDER, REORDER_TIMER
from tests.support.materializer.fold_checks import NEVER_PURGE, PASSING, in_batches, record
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.raw_builder import raw_record
from tests.support.materializer.table_writes import BASE_S, MIXED, PARTITIONS, Stamp, writes

if TYPE_CHECKING:
    from materializer.rows.settings import FoldSettings
    from tests.support.materializer.brute_model import Write

REORDER_MS = 3000
REORDERING = NEVER_PURGE._replace(reorder_ms=REORDER_MS)


@st.composite
def disordered(draw: st.DrawFn) -> list[tuple[int, int, Write, int]]:
    """(arrival in ms, place in write order, write, host) of every copy, by arrival; none is late by REORDER_MS."""
    now, copies = BASE_S, []
    for number in range(draw(st.integers(2, 12))):
        now += draw(PASSING)
        write = draw(writes(MIXED.table, Stamp(now * 1_000_000 + number * 10, now)))
        for host in draw(st.sets(st.integers(1, 3), min_size=1)):
            jitter = draw(st.integers(0, REORDER_MS - 100))
            copies.append((now * 1000 + number + jitter, number, write, host))
    return sorted(copies, key=lambda copy: copy[0])


def check_reorder(data: st.DataObject, fold_settings: FoldSettings = REORDERING) -> None:
    """Check that the changes are those of a single log in write order, with expiry, in any batches."""
    copies = data.draw(disordered())
    records = [record(MIXED, write, 0, number, host)._replace(timestamp_ms=ms) for ms, number, write, host in copies]
    for second in data.draw(st.lists(st.integers(0, 12), max_size=4)):
        beat = raw_record(b"", "heartbeat", None, timestamp_ms=BASE_MS + second * 1000 + 1, writer=MIXED)
        records.append(beat)
    records.sort(key=lambda record: record.timestamp_ms)
    end = records[-1].timestamp_ms + 10_000
    run = FoldRun(MIXED, fold_settings)
    for batch in in_batches(data, records):
        run.chunk(*batch)
    run.heartbeat(end + REORDER_MS)
    assert buffered(run) == 0
    for key in PARTITIONS:
        straight = FoldRun(MIXED, NEVER_PURGE)
        mine = sorted((copy for copy in copies if copy[2].partition_key == key), key=lambda copy: (copy[1], copy[3]))
        for place, (_, number, write, host) in enumerate(mine):
            due = min(ms for ms, _, _, _ in mine[place:])
            straight.chunk(record(MIXED, write, 0, number, host)._replace(timestamp_ms=due))
        if mine:
            straight.heartbeat(end)
        assert [change for change in run.changes if change.partition_key == key] == straight.changes


BASE_MS = BASE_S * 1000


def buffered(run: FoldRun) -> int:
    assert sum(key.startswith(REORDER) for key in run.state.data) == sum(
        key.startswith(REORDER_TIMER) for key in run.state.data
    )
    return sum(key.startswith(REORDER) for key in run.state.data)
