"""A task that is given watermarks as heartbeats: they have no place of their own in the raw partition."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.errors.codes import CdcError, Code
from materializer.errors import RAW_FAULTS
from materializer.fold.chunk import fold_chunk
from materializer.fold.rest import changes_state, find_rest
from materializer.processing.raw_processor import RawProcessor
from materializer.records import RawPartition, RawRecord
from stream_runtime import fault_points
from stream_runtime.exactly_once.partition_task import check_contiguous, check_watermarks
from stream_runtime.exactly_once.rest import Tidying
from stream_runtime.fault_points import Fault, FaultPoint, InjectedFaultError
from stream_runtime.records import Message, Rest, TopicShape, WatermarkRecord
from tests.support.materializer.memory_broker import MemoryBroker
from tests.support.materializer.memory_task import POINTS, TASK, open_task
from tests.support.materializer.raw_builder import catalog_of, int_bytes, raw_record
from tests.support.materializer.table_writes import BASE_S, BASE_US, FORWARD
from tests.support.materializer.wide_partition import bounded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from materializer.fold.result import ChunkResult
    from stream_runtime.exactly_once.report import Report
    from stream_runtime.state.reader import StateReader

MOST, ROWS, LIVES = 4, 14, 20
RAW = RawPartition("raw", 0)
SETTINGS = bounded(MOST)


class RestingProcessor(RawProcessor):
    """The table's own fold, in parts of at most MOST changes, and its rest."""

    shape = TopicShape(1, "")

    def fold(self, state: StateReader, records: Sequence[RawRecord]) -> ChunkResult:
        return fold_chunk(state, records, catalog_of(FORWARD.table), SETTINGS)

    def change_messages(self, result: ChunkResult) -> Iterator[Message]:
        for change in result.changes:
            yield Message("changes", 0, repr(change.clustering).encode(), repr(change).encode())

    def is_busy(self, result: ChunkResult) -> bool:
        return changes_state(result.writes)

    def rest(self, state: StateReader) -> Rest | None:
        return find_rest(state, catalog_of(FORWARD.table), SETTINGS, 7)


def row(offset: int, ttl: int = 0, second: int = 0) -> RawRecord:
    """A row of its own, which expires after `ttl` seconds."""
    cell = Cell(BASE_US + offset, b"x", local_deletion_time=BASE_S + ttl, ttl=ttl) if ttl else Cell(BASE_US, b"x")
    written = Row((int_bytes(offset),), {"a": cell})
    ms = (BASE_S + second) * 1000
    return raw_record(b"key!", "row", written, offset=offset, timestamp_ms=ms, writer=FORWARD)


def watermark(end: int, second: int, host: int = 1) -> WatermarkRecord:
    value = raw_record(b"", "heartbeat", None, host=host, clock=BASE_US + second * 10**6, writer=FORWARD).value
    return WatermarkRecord(b"", value, end, (BASE_S + second) * 1000)


EXPIRING = [row(offset, LIVES) for offset in range(ROWS)]
LAST = row(ROWS, second=LIVES + 3)
PASSED = watermark(ROWS, LIVES + 2)


def attempt(broker: MemoryBroker, folder: Path, records: list[RawRecord]) -> None:
    """Work as a worker that has read these records: real ones from the committed position on."""
    at = 0 if broker.position is None else broker.position.offset
    task = open_task(broker, folder)
    try:
        task.process([record for record in records if record.offset >= at], RestingProcessor())
    finally:
        task.close()


def run_until_done(
    folder: Path, again: list[RawRecord], fault: Fault | None, patch: pytest.MonkeyPatch
) -> tuple[MemoryBroker, bool]:
    """Return the broker in the end, and whether the fault was met. again: the records that the next worker reads."""
    broker = MemoryBroker()
    patch.setattr(fault_points, "armed", fault)
    patch.setattr(fault_points, "reached", Counter())
    try:
        attempt(broker, folder, [*EXPIRING, PASSED, LAST])
    except InjectedFaultError:
        attempt(broker, folder, again)
        return broker, True
    return broker, False


@pytest.mark.parametrize(
    "again",
    [
        pytest.param([PASSED, LAST], id="before"),
        pytest.param([LAST, watermark(ROWS + 1, LIVES + 4)], id="after", marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name.lower())
def test_what_a_watermark_made_due_comes_out_once_whenever_the_task_dies(
    point: FaultPoint, again: list[RawRecord], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watermark is in no topic: the task after the crash is given another one, or none before the next message."""
    expected, _ = run_until_done(tmp_path / "whole", [], None, monkeypatch)
    assert len(expected.messages) == 2 * ROWS + 1  # each row comes and expires, and the last one comes
    assert expected.position is not None
    nth, was_met = 0, True
    while was_met:
        nth += 1
        fault = Fault(point, nth, "raise")
        broker, was_met = run_until_done(tmp_path / str(nth), [*EXPIRING, *again], fault, monkeypatch)
        assert sorted(message.value or b"" for message in broker.messages) == sorted(
            message.value or b"" for message in expected.messages
        )
        assert broker.position is not None
        assert broker.position.offset == ROWS + 1
    assert nth > 1


def test_a_watermark_alone_moves_no_offset_and_is_committed_only_for_what_it_changes(tmp_path: Path) -> None:
    broker = MemoryBroker()
    attempt(broker, tmp_path, [EXPIRING[0]])
    assert broker.position is not None
    assert broker.position.rest is None  # the state has changed
    offsets = []
    for second in (1, 2, 3, 4):
        attempt(broker, tmp_path, [watermark(1, second)])
        offsets.append(len(broker.offsets))
    assert broker.position.offset == 1
    assert broker.position.rest is not None
    assert broker.position.rest.due_ms == (BASE_S + LIVES) * 1000
    assert offsets[-1] == offsets[-2]  # nothing has changed: nothing is committed
    attempt(broker, tmp_path, [watermark(1, LIVES)])
    assert len(broker.messages) == 2
    assert (broker.position.offset, broker.position.rest) == (1, None)


@pytest.mark.parametrize("end", [1, 2])
def test_a_watermark_never_passes_a_message_that_is_not_folded(tmp_path: Path, end: int) -> None:
    broker = MemoryBroker()
    attempt(broker, tmp_path, EXPIRING[:1])
    position = broker.position
    with pytest.raises(CdcError) as raised:
        attempt(broker, tmp_path, [watermark(end + 1, LIVES), *EXPIRING[1 : end + 1]])
    assert raised.value.code is Code.RAW_SKIPPED
    assert broker.position == position


@given(st.lists(st.integers(0, 6), max_size=12), st.integers(0, 3))
def test_where_watermarks_may_stand(ends: list[int], first: int) -> None:
    """Messages from `first` on, each followed by watermarks: those that speak only of what is before are right."""
    records: list[RawRecord] = []
    is_right = True
    for number, end in enumerate(ends):
        records += [RawRecord(b"", b"", first + number, 0), WatermarkRecord(b"", b"", end, 0)]
        is_right = is_right and end <= first + number + 1
    if records:
        check_contiguous(RAW, records, RAW_FAULTS)
    if is_right:
        check_watermarks(RAW, first, records, RAW_FAULTS)
        return
    with pytest.raises(CdcError) as raised:
        check_watermarks(RAW, first, records, RAW_FAULTS)
    assert raised.value.code is Code.RAW_SKIPPED


def test_an_idle_state_makes_versions_until_files_with_former_values_are_gone_and_sleeps_then() -> None:
    tidying = Tidying(3, 100.0, 5000.0)
    resting = Rest(None, None, frozenset(), 0)
    busy, version, stored_ms, times = (10, 1000), 10, 1000, []
    while (rest := tidying.applied_to(resting, busy, version, stored_ms)).purge_ms is not None:
        assert rest._replace(purge_ms=None) == resting
        version, stored_ms = version + 1, rest.purge_ms
        times.append(stored_ms)
    assert times == [1100, 1200, 1300, 6000, 6100, 6200]
    earlier = resting._replace(purge_ms=1050)
    assert tidying.applied_to(earlier, busy, 10, 1000).purge_ms == 1050


def test_a_version_that_stores_only_times_lets_the_raw_partition_sleep_on(tmp_path: Path) -> None:
    broker, tidying = MemoryBroker(), Tidying(2, SETTINGS.keep_time_ms, 1e9)
    settings = TASK._replace(tidying=tidying)

    def fold(*records: RawRecord) -> Report:
        task = open_task(broker, tmp_path, settings)
        try:
            return task.process(list(records), RestingProcessor())
        finally:
            task.close()

    assert fold(row(0)).state.busy
    assert broker.position is not None
    assert broker.position.busy == (1, BASE_S * 1000)
    versions, ms = 0, BASE_S * 1000 + 1000
    while True:
        report = fold(watermark(1, ms // 1000 - BASE_S))
        assert not report.state.busy
        assert report.state.rest is not None
        assert report.state.rest == broker.position.rest
        versions += report.state.versions
        if report.state.rest.purge_ms is None:
            break
        assert report.state.rest.purge_ms > ms
        ms = report.state.rest.purge_ms
    assert versions == 4
    assert ms - BASE_S * 1000 >= 1e9
    assert broker.position.busy == (1, BASE_S * 1000)
    assert len(broker.messages) == 1
