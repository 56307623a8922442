"""A group's offsets, its topics or their partitions change while the job does not look, on a real broker."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.java.jars import KAFKA_TOOLS, class_path, install
from dev.local_stack.java.runtime import find_java
from dev.local_stack.servers.kafka import JAVA, KafkaBroker
from dev.verify.chaos.matrix import MESSAGES, make_setup
from materializer.records import RawPartition
from materializer.worker.open_partitions import OpenPartitions
from stream_runtime.driver.offset_refresh import OffsetRefresh
from stream_runtime.exactly_once.position import encode
from stream_runtime.kafka import GroupPositions
from stream_runtime.records import Share
from tests.support.materializer.raw_builder import int_bytes, raw_record
from tests.support.materializer.table_job import RAW_PARTITIONS, PatientPlanner, TableJob, job_settings, make_raw_topic

if TYPE_CHECKING:
    from pathlib import Path

    from cdc_common.settings import KafkaSettings
    from materializer.settings import MaterializerSettings
    from stream_runtime.exactly_once.position import Position
    from tests.support.materializer.protocol_run import Setup

pytestmark = pytest.mark.servers
HOUR = 3600.0


class Clock:
    """Stands until it is moved."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def setup(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> Setup:
    return make_setup(kafka.bootstrap_servers, topic_prefix, tmp_path)


@pytest.fixture
def job(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> TableJob:
    return TableJob.start(job_settings(kafka.bootstrap_servers, topic_prefix, tmp_path))


def settings_of(setup: Setup, **materializer: object) -> tuple[KafkaSettings, MaterializerSettings]:
    plan = setup.plan(**materializer)
    return plan.kafka, plan.materializer


def position_of(setup: Setup) -> Position | None:
    return GroupPositions(setup.plan().kafka, setup.prefix).read([setup.raw])[setup.raw]


def send_rows(job: TableJob, *numbers: int) -> None:
    rows = (Row((int_bytes(5),), {"a": Cell(number, b"%d" % number)}, LivenessInfo(number)) for number in numbers)
    job.send(*(raw_record(int_bytes(1), "row", row, offset=number) for number, row in zip(numbers, rows, strict=True)))


def test_a_position_that_does_not_move_is_committed_again(setup: Setup) -> None:
    plan, records, clock = setup.plan(), setup.records(), Clock()
    refresh = OffsetRefresh(*settings_of(setup, offset_refresh_hours=12), clock=clock)
    open_partitions = OpenPartitions()
    try:
        open_partitions.process(plan, setup.raw, records[:100])
        before = position_of(setup)
        assert before is not None
        for hours in (0, 6, 11):
            clock.now = hours * HOUR
            assert refresh.is_due
            refresh.refresh([Share.of(setup.raw)])
            assert not refresh.is_due
        assert position_of(setup) == before
        clock.now = 12 * HOUR
        refresh.refresh([Share.of(setup.raw)])
        assert position_of(setup) == before._replace(refreshes=1)
        # The task that the process has kept open is fenced, and notices before it begins.
        open_partitions.process(plan, setup.raw, records[100:])
    finally:
        open_partitions.close_all()
    setup.check()


def test_an_offset_that_is_gone_is_noticed_without_messages(setup: Setup) -> None:
    setup.run(until=100)
    clock = Clock()
    refresh = OffsetRefresh(*settings_of(setup), clock=clock)
    refresh.refresh([Share.of(setup.raw)])
    admin = AdminClient({"bootstrap.servers": setup.bootstrap})
    admin.delete_consumer_groups([setup.prefix])[setup.prefix].result()
    clock.now = 60
    share, other = Share.of(setup.raw), Share.of(RawPartition(setup.raw.topic, 1))
    errors = refresh.refresh([share, other])
    assert list(errors) == [share]
    assert "has lost its offset" in errors[share].problem
    assert errors[share].code is Code.STATE_MISMATCH


def test_a_topic_that_was_recreated_stops(job: TableJob) -> None:
    planner = PatientPlanner(job.settings, job.registry)
    planner.plan_batch()
    send_rows(job, 1, 2)
    assert job.run().error is None
    admin = AdminClient({"bootstrap.servers": job.settings.kafka.bootstrap_servers})
    admin.delete_topics([job.raw.topic])[job.raw.topic].result()
    make_raw_topic(admin, job.raw.topic)
    send_rows(job, 3, 4, 5, 6)  # more than there were: the offsets alone would fit
    with pytest.raises(CdcError, match="recreated") as caught:
        planner.plan_batch()
    assert caught.value.code is Code.STATE_MISMATCH
    # Another driver: the brokers have dropped the group's offset with the topic, and the topic has changes already.
    with pytest.raises(CdcError, match="no committed offset") as caught:
        job.run()
    assert caught.value.code is Code.STATE_MISMATCH
    assert len(job.changes()) == 2


def test_a_topic_that_gets_more_partitions_stops(job: TableJob) -> None:
    planner = PatientPlanner(job.settings, job.registry)
    planner.plan_batch()
    send_rows(job, 1, 2)
    assert job.run().error is None
    admin = AdminClient({"bootstrap.servers": job.settings.kafka.bootstrap_servers})
    admin.create_partitions([NewPartitions(job.raw.topic, 3)])[job.raw.topic].result()
    send_rows(job, 3)
    with pytest.raises(CdcError, match="has 3 partitions") as caught:
        planner.plan_batch()
    assert caught.value.code is Code.RAW_PARTITIONS_CHANGED
    later = PatientPlanner(job.settings, job.registry)
    errors = later.check_positions()
    assert {partition: error.code for partition, error in errors.items()} == {job.raw: Code.RAW_PARTITIONS_CHANGED}
    assert len(job.changes()) == 2
    for _ in range(2):  # the partition that was added has no position, and must not run either
        with pytest.raises(CdcError, match="has 3 partitions"):
            later.plan_batch()
        later.retry([job.raw.topic])

    positions = GroupPositions(job.settings.kafka, job.settings.materializer.group_id)
    position = positions.read([job.raw])[job.raw]
    assert position is not None
    resharded = encode(position._replace(partitions=3, reshards=1))
    moved = TopicPartition(*job.raw, position.offset, resharded)
    positions.consumer.commit(offsets=[moved], asynchronous=False)
    for checked in (planner, later):  # a job that runs goes on, too
        checked.retry([job.raw.topic])
        assert checked.plan_batch().topics[job.raw.topic].raw_partitions == 3


def test_partitions_that_come_while_the_job_starts_stop_it(job: TableJob) -> None:
    """A task would take a new partition, which has no position, for one of a new topic."""
    planner = PatientPlanner(job.settings, job.registry)
    planner.check_positions()
    admin = AdminClient({"bootstrap.servers": job.settings.kafka.bootstrap_servers})
    wanted = RAW_PARTITIONS + 1
    admin.create_partitions([NewPartitions(job.raw.topic, wanted)])[job.raw.topic].result()
    with pytest.raises(CdcError, match=f"has {wanted} partitions") as caught:
        planner.plan_batch()
    assert caught.value.code is Code.RAW_PARTITIONS_CHANGED


@pytest.mark.exhaustive  # for its jars
def test_the_lag_is_what_kafkas_own_tool_says(setup: Setup) -> None:
    install(KAFKA_TOOLS, print)
    setup.run(until=MESSAGES - 7)
    command: list[Any] = [find_java(JAVA, print).executable, "-XX:TieredStopAtLevel=1", "-cp", class_path(KAFKA_TOOLS)]
    command += ["org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--bootstrap-server", setup.bootstrap]
    command += ["--describe", "--group", setup.prefix]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    header, row = (line.split() for line in shown.splitlines() if line.strip() and "no active members" not in line)
    found = dict(zip(header, row, strict=False))
    assert (found["TOPIC"], found["CURRENT-OFFSET"]) == (setup.raw.topic, str(MESSAGES - 7))
    assert (found["LOG-END-OFFSET"], found["LAG"]) == (str(MESSAGES), "7")


@pytest.mark.exhaustive
def test_an_idle_groups_offset_outlives_its_retention(tmp_path: Path) -> None:
    """A broker that forgets offsets after a minute; one group's are renewed, another's are not."""
    broker = KafkaBroker(
        settings={"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"},
        folder=tmp_path / "b",
    )
    try:
        broker.start()
        kept, lost = (make_setup(broker.bootstrap_servers, name, tmp_path / name) for name in ("kept", "lost"))
        for setup in (kept, lost):
            setup.run(until=100)
        refresh = OffsetRefresh(*settings_of(kept, offset_refresh_hours=20 / HOUR))
        deadline = time.monotonic() + 180
        while position_of(lost) is not None:
            assert time.monotonic() < deadline
            if refresh.is_due:
                refresh.refresh([Share.of(kept.raw)])
            time.sleep(1)
        kept.run()
        kept.check()
        with pytest.raises(CdcError) as caught:
            lost.run()
        assert caught.value.code is Code.STATE_MISMATCH
    finally:
        broker.close()
