"""The state protocol with its checkpoint location on an S3 server; dev/verify/chaos has the same on local disk."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from dev.verify.chaos.matrix import Action, Cell, make_setup, produce, run_cell
from stream_runtime.fault_points import FaultPoint
from stream_runtime.state.checkpoints import CheckpointStore

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker
    from dev.local_stack.servers.s3 import S3Server
    from stream_runtime.state.checkpoints import Manifest
    from tests.support.materializer.protocol_run import Setup

pytestmark = pytest.mark.servers
# Where S3 and a disk differ: what is written, fetched, listed and deleted.
CELLS = [
    Cell(FaultPoint.IN_WRITE, Action.KILL, 6, "fresh"),
    Cell(FaultPoint.AFTER_CHANGELOG, Action.ZOMBIE, 3, "fresh"),
    Cell(FaultPoint.IN_UPLOAD, Action.KILL, 3, "fresh"),
    Cell(FaultPoint.IN_UPLOAD, Action.ZOMBIE, 7, "fresh"),
    Cell(FaultPoint.AFTER_SNAPSHOT, Action.RAISE, 2, "fresh"),
    Cell(FaultPoint.AFTER_MANIFESTS, Action.KILL, 2, "fresh"),
    Cell(FaultPoint.IN_FETCH, Action.KILL, 2, "restored"),
]


@pytest.fixture
def setup(kafka: KafkaBroker, s3: S3Server, topic_prefix: str, tmp_path: Path) -> Setup:
    return make_setup(kafka.bootstrap_servers, topic_prefix, tmp_path, location=s3.location(topic_prefix))


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell.point.name}-{cell.action.name}".lower())
def test_a_crash_changes_nothing(setup: Setup, cell: Cell) -> None:
    assert run_cell(setup, cell).problem == ""


def test_what_is_not_needed_goes_and_what_is_lost_comes_back(setup: Setup) -> None:
    setup.run()
    assert len(setup.checkpoints.snapshots()) == 2
    shutil.rmtree(setup.state)
    produce(setup, 1)
    setup.run()
    setup.check()


@pytest.mark.parametrize("how", [pytest.param("read_only", marks=pytest.mark.exhaustive), "away"])
def test_a_location_that_fails_for_a_while(setup: Setup, s3: S3Server, how: str) -> None:
    setup.run(until=100)
    before = setup.counts()
    s3.stop()
    try:
        if how == "read_only":
            s3.read_only = True
            s3.start()
        with pytest.raises(CdcError) as raised:
            setup.run()
    finally:
        s3.stop()
        s3.read_only = False
        s3.start()
    assert raised.value.code is Code.CHECKPOINT_LOCATION
    assert setup.counts() == before
    setup.run()
    setup.check()


def test_a_location_that_hangs_for_a_while(setup: Setup, s3: S3Server) -> None:
    """It keeps its connections and answers nothing; what was under way is stored after all when it wakes up."""
    setup.run(until=100)
    before = setup.counts()
    s3.pause()
    try:
        with pytest.raises(CdcError, match="does not answer") as raised:
            setup.run(transaction_timeout_seconds=2)
    finally:
        s3.resume()
    assert raised.value.code is Code.CHECKPOINT_LOCATION
    assert setup.counts() == before
    setup.run()
    setup.check()


@pytest.mark.parametrize("doing", ["listing", "reading"])
def test_a_restore_from_a_location_that_hangs(
    setup: Setup, s3: S3Server, monkeypatch: pytest.MonkeyPatch, doing: str
) -> None:
    """The location hangs before anything is read, or before a snapshot's files. The restore gives up long before the
    client's own 100 s.
    """
    setup.run(until=100)
    before = setup.counts()
    shutil.rmtree(setup.state)

    fetch = CheckpointStore.fetch_snapshot

    def fetch_paused(store: CheckpointStore, manifest: Manifest, target: Path) -> None:
        s3.pause()
        fetch(store, manifest, target)

    if doing == "reading":
        monkeypatch.setattr(CheckpointStore, "fetch_snapshot", fetch_paused)
    else:
        s3.pause()
    began = time.monotonic()
    try:
        with pytest.raises(CdcError, match=f"does not answer: {doing}") as raised:
            setup.run(transaction_timeout_seconds=10)
    finally:
        s3.resume()
        monkeypatch.undo()
    assert raised.value.code is Code.CHECKPOINT_LOCATION
    assert time.monotonic() - began < 60
    assert setup.counts() == before
    setup.run()
    setup.check()
