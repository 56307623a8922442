"""The position file: replaced atomically, read back, refused if it is another node's or has an unknown format."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.commitlog.segment import CommitLogPosition
from cdc_common.errors.codes import CdcError, Code
from publisher import state_files
from publisher.inflight import PendingPosition
from publisher.log.position import FINISHED_KEPT, Positions

if TYPE_CHECKING:
    from pathlib import Path

HOST = UUID(int=1)
POSITIONS = st.lists(
    st.builds(PendingPosition, st.integers(1, 5), st.integers(1, 1000), is_end=st.booleans()), max_size=20
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "position.json"


@settings(deadline=None)  # files on a busy machine
@given(acknowledged=POSITIONS)
def test_what_is_saved_is_loaded(tmp_path_factory: pytest.TempPathFactory, acknowledged: list[PendingPosition]) -> None:
    path = tmp_path_factory.mktemp("state") / "position.json"
    positions = Positions.load(path, HOST)
    positions.move(acknowledged)
    positions.save()
    loaded = Positions.load(path, HOST)
    for segment in range(6):
        assert loaded.resume_at(segment) == positions.resume_at(segment)
        assert loaded.is_finished(segment) == positions.is_finished(segment)
    assert loaded.published_up_to == positions.published_up_to


def test_positions_move_and_finish(file: Path) -> None:
    positions = Positions.load(file, HOST)
    positions.move([PendingPosition(5, 10), PendingPosition(5, 20)])
    positions.move([PendingPosition(5, 30, is_end=True), PendingPosition(6, 7, clock=99)])
    assert (positions.resume_at(5), positions.is_finished(5)) == (0, True)
    assert (positions.resume_at(6), positions.is_finished(6)) == (7, False)
    assert positions.published_up_to == CommitLogPosition(6, 7)
    assert positions.clock == 99


def test_published_up_to_does_not_go_back_with_a_segment_that_reappears(file: Path) -> None:
    positions = Positions.load(file, HOST)
    positions.move([PendingPosition(6, 7), PendingPosition(5, 10)])
    assert positions.published_up_to == CommitLogPosition(6, 7)


def test_old_finished_segments_are_forgotten_once_they_are_gone(file: Path) -> None:
    positions = Positions.load(file, HOST)
    count = FINISHED_KEPT + 10
    positions.move(PendingPosition(segment, 1, is_end=True) for segment in range(count))
    positions.move([PendingPosition(count, 5)])
    positions.forget_missing(present={3})
    assert [segment for segment in range(12) if positions.is_finished(segment)] == [3, 10, 11]
    assert positions.resume_at(count) == 0


def test_files_are_private(file: Path) -> None:
    folder = file.parent / "state"
    state_files.make_folder(folder)
    positions = Positions.load(folder / "position.json", HOST)
    positions.move([PendingPosition(1, 1)])
    positions.save()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "position.json").stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == ["position.json"]


def test_nothing_is_written_while_nothing_moves(file: Path) -> None:
    Positions.load(file, HOST).save()
    assert not file.exists()


def test_another_nodes_position_is_refused(file: Path) -> None:
    positions = Positions.load(file, HOST)
    positions.move([PendingPosition(1, 1)])
    positions.save()
    with pytest.raises(CdcError, match="belongs to the node") as caught:
        Positions.load(file, UUID(int=2))
    assert caught.value.code is Code.POSITION_FILE


def test_another_node_at_the_same_address_is_refused(file: Path) -> None:
    positions = Positions.load(file, HOST)
    positions.check_node(HOST)
    with pytest.raises(CdcError, match=f"belongs to the node {HOST}; this one is {UUID(int=2)}") as caught:
        positions.check_node(UUID(int=2))
    assert caught.value.code is Code.POSITION_FILE


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", "x", '{"format_version": 2}', '{"format_version": 1}', '{"format_version": 1, "host_id": "x"}'],
)
def test_a_damaged_or_newer_file_is_refused(file: Path, content: str) -> None:
    file.write_text(content)
    with pytest.raises(CdcError) as caught:
        Positions.load(file, HOST)
    assert caught.value.code is Code.POSITION_FILE


def test_files_of_this_version_and_the_one_before_are_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(state_files.readable_versions(1)) == [1]
    monkeypatch.setattr(state_files, "READABLE_VERSIONS", state_files.readable_versions(3))
    for version, is_readable in ((1, False), (2, True), (3, True), (4, False)):
        file.write_text(json.dumps({"format_version": version, "a": 1}))
        if is_readable:
            assert state_files.read(file) == {"format_version": version, "a": 1}
            continue
        with pytest.raises(CdcError, match=f"its format version is {version}, this build reads 2 and 3") as caught:
            state_files.read(file)
        assert caught.value.code is Code.POSITION_FILE


def test_a_crash_before_the_rename_leaves_the_old_file(file: Path) -> None:
    state_files.write(file, {"a": 1})
    file.with_name(f"{file.name}.tmp").write_text("{torn")
    assert state_files.read(file) == {"format_version": 1, "a": 1}
    state_files.write(file, {"a": 2})
    assert json.loads(file.read_text())["a"] == 2


def test_files_of_one_stem_may_be_written_at_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot's record by its worker, and what is wanted of it by the command."""
    wanted = file.with_suffix(".wanted")

    def sync(handle: int) -> None:
        monkeypatch.undo()
        state_files.write(wanted, {"b": 2})
        os.fsync(handle)

    monkeypatch.setattr(os, "fsync", sync)
    state_files.write(file, {"a": 1})
    assert state_files.read(file) == {"format_version": 1, "a": 1}
    assert state_files.read(wanted) == {"format_version": 1, "b": 2}


def test_two_publishers_do_not_share_a_state_directory(tmp_path: Path) -> None:
    with (
        state_files.locked(tmp_path),
        pytest.raises(CdcError, match="Another publisher"),
        state_files.locked(tmp_path),
    ):
        pass
    with state_files.locked(tmp_path):
        pass
