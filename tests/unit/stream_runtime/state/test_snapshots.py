"""Snapshots are uploaded beside the fold, which goes on; and what happens to one whose task ends."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING

import pytest

from materializer.records import RawPartition
from stream_runtime.fault_points import FaultPoint, InjectedFaultError
from stream_runtime.state import checkpoints, snapshots
from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.checkpointed_state import CheckpointedState
from stream_runtime.state.checkpoints import CheckpointStore, RetentionSettings
from stream_runtime.state.object_store import ObjectStore
from stream_runtime.state.restore import restore
from stream_runtime.state.rocksdb import open_local_store
from stream_runtime.state.snapshots import StateSettings, in_background
from stream_runtime.state.versions import next_version

if TYPE_CHECKING:
    from pathlib import Path

RAW = RawPartition("raw", 0)
EVERY = 3
SETTINGS = StateSettings(EVERY, RetentionSettings(1, 0))


class SlowStore(ObjectStore):
    """Uploads wait for `go`, and fail with `error`."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.go = threading.Event()
        self.uploads = 0
        self.error: Exception | None = None

    def upload(self, path: str, source: Path) -> None:
        self.uploads += 1
        assert self.go.wait(10)
        if self.error is not None:
            raise self.error
        super().upload(path, source)


class Scene:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = SlowStore(str(folder / "location"))
        self.checkpoints = CheckpointStore(self.store, "group", RAW)
        self.state = self.open()
        self.runs = list[Future[None]]()

    def open(self) -> CheckpointedState:
        def run(call: object) -> Future[None]:
            self.runs.append(in_background(call))  # type: ignore[arg-type]
            return self.runs[-1]

        return CheckpointedState(open_local_store(self.folder / "state"), self.checkpoints, SETTINGS, run)

    def write(self, count: int = 1) -> None:
        """Versions, as a task makes them."""
        for _ in range(count):
            before = self.state.local.version
            head = Head(next_version(before), 1, 0, 1)
            entry = Changelog(head, before, 0, {b"p%s" % head.version.encode(): os.urandom(100)})
            self.state.store_changelog(entry)
            self.state.apply(entry)
            self.state.store_snapshot_if_due(head.version)

    def wait(self) -> None:
        for run in self.runs:
            run.exception(10)

    def check_stored(self) -> None:
        """The newest version can be restored from what is stored."""
        version = self.state.local.version
        local = open_local_store(self.folder / f"another-{time.monotonic_ns()}")
        restore(local, self.checkpoints, version)
        assert dict(local.scan(b"p", b"q")) == dict(self.state.local.scan(b"p", b"q"))
        local.close()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_the_fold_goes_on_while_a_snapshot_is_uploaded(scene: Scene) -> None:
    scene.write(4)
    scene.runs[0].result(10)
    scene.write(20 * EVERY)
    assert scene.store.uploads == 1
    assert scene.checkpoints.snapshots() == []
    scene.store.go.set()
    scene.wait()
    (stored,) = scene.checkpoints.snapshots()
    assert stored < scene.state.local.version
    scene.check_stored()
    scene.write(2)
    scene.wait()
    assert len(scene.checkpoints.snapshots()) == 2
    scene.check_stored()
    assert list((scene.folder / "state").rglob("outgoing-*")) == []


def test_what_ends_its_task_ends_an_upload_and_a_new_one_is_made(scene: Scene) -> None:
    scene.write(EVERY)
    scene.runs[0].result(10)
    scene.write()
    while not scene.store.uploads:
        time.sleep(0.01)
    scene.state.close()
    scene.state = scene.open()
    scene.store.go.set()
    scene.wait()
    assert scene.checkpoints.snapshots() == []
    scene.write(1)
    scene.runs[-1].result(10)
    scene.write(1)
    scene.wait()
    assert len(scene.checkpoints.snapshots()) == 1
    scene.check_stored()


def test_a_snapshot_that_fails_is_made_again_of_a_later_version(scene: Scene) -> None:
    scene.store.error = OSError("no space left")
    scene.store.go.set()
    scene.write(EVERY)
    scene.wait()
    scene.write()
    scene.wait()
    uploads = scene.store.uploads
    version = scene.state.local.version
    scene.state.store_snapshot_if_due(version)  # a heartbeat commits the same version again
    scene.wait()
    assert scene.store.uploads == uploads
    scene.store.error = None
    scene.write()
    scene.wait()
    assert scene.checkpoints.snapshots() == [scene.state.local.version]
    scene.check_stored()


def test_an_unexpected_error_of_an_upload_is_raised_in_the_task(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(point: FaultPoint) -> None:
        if point is FaultPoint.IN_CLEANUP:
            raise InjectedFaultError(point.name)

    monkeypatch.setattr(snapshots, "reach", fail)
    scene.store.go.set()
    scene.write(EVERY)
    scene.wait()
    if len(scene.runs) == 1:  # only the listing
        scene.write()
        scene.wait()
    with pytest.raises(InjectedFaultError):
        scene.write()


def test_few_uploads_run_at_once() -> None:
    running, most, lock = [0], [0], threading.Lock()

    def upload() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.02)
        with lock:
            running[0] -= 1

    for future in [in_background(upload) for _ in range(10)]:
        future.result(10)
    assert most == [2]


def test_an_attempt_that_has_committed_nothing_stores_no_snapshot_beside_an_older_one_of_that_version(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older one's clean-up would delete the files of the newer one, whose names have the same sequence number."""
    uploaded, may_go_on = threading.Semaphore(0), [threading.Event(), threading.Event()]
    waiting = iter(may_go_on)

    def wait(point: FaultPoint) -> None:
        if point is FaultPoint.AFTER_UPLOAD:
            uploaded.release()
            assert next(waiting).wait(10)

    monkeypatch.setattr(checkpoints, "reach", wait)
    scene.store.go.set()
    scene.write(EVERY - 1)
    scene.wait()
    scene.write()
    assert uploaded.acquire(timeout=10)
    version = scene.state.local.version
    scene.state.local.close()  # its upload hangs
    scene.state = scene.open()
    scene.state.restore_to(version)
    for _ in range(2):  # heartbeats commit the same version
        scene.state.store_snapshot_if_due(version)
        uploaded.acquire(timeout=0.2)
    for event in may_go_on:
        event.set()
        time.sleep(0.2)
    scene.wait()
    scene.check_stored()
