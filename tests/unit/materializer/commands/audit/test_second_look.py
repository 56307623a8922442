"""The second look at units of a state, and the progress between runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError
from materializer.commands.audit.caught_up import CaughtUp
from materializer.commands.audit.compare import ROW, Cause
from materializer.commands.audit.first_look import Candidate
from materializer.commands.audit.progress import Progress, ProgressFile
from materializer.commands.audit.second_look import SecondLook, is_reached
from materializer.commands.audit.select import Unread
from stream_runtime.state.object_store import ObjectStore
from tests.support.materializer.audited import SECOND, WHOLE_RING, MemoryTable, PlainRow, compare, make_plan, state_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.materializer.memory_state import MemoryState


def look_again(state: MemoryState, table: MemoryTable, candidates: tuple[Candidate, ...]) -> SecondLook:
    found = SecondLook(make_plan(), state, table, clock=lambda: float(SECOND + 20))
    for candidate in candidates:
        found.look_at(candidate)
    return found


def test_each_planted_difference_has_its_cause() -> None:
    same = [PlainRow(k, c, "a", ("e",)) for k in range(5) for c in range(3)]
    table = MemoryTable([*same, PlainRow(7, 1, "only in Cassandra"), PlainRow(8, 1, "v"), PlainRow(9, 1, "v")])
    rows = [*same, PlainRow(6, 1, "only in the state"), PlainRow(8, 1, "v", time=7000), PlainRow(9, 1, "v")]
    first = compare([*rows[:-1]], table)
    found = look_again(state_of(rows, delete=9), table, first.candidates)
    causes = {
        (int.from_bytes(difference.partition_key, "big"), name): column.cause
        for difference in found.differences
        for name, column in difference.columns.items()
    }
    assert causes == {
        (6, ROW): Cause.EXTRA_ROW,
        (7, ROW): Cause.MISSING_ROW,
        (8, "a"): Cause.STATE_NEWER,
        (9, ROW): Cause.DELETED_IN_STATE,
    }
    assert (found.equal, found.changed, found.unread) == (0, [], [])


def test_what_was_on_its_way_is_equal() -> None:
    rows = [PlainRow(1, 1, "new", time=2000)]
    first = compare([PlainRow(1, 1, "old")], MemoryTable(rows))
    assert len(first.candidates) == 1
    found = look_again(state_of(rows), MemoryTable(rows), first.candidates)
    assert (found.equal, found.differences, found.changed) == (1, [], [])


def test_what_differs_in_another_way_is_looked_at_again_and_then_given_up() -> None:
    [candidate] = compare([PlainRow(1, 1, "old")], MemoryTable([PlainRow(1, 1, "new", time=2000)])).candidates
    for number in range(1, 10):
        table = MemoryTable([PlainRow(1, 1, f"newer{number}", time=2000 + number)])
        found = look_again(state_of([PlainRow(1, 1, f"older{number}", time=1000 + number)]), table, (candidate,))
        assert found.differences == []
        if found.unread:
            break
        [candidate] = found.changed
    assert (number, candidate.looks) == (6, 6)


def test_a_look_waits_for_the_watermark() -> None:
    plan = make_plan()
    reached = CaughtUp({}).reached_us(state_of([PlainRow(1, 1, "a")]), plan.settings.materializer)
    assert reached == SECOND * 1_000_000
    assert plan.log_delay_seconds == 30
    for seconds, is_ready in ((35, False), (36, True)):
        candidate = Candidate(b"", None, reached - seconds * 1_000_000, {})
        assert is_reached(candidate, reached, plan.log_delay_seconds) is is_ready
    assert plan._replace(release="3.11.19").log_delay_seconds == 1200


def test_progress_is_read_as_it_was_written(tmp_path: Path) -> None:
    candidates = compare([], MemoryTable([PlainRow(1, 1, "secret"), PlainRow(2, 1, st="secret")])).candidates
    progress = Progress(
        "id", "ALL", 4, 17, [0, 2], 5, 6, 1, 2, [*candidates], [Unread(WHOLE_RING, "timeout", begun=True)]
    )
    file = ProgressFile(ObjectStore(str(tmp_path)), "group", "cdc.raw.shop.orders")
    assert file.read() is None
    file.write(progress)
    assert file.read() == progress
    stored = next(tmp_path.rglob("progress.json"))
    assert b"secret" not in stored.read_bytes()  # no values
    stored.write_bytes(b"{}")
    with pytest.raises(CdcError, match="--restart"):
        file.read()
    file.delete()
    assert file.read() is None
