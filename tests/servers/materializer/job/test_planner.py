"""The driver's plan, and a task that follows it with the real fold and the real envelope."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from cassandra_storage.formats.rows.deletion import DeletionTime, LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.schema.tables import ColumnKind
from cdc_common.errors.codes import CdcError, Code
from materializer.job.planner import Planner, raw_topic_pattern
from materializer.planning.plan import ChangeTopic
from materializer.records import RawPartition
from tests.support.materializer.memory_registry import MemoryRegistry
from tests.support.materializer.protocol_run import read_topic
from tests.support.materializer.raw_builder import INT, TABLE, column, int_bytes, raw_record
from tests.support.materializer.table_job import (
    PatientPlanner,
    job_settings,
    make_raw_topic,
    make_topics,
    run_task,
    send_schema,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker
    from materializer.settings import Settings

NEWER = replace(TABLE, regular_columns=(*TABLE.regular_columns, column("z", INT, ColumnKind.REGULAR)))

NAMES = ("a", "b", "c")
PATIENCE_SECONDS = 60.0


def make_topic(settings: Settings, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": settings.kafka.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()


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
    (topic,) = plan.change_topics
    assert topic is not None
    assert (plan.raw_partitions, topic._replace(topic_id="")) == (2, ChangeTopic(changes, 3, 2, 1))
    assert topic.topic_id
    assert registry.subjects == [f"{changes}-value", f"{changes}-key"]
    assert planner.plan_batch().topics[raw] is plan
    send_schema(settings, NEWER)
    assert len(planner.plan_batch().topics[raw].schemas) == 2
    planner.check_positions()
    resource = ConfigResource(ResourceType.TOPIC, changes)
    made = admin.describe_configs([resource])[resource].result()
    assert made["cleanup.policy"].value == "compact"
    assert made["min.compaction.lag.ms"].value == str(7 * 24 * 3_600_000)
    assert made["max.compaction.lag.ms"].value == str(30 * 24 * 3_600_000)


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
    assert [bool(message.value()) for message in found] == [True, True, True, False]
    errors = planner.check_positions()  # the topic, where these messages never were, ends before the position
    assert {partition: error.code for partition, error in errors.items()} == {raw: Code.STATE_MISMATCH}
    assert "is 3, but the topic ends at 0" in errors[raw].problem


@pytest.mark.servers
def test_a_task_without_a_schema_names_it(settings: Settings) -> None:
    raw = RawPartition(f"{settings.kafka.topic_prefix}.raw.shop.orders", 0)
    records = [raw_record(int_bytes(1), "heartbeat", None)]
    result = run_task(Planner(settings, MemoryRegistry()).plan_batch(), raw, records)
    assert result.error is not None
    assert result.error.code is Code.SCHEMA_UNKNOWN


class ThreeTopics:
    """Three tables with a schema each, and a planner that has planned them unless they are broken first."""

    def __init__(self, settings: Settings, registry: MemoryRegistry, *, broken: dict[str, str] | None = None) -> None:
        self.settings = settings
        self.admin = AdminClient({"bootstrap.servers": settings.kafka.bootstrap_servers})
        prefix = settings.kafka.topic_prefix
        self.topics = [f"{prefix}.raw.shop.{name}" for name in NAMES]
        make_topic(settings, f"{prefix}.tables")
        for at, (name, topic) in enumerate(zip(NAMES, self.topics, strict=True)):
            make_raw_topic(self.admin, topic, (broken or {}).get(name, "LogAppendTime"))
            send_schema(settings, replace(TABLE, name=name, id=UUID(int=at + 1)))
        self.planner = Planner(settings, registry)

    def configure(self, topic: str, name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        self.admin.incremental_alter_configs([resource])[resource].result()

    def plan_until(self, planned: set[str], failed: dict[str, Code], retried: Sequence[str] = ()) -> None:
        """The broker and the registry need a moment; no error is lost until its topic is `retried`, as the job does."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            self.planner.retry(retried)
            plan = self.planner.plan_batch()
            errors = {topic.rpartition(".")[2]: error.code for topic, error in self.planner.errors.items()}
            if {topic.rpartition(".")[2] for topic in plan.topics} == planned and errors == failed:
                assert set(plan.shapes) == set(self.topics)
                return
            assert time.monotonic() < deadline, (plan.topics.keys(), errors)
            time.sleep(0.1)


@pytest.mark.servers
def test_one_topic_with_wrong_settings_stops_only_itself(settings: Settings) -> None:
    three = ThreeTopics(settings, MemoryRegistry(), broken={"b": "CreateTime"})
    three.plan_until({"a", "c"}, {"b": Code.TOPIC_SETTINGS})
    three.configure(three.topics[1], "message.timestamp.type", "LogAppendTime")
    three.planner.plan_batch()
    assert list(three.planner.errors) == [three.topics[1]]  # until it is retried
    three.planner.retry([three.topics[1]])
    three.plan_until({"a", "b", "c"}, {})


@pytest.mark.servers
def test_one_topic_that_is_recreated_or_grows_stops_only_itself(settings: Settings) -> None:
    three = ThreeTopics(settings, MemoryRegistry())
    three.plan_until({"a", "b", "c"}, {})
    three.admin.delete_topics([three.topics[0]])[three.topics[0]].result()
    make_raw_topic(three.admin, three.topics[0])
    three.admin.create_partitions([NewPartitions(three.topics[1], 5)])[three.topics[1]].result()
    three.plan_until({"a", "b", "c"}, {"a": Code.STATE_MISMATCH, "b": Code.RAW_PARTITIONS_CHANGED})


@pytest.mark.servers
def test_one_change_topic_that_cannot_be_created_stops_only_its_table(settings: Settings) -> None:
    taken = f"{settings.kafka.topic_prefix}.shop_b"  # which Kafka takes for the change topic of b
    make_topic(settings, taken)
    three = ThreeTopics(settings, MemoryRegistry())
    three.plan_until({"a", "c"}, {"b": Code.TOPIC_NAMES_COLLIDE})
    assert taken in three.planner.errors[three.topics[1]].problem
    three.admin.delete_topics([taken])[taken].result()
    three.plan_until({"a", "b", "c"}, {}, retried=[three.topics[1]])


class TroubledRegistry(MemoryRegistry):
    """Hangs for table b, and raises for table c."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = threading.Event()
        self.error: Exception | None = None

    def has(self, subject: str) -> bool:
        if ".b-" in subject:
            self.goes_on.wait(PATIENCE_SECONDS)
        if ".c-" in subject and self.error is not None:
            raise self.error
        return super().has(subject)


@pytest.mark.servers
@pytest.mark.parametrize(
    ("error", "code"),
    [(CdcError(Code.REGISTRY_REFUSED, "No.", "None."), Code.REGISTRY_REFUSED), (KeyError("x"), Code.UNEXPECTED)],
)
def test_a_registry_that_hangs_or_refuses_concerns_one_table(settings: Settings, error: Exception, code: Code) -> None:
    registry = TroubledRegistry()
    registry.error = error
    registry.goes_on.set()
    three = ThreeTopics(settings, registry)
    three.plan_until({"a", "b"}, {"c": code})
    registry.goes_on.clear()
    assert three.planner.pending == set()
    send_schema(settings, replace(NEWER, name="b", id=UUID(int=2)))
    began = time.monotonic()
    for _ in range(10):
        before = three.planner.plan_batch().topics[three.topics[1]]
    assert time.monotonic() - began < PATIENCE_SECONDS / 2  # it is waited for once
    assert len(before.schemas) == 1  # messages under the schemas that are known go on
    registry.goes_on.set()
    registry.error = None
    three.planner.retry([three.topics[2]])
    three.plan_until({"a", "b", "c"}, {})
    while len(three.planner.plan_batch().topics[three.topics[1]].schemas) != 2:
        assert time.monotonic() - began < 2 * PATIENCE_SECONDS


@pytest.mark.servers
def test_a_limit_that_is_raised_is_seen_with_the_next_try(settings: Settings) -> None:
    three = ThreeTopics(settings, MemoryRegistry())
    three.plan_until({"a", "b", "c"}, {})
    three.configure(f"{settings.kafka.topic_prefix}.shop.a", "max.message.bytes", "5000000")
    assert three.planner.plan_batch().topics[three.topics[0]].max_message_bytes == 1_048_588
    three.planner.retry([three.topics[0]])
    deadline = time.monotonic() + PATIENCE_SECONDS
    while three.planner.plan_batch().topics[three.topics[0]].max_message_bytes != 5_000_000:
        assert time.monotonic() < deadline
        three.planner.retry([three.topics[0]])
