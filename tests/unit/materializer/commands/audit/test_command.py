"""Which audit a run continues, and the command's exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from cassandra_storage.formats.primitives.token_ranges import Span
from cdc_common.errors.codes import CdcError, Code
from materializer.cli import main
from materializer.commands.audit import command
from materializer.commands.audit.plan import AuditOptions
from materializer.commands.audit.progress import Progress, ProgressFile
from materializer.commands.audit.report import Report
from materializer.commands.audit.select import Unread
from stream_runtime.state.object_store import ObjectStore
from tests.support.materializer.audited import make_plan
from tests.support.materializer.raw_builder import TABLE

if TYPE_CHECKING:
    from pathlib import Path


def begin(folder: Path, options: AuditOptions, *, restart: bool = False, stored: Progress | None = None) -> Progress:
    plan = make_plan(options)
    file = ProgressFile(ObjectStore(str(folder)), "group", "topic")
    if stored is not None:
        file.write(stored)
    return command._begin(file, plan, Report(plan.table(), as_json=False), restart=restart)


def test_a_stopped_audit_is_continued_with_the_same_flags_only(tmp_path: Path) -> None:
    assert begin(tmp_path, AuditOptions()).done == []
    stored = Progress(TABLE.id.hex, "ALL", 8, 17, done=[0, 1])
    assert begin(tmp_path, AuditOptions("ALL", slices=8), stored=stored) == stored
    with pytest.raises(CdcError, match="--consistency ALL --slices 8") as caught:
        begin(tmp_path, AuditOptions("ALL", slices=9))
    assert caught.value.code is Code.CONFIG_INVALID
    assert begin(tmp_path, AuditOptions("ALL", slices=9), restart=True).done == []


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ({}, 0),
        ({"differences": 1}, 1),
        ({"differences": 1, "unread": [Unread(Span(1, 2), "timeout")]}, 1),
        ({"unread": [Unread(Span(1, 2), "timeout")]}, 2),
    ],
)
def test_the_exit_status_says_what_was_found(
    monkeypatch: pytest.MonkeyPatch, found: dict[str, Any], status: int
) -> None:
    progress = Progress("id", "ALL", 1, 0, **found)
    assert command.exit_status(progress) == status
    given: list[Any] = []

    def audit_table(*arguments: object, **flags: object) -> int:
        given.append((arguments, flags))
        return status

    monkeypatch.setattr(command, "audit_table", audit_table)
    done = CliRunner().invoke(
        main, ["audit", "shop.orders", "--consistency", "ALL", "--rows-per-second", "50", "--json"]
    )
    assert done.exit_code == status, done.output
    [((_, table, options), flags)] = given
    assert (table, flags) == ("shop.orders", {"as_json": True, "restart": False})
    assert options == AuditOptions("ALL", rows_per_second=50)


def test_an_audit_that_is_stopped_is_not_equal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "spark_tasks", stop)
    plan = make_plan()
    file = ProgressFile(ObjectStore(str(tmp_path)), "group", "topic")
    with pytest.raises(SystemExit) as caught:
        command._run(plan, file, Report(plan.table(), as_json=False), Progress("id", "ALL", 1, 0))
    assert caught.value.code == 2
