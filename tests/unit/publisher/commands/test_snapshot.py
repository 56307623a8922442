"""The command that asks for a snapshot, where another one runs on this node."""

from __future__ import annotations

import fcntl
import os
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.primitives.token_ranges import Span
from cdc_common.errors.codes import CdcError, Code
from cdc_common.node.snapshot_rows import RepairRequest
from publisher.commands import snapshot as command
from publisher.commands.snapshot import Options, request_snapshot, want
from publisher.settings import PublisherSettings, Settings
from publisher.snapshot.connections import node
from publisher.snapshot.state.records import Records, new_record
from publisher.snapshot.state.token_selection import TokenSelection
from tests.support.materializer.table_writes import MIXED

if TYPE_CHECKING:
    from pathlib import Path

NAME = MIXED.table.qualified_name
KEY = b"what the row is about"


REPAIR = TokenSelection(repair=RepairRequest(2**52, (KEY,)))


@pytest.mark.parametrize(
    ("running", "tokens", "says"),
    [
        (REPAIR, (), "A repair of 1 Cassandra partitions"),
        (REPAIR, ("1:5",), "A repair of 1 Cassandra partitions"),
        (TokenSelection((Span(7, 9),)), ("1:5",), "another part"),
    ],
)
def test_another_one_is_not_taken_for_what_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], running: TokenSelection, tokens: tuple[str, ...], says: str
) -> None:
    records = Records(tmp_path)
    records.make_folder()
    records.begin(new_record(MIXED.table, portion=running))
    settings = Settings(publisher=PublisherSettings.model_validate({"state_directory": tmp_path}))
    options = Options(snapshot=None, tokens=tokens, primary_range=False, detach=True)
    with pytest.raises(CdcError, match=says) as refused:
        request_snapshot(settings, NAME, options, print)
    assert refused.value.code is Code.CONFIG_INVALID
    assert KEY.hex() not in str(refused.value) + capsys.readouterr().out


def test_one_that_is_over_is_not_begun_again_under_its_id(tmp_path: Path) -> None:
    """The raw partitions have its end: a begin would hold nothing up."""
    records = Records(tmp_path)
    records.make_folder()
    over = new_record(MIXED.table).moved(phase="given_up")
    records.write(over)
    settings = Settings(publisher=PublisherSettings.model_validate({"state_directory": tmp_path}))
    options = Options(snapshot=str(over.snapshot), tokens=(), primary_range=False, detach=True)
    with pytest.raises(CdcError, match=f"{over.snapshot} is over on this node") as refused:
        request_snapshot(settings, NAME, options, print)
    assert refused.value.code is Code.CONFIG_INVALID


def test_one_that_the_publisher_has_joined_meanwhile_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking the node takes seconds."""
    records = Records(tmp_path)
    records.make_folder()
    joined = new_record(MIXED.table)

    def estimate(*_: object) -> None:
        records.begin(joined)

    monkeypatch.setattr(command, "connect", lambda *_, **__: nullcontext())
    monkeypatch.setattr(command, "_find_table", lambda *_: MIXED.table)
    monkeypatch.setattr(command, "datacenter_hosts", lambda _: ())
    monkeypatch.setattr(node, "data_directories", lambda *_: [])
    monkeypatch.setattr(command, "estimate_table", estimate)
    monkeypatch.setattr(command, "preflight", lambda *_: [])
    monkeypatch.setattr(command, "_check_publisher_runs", lambda _: None)
    settings = Settings(publisher=PublisherSettings.model_validate({"state_directory": tmp_path}))
    request_snapshot(settings, NAME, Options(snapshot=None, tokens=(), primary_range=False, detach=True), print)
    assert records.read(NAME) == joined
    records.write(joined.moved(phase="ended"))
    joined = new_record(MIXED.table)
    options = Options(snapshot=None, tokens=("1:5",), primary_range=False, detach=True)
    with pytest.raises(CdcError, match="another part"):
        request_snapshot(settings, NAME, options, print)


def test_a_paused_one_is_shown_and_not_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = Records(tmp_path)
    records.make_folder()
    record = new_record(MIXED.table).moved(phase="sending", rows=5)
    records.begin(record)
    settings = Settings(publisher=PublisherSettings.model_validate({"state_directory": tmp_path}))
    lines: list[str] = []
    want(settings, NAME, "pause", lines.append)
    phases = iter((record, record.moved(phase="ended")))

    def sleep(_: float) -> None:
        assert records.wanted(NAME) == "pause"
        records.write(next(phases))

    monkeypatch.setattr(command, "_check_publisher_runs", lambda _: None)
    monkeypatch.setattr(command, "sleep", sleep)
    options = Options(snapshot=None, tokens=(), primary_range=False, detach=False)
    request_snapshot(settings, NAME, options, lines.append)
    assert lines == [
        f"The publisher will pause the snapshot of {NAME}.",
        f"{NAME} is paused: 5 rows, 0.0 MiB, 0.0% of its tokens; --resume continues it",
        f"{NAME} has ended: 5 rows, 0.0 MiB",
    ]


def test_a_publisher_that_was_just_killed_may_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lock is there again after a few seconds, for which this test does not wait."""
    waited = 0
    held: list[int] = []

    def sleep(_: float) -> None:
        nonlocal waited
        waited += 1
        if waited == 3:
            held.append(os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR))
            fcntl.flock(held[0], fcntl.LOCK_EX)

    monkeypatch.setattr(command, "sleep", sleep)
    command._check_publisher_runs(tmp_path)
    assert waited == 3
    os.close(held[0])
    monkeypatch.setattr(command, "_RESTART_SECONDS", 0.0)
    with pytest.raises(CdcError, match="No publisher runs") as refused:
        command._check_publisher_runs(tmp_path)
    assert refused.value.code is Code.PROGRAM_UNREACHABLE
