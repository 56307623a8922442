"""Topics that change, disappear, lose messages or have bad ones, on a real broker; each with the fix of its error."""

from __future__ import annotations

import json
import time
from base64 import b64decode
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from archive.job.planner import TopicPlanner
from archive.job.run import job_of
from archive.job.worker_loop import open_loop
from cdc_common.errors.codes import CdcError, Code
from tests.support.archive.archive_run import END_SECONDS, run_batch
from tests.support.materializer.protocol_run import read_topic

if TYPE_CHECKING:
    from tests.support.archive.archive_run import ArchiveSetup

pytestmark = pytest.mark.servers


@pytest.fixture
def admin(setup: ArchiveSetup) -> AdminClient:
    """It has to live until its answers have come."""
    return AdminClient({"bootstrap.servers": setup.bootstrap})


def test_a_topic_that_gets_more_partitions(setup: ArchiveSetup, admin: AdminClient) -> None:
    setup.send(0, 30)
    setup.run()
    admin.create_partitions([NewPartitions(setup.topic, 5)])[setup.topic].result()
    more = setup._replace(partitions=5)
    more.send(30, 60)
    more.run()
    more.check(60)
    assert {one.partition for event in more.events() for one in event.ranges} == {0, 1, 2, 3, 4}


def test_a_topic_without_messages_has_no_event(setup: ArchiveSetup) -> None:
    """Its first offsets are new, so there is nothing to commit again."""
    job = job_of(setup.settings())
    planner = TopicPlanner(job)
    planner.check_settings()
    loop = open_loop(job)
    try:
        for _ in range(5):
            run_batch(loop, planner.plan_batch())
    finally:
        loop.close()
    assert setup.events() == []


def test_messages_that_retention_has_deleted(setup: ArchiveSetup, admin: AdminClient) -> None:
    setup.send(0, 30)
    setup.run()
    setup.send(30, 60)
    end = {one.partition: one.end for one in setup.events()[-1].ranges}[0]
    deleted = [TopicPartition(setup.topic, 0, end + 4)]
    admin.delete_records(deleted)[deleted[0]].result()
    with pytest.raises(CdcError, match="were deleted before they were archived") as raised:
        setup.run()
    assert raised.value.code is Code.RAW_SKIPPED
    assert f"{setup.topic} lost=accept" in raised.value.fix
    setup.run(topic_settings=[f"{setup.topic} lost=accept"])
    lost = [(one.partition, one.start, one.lost) for event in setup.events() for one in event.ranges if one.lost]
    assert lost == [(0, end, 4)]
    setup.send(60, 90)
    setup.run()
    there = {(message.partition(), message.offset()) for message in read_topic(setup.bootstrap, setup.topic, 3)}
    assert there - {(partition, offset) for partition, offset, _ in setup.rows()} == {
        (message.partition(), message.offset())
        for message in read_topic(setup.bootstrap, setup.topic, 3)
        if message.value() is None
    }


@pytest.mark.parametrize("table", ["", "again.orders"])
def test_a_topic_that_is_recreated(setup: ArchiveSetup, admin: AdminClient, table: str) -> None:
    setup.send(0, 30)
    setup.run()
    before = setup.rows()
    now = [0.0]
    settings = {"topic_settings": [f"{setup.topic} table={table}"]} if table else {}
    planner = TopicPlanner(job_of(setup.settings(**settings)), lambda: now[0])
    planner.plan_batch()
    admin.delete_topics([setup.topic])[setup.topic].result()
    setup.make_topic()
    setup.send(30, 60)
    now[0] += 10
    planner.plan_batch()
    error = planner.errors[setup.topic]
    assert error.code is Code.STATE_MISMATCH
    assert f"cassandra-archive retry {setup.topic}" in error.fix
    planner.retry([setup.topic])
    plan = planner.plan_batch()
    assert planner.errors == {}
    loop = open_loop(plan.job)
    try:
        deadline = time.monotonic() + END_SECONDS
        while sum(number >= 30 for _, _, number in setup.rows()) < 27:
            assert time.monotonic() < deadline
            run_batch(loop, plan)
    finally:
        loop.close()
    new = {(partition, offset, number) for partition, offset, number in setup.rows() if number >= 30}
    assert len(new) == 27
    assert set(setup.rows()) == set(before) | new
    assert setup.events()[-1].table == (table or setup.table)


def test_a_topic_that_disappears(setup: ArchiveSetup, admin: AdminClient) -> None:
    """It is an error once it is away for long; another topic goes on."""
    other = setup._replace(prefix=f"{setup.prefix}-other")
    other.make_topic()
    now = [0.0]
    planner = TopicPlanner(job_of(setup.settings(topics=[setup.topic, other.topic])), lambda: now[0])
    planner.plan_batch()
    admin.delete_topics([setup.topic])[setup.topic].result()
    for _ in range(8):
        now[0] += 5
        plan = planner.plan_batch()
    assert planner.errors[setup.topic].code is Code.KAFKA_UNREACHABLE
    assert other.topic in plan.streams
    setup.make_topic()
    planner.retry([setup.topic])
    now[0] += 5
    assert setup.topic in planner.plan_batch().streams
    assert planner.errors == {}


def test_bad_messages_are_dead_letters(setup: ArchiveSetup) -> None:
    setup.send(0, 30)
    producer = Producer({"bootstrap.servers": setup.bootstrap})
    producer.produce(setup.topic, b"no header", b"a key", 1)
    producer.produce(setup.topic, b"neither", None, 1)
    producer.flush()
    letters = f"{setup.prefix}.dead"
    setup.run(on_error="dead_letter", dead_letter_topic=letters)
    found = list(read_topic(setup.bootstrap, letters, 1))
    first, second = [json.loads(message.value() or b"") for message in found]
    assert (first["topic"], first["partition"], first["code"]) == (setup.topic, 1, "CDC-110")
    assert first["reason"] == "it has no header with the id of a schema"
    assert (b64decode(first["key"]), b64decode(first["value"])) == (b"a key", b"no header")
    assert (second["key"], b64decode(second["value"])) == (None, b"neither")
    assert sum(one.refused for event in setup.events() for one in event.ranges) == 2
    assert len(setup.rows()) == 27
