"""The state protocol on a real broker: restores, damage, errors; dev/verify/chaos has the crashes."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from cdc_common.errors.codes import CdcError, Code
from dev.verify.chaos.child import start
from dev.verify.chaos.matrix import MESSAGES, make_setup, produce
from materializer.worker.open_partitions import OpenPartitions
from stream_runtime import fault_points
from stream_runtime.fault_points import Fault, FaultPoint
from stream_runtime.kafka import GroupPositions
from stream_runtime.state import checkpoint_location
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.object_store import ObjectStore
from stream_runtime.state.rocksdb import DamagedLocalStoreError
from tests.support.materializer.counting import IDLE_KEY
from tests.support.materializer.protocol_run import CHUNK

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker
    from tests.support.materializer.protocol_run import Setup

pytestmark = pytest.mark.servers


@pytest.fixture
def setup(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> Setup:
    """A raw partition with MESSAGES messages."""
    return make_setup(kafka.bootstrap_servers, topic_prefix, tmp_path)


def idle(setup: Setup, count: int) -> None:
    producer = Producer({"bootstrap.servers": setup.bootstrap})
    for _ in range(count):
        producer.produce(setup.raw.topic, b"", IDLE_KEY, 0)
    producer.flush()


def test_messages_that_change_nothing_move_the_offset_and_store_nothing(setup: Setup) -> None:
    setup.run()
    stored = setup.checkpoints.parents()
    idle(setup, 2 * CHUNK)
    setup.run()
    assert setup.checkpoints.parents() == stored
    positions = GroupPositions(setup.plan().kafka, setup.prefix)
    position = positions.read([setup.raw])[setup.raw]
    assert position is not None
    assert (position.offset, position.version) == (len(setup.records()), max(stored))
    shutil.rmtree(setup.state)
    produce(setup, 3)
    setup.run()
    setup.check()


@pytest.mark.parametrize("point", [FaultPoint.AFTER_FOLD, FaultPoint.AFTER_SEND_OFFSETS, FaultPoint.AFTER_COMMIT])
def test_a_kill_among_messages_that_change_nothing(setup: Setup, point: FaultPoint) -> None:
    setup.run(until=MESSAGES)
    idle(setup, 2 * CHUNK)
    assert start(setup, Fault(point, 1, "kill")).wait() == -signal.SIGKILL
    produce(setup, 3)
    setup.run()
    setup.check()


def test_an_attempt_that_raises_is_run_again_in_the_same_process(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    for point in (FaultPoint.AFTER_PRODUCE, FaultPoint.AFTER_SEND_OFFSETS, FaultPoint.AFTER_COMMIT):
        monkeypatch.setattr(fault_points, "armed", Fault(point, 1, "raise"))
        fault_points.reached.clear()
        with pytest.raises(Exception, match=point.name):
            setup.run()
    monkeypatch.undo()
    setup.run()
    setup.check()


def test_two_processes_that_take_turns_notice_each_other(setup: Setup) -> None:
    records = setup.records()
    folders = [setup._replace(folder=setup.folder), setup._replace(folder=setup.folder)]
    plans = [own.plan(state_directory=own.state.with_name(f"state-{number}")) for number, own in enumerate(folders)]
    opened = [OpenPartitions(), OpenPartitions()]
    for turn, first in enumerate(range(0, MESSAGES, 40)):
        opened[turn % 2].process(plans[turn % 2], setup.raw, records[first : first + 40])
    setup.check()


def test_a_state_that_was_lost_comes_back_from_snapshot_and_changelogs(setup: Setup) -> None:
    setup.run(until=150)
    shutil.rmtree(setup.state)
    assert max(setup.checkpoints.snapshots()) < max(setup.checkpoints.parents())
    setup.run()
    setup.check()


def test_a_state_that_was_lost_comes_back_from_changelogs_alone(setup: Setup) -> None:
    setup.run(until=190, snapshot_every_versions=1000)
    shutil.rmtree(setup.state)
    assert not setup.checkpoints.snapshots()
    setup.run()
    setup.check()


def test_an_ancestor_takes_the_changelogs_and_no_snapshot(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    setup.run(until=150)
    ancestor = setup.state.with_name("ancestor")
    setup.state.rename(ancestor)
    setup.run(until=200)
    shutil.rmtree(setup.state)
    ancestor.rename(setup.state)
    monkeypatch.setattr(CheckpointStore, "fetch_snapshot", None)
    setup.run()
    setup.check()


def test_old_changelogs_and_snapshots_are_deleted(setup: Setup) -> None:
    setup.run()
    assert len(setup.checkpoints.snapshots()) == 2
    assert len(setup.checkpoints.parents()) < MESSAGES / CHUNK
    named = {
        file.stored
        for version in setup.checkpoints.snapshots()
        for file in setup.checkpoints.read_manifest(version).files
    }
    assert {path.name for path in (setup.stored / "files").iterdir()} == named


def remove(path: Path) -> None:
    path.unlink()


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes() or b"\x00")
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("what", ["changelogs/*", "snapshots/*.json", "files/*"])
@pytest.mark.parametrize("damage", [remove, flip, truncate])
def test_damage_stops_with_the_files_name(setup: Setup, what: str, damage: Callable[[Path], None]) -> None:
    setup.run()
    before = setup.counts()
    produce(setup, 1)
    shutil.rmtree(setup.state)
    for path in setup.stored.glob(what):
        damage(path)
    with pytest.raises(CdcError) as raised:
        setup.run()
    assert raised.value.code is Code.STATE_DAMAGED
    assert str(setup.stored) in raised.value.problem
    assert setup.counts() == before


def test_a_damaged_snapshot_is_replaced_by_a_worker_that_needs_none(setup: Setup) -> None:
    setup.run(until=150)
    flip(max((setup.stored / "snapshots").iterdir()))
    setup.run()
    shutil.rmtree(setup.state)
    produce(setup, 1)
    setup.run()
    setup.check()


def test_a_damaged_local_state_is_restored(setup: Setup) -> None:
    until = 60
    setup.run(until=until)
    for kind in ("*.sst", "MANIFEST-*", "CURRENT", "*.log"):
        for damage in (remove, flip, truncate):
            found = list((setup.state / setup.prefix / str(setup.raw) / "slot-0" / "db").glob(kind))
            assert found
            for path in found:
                damage(path)
            until += 10
            run_as_spark(setup, until)
    setup.check(until)


def run_as_spark(setup: Setup, until: int) -> None:
    """A task that fails is run again."""
    for _ in range(3):
        try:
            setup.run(until=until)
        except DamagedLocalStoreError:
            continue
        return
    setup.run(until=until)


def test_an_offset_set_by_hand_stops(setup: Setup) -> None:
    setup.run(until=100)
    consumer = Consumer({"bootstrap.servers": setup.bootstrap, "group.id": setup.prefix})
    consumer.commit(offsets=[TopicPartition(*setup.raw, 50)], asynchronous=False)
    consumer.close()
    expect(setup, Code.STATE_MISMATCH)


def test_a_lost_group_stops(setup: Setup) -> None:
    setup.run(until=100)
    admin = AdminClient({"bootstrap.servers": setup.bootstrap})
    admin.delete_consumer_groups([setup.prefix])[setup.prefix].result()
    expect(setup, Code.STATE_MISMATCH)


def test_messages_that_are_gone_stop(setup: Setup) -> None:
    setup.run(until=100)
    admin = AdminClient({"bootstrap.servers": setup.bootstrap})
    for future in admin.delete_records([TopicPartition(*setup.raw, 120)]).values():
        future.result()
    expect(setup, Code.RAW_SKIPPED)


def test_a_start_behind_the_first_message_stops(setup: Setup) -> None:
    admin = AdminClient({"bootstrap.servers": setup.bootstrap})
    for future in admin.delete_records([TopicPartition(*setup.raw, 1)]).values():
        future.result()
    expect(setup, Code.RAW_SKIPPED)


def test_a_gap_within_a_batch_stops(setup: Setup) -> None:
    plan, records = setup.plan(), setup.records()
    with pytest.raises(CdcError) as raised:
        OpenPartitions().process(plan, setup.raw, records[:7] + records[8:20])
    assert raised.value.code is Code.RAW_SKIPPED
    assert "offset 7, but it has 8" in raised.value.problem


def test_another_number_of_raw_partitions_stops(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    setup.run(until=100)
    monkeypatch.setenv("COUNTING_RAW_PARTITIONS", "2")
    expect(setup, Code.RAW_PARTITIONS_CHANGED)


@pytest.mark.parametrize("folded", [0, 100])
def test_a_time_ahead_of_this_hosts_clock_stops(setup: Setup, folded: int) -> None:
    if folded:
        setup.run(until=folded)
    plan, record = setup.plan(), setup.records()[folded]
    later = record._replace(timestamp_ms=int(time.time() * 1000) + 2 * 3_600_000)
    with pytest.raises(CdcError) as raised:
        OpenPartitions().process(plan, setup.raw, [later])
    assert raised.value.code is Code.CLOCK_AHEAD
    setup.run()
    setup.check()


def test_a_checkpoint_location_that_fails_changes_nothing(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    setup.run(until=100)

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "fsync", fail)
        expect(setup, Code.CHECKPOINT_LOCATION)
        assert not list(setup.stored.rglob("*.part"))
    with monkeypatch.context() as full:
        full.setattr(CheckpointStore, "write_snapshot", fail)
        setup.run(until=200)
    setup.run()
    setup.check()


@pytest.mark.parametrize("share", [0.75, 10.0], ids=["given up by the task", "aborted by the brokers"])
def test_a_changelog_that_takes_longer_than_the_transaction_has_changes_nothing(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    setup.run(until=100)
    before = setup.counts()
    write = ObjectStore.write_all

    def hang(store: ObjectStore, path: str, data: bytes) -> None:
        time.sleep(4)
        write(store, path, data)

    with monkeypatch.context() as slow:
        slow.setattr(ObjectStore, "write_all", hang)
        slow.setattr(checkpoint_location, "_ANSWER_SHARE", share)
        problem = "CDC-071 .* longer than 2 s" if share < 1 else Code.TRANSACTION_EXPIRED.text
        with pytest.raises((CdcError, TimeoutError), match=problem):
            setup.run(transaction_timeout_seconds=2)
        assert setup.counts() == before
    setup.run(transaction_timeout_seconds=2)
    setup.check()


def test_the_groups_lag_is_visible(setup: Setup) -> None:
    setup.run(until=200)
    position = GroupPositions(setup.plan().kafka, setup.prefix).read([setup.raw])[setup.raw]
    assert position is not None
    assert position.offset == 200
    admin = AdminClient({"bootstrap.servers": setup.bootstrap})
    request = [ConsumerGroupTopicPartitions(setup.prefix)]
    listed = admin.list_consumer_group_offsets(request)[setup.prefix].result()
    assert [partition.offset for partition in listed.topic_partitions] == [200]


def expect(setup: Setup, code: Code) -> None:
    """The next run stops with the code and emits nothing."""
    before = setup.counts()
    with pytest.raises(CdcError) as raised:
        setup.run()
    assert raised.value.code is code
    assert setup.counts() == before
