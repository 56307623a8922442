"""The state protocol on a real broker: a crash anywhere, zombies, restores; every change once under read_committed."""

from __future__ import annotations

import os
import shutil
import signal
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_program.errors import CdcError, Code
from materializer import worker
from materializer.fault_points import FaultPoint
from materializer.history import PartitionHistory
from materializer.kafka import GroupPositions
from tests.materializer.counting import CHANGE_PARTITIONS, IDLE_KEY, counting
from tests.materializer.protocol_run import CHUNK, Setup

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from local_stack.interfaces import KafkaServer

pytestmark = pytest.mark.servers

MESSAGES = 240
KEYS = 17
# The second time, unless a run gets there only once.
AT = {FaultPoint.AFTER_INIT: 1, FaultPoint.AFTER_ADOPT: 1, FaultPoint.BEFORE_RESTORE_SWAP: 1, FaultPoint.IN_CLEANUP: 1}


@pytest.fixture
def setup(kafka: KafkaServer, topic_prefix: str, tmp_path: Path) -> Setup:
    """A raw partition with MESSAGES messages."""
    made = Setup(kafka.bootstrap_servers, topic_prefix, str(tmp_path))
    admin = AdminClient({"bootstrap.servers": made.bootstrap})
    topics = [NewTopic(made.raw.topic, 1, 1), NewTopic(made.changes, CHANGE_PARTITIONS, 1)]
    for future in admin.create_topics(topics).values():
        future.result()
    produce(made, MESSAGES)
    return made


def produce(setup: Setup, count: int) -> None:
    producer = Producer({"bootstrap.servers": setup.bootstrap, "linger.ms": 5})
    for number in range(count):
        producer.produce(setup.raw.topic, b"v%d" % number, b"k%d" % (number % KEYS), 0)
    producer.flush()


@pytest.mark.parametrize("point", FaultPoint, ids=lambda point: point.name.lower())
def test_a_kill_changes_nothing(setup: Setup, point: FaultPoint) -> None:
    if point is FaultPoint.BEFORE_RESTORE_SWAP:
        setup.run(until=100)
        shutil.rmtree(setup.state)
    child = setup.start(f"{point.name.lower()}:{AT.get(point, 2)}")
    _, errors = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL, errors
    setup.run()
    setup.check()


def idle(setup: Setup, count: int) -> None:
    producer = Producer({"bootstrap.servers": setup.bootstrap})
    for _ in range(count):
        producer.produce(setup.raw.topic, b"", IDLE_KEY, 0)
    producer.flush()


def test_messages_that_change_nothing_move_the_offset_and_store_nothing(setup: Setup) -> None:
    setup.run()
    stored = setup.history.parents()
    idle(setup, 2 * CHUNK)
    setup.run()
    assert setup.history.parents() == stored
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
    child = setup.start(point.name.lower())
    child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL
    produce(setup, 3)
    setup.run()
    setup.check()


def test_an_attempt_that_raises_is_run_again_in_the_same_process(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    for point in (FaultPoint.AFTER_PRODUCE, FaultPoint.AFTER_SEND_OFFSETS, FaultPoint.AFTER_COMMIT):
        monkeypatch.setenv("CDC_FAULT", f"{point.name}:1:raise")
        with pytest.raises(Exception, match=point.name):
            setup.run()
    monkeypatch.delenv("CDC_FAULT")
    setup.run()
    setup.check()


@pytest.mark.parametrize(
    "point", [FaultPoint.AFTER_FOLD, FaultPoint.AFTER_CHANGELOG, FaultPoint.AFTER_SEND_OFFSETS], ids=lambda p: p.name
)
def test_a_zombie_is_fenced(setup: Setup, point: FaultPoint) -> None:
    zombie = setup.start(f"{point.name.lower()}:2:stop")
    wait_until(lambda: process_state(zombie.pid) == "T")
    setup.run()  # its successor, in the next slot
    assert (setup.state / setup.prefix / str(setup.raw) / "slot-1").is_dir()
    os.kill(zombie.pid, signal.SIGCONT)
    _, errors = zombie.communicate(timeout=60)
    assert zombie.returncode == 1
    assert "FENCED" in errors
    setup.run()
    setup.check()


def test_two_processes_that_take_turns_notice_each_other(setup: Setup) -> None:
    records = setup.records()
    folders = [setup._replace(folder=setup.folder), setup._replace(folder=setup.folder)]
    plans = [each.plan(state_directory=each.state.with_name(f"state-{number}")) for number, each in enumerate(folders)]
    opened: list[dict[object, object]] = [{}, {}]
    for turn, start in enumerate(range(0, MESSAGES, 40)):
        plan, mine = plans[turn % 2], opened[turn % 2]
        worker._open.clear()
        worker._open.update(mine)  # type: ignore[arg-type]
        worker.run_partition(plan, setup.raw, records[start : start + 40], counting(plan, setup.raw.topic))
        mine.update(worker._open)
    worker._open.clear()
    setup.check()


def test_a_state_that_was_lost_comes_back_from_snapshot_and_changelogs(setup: Setup) -> None:
    setup.run(until=150)
    shutil.rmtree(setup.state)
    assert max(setup.history.snapshots()) < max(setup.history.parents())
    setup.run()
    setup.check()


def test_a_state_that_was_lost_comes_back_from_changelogs_alone(setup: Setup) -> None:
    setup.run(until=190, snapshot_every_versions=1000)
    shutil.rmtree(setup.state)
    assert not setup.history.snapshots()
    setup.run()
    setup.check()


def test_an_ancestor_takes_the_changelogs_and_no_snapshot(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    setup.run(until=150)
    ancestor = setup.state.with_name("ancestor")
    setup.state.rename(ancestor)
    setup.run(until=200)
    shutil.rmtree(setup.state)
    ancestor.rename(setup.state)
    monkeypatch.setattr(PartitionHistory, "fetch_snapshot", None)
    setup.run()
    setup.check()


def test_old_changelogs_and_snapshots_are_deleted(setup: Setup) -> None:
    setup.run()
    assert len(setup.history.snapshots()) == 2
    assert len(setup.history.parents()) < MESSAGES / CHUNK
    named = {
        file.stored for version in setup.history.snapshots() for file in setup.history.read_manifest(version).files
    }
    assert {path.name for path in (setup.stored / "files").iterdir()} == named


def remove(path: Path) -> None:
    path.unlink()


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes() or b"\x00")
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("what", ["changelogs/*", "snapshots/*.json", "files/*"])
@pytest.mark.parametrize("damage", [remove, flip])
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
        worker.run_partition(plan, setup.raw, records[:7] + records[8:20], counting(plan, setup.raw.topic))
    assert raised.value.code is Code.RAW_SKIPPED
    assert "offset 7, but it has 8" in raised.value.problem


def test_another_number_of_raw_partitions_stops(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    setup.run(until=100)
    monkeypatch.setenv("COUNTING_RAW_PARTITIONS", "2")
    expect(setup, Code.PARTITIONS_CHANGED)


def test_a_leap_of_time_stops(setup: Setup) -> None:
    setup.run(until=100)
    plan, record = setup.plan(), setup.records()[100]
    later = record._replace(timestamp_ms=record.timestamp_ms + 25 * 3_600_000)
    with pytest.raises(CdcError) as raised:
        worker.run_partition(plan, setup.raw, [later], counting(plan, setup.raw.topic))
    assert raised.value.code is Code.CLOCK_JUMP
    setup.run()
    setup.check()


def test_a_checkpoint_location_that_fails_changes_nothing(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    setup.run(until=100)

    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as full:
        full.setattr(PartitionHistory, "write_changelog", fail)
        with pytest.raises(OSError, match="no space"):
            setup.run()
    with monkeypatch.context() as full:
        full.setattr(PartitionHistory, "write_snapshot", fail)
        setup.run(until=200)
    setup.run()
    setup.check()


def test_the_groups_lag_is_visible(setup: Setup) -> None:
    setup.run(until=200)
    position = GroupPositions(setup.plan().kafka, setup.prefix).read([setup.raw])[setup.raw]
    assert position is not None
    assert position.offset == 200
    admin = AdminClient({"bootstrap.servers": setup.bootstrap})
    request = [ConsumerGroupTopicPartitions(setup.prefix)]
    listed = admin.list_consumer_group_offsets(request)[setup.prefix].result()
    assert [each.offset for each in listed.topic_partitions] == [200]


def expect(setup: Setup, code: Code) -> None:
    """The next run stops with the code and emits nothing."""
    before = setup.counts()
    with pytest.raises(CdcError) as raised:
        setup.run()
    assert raised.value.code is code
    assert setup.counts() == before


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def process_state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123
        return stat.read().rpartition(")")[2].split()[0]
