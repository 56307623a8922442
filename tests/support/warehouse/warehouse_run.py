"""A topic on a real broker that is loaded into a warehouse as Spark's workers do it, for tests and the kill matrix."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.errors.codes import Code
from cdc_common.messages import wire
from cdc_common.settings import KafkaSettings, RegistrySettings
from stream_runtime import fault_points
from stream_runtime.fault_points import InjectedFaultError
from stream_runtime.worker.task import Assignment
from tests.support.archive.scene import encode_avro
from tests.support.materializer.protocol_run import read_topic
from tests.support.warehouse.scene import KEY_SCHEMA, SCHEMAS
from warehouse.job.planner import TopicPlanner
from warehouse.job.run import job_of
from warehouse.job.worker_loop import open_loop
from warehouse.names import table_name
from warehouse.settings import Settings, WarehouseSettings
from warehouse.targets.open import open_loader
from warehouse.targets.statements import full_name

if TYPE_CHECKING:
    from stream_runtime.worker.loop import WorkerLoop
    from warehouse.job.plan import WarehousePlan

PARTITIONS = 3
END_SECONDS = 60.0
AT_ONCE = 40
KEYS = 50
"""The changes are of so many rows, so that most of them are updates and deletions."""


class WarehouseSetup(NamedTuple):
    """It is pickled."""

    bootstrap: str
    registry: str
    prefix: str
    folder: str
    # The URL of the warehouse.
    target: str

    @property
    def topic(self) -> str:
        return f"{self.prefix}.shop.orders"

    def settings(self, **warehouse: Any) -> Settings:  # noqa: ANN401 - settings
        own = {
            "group_id": self.prefix,
            "target": self.target,
            "topics": [self.topic],
            "load_rows": 60,
            "load_seconds": 0.2,
            "trigger_interval_ms": 50,
            **warehouse,
        }
        return Settings(
            kafka=KafkaSettings(bootstrap_servers=self.bootstrap, topic_prefix=self.prefix),
            registry=RegistrySettings(url=self.registry),
            warehouse=WarehouseSettings(**own),
        )

    def flags(self, **warehouse: Any) -> list[str]:  # noqa: ANN401 - settings
        """The settings as flags of the program."""
        own = self.settings(operations_port=0, **warehouse).warehouse
        return [
            f"--set=kafka.bootstrap_servers={self.bootstrap}",
            f"--set=registry.url={self.registry}",
            *(
                f"--set=warehouse.{name}={','.join(value) if isinstance(value, list) else value}"
                for name, value in own.model_dump(exclude_defaults=True).items()
            ),
        ]

    def make_topic(self, topic: str | None = None) -> None:
        """topic: another one than `topic`."""
        name = topic or self.topic
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result()

    def send(self, first: int, end: int, topic: str | None = None) -> None:
        """Send changes in one transaction. Every seventh deletes its row; the second half has a column more. topic:
        another one than `topic`.
        """
        name = topic or self.topic
        with RegistryClient(RegistrySettings(url=self.registry)) as registry:
            key_id = registry.register(f"{name}-key", KEY_SCHEMA)
            ids = [registry.register(f"{name}-value", SCHEMAS[number]) for number in (10, 11)]
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": f"{self.prefix}-source"})
        producer.init_transactions()
        producer.begin_transaction()
        for number in range(first, end):
            is_new = number >= (first + end) // 2
            change = {
                "op": "d" if number % 7 == 6 else "u",
                "before": None,
                "after": row_of(number, is_new=is_new),
                "source": {"ts_us": 0, "row_sequence": number},
                "ts_ms": 0,
            }
            key = number % KEYS
            value = wire.header(ids[is_new]) + encode_avro(SCHEMAS[11 if is_new else 10], change)
            wire_key = wire.header(key_id) + encode_avro(KEY_SCHEMA, {"id": key})
            producer.produce(name, value, wire_key, key % PARTITIONS)
            if number % 7 == 6:
                producer.produce(name, None, wire_key, key % PARTITIONS)
        producer.commit_transaction()

    def run(self, until: int | None = None, **settings: object) -> None:  # noqa: ARG002 - always to the end
        """Load all in this process. Raise what a task fails with."""
        job = job_of(self.settings(**settings))
        planner = TopicPlanner(job)
        planner.check_settings()
        loop = open_loop(job)
        try:
            deadline = time.monotonic() + END_SECONDS
            ends = self._ends()
            while not self._is_done(ends):
                assert time.monotonic() < deadline, f"it does not come to the end: {planner.errors}"
                run_batch(loop, planner.plan_batch())
        finally:
            loop.close()

    def check(self, end: int, **settings: Any) -> None:  # noqa: ANN401 - settings
        """The table equals the fold of all messages up to `end`."""
        wanted: dict[int, dict[str, Any]] = {}
        for number in range(end):
            row = row_of(number, is_new=True)
            if row is None:
                wanted.pop(number % KEYS, None)
            else:
                wanted[number % KEYS] = {"id": row["id"], "name": row["name"]}
        loader = open_loader(self.settings(**settings).warehouse)
        table = table_name(self.topic, "topics")
        found = loader.connection.run(f"SELECT id, name FROM {full_name(table)} ORDER BY id")
        loader.connection.close()
        assert [{"id": number, "name": name} for number, name in found] == [wanted[key] for key in sorted(wanted)]

    def _ends(self) -> dict[int, int]:
        """The offset after the last message of each partition, by a plain reader of the topic."""
        ends: dict[int, int] = {}
        for message in read_topic(self.bootstrap, self.topic, PARTITIONS):
            ends[message.partition() or 0] = (message.offset() or 0) + 1
        return ends

    def _is_done(self, ends: dict[int, int]) -> bool:
        loader = open_loader(self.settings().warehouse)
        state = loader.read_state(table_name(self.topic, "topics"))
        loader.connection.close()
        return state is not None and all(state.offsets.get(partition, 0) >= end for partition, end in ends.items())


def row_of(number: int, *, is_new: bool) -> dict[str, Any] | None:
    """The row after a change."""
    if number % 7 == 6:
        return None
    row = {"id": number % KEYS, "name": f"Ada {number}"}
    return {**row, "qty": number} if is_new else row


def run_batch(loop: WorkerLoop[WarehousePlan], plan: WarehousePlan) -> None:
    """A batch of all tables. Raise the error of one that fails."""
    for result in loop.run_batch(plan, Assignment(tuple(plan.shares), AT_ONCE, 0.0)):
        if result.error is None:
            continue
        if result.error.code is Code.UNEXPECTED and "InjectedFaultError" in result.error.problem:
            assert fault_points.armed is not None
            raise InjectedFaultError(fault_points.armed.name)
        raise result.error
