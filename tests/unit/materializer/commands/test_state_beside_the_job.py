"""The state commands run beside the job, which goes on and deletes old versions: that is no damage."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from cdc_common.errors.codes import CdcError, Code
from materializer.commands import state_verify, stored_partitions
from materializer.commands.state_verify import verify_state, verify_states
from materializer.commands.stored_partitions import restored
from materializer.records import RawPartition
from materializer.settings import Settings
from stream_runtime.exactly_once.position import Position
from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.checkpointed_state import CheckpointedState
from stream_runtime.state.checkpoints import CheckpointStore, RetentionSettings, StoredFile
from stream_runtime.state.object_store import ObjectStore
from stream_runtime.state.rocksdb import open_local_store
from stream_runtime.state.snapshots import StateSettings
from stream_runtime.state.versions import next_version

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

STATE = StateSettings(2, RetentionSettings(1, 0))
FIRST, SECOND = RawPartition("topic", 0), RawPartition("topic", 1)


class Job:
    """Commits versions of raw partitions."""

    def __init__(self, folder: Path) -> None:
        defaults = Settings()
        own = defaults.materializer.model_copy(update={"checkpoint_location": str(folder / "location")})
        self.settings = defaults.model_copy(update={"materializer": own})
        self._folder, self._location = folder, ObjectStore(own.checkpoint_location)
        self._states: dict[RawPartition, CheckpointedState] = {}

    def commit(self, raw_partition: RawPartition, versions: int = 9) -> None:
        if raw_partition not in self._states:
            local = open_local_store(self._folder / str(raw_partition))
            self._states[raw_partition] = CheckpointedState(local, self.checkpoints(raw_partition), STATE)
        state = self._states[raw_partition]
        for _ in range(versions):
            parent = state.local.version
            entry = Changelog(Head(next_version(parent), 1, 0, 1), parent, 0, {b"k": os.urandom(10)})
            state.store_changelog(entry)
            state.apply(entry)
            state.store_snapshot_if_due(entry.head.version)

    def checkpoints(self, raw_partition: RawPartition) -> CheckpointStore:
        return CheckpointStore(self._location, self.settings.materializer.group_id, raw_partition)

    def position(self, raw_partition: RawPartition) -> Position:
        return Position(1, self._states[raw_partition].local.version, 1)

    def read_positions(self, _settings: object, asked: Collection[RawPartition]) -> dict[RawPartition, Position]:
        return {partition: self.position(partition) for partition in asked}


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    found = Job(tmp_path)
    for partition in (FIRST, SECOND):
        found.commit(partition)
    for module in (state_verify, stored_partitions):
        monkeypatch.setattr(module, "read_positions", found.read_positions)
    return found


def test_a_job_that_goes_on_between_two_raw_partitions(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts: list[Any] = []

    def print_verdict(raw_partition: RawPartition, verdict: state_verify.Verdict) -> None:
        verdicts.append((raw_partition, verdict.problems))
        job.commit(SECOND)

    monkeypatch.setattr(state_verify, "_print_verdict", print_verdict)
    verify_states(job.settings, ())
    assert verdicts == [(FIRST, ()), (SECOND, ())]


def test_a_job_that_goes_on_while_files_are_read(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    check_file = CheckpointStore.check_file

    def check(self: CheckpointStore, file: StoredFile) -> None:
        job.commit(FIRST)
        check_file(self, file)

    monkeypatch.setattr(CheckpointStore, "check_file", check)
    verdict = verify_state(job.checkpoints(FIRST), job.position(FIRST).version)
    assert verdict.problems == ()


def test_a_version_that_the_job_has_deleted_since_its_position_was_read(job: Job) -> None:
    before = job.position(FIRST)
    job.commit(FIRST)
    with restored(job.settings, FIRST, before) as state:
        assert state.version == job.position(FIRST).version


def test_a_version_that_is_missing_is_damage(job: Job) -> None:
    position = job.position(FIRST)
    job.checkpoints(FIRST).delete_all()
    with pytest.raises(CdcError) as raised, restored(job.settings, FIRST, position):
        pass
    assert raised.value.code is Code.STATE_DAMAGED
    assert verify_state(job.checkpoints(FIRST), position.version).problems


def test_a_place_without_states_is_not_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = Job(tmp_path / "elsewhere").settings
    with pytest.raises(CdcError, match=r"elsewhere.* has no folder") as raised:
        verify_states(elsewhere, ())
    assert raised.value.code is Code.CONFIG_INVALID
    assert capsys.readouterr().out == ""
