"""A reader pins what it restores: the job's clean-ups leave it, until the reader has ended or is long dead."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from materializer.records import RawPartition
from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.checkpoints import PIN_SECONDS, CheckpointStore, RetentionSettings
from stream_runtime.state.object_store import ObjectStore
from stream_runtime.state.versions import NOTHING, next_version, plan_restore

if TYPE_CHECKING:
    from pathlib import Path

KEPT = RetentionSettings(1, 0)


class Job:
    """Stores versions as the job does: a changelog for each, and a snapshot of every second one."""

    def __init__(self, folder: Path) -> None:
        self.checkpoints = CheckpointStore(ObjectStore(str(folder / "location")), "group", RawPartition("topic", 0))
        self.version = NOTHING
        self._folder = folder

    def commit(self, versions: int) -> None:
        for _ in range(versions):
            parent, self.version = self.version, next_version(self.version)
            self.checkpoints.write_changelog(Changelog(Head(self.version, 1, 0, 1), parent, 0, {b"k": b"v"}))
            if int(self.version.partition("-")[0]) % 2 == 0:
                self._snapshot()

    def _snapshot(self) -> None:
        file = self._folder / f"{self.version}.sst"
        file.write_bytes(self.version.encode())
        self.checkpoints.write_snapshot(self.version, [(file, self.version)], None, is_own=True)
        self.checkpoints.clean_up_changelogs(self.version, KEPT)
        self.checkpoints.clean_up(self.version)

    def can_restore(self, version: str) -> bool:
        stored = self.checkpoints
        try:
            base = plan_restore(version, None, stored.parents(), stored.snapshots()).base
        except Exception:  # noqa: BLE001 - MissingVersionError
            return False
        names = {entry.name for entry in stored.entries()[2]}
        return base == NOTHING or all(file.stored in names for file in stored.read_manifest(base).files)


@pytest.mark.parametrize("before", [0, 1, 2, 3, 9])
def test_a_pinned_version_can_be_restored_until_it_is_let_go(tmp_path: Path, before: int) -> None:
    job = Job(tmp_path)
    job.commit(before)
    version = job.version
    with job.checkpoints.pinned(version):
        job.commit(20)
        assert job.can_restore(version)
    job.commit(20)
    assert not job.can_restore(version) or version == NOTHING
    assert job.can_restore(job.version)
    assert not list((tmp_path / "location" / "group" / "topic-0" / "pins").iterdir())


def test_the_pin_of_a_dead_reader_ends(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.commit(3)
    version = job.version
    pinned = job.checkpoints.pinned(version)
    pinned.__enter__()
    [pin] = (tmp_path / "location" / "group" / "topic-0" / "pins").iterdir()
    long_ago = time.time() - PIN_SECONDS - 60
    os.utime(pin, (long_ago, long_ago))
    job.commit(20)
    assert not pin.exists()
    assert not job.can_restore(version)


def test_what_is_gone_cannot_be_pinned(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.commit(1)
    version = job.version
    job.commit(20)
    with pytest.raises(CdcError) as caught, job.checkpoints.pinned(version):
        pass
    assert caught.value.code is Code.STATE_DAMAGED
