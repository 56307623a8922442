"""Quiet time passes, whatever its length; a broker whose clock is ahead stops its raw partitions until it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.rows.deletion import NO_DELETION_TIME, NO_TTL, LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.errors.codes import CdcError, Code
from materializer.fold.chunk import fold_chunk
from materializer.processing.processor import fold_settings
from materializer.processing.raw_processor import RawProcessor
from materializer.settings import MaterializerSettings
from materializer.worker.wiring import task_settings
from stream_runtime.exactly_once.partition_task import PartitionTask
from stream_runtime.exactly_once.resources import Resources
from stream_runtime.records import Message, TopicShape
from stream_runtime.state.checkpoint_location import state_settings
from stream_runtime.state.checkpointed_state import CheckpointedState
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.object_store import ObjectStore
from stream_runtime.state.rocksdb import open_local_store
from tests.support.materializer.memory_broker import PARTITION, MemoryBroker
from tests.support.materializer.raw_builder import CATALOG, int_bytes, raw_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from materializer.fold.result import ChunkResult
    from materializer.records import RawRecord
    from stream_runtime.state.reader import StateReader

RULES = fold_settings(MaterializerSettings())
START, HOUR, DAY = 1_700_000_000, 3600, 24 * 3600  # seconds


class OrdersProcessor(RawProcessor):
    shape = TopicShape(1, "")

    def fold(self, state: StateReader, records: Sequence[RawRecord]) -> ChunkResult:
        return fold_chunk(state, records, CATALOG, RULES)

    def change_messages(self, result: ChunkResult) -> Iterator[Message]:
        for change in result.changes:
            yield Message("changes", 0, change.partition_key, f"{change.op} {change.source.cause}".encode())


class Partition:
    """A raw partition, its log, and a worker with the default settings and a clock of its own."""

    def __init__(self, folder: Path) -> None:
        self.worker_second = START
        self.broker = MemoryBroker()
        self.log: list[RawRecord] = []
        self._folder = folder
        self.settings = MaterializerSettings()
        self.task = self._open_task()

    def write(self, second: int, ttl: int = 0) -> None:
        """Write at this second of the broker's clock."""
        number = len(self.log)
        stamp = START * 1_000_000 + number
        end = (START + ttl, ttl) if ttl else (NO_DELETION_TIME, NO_TTL)
        liveness = LivenessInfo(stamp, ttl, START + ttl) if ttl else LivenessInfo(stamp)
        row = Row((int_bytes(number),), {"a": Cell(stamp, b"x", *end)}, liveness)
        self.log.append(raw_record(int_bytes(1), "row", row, offset=number, timestamp_ms=1000 * second))

    def heartbeat(self, second: int, clock: int, host: int = 1) -> None:
        """Send a heartbeat at this second of the broker's clock; `clock` is that of the publisher's node."""
        self.log.append(
            raw_record(
                *(b"", "heartbeat", None),
                offset=len(self.log),
                timestamp_ms=1000 * second,
                host=host,
                clock=clock * 1_000_000,
            )
        )

    def run(self) -> list[str]:
        """Fold all that is not folded: the changes of this run."""
        done = len(self.broker.messages)
        self.task.process(iter(self.log), OrdersProcessor())
        return [(message.value or b"").decode() for message in self.broker.messages[done:]]

    def stop(self) -> CdcError:
        """Run: an error, nothing is committed, and the next run is another task's."""
        offset, messages = self.broker.position.offset if self.broker.position else 0, list(self.broker.messages)
        with pytest.raises(CdcError) as caught:
            self.run()
        self.restart()
        assert caught.value.code is Code.CLOCK_AHEAD
        assert self.broker.position is not None  # a new group has its first one now, in front of the first message
        assert (self.broker.position.offset, self.broker.messages) == (offset, messages)
        return caught.value

    def restart(self, **settings: object) -> None:
        self.task.close()
        self.settings = self.settings.model_copy(update=settings)
        self.task = self._open_task()

    def _open_task(self) -> PartitionTask:
        checkpoints = CheckpointStore(ObjectStore(str(self._folder / "checkpoint")), "group", PARTITION)
        state = CheckpointedState(open_local_store(self._folder / "state"), checkpoints, state_settings(self.settings))
        resources = Resources(self.broker, state)
        return PartitionTask(PARTITION, resources, task_settings(self.settings), lambda: self.worker_second)


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    made = Partition(tmp_path)
    yield made
    made.task.close()


@pytest.mark.parametrize("days", [2, 8, 400])
def test_quiet_days_stop_nothing(partition: Partition, days: int) -> None:
    partition.write(START)
    partition.write(START, ttl=DAY)
    assert partition.run() == ["c write", "c write"]
    partition.worker_second = START + days * DAY
    partition.write(START + days * DAY)
    assert partition.run() == ["d expiry", "c write"]


def test_an_old_backlog_is_folded(partition: Partition) -> None:
    partition.worker_second = START + 100 * DAY
    for days in (0, 8, 9, 60):
        partition.write(START + days * DAY)
    assert partition.run() == ["c write"] * 4


def test_clocks_that_differ_a_little_stop_nothing(partition: Partition) -> None:
    partition.write(START + HOUR)
    assert partition.run() == ["c write"]


def test_a_broker_three_days_ahead_stops_its_raw_partition_until_the_time_has_come(partition: Partition) -> None:
    partition.write(START)
    partition.write(START, ttl=DAY)
    partition.run()
    partition.write(START + 3 * DAY)
    error = partition.stop()
    assert "would be 2023-11-17 22:13:20 UTC, 72.0 h ahead" in error.problem
    assert "shows 2023-11-14 22:13:20 UTC, and no heartbeat has brought a clock" in error.problem
    partition.write(START + 60)  # the broker's clock is right again
    partition.worker_second = START + 3 * DAY - HOUR - 1
    partition.stop()
    partition.worker_second += 1
    assert partition.run() == ["d expiry", "c write", "c write"]


def test_the_first_messages_of_a_broker_that_is_ahead_stop_too(partition: Partition) -> None:
    partition.write(START + 3 * DAY)
    partition.stop()


def test_a_time_that_was_accepted_does_not_stop_again(partition: Partition) -> None:
    partition.worker_second = START + 3 * DAY
    partition.write(START + 3 * DAY)
    partition.run()
    partition.worker_second = START
    partition.write(START)
    assert partition.run() == ["c write"]
    partition.write(START + 3 * DAY + 1)
    partition.stop()


def test_a_worker_whose_clock_is_behind_goes_on_while_most_publishers_agree_with_the_brokers(
    partition: Partition,
) -> None:
    partition.worker_second = START - 10 * DAY
    partition.heartbeat(START, START - 1, host=1)
    partition.heartbeat(START, START - 9 * DAY, host=2)  # it is catching up
    partition.heartbeat(START, START - 2, host=3)
    partition.write(START + HOUR - 2)
    assert partition.run() == ["c write"]
    partition.write(START + 2 * HOUR)
    assert "most publishers' clocks 2023-11-14 22:13:18 UTC" in partition.stop().problem
    partition.heartbeat(START + 2 * HOUR, START + 2 * HOUR, host=1)
    partition.stop()
    partition.heartbeat(START + 2 * HOUR, START + 2 * HOUR, host=3)
    assert partition.run() == ["c write"]


def test_one_publisher_of_three_whose_clock_is_ahead_does_not_make_the_brokers_right(partition: Partition) -> None:
    for host, ahead in enumerate((3 * DAY, 0, 0), 1):
        partition.heartbeat(START, START + ahead, host=host)
    partition.run()
    partition.write(START + 3 * DAY)
    assert "most publishers' clocks 2023-11-14 22:13:20 UTC" in partition.stop().problem


def test_a_larger_setting_accepts_a_time_ahead_and_the_result_is_right_again_when_it_has_come(
    partition: Partition,
) -> None:
    partition.write(START + 3 * DAY)
    partition.stop()
    partition.restart(max_clock_ahead_hours=100)
    assert partition.run() == ["c write"]
    partition.restart(max_clock_ahead_hours=1)
    partition.write(START + 60, ttl=DAY)
    partition.write(START + 60, ttl=4 * DAY)
    assert partition.run() == ["c expired_write", "d expiry", "c write"]  # the first one is deleted early
    partition.worker_second = START + 4 * DAY
    partition.write(START + 4 * DAY)
    assert partition.run() == ["d expiry", "c write"]


def test_a_time_that_no_calendar_has_stops_too(partition: Partition) -> None:
    partition.write(2**53)
    assert "9999-12-31" in partition.stop().problem
