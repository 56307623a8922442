"""Snapshots and repairs that several hosts take follow each other, and none is lost."""

from __future__ import annotations

from dataclasses import replace
from time import time
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from cassandra_storage.formats.primitives.token_ranges import Span
from cdc_common.node.snapshot_rows import KEPT_SECONDS, NO_HOST, Part, RepairRequest, SnapshotRows
from publisher.snapshot import supervisor as supervisor_module
from publisher.snapshot.state.records import new_record
from publisher.snapshot.state.token_selection import WHOLE, TokenSelection
from publisher.snapshot.steps.worker import CANCEL
from tests.support.publisher.snapshot_hosts import NAME, ONE, TABLE, TWO, Host, Rows, Worker, worker_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@pytest.fixture
def rows() -> Rows:
    return Rows()


@pytest.fixture(autouse=True)
def _workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_module, "_Process", lambda _settings, name: Worker(name))


THREE = UUID(int=3)
MARKED = TABLE._replace(needs_snapshot_since=5)


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
