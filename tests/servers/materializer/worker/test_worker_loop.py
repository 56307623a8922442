"""A worker's poll loop over its raw partitions, on a real broker: which messages wait, and which do not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from cassandra_storage.formats.rows.deletion import NO_DELETION_TIME, NO_TTL, LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.errors.codes import Code
from materializer.worker.worker_loop import BatchTask
from stream_runtime.kafka import GroupPositions
from stream_runtime.worker import collector
from stream_runtime.worker.loop import loops
from stream_runtime.worker.task import Assignment
from tests.support.materializer.protocol_run import read_topic
from tests.support.materializer.raw_builder import int_bytes, raw_record
from tests.support.materializer.table_job import PatientPlanner, TableJob, job_settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker
    from materializer.records import RawPartition
    from materializer.worker.batch_plan import BatchPlan
    from stream_runtime.exactly_once.position import Position
    from stream_runtime.worker.task import TaskResult

pytestmark = pytest.mark.servers
LIVES = 2
PATIENCE_SECONDS = 60.0


@pytest.fixture
def job(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TableJob]:
    monkeypatch.setattr(collector, "take_over", lambda: None)  # of the process of all tests
    made = TableJob.start(job_settings(kafka.bootstrap_servers, topic_prefix, tmp_path))
    yield made.with_settings(idle_commit_seconds=3600.0, stalled_publisher_seconds=1e6)
    close_all()


def close_all() -> None:
    """Closes this process's workers, one for each group."""
    while loops:
        loops.popitem()[1].close()


def plan_of(job: TableJob) -> BatchPlan:
    return PatientPlanner(job.settings, job.registry).plan_batch()


def run_batch(plan: BatchPlan, seconds: float = 1.0, messages: int = 1000) -> dict[RawPartition, TaskResult]:
    assignment = Assignment(tuple(plan.shares), messages, seconds)
    return {result.share.partition: result for result in BatchTask(plan)(assignment)}


def run_until_folded(job: TableJob, plan: BatchPlan) -> TaskResult:
    """The result of the first batch that folds the raw partition: on a busy machine messages may come late."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while job.raw not in (results := run_batch(plan)):
        assert time.monotonic() < deadline
    return results[job.raw]


def read_position(job: TableJob) -> Position | None:
    return GroupPositions(job.settings.kafka, job.settings.materializer.group_id).read([job.raw])[job.raw]


def heartbeat(job: TableJob, host: int = 1) -> None:
    job.send(raw_record(b"", "heartbeat", None, host=host, clock=int(time.time() * 1e6)))


def write(job: TableJob, number: int, lives: int = 0) -> None:
    now = int(time.time())
    end = (now + lives, lives) if lives else (NO_DELETION_TIME, NO_TTL)
    row = Row((int_bytes(5),), {"a": Cell(number, b"%d" % number, *end)})
    job.send(raw_record(int_bytes(1), "row", row, offset=number))


def run_until_idle(job: TableJob, plan: BatchPlan) -> Position:
    """Run batches until a heartbeat alone moves no position."""
    for _ in range(10):
        before = read_position(job)
        heartbeat(job)
        run_batch(plan)
        if before is not None and read_position(job) == before:
            return before
    raise AssertionError("it keeps committing")


def test_heartbeats_wait_and_a_write_among_them_is_folded_at_once(job: TableJob) -> None:
    plan = plan_of(job)
    before = run_until_idle(job, plan)
    for host in (1, 2, 3):
        heartbeat(job, host)
        assert run_batch(plan, 0.5) == {}
    assert read_position(job) == before
    write(job, 1)
    heartbeat(job)
    report = run_until_folded(job, plan).report
    assert report is not None
    assert (report.first, report.changes, len(job.changes())) == (before.offset, 1, 1)  # the heartbeats went first


def test_an_expiry_in_an_idle_partition_is_published_on_time(job: TableJob) -> None:
    plan = plan_of(job)
    run_until_idle(job, plan)
    write(job, 1, LIVES)
    over = time.time() + LIVES + 3
    while time.time() < over:
        heartbeat(job)
        run_batch(plan, 0.2)
    prefix = job.settings.kafka.topic_prefix
    published = [
        message.timestamp()[1] / 1000
        for message in read_topic(job.settings.kafka.bootstrap_servers, f"{prefix}.shop.orders", 3)
        if message.value() is None
    ]
    assert len(published) == 1  # the tombstone after the delete
    (_, deleted, _) = job.changes()
    assert deleted["op"] == "d"
    assert 0 <= published[0] - deleted["source"]["ts_us"] / 1e6 < 5
    moved = read_position(job)
    heartbeat(job)
    run_batch(plan)  # because a version was made
    heartbeat(job)
    assert run_batch(plan) == {}
    assert moved is not None


def test_a_backlog_is_read_in_pieces(job: TableJob) -> None:
    plan = plan_of(job)
    job.send(*(raw_record(int_bytes(1), "row", _row(number), offset=number) for number in range(3000)))
    while not (results := run_batch(plan, 0.0, messages=100)):  # each polls once
        pass
    report = results[job.raw].report
    assert report is not None
    assert 0 < report.messages <= 100
    while (at := read_position(job)) is None or at.offset < 3000:
        assert all(result.error is None for result in run_batch(plan, 1.0, messages=500).values())
    assert [change["after"]["a"] for change in job.changes()] == [str(number) for number in range(3000)]


def _row(number: int) -> Row:
    return Row((int_bytes(5),), {"a": Cell(number, b"%d" % number)}, LivenessInfo(number))


def test_lost_messages_stop_their_partition(job: TableJob) -> None:
    plan = plan_of(job)
    run_until_idle(job, plan)
    before = read_position(job)
    assert before is not None
    for number in range(5):
        write(job, number + 1)
    close_all()  # another worker goes on, which has read nothing ahead
    admin = AdminClient({"bootstrap.servers": job.settings.kafka.bootstrap_servers})
    gone = TopicPartition(*job.raw, before.offset + 4)
    admin.delete_records([gone])[gone].result()
    error = run_until_folded(job, plan).error
    assert error is not None
    assert error.code is Code.RAW_SKIPPED
    assert f"should have offset {before.offset}, but it has {before.offset + 4}" in error.problem


def test_added_partitions_are_seen_before_a_message_is_folded(job: TableJob) -> None:
    plan = plan_of(job)
    run_until_idle(job, plan)
    before = read_position(job)
    admin = AdminClient({"bootstrap.servers": job.settings.kafka.bootstrap_servers})
    admin.create_partitions([NewPartitions(job.raw.topic, 3)])[job.raw.topic].result()
    write(job, 1)
    error = run_until_folded(job, plan).error
    assert error is not None
    assert error.code is Code.RAW_PARTITIONS_CHANGED
    assert read_position(job) == before
