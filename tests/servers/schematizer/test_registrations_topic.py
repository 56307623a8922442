"""Registrations of producers and consumers reach a real Kafka; while it is away, no call waits and nothing is lost."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from cdc_common.settings import KafkaSettings
from schematizer.catalogue.clients import ConsumerRegistration, ProducerRegistration
from schematizer.catalogue.outbox import Outbox
from schematizer.catalogue.rules import Rules
from schematizer.kafka import RegistrationTopic, SendError
from schematizer.model.database import opened
from schematizer.registration.register import Description
from schematizer.service import Catalogue
from tests.support.materializer.protocol_run import read_topic

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker

pytestmark = pytest.mark.servers

SCHEMA = json.dumps({"type": "record", "name": "users", "primaryKey": [], "fields": []})


def test_registrations_wait_for_kafka(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> None:
    away = KafkaSettings(bootstrap_servers="127.0.0.1:9", connect_timeout_seconds=1)
    there = KafkaSettings(bootstrap_servers=kafka.bootstrap_servers)
    with opened(f"sqlite:///{tmp_path / 'registry.db'}") as database:
        catalogue, outbox = Catalogue(database, Rules(is_announced=True)), Outbox(database)
        made = catalogue.registering.register(Description("cdc.shop", "avro", SCHEMA), by="test")
        started = time.monotonic()
        for number in range(3):
            producer = ProducerRegistration("team", f"writer{number}", made.topic, made.schema_id, 60)
            catalogue.clients.register_producer(producer, by="test")
        catalogue.clients.register_consumer(
            ConsumerRegistration("others", "reader", made.topic, "group", 60), by="test"
        )
        assert time.monotonic() - started < 30  # no call waits for Kafka; a busy machine is slow
        assert outbox.waiting() == 4
        with pytest.raises(SendError):
            outbox.send(RegistrationTopic(away, topic_prefix))
        assert outbox.waiting() == 4
        topic = RegistrationTopic(there, topic_prefix)
        assert outbox.send(topic) == 4
        assert outbox.waiting() == 0
        assert outbox.send(topic) == 0
        topic.close()
    found: list[Any] = [
        json.loads(message.value() or b"") for message in read_topic(kafka.bootstrap_servers, topic_prefix, 1)
    ]
    assert [(registration["kind"], registration["service"], registration["topic"]) for registration in found] == [
        ("producer", "writer0", "cdc.shop.users"),
        ("producer", "writer1", "cdc.shop.users"),
        ("producer", "writer2", "cdc.shop.users"),
        ("consumer", "reader", "cdc.shop.users"),
    ]
