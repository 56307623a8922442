"""The repair of a Cassandra partition: images of all its hosts and what they have written since replace its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.rows.clustering import ClusteringBound, Kind
from cassandra_storage.formats.rows.deletion import NO_LIVENESS, DeletionTime, LivenessInfo, RangeTombstone, RowDeletion
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.schema.tables import ColumnKind
from cdc_common.messages.raw import decode, encode
from materializer.fold.chunk import fold_chunk
from materializer.fold.held import HeldPartition
from materializer.fold.partition_replacement import PartitionReplacement
from materializer.fold.repairs import Ended, Repair, Repairs, decode_repair, encode_repair, read_repairs
from materializer.fold.table import TableFold
from materializer.rows.keys import HELD, REPAIR, REPAIR_END
from tests.support.materializer import fold_run
from tests.support.materializer.fold_checks import EXAMPLES, NEVER_PURGE
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.mutants import Mutant, seed
from tests.support.materializer.raw_builder import REPAIR as ID
from tests.support.materializer.raw_builder import (
    TABLE,
    TEXT,
    WRITER,
    TableWriter,
    as_image,
    catalog_of,
    column,
    int_bytes,
    raw_record,
    repair_step,
    rows_end,
    snapshot_step,
)
from tests.support.materializer.repaired_logs import check_repair, check_timeout
from tests.support.materializer.table_writes import FORWARD, WRITERS

if TYPE_CHECKING:
    from materializer.records import RawRecord
    from materializer.rows.settings import FoldSettings

KEY = int_bytes(1)
START_S = 1_700_000_000
START_MS = START_S * 1000
UNTIL_MS = START_MS + 60_000
pytestmark = pytest.mark.usefixtures("both_folds")
TABLES = pytest.mark.parametrize("writer", WRITERS, ids=["forward", "reversed", "mixed", "single"])


@TABLES
@settings(max_examples=max(3, EXAMPLES // 4), deadline=None)
@given(data=st.data())
def test_any_order_ends_with_what_the_hosts_have(writer: TableWriter, data: st.DataObject) -> None:
    check_repair(writer, data)


@TABLES
@settings(max_examples=max(2, EXAMPLES // 8), deadline=None)
@given(data=st.data(), most=st.integers(1, 4))
def test_in_parts(writer: TableWriter, data: st.DataObject, most: int) -> None:
    check_repair(writer, data, NEVER_PURGE._replace(max_changes=most))


@TABLES
@settings(max_examples=max(2, EXAMPLES // 8), deadline=None)
@given(data=st.data(), most=st.integers(1, 1000))
def test_in_parts_of_few_bytes(writer: TableWriter, data: st.DataObject, most: int) -> None:
    check_repair(writer, data, NEVER_PURGE._replace(max_bytes=most))


@TABLES
@settings(max_examples=max(2, EXAMPLES // 8), deadline=None)
@given(data=st.data())
def test_with_a_reorder_buffer(writer: TableWriter, data: st.DataObject) -> None:
    check_repair(writer, data, NEVER_PURGE._replace(reorder_ms=2000))


@TABLES
@settings(max_examples=max(2, EXAMPLES // 8), deadline=None)
@given(data=st.data())
def test_without_all_ends_nothing_changes(writer: TableWriter, data: st.DataObject) -> None:
    check_timeout(writer, data)


def row(
    columns: dict[str, bytes], timestamp: int, *, c: int = 5, position: int = 1, host: int = 1, ms: int = START_MS
) -> RawRecord:
    cells = {name: Cell(timestamp, value) for name, value in columns.items()}
    written = Row((int_bytes(c),), cells, LivenessInfo(timestamp))
    return raw_record(KEY, "row", written, offset=position, timestamp_ms=ms, host=host)


def image(columns: dict[str, bytes], timestamp: int, *, c: int = 5, host: int = 1) -> RawRecord:
    return as_image(row(columns, timestamp, c=c, host=host), repair=ID, unit=c)


def step(state: str, **more: object) -> RawRecord:
    return repair_step(KEY, state, **{"ms": START_MS, "until_ms": UNTIL_MS, **more})  # type: ignore[arg-type]


def repaired(run: FoldRun, *images: RawRecord, flushed_to: int = 100) -> None:
    """Fold a repair by one host."""
    run.chunk(step("running"), *images, step("ended", flushed_to=flushed_to))


def left_of_repairs(run: FoldRun) -> list[bytes]:
    return [key for key in run.state.data if key[:1] in {REPAIR, HELD}]


def test_each_difference_is_one_change_and_the_chains_go_on() -> None:
    run = FoldRun(WRITER)
    run.chunk(*(row({"a": b"old"}, 7, c=c, position=c) for c in (1, 2, 3, 4)))
    images = [image({"a": b"old"}, 7, c=1), image({"a": b"new"}, 5, c=2), image({"b": b"x"}, 7, c=9)]
    repaired(run, *images)
    found = {change.clustering: change for change in run.changes[4:]}
    shown = {key: (change.op, change.row_sequence) for key, change in found.items()}
    expected = {2: ("u", 2), 3: ("d", 2), 4: ("d", 2), 9: ("c", 1)}
    assert shown == {(int_bytes(c),): change for c, change in expected.items()}
    sources = {(change.source.cause, change.source.file, change.source.ts_us) for change in found.values()}
    assert sources == {("repair", f"repair-{ID}", START_MS * 1000)}
    run.chunk(row({"a": b"again"}, 3, c=3, position=200))  # older than the row that was too much
    assert [(change.op, change.row_sequence, change.after) for change in run.changes[8:]] == [("c", 3, {"a": b"again"})]


def test_a_value_that_is_too_new_is_replaced_silently() -> None:
    run = FoldRun(WRITER)
    run.chunk(row({"a": b"x"}, 10**17))
    repaired(run, image({"a": b"x"}, 7))
    assert len(run.changes) == 1
    run.chunk(row({"a": b"y"}, 8, position=200))
    assert run.changes[-1].after == {"a": b"y"}


def test_writes_go_on_while_it_is_open() -> None:
    run = FoldRun(WRITER)
    run.chunk(row({"a": b"too new"}, 10**17))
    run.chunk(step("running"))
    run.chunk(row({"b": b"meanwhile"}, 9, position=101))
    assert run.changes[-1].after == {"a": b"too new", "b": b"meanwhile"}
    run.chunk(image({"a": b"x"}, 7), step("ended", flushed_to=100))
    assert run.changes[-1].after == {"a": b"x", "b": b"meanwhile"}


@pytest.mark.parametrize(("flushed_to", "is_there"), [(101, False), (100, True)])
def test_what_an_image_has_is_not_merged_again(flushed_to: int, is_there: bool) -> None:  # noqa: FBT001 - a case
    """A write that a tombstone deletes, both of which the image's merge has purged, does not come back."""
    run = FoldRun(WRITER)
    run.chunk(step("running"), row({"a": b"deleted"}, 9, position=101))
    run.chunk(step("ended", flushed_to=flushed_to))
    assert bool(run.visible(KEY)) is is_there


def test_all_hosts_are_waited_for() -> None:
    run = FoldRun(WRITER)
    both = {"hosts": (1, 2)}
    run.chunk(step("running", **both), image({"a": b"x"}, 7), step("ended", **both), step("ended", host=2, **both))
    assert run.changes == []  # an end without a begin: its images may be missing
    run.chunk(step("running", host=2, **both), image({"b": b"y"}, 8, host=2))
    assert run.changes == []
    run.chunk(step("ended", host=2, **both))
    assert [change.after for change in run.changes] == [{"a": b"x", "b": b"y"}]


@pytest.mark.parametrize("late", ["an end", "nothing"])
def test_on_a_timeout_nothing_changes(late: str) -> None:
    run = FoldRun(WRITER)
    run.chunk(row({"a": b"x"}, 7), step("running"), image({"a": b"y"}, 8))
    if late == "an end":
        run.chunk(step("ended", ms=UNTIL_MS + 1))
    else:
        run.heartbeat(UNTIL_MS + 1)
    run.chunk(image({"a": b"y"}, 8), step("ended", ms=UNTIL_MS + 1))  # late
    run.chunk(step("running", ms=UNTIL_MS + 1), image({"a": b"y"}, 8), step("ended", ms=UNTIL_MS + 1))
    assert len(run.changes) == 1
    assert left_of_repairs(run) == []


def test_a_host_gives_up() -> None:
    run = FoldRun(WRITER)
    run.chunk(step("running"), image({"a": b"y"}, 8), step("given_up"))
    assert [repair.state for repair in read_repairs(run.state)] == ["failed"]
    run.chunk(step("running"), image({"a": b"y"}, 8), step("ended"))  # of an old copy
    assert run.changes == []
    run.heartbeat(UNTIL_MS + 1)
    assert left_of_repairs(run) == []


def test_what_has_failed_is_deleted_in_parts() -> None:
    run = FoldRun(WRITER, NEVER_PURGE._replace(purged_per_chunk=2))
    run.chunk(step("running"), *(image({"a": b"y"}, 8, c=c) for c in range(5)), step("given_up"))
    run.heartbeat(UNTIL_MS + 1)
    assert left_of_repairs(run)
    for second in (2, 3):
        run.heartbeat(UNTIL_MS + second)
    assert left_of_repairs(run) == []


@pytest.mark.parametrize(
    ("first", "second", "is_replaced"),
    [
        (1, 0, True),
        (2, 2, True),
        (1, 1, True),  # the range has moved from one to the other, and both have had it
        (0, 0, False),  # to a node that is not asked, or first to one that had ended before
        (2, 0, False),
        (3, 3, False),
    ],
)
def test_nothing_changes_if_not_all_that_have_the_partition_have_sent_it(
    first: int,
    second: int,
    is_replaced: bool,  # noqa: FBT001 - a case
) -> None:
    run = FoldRun(WRITER)
    both = {"hosts": (1, 2)}
    run.chunk(row({"a": b"x"}, 7), step("running", **both), step("running", host=2, **both))
    run.chunk(step("ended", flushed_to=100, replicas=first, **both), step("ended", host=2, replicas=second, **both))
    assert bool(run.visible(KEY)) is not is_replaced
    assert [repair.state for repair in read_repairs(run.state)] == ["done" if is_replaced else "failed"]


def test_two_repairs_are_independent() -> None:
    run = FoldRun(WRITER)
    other = UUID(int=9)
    run.chunk(step("running"), step("running", repair=other))
    run.chunk(row({"a": b"x"}, 7, position=101), step("given_up"), step("ended", repair=other, flushed_to=100))
    assert run.visible(KEY) == {(int_bytes(5),): {"a": b"x"}}
    assert {repair.id: repair.state for repair in read_repairs(run.state)} == {ID: "failed", other: "done"}


def test_a_truncate_ends_it() -> None:
    run = FoldRun(WRITER)
    run.chunk(step("running"), image({"a": b"gone"}, 8))
    run.chunk(rows_end(START_MS, position=50, ms=START_MS))
    run.chunk(step("ended", flushed_to=40))
    assert run.visible(KEY) == {}


def test_a_host_that_has_not_truncated_yet_is_not_believed() -> None:
    run = FoldRun(WRITER)
    run.heartbeat(START_MS, host=2)
    run.chunk(rows_end(START_MS, position=50, ms=START_MS))
    both = {"hosts": (1, 2)}
    run.chunk(step("running", **both), step("running", host=2, **both), image({"a": b"gone"}, 8, host=2))
    run.chunk(step("ended", **both), step("ended", host=2, **both))
    assert run.visible(KEY) == {}
    assert [repair.state for repair in read_repairs(run.state)] == ["failed"]


def test_what_was_left_out_of_it_does_not_count_when_nothing_is_left_out_any_more() -> None:
    """Its host took no part in a truncation. A snapshot has brought its rows before the last host ends the repair."""
    run = FoldRun(WRITER)
    run.heartbeat(START_MS, host=2)
    run.chunk(rows_end(START_MS, position=50, ms=START_MS))
    both, theirs = {"hosts": (1, 2)}, image({"a": b"x"}, 8, host=2)
    run.chunk(step("running", **both), step("running", host=2, **both), theirs, step("ended", host=2, **both))
    run.heartbeat(START_MS + 1, host=2, clock=(START_MS + 10**6) * 1000)
    begin = snapshot_step("running", host=2, hosts=(2,), ms=START_MS + 2)
    end = snapshot_step("ended", host=2, hosts=(2,), ms=START_MS + 2)
    row_image = as_image(row({"a": b"x"}, 8, host=2, ms=START_MS + 2))
    assert not run.chunk(begin, row_image, end).lost_hosts
    run.chunk(step("ended", **both))
    assert run.visible(KEY) == {(int_bytes(5),): {"a": b"x"}}


@pytest.mark.parametrize(("host", "is_replaced"), [(1, False), (2, True), (3, False)])
def test_a_snapshot_that_is_newer_than_its_images_ends_it(host: int, is_replaced: bool) -> None:  # noqa: FBT001 - a case
    """It may bring what is in no log. A host that has not begun yet has it in its images."""
    run = FoldRun(WRITER)
    both = {"hosts": (1, 2)}
    run.chunk(step("running", **both), image({"a": b"x"}, 7), step("ended", **both))
    run.chunk(as_image(row({"b": b"imported"}, 9, host=host)))
    run.chunk(step("running", host=2, **both), step("ended", host=2, **both))
    shown = {"a": b"x"} if is_replaced else {"b": b"imported"}
    assert run.visible(KEY) == {(int_bytes(5),): shown}


def test_an_altered_table_ends_it() -> None:
    run = FoldRun(WRITER)
    run.chunk(row({"a": b"x"}, 7), step("running"))
    altered = replace(TABLE, regular_columns=(*TABLE.regular_columns, column("z", TEXT, ColumnKind.REGULAR)))
    run.catalog, run.writer = catalog_of(TABLE, altered), TableWriter(altered)
    run.heartbeat(0, clock=2**62)
    run.chunk(step("ended"))
    assert run.visible(KEY) == {(int_bytes(5),): {"a": b"x"}}


def test_images_without_a_repair_change_nothing() -> None:
    run = FoldRun(WRITER)
    run.chunk(row({"a": b"x"}, 7))
    run.chunk(image({"a": b"y"}, 8))
    assert len(run.changes) == 1


def test_an_image_that_cannot_be_read_ends_it() -> None:
    run = FoldRun(WRITER)
    good = image({"a": b"y"}, 8)
    message = decode(good.value)
    bad = good._replace(value=encode(replace(message, update=message.update[:-3]), 1))
    run.chunk(step("running"), bad, step("ended"))
    assert [repair.state for repair in read_repairs(run.state)] == ["failed"]


def test_a_damaged_step_is_dead_lettered() -> None:
    run = FoldRun(WRITER)
    good = step("running")
    bad = good._replace(value=encode(replace(decode(good.value), update=b"{}"), 1))
    assert [letter.key for letter in run.chunk(bad).dead_letters] == [KEY]


def test_what_is_deleted_stays_deleted() -> None:
    """The images' tombstones come with the rows: what is older does not come back."""
    run = FoldRun(WRITER)
    deleted = Row((int_bytes(5),), {}, NO_LIVENESS, RowDeletion(DeletionTime(20, START_S)))
    tombstone = as_image(raw_record(KEY, "row", deleted, timestamp_ms=START_MS), repair=ID)
    run.chunk(row({"a": b"too new"}, 10**17))
    repaired(run, tombstone)
    run.chunk(row({"a": b"old"}, 19, position=200))
    assert run.visible(KEY) == {}


def test_a_large_partition_is_replaced_in_parts() -> None:
    most = 20
    run = FoldRun(WRITER, NEVER_PURGE._replace(max_changes=most))
    for first in range(0, 300, 100):
        run.chunk(*(row({"a": b"x"}, 7, c=c, position=c) for c in range(first, first + 100)))
    repaired(run, *(image({"a": b"y"}, 8, c=c) for c in range(100, 400)))
    assert len(run.visible(KEY)) == 300
    assert sum(change.source.cause == "repair" for change in run.changes) == 400
    assert max(len(part.changes) for part in run.parts) <= most + 2


def held_messages(form: str, count: int) -> list[RawRecord]:
    """Messages of one row, the static row, the partition or a range, with rising times."""
    written: list[RawRecord] = []
    for number in range(1, count + 1):
        cell = Cell(100 + number, b"%d" % number)
        content: Row | DeletionTime | RangeTombstone
        if form == "row":
            kind, content = "row", Row((int_bytes(5),), {"a": cell}, LivenessInfo(100 + number))
        elif form == "static":
            kind, content = "static", Row((), {"st": cell})
        elif form == "partition":
            kind, content = "partition_deletion", DeletionTime(number, START_S)
        else:
            kind, content = "range_deletion", whole_range(number)
        written.append(raw_record(KEY, kind, content, offset=number, timestamp_ms=START_MS))  # type: ignore[arg-type]
    return written


def whole_range(timestamp: int) -> RangeTombstone:
    start, end = (ClusteringBound(kind, ()) for kind in (Kind.INCL_START_BOUND, Kind.INCL_END_BOUND))
    return RangeTombstone(start, end, DeletionTime(timestamp, START_S))


@pytest.mark.parametrize("is_needed", [True, False])
@pytest.mark.parametrize("form", ["row", "static", "partition", "range"])
@pytest.mark.parametrize("limits", [NEVER_PURGE._replace(max_changes=20), NEVER_PURGE._replace(max_bytes=3000)])
def test_many_messages_of_one_row_are_merged_in_parts(form: str, *, is_needed: bool, limits: FoldSettings) -> None:
    """A hot row is written while the repair is open. is_needed: whether no image has the writes."""
    count, written = 100, held_messages(form, 100)
    run = FoldRun(WRITER, limits)
    run.chunk(step("running"), image({"b": b"x"}, 1000))
    for first in range(0, count, 10):
        run.chunk(*written[first : first + 10])
    held = [key for key in run.state.data if key[:1] == HELD]
    assert len(held) == count + 1
    parts = len(run.parts)
    run.chunk(step("ended", flushed_to=0 if is_needed else count))
    assert len(run.parts) > parts + 4
    assert max(len(part.writes) for part in run.parts[parts:]) < 60
    assert not [key for key in run.state.data if key[:1] == HELD]
    [(_, shown)] = run.visible(KEY).items()
    expected: dict[str, bytes] = {"b": b"x"}
    if form == "row" and is_needed:
        expected = {"a": b"100", "b": b"x"}
    if form == "static" and is_needed:
        expected = {"st": b"100", "b": b"x"}
    assert {name: value for name, value in shown.items() if value is not None} == expected


@given(
    st.builds(
        Repair,
        st.binary(max_size=4),
        st.uuids(),
        st.integers(0, 2**62),
        st.binary(min_size=16, max_size=16),
        st.sampled_from(["open", "done", "failed"]),
        st.dictionaries(
            st.binary(min_size=16, max_size=16),
            st.one_of(
                st.sampled_from(["expected", "running"]),
                st.builds(Ended, st.integers(0, 2**62), st.integers(0, 2**31), st.integers(0, 9)),
            ),
        ),
    )
)
def test_what_is_stored_of_a_repair_can_be_read(repair: Repair) -> None:
    assert REPAIR <= repair.key < REPAIR_END
    assert decode_repair(repair.key, encode_repair(repair)) == repair


# The checks are checked.


@pytest.mark.parametrize(
    "mutant",
    [
        Mutant("rows that are too much stay", PartitionReplacement._replace_one, "elif stored is not None:", "elif 0:"),
        Mutant("later writes are lost", TableFold._hold, "if update.is_snapshot:", "if True:"),
        Mutant("the first host is enough", Repairs.apply_step, "{**repair.hosts, host: part}", "{host: part}"),
        pytest.param(
            Mutant("old ranges stay", PartitionReplacement._drop_old_ranges, "if not self._state", "if self._state"),
            marks=pytest.mark.exhaustive,
        ),
        Mutant("deletions are left out", HeldPartition.take_deletion, "supersedes(deletion)", "is_live"),
        Mutant("a static row is left out", HeldPartition.take_static, "(STATIC_SECTION, ROWS", "(ROWS_SECTION, ROWS"),
    ],
    ids=lambda mutant: mutant.name,
)
def test_a_defect_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    @settings(max_examples=400, deadline=None, phases=[Phase.generate], derandomize=True, database=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        check_repair(FORWARD, data)

    monkeypatch.setattr(fold_run, "fold_chunk", fold_chunk)
    seed(mutant, monkeypatch)
    with pytest.raises(AssertionError):
        check()
