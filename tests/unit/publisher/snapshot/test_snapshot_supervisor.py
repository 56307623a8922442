"""Who begins a snapshot, when its worker runs, and how hosts take part together."""

from __future__ import annotations

from dataclasses import replace
from time import time
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from cassandra_storage.formats.primitives.token_ranges import Span
from cdc_common.errors.codes import CdcError, Code
from cdc_common.node.snapshot_rows import KEPT_SECONDS, NO_HOST, Part, RepairRequest, SnapshotRows
from publisher.snapshot import supervisor as supervisor_module
from publisher.snapshot.state.records import new_record
from publisher.snapshot.state.token_selection import WHOLE, TokenSelection
from publisher.snapshot.steps.worker import CANCEL, GO_ON, PAUSE
from publisher.snapshot.supervisor import BEGIN_SECONDS, RETRY_SECONDS, TURN_SECONDS
from tests.support.publisher.snapshot_hosts import NAME, ONE, PUBLISHED, TABLE, TWO, Host, Rows, Worker

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from publisher.tables.published_table import PublishedTable


@pytest.fixture
def rows() -> Rows:
    return Rows()


@pytest.fixture(autouse=True)
def _workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_module, "_Process", lambda _settings, name: Worker(name))


def worker_of(host: Host) -> Worker:
    worker = host.supervisor._worker
    assert isinstance(worker, Worker)
    return worker


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


def repair_row(hosts: Sequence[UUID], until: float, number: int = 1) -> Part:
    """Return the row that an audit writes."""
    request = RepairRequest(int(until * 1000), (b"key",))
    return Part(UUID(int=number), NO_HOST, TABLE.table.id, NAME, tuple(hosts), str(request), "running", 5)


def test_all_hosts_take_part_in_a_repair_and_say_how_far_they_are(tmp_path: Path, rows: Rows) -> None:
    hosts = [Host(tmp_path / "one", rows, ONE), Host(tmp_path / "two", rows, TWO)]
    audit = SnapshotRows(rows.read, rows.write, "cdc_filler")
    audit.report(repair_row((ONE, TWO), time() + 60))
    for host in hosts:
        record = host.begin_due()
        assert record is not None
        assert (record.snapshot, record.hosts, record.portion.repair is not None) == (UUID(int=1), (ONE, TWO), True)
        host.end()
        host.begin_due()
    states = {part.host_id: part.state for part in audit.read()}
    assert states == {NO_HOST: "running", ONE: "ended", TWO: "ended"}
    assert hosts[0].supervisor.ended() == []  # no table's mark is cleared by it


def test_repairs_come_one_after_another_and_not_late(tmp_path: Path, rows: Rows) -> None:
    host = Host(tmp_path / "one", rows, ONE)
    audit = SnapshotRows(rows.read, rows.write, "cdc_filler")
    audit.report(repair_row((ONE,), time() - 1))
    assert host.begin_due() is None
    audit.report(repair_row((ONE,), time() + 60, 2))
    first = host.begin_due()
    audit.report(repair_row((ONE,), time() + 60, 3))
    assert host.begin_due() == first
    host.end()
    second = host.begin_due()  # which says first that the one before is over
    assert (first and first.snapshot, second and second.snapshot) == (UUID(int=2), UUID(int=3))
    host.end()
    host.begin_due()
    assert {part.state for part in audit.read() if part.host_id == ONE} == {"ended"}  # of one host, too


def test_a_snapshot_that_is_asked_for_while_a_repair_waits_for_a_host_is_taken_there(
    tmp_path: Path, rows: Rows
) -> None:
    """The host was away. Its part of the repair begins after the snapshot was asked for, and says nothing about it."""
    one, two = (Host(tmp_path / name, rows, host_id, "never", (ONE, TWO)) for name, host_id in (("1", ONE), ("2", TWO)))
    SnapshotRows(rows.read, rows.write, "cdc_filler").report(repair_row((ONE, TWO), time() + 60))
    one.begin_due()
    one.end()
    one.begin_due()
    asked = new_record(TABLE.table, hosts=(ONE, TWO))
    one.records.write(asked)
    one.begin_due()
    repair = two.begin_due()
    assert repair is not None
    assert repair.portion.repair is not None
    two.end()
    joined = two.begin_due()
    assert joined is not None
    assert joined.snapshot == asked.snapshot


def test_one_that_is_given_up_and_replaced_at_once_is_given_up_by_all(tmp_path: Path, rows: Rows) -> None:
    """It happens before any publisher has looked: the raw partitions wait for all of its hosts, which do
    not send it.
    """
    hosts = (ONE, TWO, THREE)
    one, two, three = (Host(tmp_path / str(host), rows, host, "never", hosts) for host in hosts)
    asked = [new_record(TABLE.table, hosts=hosts) for _ in range(2)]
    assert one.records.begin(asked[0])
    one.tell("running")
    one.end("given_up")
    assert one.records.begin(asked[1])
    one.begin_due()
    for host in (two, three):
        joined = host.begin_due()
        assert joined is not None
        assert joined.snapshot == asked[0].snapshot
        host.serve()
        assert worker_of(host).orders == [CANCEL]
    for host in (two, three):
        host.end("given_up")
        joined = host.begin_due()
        assert joined is not None
        assert (joined.snapshot, host.records.wanted(NAME)) == (asked[1].snapshot, "run")
    states = {(part.snapshot, part.host_id): part.state for part in SnapshotRows(rows.read, rows.write, "k").read()}
    assert {states[asked[0].snapshot, host] for host in hosts} == {"given_up"}
    assert {states[asked[1].snapshot, host] for host in hosts} == {"running"}


def test_one_that_a_host_goes_on_with_is_sent_by_all_others(tmp_path: Path, rows: Rows) -> None:
    hosts = (ONE, TWO, THREE)
    one, two, three = (Host(tmp_path / str(host), rows, host, "never", hosts) for host in hosts)
    one.records.begin(new_record(TABLE.table, hosts=hosts))
    one.begin_due()
    two.begin_due()
    one.end("given_up")
    assert three.begin_due() is not None
    assert three.records.wanted(NAME) == "run"


def test_a_host_whose_state_directory_was_removed_takes_its_part_again(tmp_path: Path, rows: Rows) -> None:
    """No other host could end its part, and purging waits."""
    one, two = (Host(tmp_path / name, rows, host_id, "never", (ONE, TWO)) for name, host_id in (("1", ONE), ("2", TWO)))
    asked = new_record(TABLE.table, hosts=(ONE, TWO))
    one.records.begin(asked)
    for host in (one, two):
        host.begin_due()
    for name, host_id in (("again 1", ONE), ("again 2", TWO)):
        again = Host(tmp_path / name, rows, host_id, "never", (ONE, TWO))
        joined = again.begin_due()
        assert joined is not None
        assert joined.snapshot == asked.snapshot
        again.end()
        again.begin_due()
    after = Host(tmp_path / "after", rows, ONE, "never", (ONE, TWO))
    assert after.begin_due() is None


def test_a_row_does_not_go_back_while_the_record_is_behind(tmp_path: Path, rows: Rows) -> None:
    """The worker writes it first."""
    host = Host(tmp_path / "one", rows, ONE)
    host.records.begin(new_record(TABLE.table, hosts=(ONE, TWO)))
    host.begin_due()
    host.tell("ended")
    host.begin_due()
    assert [part.state for part in SnapshotRows(rows.read, rows.write, "k").read()] == ["ended"]


def test_two_snapshots_that_a_host_was_away_for_are_taken_one_after_the_other(tmp_path: Path, rows: Rows) -> None:
    one, two = (Host(tmp_path / name, rows, host_id, "never", (ONE, TWO)) for name, host_id in (("1", ONE), ("2", TWO)))
    asked = []
    for portion in (TokenSelection((Span(1, 5),)), WHOLE):
        asked.append(new_record(TABLE.table, hosts=(ONE, TWO), portion=portion))
        one.records.write(asked[-1])
        one.begin_due()
        one.end()
        one.begin_due()
    for host in asked:
        joined = two.begin_due()
        assert joined is not None
        assert joined.snapshot == host.snapshot
        two.end()
    last = two.begin_due()
    assert last is not None
    assert last.snapshot == asked[-1].snapshot


def test_two_hosts_that_are_asked_at_once_take_part_in_both(tmp_path: Path, rows: Rows) -> None:
    """The raw partitions wait for each host's end of each snapshot, or purge nothing any more."""
    hosts = [Host(tmp_path / name, rows, host_id, "never", (ONE, TWO)) for name, host_id in (("1", ONE), ("2", TWO))]
    asked = [new_record(TABLE.table, hosts=(ONE, TWO)) for _ in hosts]
    for host, record in zip(hosts, asked, strict=True):
        assert host.records.begin(record)
    for _ in range(4):
        for host in hosts:
            host.begin_due()
            host.end()
            host.begin_due()
    states = {(part.snapshot, part.host_id): part.state for part in SnapshotRows(rows.read, rows.write, "k").read()}
    assert states == {(record.snapshot, host): "ended" for record in asked for host in (ONE, TWO)}
    for host in hosts:
        assert host.begin_due() == host.begin_due()


def test_a_snapshot_that_is_seen_late_is_taken_too(tmp_path: Path, rows: Rows) -> None:
    """Its host could not write its row at once, and another host was asked since."""
    one, two = (Host(tmp_path / name, rows, host_id, "never", (ONE, TWO)) for name, host_id in (("1", ONE), ("2", TWO)))
    late = replace(new_record(TABLE.table, hosts=(ONE, TWO)), requested_at=time() - 60)
    two.records.begin(new_record(TABLE.table, hosts=(ONE, TWO)))
    two.begin_due()
    two.end()
    one.records.begin(late)
    one.begin_due()
    joined = two.begin_due()
    assert joined is not None
    assert joined.snapshot == late.snapshot


def test_a_snapshot_is_not_taken_again_when_the_row_of_its_end_has_expired(tmp_path: Path, rows: Rows) -> None:
    one, two = (Host(tmp_path / name, rows, host_id, "never", (ONE, TWO)) for name, host_id in (("1", ONE), ("2", TWO)))
    one.records.write(replace(new_record(TABLE.table, hosts=(ONE, TWO)), requested_at=time() - KEPT_SECONDS - 1))
    one.begin_due()
    assert two.begin_due() is None


def clear_marks(host: Host) -> list[UUID]:
    """Clear marks as the publisher's loop does; return the ids of the snapshots whose tables' marks go."""
    ended = host.supervisor.ended()
    for record in ended:
        host.supervisor.mark_cleared(record)
    return [record.snapshot for record in ended]


def test_a_repair_that_waits_for_a_snapshot_is_not_lost_when_the_mark_goes(tmp_path: Path, rows: Rows) -> None:
    host = Host(tmp_path / "one", rows, ONE, "initial")
    snapshot = host.begin_due(MARKED)
    assert snapshot is not None
    SnapshotRows(rows.read, rows.write, "cdc_filler").report(repair_row((ONE,), time() + 60))
    host.end()
    host.serve()
    repair = host.begin_due(MARKED)
    assert clear_marks(host) == [snapshot.snapshot]
    assert host.records.read(NAME) == repair
    assert repair is not None
    assert repair.snapshot == UUID(int=1)
    host.serve()
    assert clear_marks(host) == []


def test_the_mark_goes_when_the_last_host_has_ended_although_a_repair_has_begun(tmp_path: Path, rows: Rows) -> None:
    one, two = (
        Host(tmp_path / name, rows, host_id, "when_needed", (ONE, TWO)) for name, host_id in (("1", ONE), ("2", TWO))
    )
    begun = one.begin_due(MARKED)
    assert begun is not None
    one.begin_due(MARKED)
    two.begin_due(MARKED)
    SnapshotRows(rows.read, rows.write, "cdc_filler").report(repair_row((ONE, TWO), time() + 60))
    one.end()
    repair = one.begin_due(MARKED)
    assert repair is not None
    assert repair.snapshot == UUID(int=1)
    one.end()
    one.serve()
    assert one.begin_due(MARKED) == one.records.read(NAME)
    assert clear_marks(one) == []
    two.end()
    two.begin_due(MARKED)
    last = one.begin_due(MARKED)
    assert last is not None
    assert last.snapshot == repair.snapshot  # no other snapshot is due
    assert clear_marks(one) == [begun.snapshot]
    one.serve()
    assert clear_marks(one) == []


def test_a_snapshot_that_another_one_follows_at_once_is_reported_as_ended(tmp_path: Path, rows: Rows) -> None:
    host = Host(tmp_path / "one", rows, ONE)
    begun = new_record(TABLE.table, hosts=(ONE, TWO))
    host.records.begin(begun)
    host.begin_due()
    host.end()
    host.records.begin(new_record(TABLE.table, hosts=(ONE, TWO), portion=TokenSelection((Span(1, 5),))))
    host.begin_due()
    states = {part.snapshot: part.state for part in SnapshotRows(rows.read, rows.write, "cdc_filler").read()}
    assert states.pop(begun.snapshot) == "ended"
    assert list(states.values()) == ["running"]
