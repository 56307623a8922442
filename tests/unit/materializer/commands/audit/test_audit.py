"""The audit's steps: slice after slice, second looks in between, and going on where another run has stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from cassandra_storage.formats.primitives.token_ranges import Span
from materializer.commands.audit import audit as audit_module
from materializer.commands.audit.audit import Audit
from materializer.commands.audit.compare import ROW, Cause, ColumnPair
from materializer.commands.audit.first_look import Candidate, SpanResult
from materializer.commands.audit.plan import AuditOptions
from materializer.commands.audit.progress import Progress, ProgressFile
from materializer.commands.audit.report import Report
from materializer.commands.audit.second_look import Difference, DifferingColumn, LookResult
from materializer.commands.audit.spans import slices
from stream_runtime.state.object_store import ObjectStore
from tests.support.materializer.audited import make_plan
from tests.support.materializer.raw_builder import int_bytes

if TYPE_CHECKING:
    from pathlib import Path


def candidate(k: int) -> Candidate:
    return Candidate(int_bytes(k), (int_bytes(1),), 17, {})


def difference(k: int) -> Difference:
    whole = DifferingColumn(Cause.MISSING_ROW, ColumnPair(None, None))
    return Difference(int_bytes(k), (int_bytes(1),), {ROW: whole}, has_gap=False)


class StoppedError(Exception):
    """The run is killed."""


@dataclass
class FakeTasks:
    """Each slice has one candidate, whose key is the number of the shuffle. waiting: how many looks it waits for the
    watermark. dies_at: the shuffle at which the run is killed.
    """

    waiting: int = 0
    dies_at: int = -1
    spans: list[Span] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    looks: int = 0
    parallelism: int = 3

    def shuffle(self, _read: object, items: list[Any], use: Any, parts: int) -> list[SpanResult]:  # noqa: ANN401
        if len(self.spans) == self.dies_at:
            raise StoppedError
        assert len(items) == 2
        [plan] = use.args
        self.spans.append(Span(plan.spans[0].first, plan.spans[-1].last))
        self.parts.append(parts)
        return [SpanResult(plan.spans[0], 10, 12, (candidate(len(self.spans)),), ())]

    def run(self, _work: object, looks: list[Any]) -> list[LookResult]:
        self.looks += 1
        if self.looks <= self.waiting:
            return [LookResult((), tuple(look.candidates), (), 0, 0) for look in looks]
        found = []
        for look in looks:
            keys = [int.from_bytes(candidate.partition_key, "big") for candidate in look.candidates]
            odd = tuple(difference(key) for key in keys if key % 2)
            found.append(LookResult(odd, (), (), len(keys) - len(odd), 99))
        return found


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_module, "_LOOK_SECONDS", 0)


def run(folder: Path, tasks: FakeTasks, progress: Progress, **options: Any) -> ProgressFile:  # noqa: ANN401
    plan = make_plan(AuditOptions(slices=progress.slices, log_delay_seconds=0, **options))
    file = ProgressFile(ObjectStore(str(folder)), "group", "topic")
    Audit(plan, tasks, file, Report(plan.table(), as_json=True)).run(progress)  # type: ignore[arg-type]
    return file


def new(count: int) -> Progress:
    return Progress("id", "ALL", count, 17)


def test_all_slices_are_compared_and_looked_at_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks, progress = FakeTasks(waiting=2), new(4)
    file = run(tmp_path, tasks, progress)
    assert tasks.spans == slices(4)
    assert tasks.parts == [3] * 4
    assert (progress.rows, progress.units, progress.differences, progress.settled) == (40, 48, 2, 2)
    assert (progress.waiting, progress.unread, progress.done) == ([], [], [0, 1, 2, 3])
    assert sorted(progress.differing) == [int_bytes(1), int_bytes(3)]
    out, err = capsys.readouterr()
    assert out.count('"type": "difference"') == 2
    assert "4 of 4 slices compared" in err
    assert file.read() == progress


def test_a_run_that_was_killed_continues_after_its_last_slice(tmp_path: Path) -> None:
    first = FakeTasks(dies_at=2, waiting=1000)
    with pytest.raises(StoppedError):
        run(tmp_path, first, new(4))
    stored = ProgressFile(ObjectStore(str(tmp_path)), "group", "topic").read()
    assert stored is not None
    assert (stored.done, len(stored.waiting)) == ([0, 1], 2)
    second = FakeTasks()
    run(tmp_path, second, stored)
    assert [*first.spans, *second.spans] == slices(4)
    assert (stored.rows, stored.differences + stored.settled) == (40, 4)


def test_a_long_wait_says_what_it_waits_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, FakeTasks(waiting=9), new(2))
    [line] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("The second look")]
    assert "of 2 rows waits for the job to fold the nodes' logs up to " in line
    assert "materializer.idle_commit_seconds" in line


def test_states_that_do_not_catch_up_are_not_audited(tmp_path: Path) -> None:
    progress = new(2)
    run(tmp_path, FakeTasks(waiting=1000), progress, wait_seconds=0)
    assert (progress.differences, progress.settled, progress.waiting) == (0, 0, [])
    assert len(progress.unread) == 2
    assert all("not caught up" in unread.reason for unread in progress.unread)


def test_it_ends_early_when_too_many_rows_differ(tmp_path: Path) -> None:
    tasks, progress = FakeTasks(waiting=3), new(10)
    run(tmp_path, tasks, progress, most_candidates=3)
    assert tasks.spans == slices(10)[:3]
    [unread] = progress.unread
    assert unread.span == Span(slices(10)[3].first, slices(10)[-1].last)
