"""Damage that is no crash: a local state that is deleted, a full or read-only location, a flipped bit."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from dev.verify.chaos.matrix import KEYS, MESSAGES, finish, make_setup, produce
from materializer.worker.open_partitions import OpenPartitions
from stream_runtime.kafka import GroupPositions
from tests.support.materializer.protocol_run import BATCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dev.local_stack.servers.kafka import KafkaBroker
    from stream_runtime.exactly_once.position import Position
    from tests.support.materializer.protocol_run import Setup

pytestmark = pytest.mark.servers
TMPFS_BYTES = 512 * 1024


@pytest.fixture
def setup(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> Setup:
    return make_setup(kafka.bootstrap_servers, topic_prefix, tmp_path)


@pytest.fixture
def small_disk(setup: Setup) -> Iterator[Path]:
    """The checkpoint location on a file system of its own, of half a megabyte."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    disk = Path(setup.checkpoint)
    disk.mkdir()
    mount("-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "tmpfs", str(disk))
    yield disk
    subprocess.run(["/bin/umount", str(disk)], check=True)


def mount(*arguments: str) -> None:
    done = subprocess.run(["/bin/mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")


def position(setup: Setup) -> Position | None:
    return GroupPositions(setup.plan().kafka, setup.prefix).read([setup.raw])[setup.raw]


def refused(setup: Setup) -> None:
    """A run stops because of the checkpoint location, and moves nothing."""
    before, counts = position(setup), setup.counts()
    with pytest.raises(CdcError) as raised:
        setup.run()
    assert raised.value.code is Code.CHECKPOINT_LOCATION
    assert str(setup.checkpoint) in raised.value.problem
    assert (position(setup), setup.counts()) == (before, counts)


def test_a_full_checkpoint_location_stops_until_there_is_room(setup: Setup, small_disk: Path) -> None:
    setup.run(until=100)
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space left"):
        filler.write_bytes(bytes(TMPFS_BYTES))
    refused(setup)
    refused(setup)
    filler.unlink()
    setup.run()
    setup.check()
    shutil.rmtree(setup.state)
    produce(setup, KEYS)
    setup.run()
    setup.check()


def test_a_read_only_checkpoint_location_stops_until_it_can_be_written(setup: Setup, small_disk: Path) -> None:
    setup.run(until=100)
    mount("-o", "remount,ro", str(small_disk))
    refused(setup)
    mount("-o", "remount,rw", str(small_disk))
    setup.run()
    setup.check()


def test_a_local_state_that_is_deleted_under_an_open_task_comes_back(setup: Setup) -> None:
    plan, records = setup.plan(), setup.records()
    failures, open_partitions = 0, OpenPartitions()
    for number, start in enumerate(range(0, MESSAGES, BATCH)):
        if number == 2:
            shutil.rmtree(setup.state)
        while True:
            try:
                batch = records[start : start + BATCH]
                open_partitions.process(plan, setup.raw, batch)
                break
            except Exception:  # noqa: BLE001 - rocksdict raises nothing narrower; Spark runs a failed task again
                failures += 1
                assert failures < 4
    open_partitions.close_all()
    setup.check()
    finish(setup)
    setup.check()


def test_a_flipped_bit_stops_only_whom_it_concerns(setup: Setup) -> None:
    setup.run(until=100, snapshot_every_versions=1000)
    newest = max((setup.stored / "changelogs").iterdir())
    content = bytearray(newest.read_bytes())
    content[-1] ^= 1
    newest.write_bytes(content)
    setup.run(until=120, snapshot_every_versions=1000)  # its own state has it already
    shutil.rmtree(setup.state)
    before, counts = position(setup), setup.counts()
    with pytest.raises(CdcError) as raised:
        setup.run()
    assert raised.value.code is Code.STATE_DAMAGED
    assert newest.name in raised.value.problem
    assert (position(setup), setup.counts()) == (before, counts)
