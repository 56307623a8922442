"""TRUNCATE and DROP in the fold: hosts do it at different moments, and their messages come in any order."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.messages.raw import decode, encode
from materializer.fold.chunk import fold_chunk
from materializer.fold.part import Part
from materializer.fold.partition_schema_change import PartitionSchemaChange
from materializer.fold.truncations import (
    RECORD_MS,
    Boundary,
    Truncations,
    TruncationState,
    encode_truncations,
    merged_truncations,
    read_truncations,
)
from materializer.rows.keys import TRUNCATED
from materializer.rows.settings import FoldSettings
from tests.support.materializer import fold_run
from tests.support.materializer.fold_checks import EXAMPLES, NEVER_PURGE
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.mutants import Mutant, seed
from tests.support.materializer.raw_builder import WRITER, as_image, int_bytes, raw_record, rows_end, snapshot_step
from tests.support.materializer.table_writes import FORWARD, WRITERS
from tests.support.materializer.truncated_logs import check_truncations

if TYPE_CHECKING:
    from cdc_common.messages.changes import RowChange
    from materializer.records import RawRecord
    from tests.support.materializer.raw_builder import TableWriter

AT = 1_700_000_000_000  # ms
LATE_US = (AT + NEVER_PURGE.truncate_ms + RECORD_MS + 1) * 1000
pytestmark = pytest.mark.usefixtures("both_folds")
TABLES = pytest.mark.parametrize("writer", WRITERS, ids=["forward", "reversed", "mixed", "single"])


@TABLES
@settings(max_examples=max(3, EXAMPLES // 4), deadline=None)
@given(data=st.data())
def test_any_order_ends_with_what_the_hosts_have(writer: TableWriter, data: st.DataObject) -> None:
    check_truncations(writer, data)


@TABLES
@settings(max_examples=max(2, EXAMPLES // 8), deadline=None)
@given(data=st.data(), most=st.integers(1, 4))
def test_in_parts(writer: TableWriter, data: st.DataObject, most: int) -> None:
    check_truncations(writer, data, NEVER_PURGE._replace(max_changes=most))


@TABLES
@settings(max_examples=max(2, EXAMPLES // 8), deadline=None)
@given(data=st.data())
def test_with_a_reorder_buffer(writer: TableWriter, data: st.DataObject) -> None:
    check_truncations(writer, data, NEVER_PURGE._replace(reorder_ms=2000))


def insert(
    key: int, *, position: int, clustering: int = 0, host: int = 1, timestamp: int = 5, ms: int = AT
) -> RawRecord:
    row = Row((int_bytes(clustering),), {"a": Cell(timestamp, b"x")}, LivenessInfo(timestamp))
    return raw_record(int_bytes(key), "row", row, offset=position, host=host, timestamp_ms=ms)


def ops(changes: list[RowChange]) -> list[tuple[str, int, str]]:
    return [(change.op, int.from_bytes(change.partition_key, "big"), change.source.cause) for change in changes]


@pytest.fixture
def run() -> FoldRun:
    found = FoldRun(WRITER)
    for host in (1, 2):
        found.heartbeat(AT - 10_000, host=host)
    return found


def test_each_row_is_deleted_at_the_first_hosts_truncation(run: FoldRun) -> None:
    static = raw_record(int_bytes(3), "static", Row((), {"st": Cell(5, b"s")}), offset=3, timestamp_ms=AT)
    run.chunk(insert(1, position=1), insert(1, clustering=1, position=2), static)
    result = run.chunk(rows_end(AT + 7, position=3, ms=AT + 10))
    assert ops(result.changes) == [("d", 1, "truncate"), ("d", 1, "truncate"), ("d", 3, "truncate")]
    assert {(change.source.ts_us, change.source.host) for change in result.changes} == {((AT + 7) * 1000, b"\x01" * 16)}
    assert not any(run.visible(int_bytes(key)) for key in (1, 3))
    assert not run.chunk(rows_end(AT + 9, position=5, host=2, ms=AT + 20)).changes  # one event


def test_a_later_write_may_have_an_older_timestamp_and_its_number_goes_on(run: FoldRun) -> None:
    """Nothing shadows what comes after a truncation."""
    run.chunk(insert(1, position=1, timestamp=500), rows_end(AT, position=1))
    [change] = run.chunk(insert(1, position=2, timestamp=3)).changes
    assert (change.op, change.row_sequence) == ("c", 3)


def test_what_a_host_wrote_up_to_its_own_place_is_left_out(run: FoldRun) -> None:
    run.chunk(rows_end(AT, position=10), rows_end(AT, position=20, host=2))
    records = [insert(1, position=10), insert(2, position=11), insert(3, position=20, host=2)]
    assert ops(run.chunk(*records, insert(4, position=21, host=2)).changes) == [("c", 2, "write"), ("c", 4, "write")]


def test_a_host_is_not_heard_until_it_has_truncated_too(run: FoldRun) -> None:
    run.chunk(rows_end(AT, position=10))
    assert not run.chunk(insert(1, position=5, host=2), insert(2, position=25, host=2)).changes
    again = [rows_end(AT + 1, position=20, host=2), insert(2, position=25, host=2)]
    assert ops(run.chunk(*again).changes) == [("c", 2, "write")]


def test_a_host_does_not_count_from_its_truncation_until_it_says_what_it_has(run: FoldRun) -> None:
    run.chunk(insert(1, position=1))
    announced = rows_end(AT, position=10, kind="truncate")
    assert ops(run.chunk(announced).changes) == [("d", 1, "truncate")]  # at once
    assert not run.chunk(insert(1, position=5), insert(2, position=11)).changes
    run.chunk(rows_end(AT + 3000, position=12, kind="truncate"))  # another one
    again = [rows_end(AT + 3000, position=12), insert(3, position=13), announced, insert(4, position=14)]
    assert ops(run.chunk(*again).changes) == [("c", 3, "write"), ("c", 4, "write")]
    assert not run.chunk(rows_end(AT + 3001, position=20, host=2)).changes


def test_two_truncations_in_succession_lose_nothing(run: FoldRun) -> None:
    """The first host's message of the second one comes before the second host's of the first one."""
    run.chunk(rows_end(AT, position=10, kind="truncate"), rows_end(AT + 1000, position=20, kind="truncate"))
    run.chunk(rows_end(AT + 1000, position=20), insert(1, position=21))
    run.chunk(rows_end(AT + 1, position=10, host=2, kind="truncate"), insert(2, position=15, host=2))
    run.chunk(rows_end(AT + 1001, position=20, host=2, kind="truncate"), insert(3, position=21, host=2))
    run.chunk(rows_end(AT + 1001, position=20, host=2), insert(3, position=21, host=2))
    assert [key for key in range(1, 4) if run.visible(int_bytes(key))] == [1, 3]


def test_a_host_that_announced_a_truncation_and_never_says_what_it_has_is_reported(run: FoldRun) -> None:
    """Its publisher has lost its state."""
    run.chunk(rows_end(AT, position=10), rows_end(AT + 500, position=10, host=2, kind="truncate"))
    assert not run.heartbeat(AT + 200_000, host=2, clock=LATE_US).lost_hosts  # as late as the other host's time
    result = run.heartbeat(AT + 200_000, host=2, clock=LATE_US + 500_000)
    assert result.lost_hosts == {str(UUID(bytes=b"\x02" * 16)): AT + 200_000}


@pytest.mark.parametrize("is_unknown", [False, True])
def test_a_host_that_never_truncates_is_heard_again_and_reported(run: FoldRun, *, is_unknown: bool) -> None:
    host = 3 if is_unknown else 2
    run.chunk(insert(1, position=1), rows_end(AT, position=10))
    assert not run.chunk(insert(2, position=5, host=host)).changes
    run.heartbeat(AT + 1000, host=host, clock=LATE_US - 2000)
    assert not run.chunk(insert(2, position=5, host=host)).changes
    run.heartbeat(AT + 200_000, host=host, clock=LATE_US)
    run.heartbeat(AT + 200_000, host=2, clock=LATE_US)
    result = run.chunk(insert(3, position=6, host=host))
    assert ops(result.changes) == [("c", 3, "write")]
    assert str(UUID(bytes=bytes([host]) * 16)) in result.lost_hosts


def test_a_snapshot_since_then_brings_what_was_lost(run: FoldRun) -> None:
    run.chunk(snapshot_step("running", ms=AT, host=2, hosts=(2,)), rows_end(AT, position=10, ms=AT + 1))
    run.heartbeat(AT + 2, host=2, clock=LATE_US)
    assert run.chunk(snapshot_step("ended", ms=AT + 3, host=2, hosts=(2,))).lost_hosts  # it began before
    other = UUID(int=9)
    assert run.chunk(snapshot_step("running", ms=AT + 4, host=2, hosts=(2,), snapshot=other)).lost_hosts
    assert not run.chunk(snapshot_step("ended", ms=AT + 5, host=2, hosts=(2,), snapshot=other)).lost_hosts


def test_row_images_that_were_left_out_do_not_bring_back_what_was_lost(run: FoldRun) -> None:
    """A snapshot that began after the truncation, but before it was known that its host took no part."""
    run.chunk(rows_end(AT, position=10, ms=AT))
    image = as_image(insert(1, position=1, host=2, ms=AT + 2))
    assert not run.chunk(snapshot_step("running", ms=AT + 1, host=2, hosts=(2,)), image).changes
    run.heartbeat(AT + 3, host=2, clock=LATE_US)
    assert run.chunk(snapshot_step("ended", ms=AT + 4, host=2, hosts=(2,))).lost_hosts


def test_a_forgotten_publisher_is_not_waited_for() -> None:
    run = FoldRun(WRITER, FoldSettings(forgotten_publishers=frozenset({b"\x02" * 16})))
    run.heartbeat(AT, host=2)
    run.chunk(rows_end(AT, position=10))
    result = run.chunk(insert(1, position=5, host=2))
    assert (ops(result.changes), result.lost_hosts) == ([("c", 1, "write")], {})


def test_row_images_from_before_a_truncation_are_left_out(run: FoldRun) -> None:
    """They say when the table had been truncated before their files were taken."""
    run.chunk(rows_end(AT, position=10))
    old, new = as_image(insert(1, position=1)), as_image(insert(2, position=2), truncated_at=AT)
    assert ops(run.chunk(old, new).changes) == [("r", 2, "write")]


def test_a_second_truncation_of_a_host_deletes_all_rows_again(run: FoldRun) -> None:
    for number in (1, 2, 3):
        at = AT + 1000 * number
        run.chunk(rows_end(at, position=10 * number), rows_end(at + 1, position=10 * number, host=2))
        run.chunk(insert(number, position=10 * number + 1), insert(number, position=10 * number + 1, host=2))
        assert [row for key in (1, 2, 3) for row in run.visible(int_bytes(key))] == [(int_bytes(0),)]


def test_a_retried_truncation_that_one_host_did_once_and_another_twice(run: FoldRun) -> None:
    """The counts differ. Whichever host's message comes first, both have what they have since the second one."""
    later = AT + 60_000
    run.chunk(insert(1, position=5), insert(1, position=5, host=2), rows_end(AT, position=10))
    run.chunk(insert(2, position=15), insert(2, position=15, host=2))
    run.chunk(rows_end(later + 5, position=20, host=2, ms=later), insert(3, position=21, host=2, ms=later))
    result = run.chunk(rows_end(later, position=20, ms=later), insert(4, position=21, ms=later))
    assert [key for key in range(1, 5) if run.visible(int_bytes(key))] == [3, 4]
    assert not result.lost_hosts


def test_copies_of_a_truncation_change_nothing(run: FoldRun) -> None:
    ends = [rows_end(AT, position=10), rows_end(AT, position=10, host=2)]
    run.chunk(*ends, insert(1, position=11))
    result = run.chunk(*ends)
    assert not result.changes
    assert TRUNCATED not in result.writes


def test_a_truncation_of_a_former_table_is_ignored(run: FoldRun) -> None:
    run.catalog = run.catalog.__class__(
        {**run.catalog.schemas, (FORWARD.table.id.bytes, FORWARD.digest): FORWARD.table},
        {FORWARD.table.id.bytes: FORWARD.digest, **run.catalog.newest},
    )
    run.chunk(insert(1, position=1))
    assert not run.chunk(rows_end(AT, position=10, writer=FORWARD)).changes
    assert run.visible(int_bytes(1))


def test_gaps_from_before_a_truncation_are_none(run: FoldRun) -> None:
    """A mutation that could not be read does not matter any more; that of now does."""
    run.chunk(rows_end(AT, position=10), rows_end(AT, position=10, host=2))
    run.chunk(gap(1, position=10))
    [change] = run.chunk(insert(1, position=11)).changes
    assert not change.source.incomplete
    run.chunk(gap(1, position=12))
    [change] = run.chunk(insert(1, position=13, clustering=1)).changes
    assert change.source.incomplete


def test_a_gap_is_not_filled_by_a_message_that_does_not_count_yet(run: FoldRun) -> None:
    """A mutation that is replayed between a host's truncation and what it sends again: it may not be among that."""
    run.chunk(rows_end(AT, position=10), gap(1, position=20, host=2), insert(1, position=20, host=2))
    run.chunk(rows_end(AT, position=15, host=2))
    [change] = run.chunk(insert(1, position=21, host=2)).changes
    assert change.source.incomplete


def gap(key: int, *, position: int, host: int = 1) -> RawRecord:
    record = raw_record(int_bytes(key), "heartbeat", None, offset=position, host=host, timestamp_ms=AT)
    return record._replace(value=encode(replace(decode(record.value), kind="gap"), 1))


# DROP


@pytest.mark.parametrize("ends_dropped", [False, True])
def test_a_dropped_tables_rows_end_or_stay(*, ends_dropped: bool) -> None:
    run = FoldRun(WRITER, FoldSettings(ends_dropped=ends_dropped))
    run.chunk(insert(1, position=1))
    result = run.chunk(rows_end(AT, position=10, kind="drop"))
    assert ops(result.changes) == ([("d", 1, "drop")] if ends_dropped else [])
    assert not run.chunk(insert(2, position=9)).changes


def test_a_table_that_is_created_again_with_its_id_begins_after_the_drop(run: FoldRun) -> None:
    run.chunk(insert(1, position=1), insert(2, position=1))
    ends = [rows_end(AT, position=10, kind="drop"), rows_end(AT, position=10, kind="drop", host=2)]
    run.chunk(*ends)
    changes = run.chunk(insert(1, position=11, timestamp=1)).changes
    assert ops(changes) == [("c", 1, "write")]
    assert [run.visible(int_bytes(key)) != {} for key in (1, 2)] == [True, False]


# What is stored


STATES = st.builds(
    TruncationState,
    table_id=st.just(b"t" * 16),
    boundaries=st.dictionaries(
        st.sampled_from([b"a" * 16, b"b" * 16]), st.builds(Boundary, *[st.integers(0, 5)] * 3), min_size=1
    ),
    at=st.integers(0, 2**62),
    is_settled=st.booleans(),
    arrived_ms=st.integers(0, 2**62),
    known=st.just(frozenset({b"a" * 16, b"b" * 16})),
    waits=st.sets(st.just(b"a" * 16)).map(frozenset),
    lost=st.dictionaries(st.just(b"b" * 16), st.integers(0, 2**62)),
)


@given(STATES)
def test_what_is_stored_is_read(stored: TruncationState) -> None:
    state = MemoryState()
    state.apply({TRUNCATED: encode_truncations(stored)})
    assert read_truncations(state) == stored


@given(STATES, st.one_of(st.none(), STATES))
def test_a_target_of_a_reshard_knows_what_all_sources_know(one: TruncationState, other: TruncationState | None) -> None:
    merged = merged_truncations([one, other])
    assert merged is not None
    for source in (one, other):
        for host, boundary in merged.boundaries.items():
            assert source is not None
            assert boundary <= source.boundaries[host]  # its message deletes all rows once more
    is_same = other is not None and one.boundaries == other.boundaries
    assert is_same or merged.lost.keys() == merged.known
    assert merged_truncations([None, None]) is None


# The checks are checked.


@pytest.mark.parametrize(
    "mutant",
    [
        Mutant("a truncation is ignored", Part._end_rows, 'cause == "truncate" or', 'cause == "drop" and'),
        Mutant("what a host had is merged", Truncations.leaves_out, "host in state.waits or self", "False and self"),
        Mutant("a host that is waited for is heard", Truncations.leaves_out, "host in state.waits or", ""),
        Mutant(
            "rows keep their cells",
            PartitionSchemaChange._delete_row,
            "Row(stored.row.clustering, {},",
            "Row(stored.row.clustering, stored.row.columns,",
        ),
        Mutant("what is not settled counts", Truncations.apply, "(not is_settled or", "(False or"),
        pytest.param(
            Mutant(
                "each host's message deletes all rows", Truncations.apply, "is_waited = host", "is_waited = not host"
            ),
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            Mutant("a former truncation counts", Truncations.apply, "at < state.at - self._apart_ms", "False"),
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            Mutant(
                "a later truncation is of the last one",
                Truncations._is_another,
                "at > state.at + self._apart_ms",
                "False",
            ),
            marks=pytest.mark.exhaustive,
        ),
    ],
    ids=lambda mutant: mutant.name,
)
def test_a_defect_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    @settings(max_examples=400, deadline=None, phases=[Phase.generate], derandomize=True, database=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        check_truncations(FORWARD, data)

    monkeypatch.setattr(fold_run, "fold_chunk", fold_chunk)
    seed(mutant, monkeypatch)
    with pytest.raises((AssertionError, struct.error)):  # a count of rows below 0 cannot be stored
        check()
