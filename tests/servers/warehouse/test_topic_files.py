"""A topic file is loaded into PostgreSQL with no other step, and its table follows the file."""

from __future__ import annotations

import itertools
import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from cdc_common.clients.registry.schematizer import SchematizerClient
from cdc_common.messages import wire
from tests.support.archive.scene import encode_avro
from tests.support.schematizer.topic_commands import TopicCommands, write_settings
from tests.support.schematizer.topic_repository import CATALOGUE, CITY, FIELDS, TOPIC, write_topic
from tests.support.warehouse.warehouse_run import WarehouseSetup, run_batch
from warehouse.job.planner import TopicPlanner
from warehouse.job.run import job_of
from warehouse.job.worker_loop import open_loop
from warehouse.targets.open import open_loader

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker
    from stream_runtime.worker.loop import WorkerLoop
    from tests.support.schematizer.registry_process import Registry
    from warehouse.job.plan import WarehousePlan

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

WAIT_SECONDS = 60.0
WAREHOUSE = """
[warehouses.main]
principal = "User:loader"
group = "loader"
destination = "the analysts' PostgreSQL"
personal_data = "leave_out"
"""
ORDERS = (
    TOPIC.replace('owner = "shop"', 'owner = "shop"\npii = "personal"')
    + '[fields.city]\npii = true\n[[warehouses]]\nwarehouse = "main"\n'
)
KEY: dict[str, Any] = {"type": "record", "name": "orders_key", "fields": [{"name": "event_id", "type": "string"}]}
VALUE: dict[str, Any] = {"type": "record", "name": "orders", "fields": [*FIELDS, CITY]}


class Job:
    """The job, as it runs on and on: no one restarts it."""

    def __init__(self, setup: WarehouseSetup) -> None:
        job = job_of(setup.settings(topics=[], deployment="staging", name="main"))
        self.planner = TopicPlanner(job, itertools.count(0, 10).__next__)  # it looks for topics in each batch
        self.planner.check_settings()
        self.loop: WorkerLoop[WarehousePlan] = open_loop(job)
        self._loader = open_loader(job.settings)

    def run_batch(self) -> WarehousePlan:
        plan = self.planner.plan_batch()
        run_batch(self.loop, plan)
        return plan

    def rows(self, table: str, columns: str) -> list[tuple[Any, ...]]:
        """Run until the table has rows, and return them."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not (found := self._select(table, columns)):
            assert time.monotonic() < deadline, self.planner.errors
            self.run_batch()
        return found

    def columns(self, table: str) -> set[str]:
        """The names of a table's columns."""
        query = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'shop' AND table_name = ?"
        return {name for (name,) in self._loader.connection.run(query, table)}

    def _select(self, table: str, columns: str) -> list[tuple[Any, ...]]:
        if not self.columns(table):
            return []
        return list(self._loader.connection.run(f"SELECT {columns} FROM shop.{table} ORDER BY 1"))

    def close(self) -> None:
        self.loop.close()
        self._loader.connection.close()


def test_a_file_is_loaded_and_its_table_follows_it(
    kafka: KafkaBroker, registry: Registry, topic_prefix: str, tmp_path: Path, postgresql_url: str
) -> None:
    root = tmp_path / "topics"
    root.mkdir()
    named = CATALOGUE.replace("{environment}.{domain}", f"{topic_prefix}.{{environment}}.{{domain}}")
    (root / "catalogue.toml").write_text(named + WAREHOUSE)
    write_topic(root, "staging", "plain")
    settings = {"kafka": {"bootstrap_servers": kafka.bootstrap_servers}, "registry": {"url": registry.url}}
    commands = TopicCommands(root, write_settings(tmp_path / "cdc.toml", settings))
    assert commands.run("apply", "staging").status == 0
    setup = WarehouseSetup(kafka.bootstrap_servers, registry.url, topic_prefix, str(tmp_path), postgresql_url)
    job = Job(setup)
    try:
        assert job.run_batch().shapes == {}, "plain names no warehouse"
        topic = f"pii-{topic_prefix}.staging.shop.orders"
        folder = write_topic(root, "staging", "orders", ORDERS)
        (folder / "schemas" / "key.avsc").write_text(json.dumps(KEY))
        plan = commands.run("plan", "staging")
        assert f"+ warehouse {topic} main\n    form: current\n    deletes: remove\n    personal_data: leave_out\n" in (
            plan.output
        ), plan
        applied = commands.run("apply", "staging")
        assert applied.status == 0, applied.errors
        send(kafka, registry, topic)
        assert job.rows("orders", "event_id") == [("one",), ("two",)]
        assert job.columns("orders") == {"_key", "_sequence", "event_id", "event_time"}, "and no personal field"

        write_topic(root, "staging", "orders", ORDERS + 'form = "history"\n')
        plan = commands.run("plan", "staging")
        assert f"~ warehouse {topic} main\n    form: current -> history\n" in plan.output, plan
        assert commands.run("apply", "staging").status == 0
        assert job.rows("orders__history", "event_id, is_current") == [("one", True), ("two", True)]
        assert commands.run("drift", "staging").status == 0

        write_topic(root, "staging", "orders", ORDERS.partition("[[warehouses]]")[0])
        applied = commands.run("apply", "staging")
        assert f"deleted warehouse {topic} main" in applied.output, applied
        assert job.run_batch().shapes == {}
        assert job.rows("orders", "event_id") == [("one",), ("two",)], "the table stays"
    finally:
        job.close()


def send(kafka: KafkaBroker, registry: Registry, topic: str) -> None:
    """Send two messages under the schemas that `apply` registered."""
    with SchematizerClient(registry.url) as client:
        value = wire.header(client.latest_schema(topic).schema_id)
    key = wire.header(registry.call("GET", f"/subjects/{topic}-key/versions/latest").body["id"])
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for name in ("one", "two"):
        row = {"event_id": name, "event_time": 1_790_000_000_000_000, "city": "Paris"}
        producer.produce(topic, value + encode_avro(VALUE, row), key + encode_avro(KEY, {"event_id": name}))
    assert producer.flush(WAIT_SECONDS) == 0
