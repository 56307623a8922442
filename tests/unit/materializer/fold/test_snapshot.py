"""Snapshot messages: row images merge like writes, begin and end frame them (decision 0032)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from cassandra_storage.formats.rows.deletion import NO_LIVENESS, DeletionTime, LivenessInfo, RowDeletion
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.messages.raw import decode, encode
from materializer.fold.snapshots import SnapshotProgress, decode_progress, least_far, read_snapshots
from materializer.rows.keys import PUBLISHER, SNAPSHOT
from materializer.rows.overlay import Overlay
from materializer.rows.settings import FoldSettings
from tests.support.materializer.fold_checks import NEVER_PURGE
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.raw_builder import SNAPSHOT as ID
from tests.support.materializer.raw_builder import (
    TABLE,
    WRITER,
    TableWriter,
    as_image,
    catalog_of_recreated,
    int_bytes,
    raw_record,
    snapshot_step,
)

if TYPE_CHECKING:
    from cdc_common.messages.changes import RowChange
    from cdc_common.messages.snapshots import HostState
    from materializer.records import RawRecord

ONE, OTHER = int_bytes(1), int_bytes(2)
START_S = 1_700_000_000
START_MS = START_S * 1000
PURGING = FoldSettings(purge_margin_seconds=0)
SHORT = TableWriter(replace(TABLE, gc_grace_seconds=1))


def row(
    columns: dict[str, bytes], timestamp: int, *, c: int = 5, second: int = 0, offset: int = 1, key: bytes = ONE
) -> RawRecord:
    cells = {name: Cell(timestamp, value) for name, value in columns.items()}
    written = Row((int_bytes(c),), cells, LivenessInfo(timestamp))
    return raw_record(key, "row", written, offset=offset, timestamp_ms=START_MS + second * 1000)


def deletion(timestamp: int, *, second: int = 0, offset: int = 1, writer: TableWriter = WRITER) -> RawRecord:
    deleted = RowDeletion(DeletionTime(timestamp, START_S + second))
    written = Row((int_bytes(5),), {}, NO_LIVENESS, deleted)
    return raw_record(ONE, "row", written, offset=offset, timestamp_ms=START_MS + second * 1000, writer=writer)


def shown(changes: list[RowChange]) -> list[tuple[str, bool, bool]]:
    """op, snapshot and incomplete of each."""
    return [(change.op, change.source.snapshot, change.source.incomplete) for change in changes]


def begun(*hosts: int) -> FoldRun:
    run = FoldRun(WRITER)
    run.chunk(snapshot_step("running", ms=START_MS, hosts=hosts or (1,)))
    return run


def test_a_row_that_was_not_there_is_read() -> None:
    run = begun()
    run.chunk(as_image(row({"a": b"x"}, 7), unit=3))
    (change,) = run.changes
    assert (change.op, change.before, change.after) == ("r", None, {"a": b"x"})
    source = change.source
    assert (source.snapshot, source.ts_us, source.file, source.position) == (True, 7, f"snapshot-{ID}", 3)
    assert (source.cause, source.incomplete) == ("write", False)


def test_a_row_that_a_change_reached_first_is_completed() -> None:
    run = begun()
    run.chunk(row({"a": b"new"}, 20))
    run.chunk(as_image(row({"a": b"old", "b": b"x"}, 10)))
    assert [(change.op, change.before, change.after) for change in run.changes] == [
        ("c", None, {"a": b"new"}),
        ("u", {"a": b"new"}, {"a": b"new", "b": b"x"}),
    ]
    assert shown(run.changes) == [("c", False, True), ("u", True, False)]


def test_nothing_older_overwrites_what_is_newer_and_copies_are_silent() -> None:
    run = begun()
    run.chunk(row({"a": b"new"}, 20))
    for _ in range(2):
        run.chunk(as_image(row({"a": b"old"}, 10)))
        run.chunk(as_image(deletion(15)))
    assert len(run.changes) == 1


def test_what_a_snapshot_deletes_ends() -> None:
    run = begun()
    run.chunk(row({"a": b"x"}, 10))
    run.chunk(as_image(deletion(15)))
    assert shown(run.changes) == [("c", False, True), ("d", True, False)]


def test_what_has_expired_is_silent() -> None:
    """A write that arrives expired is two changes; a row image that does is none, but it shadows what is older."""
    expired = Row((int_bytes(5),), {"a": Cell(10, b"gone", START_S - 5, 60)}, LivenessInfo(10, 60, START_S - 5))
    record = raw_record(ONE, "row", expired, timestamp_ms=START_MS)
    static = raw_record(ONE, "static", Row((), {"st": Cell(10, b"gone", START_S - 5, 60)}), timestamp_ms=START_MS)
    run = FoldRun(WRITER)
    run.chunk(as_image(record))
    run.chunk(as_image(static))
    assert run.changes == []
    run.chunk(row({"a": b"older"}, 9))
    assert run.changes == []
    log = FoldRun(WRITER)
    log.chunk(record)
    assert [change.op for change in log.changes] == ["c", "d"]


def test_an_image_comes_behind_the_logs_writes_of_its_chunk() -> None:
    """Its timestamps are older, yet it swallows no event of the log, and expires nothing early."""
    first, second = row({"a": b"1"}, 10, offset=1), row({"a": b"2"}, 20, offset=2, second=4)
    run = FoldRun(WRITER)
    run.chunk(as_image(row({"a": b"1", "b": b"x"}, 10)), second, first)
    assert [(change.op, change.after) for change in run.changes] == [
        ("c", {"a": b"1"}),
        ("u", {"a": b"2"}),
        ("u", {"a": b"2", "b": b"x"}),
    ]


def test_an_image_has_the_second_of_its_chunk() -> None:
    """Expiries up to then come first, whenever in the chunk the image arrived."""
    expiring = Row((int_bytes(5),), {"a": Cell(10, b"x", START_S + 2, 2)})
    write = raw_record(ONE, "row", expiring, timestamp_ms=START_MS)
    run = FoldRun(WRITER)
    run.chunk(write, as_image(row({"b": b"y"}, 5, second=1)), row({"a": b"z"}, 1, second=4, c=6))
    assert [change.op for change in run.changes if change.clustering == (int_bytes(5),)] == ["c", "d", "r"]


def test_images_bypass_the_reorder_buffer() -> None:
    run = FoldRun(WRITER, NEVER_PURGE._replace(reorder_ms=3000))
    run.chunk(as_image(row({"a": b"x"}, 10)), row({"b": b"y"}, 20))
    assert shown(run.changes) == [("r", True, False)]
    run.heartbeat(START_MS + 3000)
    assert shown(run.changes[1:]) == [("u", False, False)]


def test_a_unit_is_one_mutation() -> None:
    """The static row and the first row come out as the one row that they make."""
    static = raw_record(ONE, "static", Row((), {"st": Cell(8, b"s")}), timestamp_ms=START_MS)
    deleted = raw_record(ONE, "partition_deletion", DeletionTime(3, START_S), timestamp_ms=START_MS)
    unit = [
        as_image(message, unit=7, index=index) for index, message in enumerate((deleted, static, row({"a": b"x"}, 10)))
    ]
    run = begun()
    run.chunk(*unit)
    assert [(change.op, change.clustering, change.after) for change in run.changes] == [
        ("r", (int_bytes(5),), {"a": b"x", "st": b"s"})
    ]
    late = begun()
    late.chunk(as_image(row({"a": b"x"}, 10), unit=7, index=0), as_image(static, unit=7, index=1))
    assert [(change.op, change.after) for change in late.changes] == [("r", {"a": b"x", "st": b"s"})]
    alone = begun()
    alone.chunk(unit[1])
    assert [(change.op, change.clustering) for change in alone.changes] == [("r", None)]
    alone.chunk(as_image(row({"a": b"x"}, 10)))
    assert [(change.op, change.clustering) for change in alone.changes[1:]] == [("d", None), ("r", (int_bytes(5),))]


def test_a_static_image_changes_all_rows_in_parts() -> None:
    run = FoldRun(WRITER, NEVER_PURGE._replace(max_changes=2))
    for number in range(7):
        run.chunk(row({"a": b"x"}, 10, c=number, offset=number))
    run.chunk(as_image(raw_record(ONE, "static", Row((), {"st": Cell(8, b"s")}), timestamp_ms=START_MS)))
    assert shown(run.changes[7:]) == [("u", True, False)] * 7
    assert len(run.parts) > 9, "the fan-out was cut"


def test_a_snapshot_makes_no_publisher_known() -> None:
    """An image carries no watermark: purging would wait for a publisher that never sends here."""
    run = FoldRun(WRITER)
    run.chunk(snapshot_step("running", host=2, hosts=(2,)), as_image(row({"a": b"x"}, 10)), snapshot_step("ended"))
    assert not [key for key in run.state.data if key.startswith(PUBLISHER)]


def test_changes_are_incomplete_until_each_host_has_finished() -> None:
    run = begun(1, 2)
    run.chunk(snapshot_step("ended", ms=START_MS, host=1, hosts=(1, 2)))
    run.chunk(row({"a": b"1"}, 10))
    run.chunk(row({"a": b"2"}, 20), snapshot_step("given_up", ms=START_MS, host=2, hosts=(1, 2)))
    run.chunk(row({"a": b"3"}, 30))
    assert shown(run.changes) == [("c", False, True), ("u", False, True), ("u", False, False)]


def test_what_expires_in_a_snapshot_is_incomplete() -> None:
    run = begun()
    expiring = Row((int_bytes(5),), {"a": Cell(10, b"x", START_S + 2, 2)}, LivenessInfo(10))
    run.chunk(as_image(raw_record(ONE, "row", expiring, timestamp_ms=START_MS)))
    run.heartbeat(START_MS + 3000)
    assert shown(run.changes) == [("r", True, False), ("u", False, True)]


def deleted_in_a_snapshot(run: FoldRun, *end: RawRecord) -> None:
    """A host's files have a row that is deleted before its image is sent; much later than gc_grace it is."""
    image = as_image(row({"a": b"x"}, 10))._replace(timestamp_ms=START_MS + 60_000)
    for record in (deletion(20, writer=SHORT), *end):
        run.chunk(record)
    for second in (10, 20, 30):
        run.heartbeat(START_MS + second * 1000, clock=(START_S + second) * 1_000_000)
    run.chunk(_of_short(image))


def _of_short(record: RawRecord) -> RawRecord:
    return record._replace(value=encode(replace(decode(record.value), schema_digest=SHORT.digest), 1))


def short_run(forgotten: frozenset[bytes] = frozenset()) -> FoldRun:
    run = FoldRun(SHORT, PURGING._replace(forgotten_publishers=forgotten))
    run.chunk(snapshot_step("running", ms=START_MS, hosts=(1, 2), writer=SHORT))
    return run


def test_purging_waits_while_a_snapshot_runs() -> None:
    run = short_run()
    deleted_in_a_snapshot(run, snapshot_step("ended", ms=START_MS, host=1, hosts=(1, 2), writer=SHORT))
    assert run.changes == []
    run.chunk(snapshot_step("ended", ms=START_MS + 61_000, host=2, hosts=(1, 2), writer=SHORT))
    run.heartbeat(START_MS + 70_000, clock=(START_S + 70) * 1_000_000)
    assert run.merged() == {}


@pytest.mark.parametrize("state", ["ended", "given_up"])
def test_purging_goes_on_when_each_host_has_ended_or_given_up(state: HostState) -> None:
    run = short_run()
    ends = [snapshot_step(state, ms=START_MS, host=host, hosts=(1, 2), writer=SHORT) for host in (1, 2)]
    deleted_in_a_snapshot(run, *ends)
    assert [change.op for change in run.changes] == ["r"], "the tombstone is purged"


def test_a_forgotten_host_is_not_waited_for() -> None:
    run = short_run(frozenset({bytes([2]) * 16}))
    deleted_in_a_snapshot(run, snapshot_step("ended", ms=START_MS, host=1, hosts=(1, 2), writer=SHORT))
    assert [change.op for change in run.changes] == ["r"]
    assert [change.source.incomplete for change in run.changes] == [False]


def progress_of(run: FoldRun) -> dict[UUID, SnapshotProgress]:
    return dict(read_snapshots(Overlay(run.state)))


def test_a_late_copy_of_a_begin_starts_nothing() -> None:
    run = begun()
    run.chunk(snapshot_step("ended", ms=START_MS + 5))
    before = dict(run.state.data)
    run.chunk(snapshot_step("running", ms=START_MS + 5))
    assert run.state.data == before
    assert progress_of(run) == {ID: SnapshotProgress(START_MS, START_MS + 5, {bytes([1]) * 16: "ended"})}


def test_steps_in_any_order_end_alike() -> None:
    """An end that overtakes its begin, and a host that gave up and ended after all."""
    steps = [
        snapshot_step("running", hosts=(1, 2)),
        snapshot_step("given_up", host=2, hosts=(1, 2)),
        snapshot_step("ended", host=2, hosts=(2,)),
    ]
    for order in (steps, steps[::-1], [steps[1], *steps]):
        run = FoldRun(WRITER)
        run.chunk(*order)
        assert progress_of(run)[ID].hosts == {bytes([1]) * 16: "running", bytes([2]) * 16: "ended"}


def test_a_finished_snapshot_is_forgotten_after_a_month() -> None:
    day = 24 * 3600 * 1000
    run = begun(1, 2)
    run.heartbeat(START_MS + 40 * day)
    assert ID in progress_of(run)
    for host in (1, 2):
        run.chunk(snapshot_step("ended", ms=START_MS + 40 * day, host=host, hosts=(1, 2)))
    run.heartbeat(START_MS + 69 * day)
    assert ID in progress_of(run)
    run.heartbeat(START_MS + 71 * day)
    assert not [key for key in run.state.data if key.startswith(SNAPSHOT)]


def test_a_recreated_table_forgets_the_former_ones_snapshots() -> None:
    run = begun()
    again = TableWriter(replace(TABLE, id=UUID(int=8)))
    run.catalog = catalog_of_recreated(TABLE, again.table)
    run.chunk(raw_record(b"", "heartbeat", None, timestamp_ms=START_MS, writer=again))
    assert progress_of(run) == {}
    run.chunk(snapshot_step("running", ms=START_MS))  # late, of the former table
    assert progress_of(run) == {}


def test_a_step_that_cannot_be_read_is_dead_lettered() -> None:
    good = snapshot_step("running", ms=START_MS)
    bad = good._replace(value=encode(replace(decode(good.value), update=b'{"format_version":1}'), 1))
    (letter,) = FoldRun(WRITER).chunk(bad).dead_letters
    assert "damaged snapshot step" in letter.reason


def test_an_image_that_cannot_be_read_is_dead_lettered() -> None:
    good = as_image(row({"a": b"x"}, 10))
    message = decode(good.value)
    bad = good._replace(value=encode(replace(message, update=message.update[:-3]), 1))
    run = FoldRun(WRITER)
    (letter,) = run.chunk(bad).dead_letters
    run.chunk(row({"a": b"y"}, 20, c=6))
    assert [change.source.incomplete for change in run.changes] == [True]
    assert letter.value == bad.value


def test_an_image_closes_no_gap_of_the_log() -> None:
    gap = raw_record(ONE, "gap", DeletionTime(1, 1), offset=9, timestamp_ms=START_MS)
    message = decode(gap.value)
    image = as_image(row({"a": b"x"}, 10))
    same_place = replace(decode(image.value), segment=message.segment, position=message.position)
    run = FoldRun(WRITER)
    run.chunk(gap)
    run.chunk(image._replace(value=encode(same_place, 1)))
    run.chunk(row({"a": b"y"}, 20, c=6))
    assert [change.source.incomplete for change in run.changes] == [True, True]


def test_a_host_is_as_far_as_where_it_is_least_far() -> None:
    one, two = bytes([1]) * 16, bytes([2]) * 16
    found = least_far(
        [
            SnapshotProgress(5, 9, {one: "ended", two: "running"}),
            SnapshotProgress(4, 8, {one: "given_up", two: "ended"}),
        ]
    )
    assert found == SnapshotProgress(4, 9, {one: "given_up", two: "running"})


def test_progress_is_stored_with_a_format_version() -> None:
    run = begun(1, 2)
    ((_, value),) = [(key, value) for key, value in run.state.data.items() if key.startswith(SNAPSHOT)]
    assert decode_progress(value) == progress_of(run)[ID]
    assert value[0] == 1
