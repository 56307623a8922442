"""Producers and consumers by schema on a real Kafka: a topic changes midway, a consumer dies, the registry is away."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_common.clients.by_schema.consumer import SchemaConsumer
from cdc_common.clients.by_schema.kafka import Service
from cdc_common.clients.by_schema.producer import SchemaProducer
from cdc_common.clients.registry.schematizer import SchematizerClient
from dev.local_stack.process.paths import project_root
from dev.local_stack.process.processes import wait_until
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker

pytestmark = pytest.mark.servers

COUNT = 200  # messages of each part
DIES_AFTER = 60
DEADLINE_SECONDS = 120.0
WRITER, READER = Service("team", "writer", 1), Service("team", "reader", 1)
READ = json.dumps({"type": "record", "name": "orders", "fields": [{"name": "id", "type": "int"}]})


def orders(key: str) -> str:
    fields = [{"name": "id", "type": "int"}, {"name": "line", "type": "int"}]
    return json.dumps({"type": "record", "name": "orders", "primaryKey": [key], "fields": fields})


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    """A registry for this test alone, because the test stops it."""
    running = Registry(tmp_path / "registry.db").start()
    yield running
    if running.process is not None and running.process.poll() is None:
        running.stop()


class Reading(threading.Thread):
    """Consumes until it has died, or is ended; `ids`: of what it has processed, `topics`: where from."""

    def __init__(self, registry: Registry, kafka: KafkaBroker, namespace: str, dies_after: int = 10**9) -> None:
        super().__init__(daemon=True)
        self.ids: list[int] = []
        self.topics: set[str] = set()
        self.error: Exception | None = None
        self._over = threading.Event()
        self._dies_after = dies_after
        self._arguments = registry.url, kafka.bootstrap_servers, namespace
        self.start()

    def run(self) -> None:
        url, servers, namespace = self._arguments
        settings = {"bootstrap.servers": servers, "group.id": namespace, "fetch.wait.max.ms": 50}
        settings["topic.metadata.refresh.interval.ms"] = "500"
        wanted: dict[str, Any] = {"sources": [(namespace, "orders")], "schema": READ, "refresh_seconds": 0.2}
        try:
            with (
                SchematizerClient(url, attempts=1) as client,
                SchemaConsumer(client, settings, READER, **wanted) as consumer,
            ):
                self._read(consumer)
        except Exception as error:  # noqa: BLE001 - end raises it
            self.error = error

    def end(self) -> None:
        self._over.set()
        self.join()
        if self.error is not None:
            raise self.error

    def _read(self, consumer: SchemaConsumer) -> None:
        while not self._over.is_set():
            received = consumer.poll(0.2)
            if received is None:
                continue
            if len(self.ids) == self._dies_after:
                return  # while this message is processed
            self.ids.append(received.value["id"])
            self.topics.add(received.message.topic() or "")


def has_some(registry: Registry, path: str) -> bool:
    return bool(registry.call("GET", path).body)


def wait_until_read(reading: Reading, ids: set[int]) -> None:
    wait_until(lambda: not reading.is_alive() or ids <= set(reading.ids), "all messages", DEADLINE_SECONDS)
    assert reading.is_alive(), reading.error


def test_a_source_whose_topic_changes_midway(registry: Registry, kafka: KafkaBroker, topic_prefix: str) -> None:
    """Every message of both topics is processed, by a consumer that dies or by the next one, and hardly any twice."""
    first, second = f"{topic_prefix}.orders", f"{topic_prefix}.orders-v2"
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 5}
    source: dict[str, Any] = {"namespace": topic_prefix, "source": "orders"}
    with (
        SchematizerClient(registry.url) as client,
        SchemaProducer(client, settings, WRITER, schema=orders("id"), **source) as producer,
    ):

        def produce(part: int) -> None:
            for number in range(part * COUNT, (part + 1) * COUNT):
                producer.produce({"id": number, "line": part}, str(number))
            producer.flush()

        dying = Reading(registry, kafka, topic_prefix, DIES_AFTER)
        produce(0)
        dying.join(DEADLINE_SECONDS)
        assert len(dying.ids) == DIES_AFTER
        reading = Reading(registry, kafka, topic_prefix)
        producer.set_schema(orders("line"))
        produce(1)
        wait_until_read(reading, set(range(2 * COUNT)) - set(dying.ids))
        assert reading.topics == {first, second}
        for what, topic in (("producers", second), ("consumers", first), ("consumers", second)):
            path = f"/api/v1/{what}?topic={topic}"
            wait_until(partial(has_some, registry, path), path, DEADLINE_SECONDS)
        registry.stop()
        produce(2)
        wait_until_read(reading, set(range(2 * COUNT, 3 * COUNT)))
        reading.end()
    dying.end()
    assert sorted(dying.ids + reading.ids) == list(range(3 * COUNT))  # it closed in peace: nothing came twice
    assert {first, second} <= AdminClient({"bootstrap.servers": kafka.bootstrap_servers}).list_topics(
        timeout=30
    ).topics.keys()


def test_a_producer_of_the_caller_s_own(registry: Registry, kafka: KafkaBroker, topic_prefix: str) -> None:
    """Its transactions are the caller's: what is aborted is not read."""
    settings: dict[str, Any] = {"bootstrap.servers": kafka.bootstrap_servers}
    admin, topic = AdminClient(settings), f"{topic_prefix}.orders"
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
    own = Producer({**settings, "transactional.id": topic_prefix})
    own.init_transactions()
    with (
        SchematizerClient(registry.url) as client,
        SchemaProducer(client, own, WRITER, namespace=topic_prefix, source="orders", schema=orders("id")) as producer,
    ):
        for number, end in enumerate((own.abort_transaction, own.commit_transaction)):
            own.begin_transaction()
            producer.produce({"id": number, "line": 0})
            end()
        reading = Reading(registry, kafka, topic_prefix)
        wait_until_read(reading, {1})
        reading.end()
        assert reading.ids == [1]


def test_the_guide_s_example(registry: Registry, kafka: KafkaBroker, topic_prefix: str) -> None:
    guide = (project_root() / "docs" / "guides" / "schematizer.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    for shown, ours in (("127.0.0.1:9092", kafka.bootstrap_servers), ("http://127.0.0.1:8081", registry.url)):
        assert shown in code
        code = code.replace(shown, ours)
    code = code.replace('"app"', f'"{topic_prefix}"').replace('"reports"', f'"{topic_prefix}"')
    environment = {**os.environ, "PYTHONPATH": str(project_root())}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "visits {'id': 1}\n"
