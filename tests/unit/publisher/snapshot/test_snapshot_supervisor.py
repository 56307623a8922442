"""Who begins a snapshot, when its worker runs, and how hosts take part together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from cassandra_storage.formats.primitives.token_ranges import Span
from cdc_common.errors.codes import CdcError, Code
from publisher.snapshot import supervisor as supervisor_module
from publisher.snapshot.state.records import new_record
from publisher.snapshot.state.token_selection import WHOLE, TokenSelection
from publisher.snapshot.steps.worker import CANCEL, GO_ON, PAUSE
from publisher.snapshot.supervisor import BEGIN_SECONDS, RETRY_SECONDS, TURN_SECONDS
from tests.support.publisher.snapshot_hosts import NAME, ONE, PUBLISHED, TABLE, TWO, Host, Rows, Worker, worker_of

if TYPE_CHECKING:
    from pathlib import Path

    from publisher.tables.published_table import PublishedTable


@pytest.fixture
def rows() -> Rows:
    return Rows()


@pytest.fixture(autouse=True)
def _workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_module, "_Process", lambda _settings, name: Worker(name))


THREE = UUID(int=3)
MARKED = TABLE._replace(needs_snapshot_since=5)


@pytest.mark.parametrize(
    ("mode", "table", "begins"),
    [
        ("never", MARKED, False),
        ("when_needed", MARKED, True),
        ("when_needed", TABLE, False),
        ("initial", TABLE, True),
        ("initial", MARKED, True),
    ],
)
def test_who_asks_by_itself(tmp_path: Path, rows: Rows, mode: str, table: PublishedTable, begins: bool) -> None:  # noqa: FBT001
    host = Host(tmp_path / "one", rows, ONE, mode)
    assert (host.begin_due(table) is not None) == begins
    if begins:
        host.end()
        before = host.records.read(NAME)
        assert host.begin_due(table) == before  # once
        assert before is not None
        again = host.begin_due(table._replace(needs_snapshot_since=int(before.requested_at * 1e6) + 1))
        assert again is not None
        assert again.snapshot != before.snapshot


def test_a_worker_runs_until_its_snapshot_is_over_and_is_tried_again(tmp_path: Path, rows: Rows) -> None:
    host = Host(tmp_path / "one", rows, ONE, "initial")
    host.begin_due()
    host.serve()
    first = worker_of(host)
    assert (first.name, first.orders, first.answers) == (NAME, [GO_ON], [PUBLISHED])
    host.serve(49.9)
    host.serve(50.0)
    assert [bool(order) for order in first.orders] == [False, False, True]
    assert "50 % full" in first.orders[-1]
    first.is_running = False
    host.serve()
    assert host.supervisor._worker is None
    host.now += RETRY_SECONDS
    host.serve()
    second = worker_of(host)
    assert second is not first
    host.records.want(NAME, "pause")
    host.serve()
    assert second.orders[-1] == PAUSE
    assert [snapshot.is_paused for snapshot in host.supervisor.shown()] == [True]
    second.is_running = False
    host.now += RETRY_SECONDS
    host.serve()
    assert host.supervisor._worker is None
    host.records.want(NAME, "cancel")
    host.serve()
    assert worker_of(host).orders == [CANCEL]
    worker_of(host).is_running = False
    host.end("given_up")
    host.now += RETRY_SECONDS
    host.serve()
    assert host.supervisor._worker is None
    assert host.supervisor.ended() == []
    assert [snapshot.is_paused for snapshot in host.supervisor.shown()] == [False]


def test_a_damaged_record_stops_snapshots_and_not_the_log(
    tmp_path: Path, rows: Rows, capsys: pytest.CaptureFixture[str]
) -> None:
    host = Host(tmp_path / "one", rows, ONE, "initial")
    assert host.begin_due() is not None
    path = host.records.folder / f"{NAME}.json"
    content = path.read_text()
    path.write_text("{")
    for _ in range(2):
        host.serve()
        host.now += BEGIN_SECONDS
        host.supervisor.begin_due([TABLE], host.now)
    assert capsys.readouterr().out.count("snapshots wait") == 1
    assert host.supervisor._worker is None
    path.write_text(content)
    host.serve()
    assert worker_of(host).name == NAME


def test_the_hosts_of_a_datacenter_take_part_and_wait_for_each_other(tmp_path: Path, rows: Rows) -> None:
    one, two = (
        Host(tmp_path / name, rows, host_id, "when_needed", (ONE, TWO)) for name, host_id in (("1", ONE), ("2", TWO))
    )
    assert two.begin_due(MARKED) is None  # the first host asks
    begun = one.begin_due(MARKED)
    assert begun is not None
    one.begin_due(MARKED)
    joined = two.begin_due(MARKED)
    assert joined is not None
    assert (joined.snapshot, joined.hosts) == (begun.snapshot, (ONE, TWO))
    one.end()
    for _ in range(2):
        one.begin_due(MARKED)
        two.begin_due(MARKED)
    one.serve()
    assert one.supervisor.ended() == []
    two.end()
    two.begin_due(MARKED)
    two.begin_due(MARKED)
    one.begin_due(MARKED)
    for host in (one, two):
        host.serve()
        (record,) = host.supervisor.ended()
        assert record.snapshot == begun.snapshot
        host.supervisor.mark_cleared(record)
        host.serve()
        assert host.supervisor.ended() == []


def test_a_host_that_alone_has_a_mark_begins_in_its_turn(tmp_path: Path, rows: Rows) -> None:
    """Part of its log is lost: the first host has all of its own."""
    one, two = (
        Host(tmp_path / name, rows, host_id, "when_needed", (ONE, TWO)) for name, host_id in (("1", ONE), ("2", TWO))
    )
    assert (one.begin_due(), two.begin_due(MARKED)) == (None, None)
    two.now += TURN_SECONDS - 2 * BEGIN_SECONDS
    assert two.begin_due(MARKED) is None
    begun = two.begin_due(MARKED)
    assert begun is not None
    assert begun.hosts == (ONE, TWO)
    two.begin_due(MARKED)
    joined = one.begin_due()
    assert joined is not None
    assert joined.snapshot == begun.snapshot


def test_a_snapshot_of_some_tokens_leaves_the_mark(tmp_path: Path, rows: Rows) -> None:
    one, two = (
        Host(tmp_path / name, rows, host_id, "when_needed", (ONE, TWO)) for name, host_id in (("1", ONE), ("2", TWO))
    )
    portion = TokenSelection((Span(1, 5),), is_primary=True)
    asked = new_record(TABLE.table, hosts=(ONE, TWO), portion=portion)
    one.records.write(asked)
    one.begin_due()
    joined = two.begin_due()
    assert joined is not None
    assert (joined.snapshot, joined.portion) == (asked.snapshot, portion)
    for host in (one, two):
        host.end()
    for host in (one, two, one, two):
        host.begin_due()
        host.serve()
        assert host.supervisor.ended() == []
    begun = one.begin_due(MARKED)
    assert begun is not None
    assert (begun.portion, begun.phase) == (WHOLE, "requested")


def test_a_portion_of_another_version_is_refused_by_name(
    tmp_path: Path, rows: Rows, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = (Host(tmp_path / name, rows, host_id, "never", (ONE, TWO)) for name, host_id in (("1", ONE), ("2", TWO)))
    one.records.write(new_record(TABLE.table, hosts=(ONE, TWO)))
    one.begin_due()
    for row in rows.rows.values():
        row["portion"] = "the middle"
    assert two.begin_due() is None
    assert "a part that this version does not know" in capsys.readouterr().out


def test_a_host_that_gave_up_keeps_the_marks(tmp_path: Path, rows: Rows) -> None:
    one, two = (
        Host(tmp_path / name, rows, host_id, "when_needed", (ONE, TWO)) for name, host_id in (("1", ONE), ("2", TWO))
    )
    for host in (one, one, two, two):
        host.begin_due(MARKED)
    one.end()
    two.end("given_up")
    for host in (one, two, one, two):
        host.begin_due(MARKED)
        host.serve()
    assert one.supervisor.ended() == two.supervisor.ended() == []


def test_without_the_rows_several_hosts_begin_nothing_by_themselves(tmp_path: Path, rows: Rows) -> None:
    rows.refusal = CdcError(Code.CASSANDRA_QUERY, "unconfigured table", "none")
    host = Host(tmp_path / "one", rows, ONE, "initial", (ONE, TWO))
    assert host.begin_due() is None
    alone = Host(tmp_path / "alone", rows, ONE, "initial")
    found = alone.begin_due()
    assert found is not None
    alone.records.write(replace(found, phase="ended"))
    alone.serve()
    assert len(alone.supervisor.ended()) == 1
