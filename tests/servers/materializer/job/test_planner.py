"""The driver's plan, and a task that follows it with the real fold and the real envelope."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import ConfigResource, ResourceType

from cassandra_storage.deletion import DeletionTime, LivenessInfo
from cassandra_storage.rows import Cell, Row
from cassandra_storage.schema import ColumnKind
from cdc_program.errors import CdcError, Code
from materializer.job.plan import ChangeTopic
from materializer.job.planner import Planner, raw_topic_pattern
from materializer.records import RawPartition
from tests.support.materializer.memory_registry import MemoryRegistry
from tests.support.materializer.protocol_run import read_topic
from tests.support.materializer.raw_builder import INT, TABLE, column, int_bytes, raw_record
from tests.support.materializer.table_job import (
    PatientPlanner,
    job_settings,
    make_topics,
    run_task,
    send_schema,
)

if TYPE_CHECKING:
    from pathlib import Path

    from cdc_program.settings import Settings
    from local_stack.servers.kafka import KafkaBroker

NEWER = replace(TABLE, regular_columns=(*TABLE.regular_columns, column("z", INT, ColumnKind.REGULAR)))


def test_the_pattern_matches_raw_topics_only() -> None:
    pattern = re.compile(raw_topic_pattern("my-cdc"))
    assert pattern.match("my-cdc.raw.shop.orders")
    for other in ("my-cdc.raw.orders", "my-cdc.shop.orders", "my_cdc.raw.shop.orders", "my-cdc.raw.shop.orders.x"):
        assert not pattern.match(other), other


@pytest.fixture
def settings(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> Settings:
    return job_settings(kafka.bootstrap_servers, topic_prefix, tmp_path)


@pytest.mark.servers
def test_a_plan_follows_the_topics(settings: Settings) -> None:
    registry = MemoryRegistry()
    planner = PatientPlanner(settings, registry)
    assert planner.plan_batch().topics == {}
    planner.check_positions()
    admin = make_topics(settings)
    assert planner.plan_batch().topics == {}  # no schema yet
    raw, changes = f"{settings.kafka.topic_prefix}.raw.shop.orders", f"{settings.kafka.topic_prefix}.shop.orders"
    send_schema(settings, TABLE)
    plan = planner.plan_batch().topics[raw]
    assert (plan.raw_partitions, plan.change_topics) == (2, (ChangeTopic(changes, 3, 2, 1),))
    assert registry.subjects == [f"{changes}-value", f"{changes}-key"]
    assert planner.plan_batch().topics[raw] is plan
    send_schema(settings, NEWER)
    assert len(planner.plan_batch().topics[raw].schemas) == 2
    planner.check_positions()
    resource = ConfigResource(ResourceType.TOPIC, changes)
    made = admin.describe_configs([resource])[resource].result()
    assert made["cleanup.policy"].value == "compact"
    assert made["min.compaction.lag.ms"].value == str(7 * 24 * 3_600_000)


@pytest.mark.servers
def test_a_raw_topic_with_publishers_time_is_refused(settings: Settings) -> None:
    make_topics(settings, time="CreateTime")
    with pytest.raises(CdcError) as raised:
        PatientPlanner(settings, MemoryRegistry()).plan_batch()
    assert raised.value.code is Code.TOPIC_SETTINGS


@pytest.mark.servers
def test_a_task_publishes_envelopes_to_the_planned_topic(settings: Settings) -> None:
    make_topics(settings)
    send_schema(settings, TABLE)
    planner = PatientPlanner(settings, MemoryRegistry())
    raw = RawPartition(f"{settings.kafka.topic_prefix}.raw.shop.orders", 0)
    rows = [
        Row((int_bytes(5),), {"a": Cell(1000, b"one")}, LivenessInfo(1000)),
        Row((int_bytes(5),), {"a": Cell(2000, b"two")}),
    ]
    records = [raw_record(int_bytes(1), "row", row, offset=at, timestamp_ms=1) for at, row in enumerate(rows)]
    records.append(raw_record(int_bytes(1), "partition_deletion", DeletionTime(3000, 3), offset=2, timestamp_ms=2))
    result = run_task(planner.plan_batch(), raw, records)
    assert result.error is None
    assert result.report is not None
    assert (result.report.messages, result.report.changes) == (3, 3)
    found = list(read_topic(settings.kafka.bootstrap_servers, f"{settings.kafka.topic_prefix}.shop.orders", 3))
    assert [bool(each.value()) for each in found] == [True, True, True, False]
    errors = planner.check_positions()  # the topic, where these messages never were, ends before the position
    assert {each: error.code for each, error in errors.items()} == {raw: Code.STATE_MISMATCH}
    assert "is 3, but the topic ends at 0" in errors[raw].problem


@pytest.mark.servers
def test_a_task_without_a_schema_names_it(settings: Settings) -> None:
    raw = RawPartition(f"{settings.kafka.topic_prefix}.raw.shop.orders", 0)
    records = [raw_record(int_bytes(1), "heartbeat", None)]
    result = run_task(Planner(settings, MemoryRegistry()).plan_batch(), raw, records)
    assert result.error is not None
    assert result.error.code is Code.SCHEMA_UNKNOWN
