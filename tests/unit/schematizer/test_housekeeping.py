"""The work of the service beside requests: registrations go to Kafka when it is there, uses into the database."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, cast

import pytest

from cdc_common.settings import KafkaSettings
from dev.local_stack.process.processes import wait_until
from schematizer import housekeeping
from schematizer.catalogue.clients import ProducerRegistration
from schematizer.catalogue.outbox import Outbox, OutboxMessage
from schematizer.catalogue.rules import Rules
from schematizer.catalogue.usage import Usage
from schematizer.housekeeping import Housekeeping
from schematizer.kafka import RegistrationTopic, SendError
from schematizer.model.database import Database, opened
from schematizer.registration.register import Description
from schematizer.service import Catalogue
from tests.support.schematizer.memory_clients import MemoryProducer
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from confluent_kafka import Producer

SCHEMA = json.dumps({"type": "record", "name": "users", "primaryKey": [], "fields": []})
KAFKA_IS_AWAY = {
    "schematizer.registrations_topic": "registrations",
    "kafka.bootstrap_servers": "127.0.0.1:9",
    "kafka.connect_timeout_seconds": "1",
}


class Topic:
    """Kafka is away for the first attempts."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.sent: list[str] = []
        self.is_closed = threading.Event()

    def send(self, messages: Sequence[OutboxMessage]) -> list[int]:
        if self.failures:
            self.failures -= 1
            raise SendError("no broker")
        self.sent += [json.loads(message.value)["service"] for message in messages]
        return [message.id for message in messages]

    def close(self) -> None:
        self.is_closed.set()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with opened(f"sqlite:///{tmp_path / 'registry.db'}") as made:
        yield made


def register(catalogue: Catalogue, *services: str) -> None:
    made = catalogue.registering.register(Description("cdc.shop", "avro", SCHEMA), by="test")
    for service in services:
        wanted = ProducerRegistration("team", service, made.topic, made.schema_id, 60)
        catalogue.clients.register_producer(wanted, by="test")


def test_registrations_are_sent_once_kafka_is_back(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "_SEND_EVERY", 0.01)
    catalogue, topic = Catalogue(database, Rules(is_announced=True)), Topic(failures=2)
    register(catalogue, "a", "b")
    with Housekeeping(Usage(database), catalogue.outbox, cast("RegistrationTopic", topic)):
        wait_until(lambda: topic.sent == ["a", "b"], "two registrations", 30)
        register(catalogue, "c")
        wait_until(lambda: topic.sent == ["a", "b", "c"], "the third", 30)
        wait_until(lambda: catalogue.outbox.waiting() == 0, "an empty outbox", 30)
    assert topic.is_closed.is_set()


def test_its_end_does_not_wait_for_kafka(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt to send lasts half a minute, and a container's engine kills after 10 s."""
    monkeypatch.setattr(housekeeping, "_SEND_EVERY", 0.01)
    monkeypatch.setattr(housekeeping, "_STOP_SECONDS", 0.1)
    catalogue, topic = Catalogue(database, Rules(is_announced=True)), Topic()
    sending, answered = threading.Event(), threading.Event()

    def send(messages: Sequence[OutboxMessage]) -> list[int]:
        sending.set()
        answered.wait(60)
        return [message.id for message in messages]

    monkeypatch.setattr(topic, "send", send)
    register(catalogue, "a")
    began = time.monotonic()
    kept = Housekeeping(Usage(database), catalogue.outbox, cast("RegistrationTopic", topic))
    with kept:
        assert sending.wait(30)
    assert time.monotonic() - began < 50
    assert not topic.is_closed.is_set(), "its thread uses it"
    assert catalogue.outbox.waiting() == 1
    answered.set()
    kept._thread.join(30)


def test_uses_are_noted_from_time_to_time_and_at_the_end(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed = []
    usage = Usage(database)
    monkeypatch.setattr(usage, "flush", lambda: flushed.append(1))
    monkeypatch.setattr(housekeeping, "_SEND_EVERY", 0.01)
    monkeypatch.setattr(housekeeping, "_FLUSH_EVERY", 0.02)
    with Housekeeping(usage, Outbox(database), None):
        wait_until(lambda: len(flushed) > 1, "two flushes", 30)
    monkeypatch.setattr(housekeeping, "_SEND_EVERY", 60.0)
    before = len(flushed)
    with Housekeeping(usage, Outbox(database), None):
        pass
    assert len(flushed) == before + 1


def test_uses_are_noted_while_kafka_is_away(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time between two attempts to send grows; the time between two notes does not grow sixtyfold with it."""
    flushed = []
    usage = Usage(database)
    monkeypatch.setattr(usage, "flush", lambda: flushed.append(1))
    monkeypatch.setattr(housekeeping, "_SEND_EVERY", 0.01)
    monkeypatch.setattr(housekeeping, "_LONGEST_WAIT", 0.2)
    monkeypatch.setattr(housekeeping, "_FLUSH_EVERY", 0.2)
    catalogue, topic = Catalogue(database, Rules(is_announced=True)), Topic(failures=1000)
    register(catalogue, "a")
    with Housekeeping(usage, catalogue.outbox, cast("RegistrationTopic", topic)):
        wait_until(lambda: len(flushed) > 1, "two flushes", 5)


def test_a_message_that_kafkas_client_refuses_does_not_keep_the_others() -> None:
    """A full queue, or a message that is too large, is an error of the call and not of the delivery."""
    topic, producer = RegistrationTopic(KafkaSettings(), "registrations"), MemoryProducer()
    topic._producer = cast("Producer", producer)
    messages = [OutboxMessage(number, f"key {number}", "{}") for number in (1, 2)]
    producer.full = 1
    assert topic.send(messages) == [2]
    producer.full = 2
    with pytest.raises(SendError):
        topic.send(messages)


def test_a_registration_does_not_wait_for_kafka(tmp_path: Path) -> None:
    """The running service answers, says in its log what waits, and ends."""
    registry = Registry(tmp_path / "registry.db", settings=KAFKA_IS_AWAY).start()
    try:
        made = registry.call("POST", "/api/v1/namespaces/cdc.shop/schemas", {"format": "avro", "text": SCHEMA}).body
        body = {"team": "t", "service": "s", "topic": made["topic"], "expected_frequency_seconds": 60}
        started = time.monotonic()
        for path, more in (("producers", {"schema_id": made["schema_id"]}), ("consumers", {"consumer_group": "g"})):
            assert registry.call("POST", f"/api/v1/{path}", {**body, **more}).status == 200
        assert time.monotonic() - started < 10
        wait_until(lambda: any("registrations wait for Kafka" in line for line in registry.log), "a warning", 60)
    finally:
        assert registry.stop() == 0, registry.log
    with opened(f"sqlite:///{registry.database}") as database:
        assert Outbox(database).waiting() == 2
