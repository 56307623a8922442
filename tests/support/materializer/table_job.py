"""The materializer's whole work on one table without Spark: real topics, the driver's plan, tasks in this process."""

from __future__ import annotations

import time
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from fastavro import schemaless_reader

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages import wire
from cdc_common.messages.envelope import value_schema
from cdc_common.messages.tables import message_key, to_json
from cdc_common.settings import KafkaSettings
from materializer.job.planner import Planner
from materializer.planning.table_forms import table_forms
from materializer.records import RawPartition, RawRecord
from materializer.settings import MaterializerSettings, Settings
from materializer.worker.open_partitions import OpenPartitions
from stream_runtime.records import Share
from stream_runtime.worker.task import TaskResult
from tests.support.materializer.memory_registry import MemoryRegistry
from tests.support.materializer.protocol_run import read_topic
from tests.support.materializer.raw_builder import TABLE

if TYPE_CHECKING:
    from pathlib import Path

    from confluent_kafka import Message

    from cassandra_storage.formats.schema.tables import TableMetadata
    from materializer.planning.registry import Registry
    from materializer.worker.batch_plan import BatchPlan

RAW_PARTITIONS = 2


class PatientPlanner(Planner):
    """Goes on when a broker is not yet ready with a topic just made, as the job does. It raises a topic's error."""

    def __init__(self, settings: Settings, registry: Registry, *, must_fit: bool = True) -> None:
        super().__init__(settings, registry, patience=60.0, must_fit=must_fit)

    def plan_batch(self) -> BatchPlan:
        plan = self._plan_patiently()
        for error in self.errors.values():
            raise error
        return plan

    def _plan_patiently(self) -> BatchPlan:
        for _ in range(50):
            try:
                plan = super().plan_batch()
            except CdcError as error:
                if error.code is not Code.KAFKA_UNREACHABLE:
                    raise
            else:
                unready = {topic for topic, error in self.errors.items() if error.code is Code.KAFKA_UNREACHABLE}
                if not unready and set(self._find_raw_topics()) == set(plan.shapes):
                    return plan
                self.retry(unready)
            time.sleep(0.2)
        return super().plan_batch()


def message(table: TableMetadata, cluster: str = "") -> tuple[bytes, bytes]:
    return message_key(table), to_json(table, cluster)


def make_topics(settings: Settings, time: str = "LogAppendTime") -> AdminClient:
    prefix = settings.kafka.topic_prefix
    admin = AdminClient({"bootstrap.servers": settings.kafka.bootstrap_servers})
    make_raw_topic(admin, f"{prefix}.raw.shop.orders", time)
    tables = NewTopic(f"{prefix}.tables", 1, 1)
    admin.create_topics([tables])[tables.topic].result()
    return admin


def make_raw_topic(admin: AdminClient, topic: str, time: str = "LogAppendTime") -> None:
    raw = NewTopic(topic, RAW_PARTITIONS, 1, config={"message.timestamp.type": time})
    admin.create_topics([raw])[topic].result()


def send_schema(settings: Settings, table: TableMetadata, cluster: str = "") -> None:
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap_servers})
    key, value = message(table, cluster)
    producer.produce(f"{settings.kafka.topic_prefix}.tables", value, key)
    producer.flush()


def run_task(plan: BatchPlan, raw: RawPartition, records: list[RawRecord]) -> TaskResult:
    """Run a raw partition as a worker does, and forget it."""
    open_partitions = OpenPartitions()
    try:
        return TaskResult(Share.of(raw), open_partitions.process(plan, raw, records), None)
    except CdcError as error:
        return TaskResult(Share.of(raw), None, error)
    finally:
        open_partitions.close_all()


def job_settings(bootstrap: str, prefix: str, folder: Path) -> Settings:
    return Settings(
        kafka=KafkaSettings(bootstrap_servers=bootstrap, topic_prefix=prefix, change_partitions=3),
        materializer=MaterializerSettings(
            static_rows="include",
            group_id=prefix,
            checkpoint_location=str(folder / "checkpoint"),
            state_directory=folder / "state",
        ),
    )


class TableJob(NamedTuple):
    """TABLE's topics, and runs over partition 0 of its raw topic from the first message on."""

    settings: Settings
    registry: MemoryRegistry

    @classmethod
    def start(cls, settings: Settings, registry: MemoryRegistry | None = None, cluster: str = "") -> TableJob:
        make_topics(settings)
        send_schema(settings, TABLE, cluster)
        return cls(settings, registry or MemoryRegistry())

    def with_settings(self, **materializer: object) -> TableJob:
        changed = self.settings.materializer.model_copy(update=materializer)
        return self._replace(settings=self.settings.model_copy(update={"materializer": changed}))

    @property
    def raw(self) -> RawPartition:
        return RawPartition(f"{self.settings.kafka.topic_prefix}.raw.shop.orders", 0)

    def send(self, *records: RawRecord) -> None:
        """Send records to the raw partition, which gives them offsets and times."""
        producer = Producer({"bootstrap.servers": self.settings.kafka.bootstrap_servers})
        for record in records:
            producer.produce(self.raw.topic, record.value, record.key, self.raw.partition)
        producer.flush()

    def run(self) -> TaskResult:
        found = [
            message
            for message in self._read(self.raw.topic, RAW_PARTITIONS)
            if message.partition() == self.raw.partition
        ]
        records = [
            RawRecord(message.key() or b"", message.value() or b"", message.offset() or 0, message.timestamp()[1])
            for message in found
        ]
        return run_task(PatientPlanner(self.settings, self.registry).plan_batch(), self.raw, records)

    def changes(self) -> list[Any]:
        """The envelopes of the change topic; None for a tombstone."""
        prefix = self.settings.kafka.topic_prefix
        schema = value_schema(TABLE, prefix, table_forms(self.settings.materializer, TABLE))
        values = [
            message.value() for message in self._read(f"{prefix}.shop.orders", self.settings.kafka.change_partitions)
        ]
        return [value and schemaless_reader(BytesIO(value[wire.HEADER_SIZE :]), schema, None) for value in values]

    def dead_letters(self) -> list[Message]:
        return self._read(f"{self.settings.kafka.topic_prefix}.dead.shop.orders", 1)

    def _read(self, topic: str, partitions: int) -> list[Message]:
        return list(read_topic(self.settings.kafka.bootstrap_servers, topic, partitions))
