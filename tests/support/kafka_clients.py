"""Starts one Kafka client after another, as the programs make them, in a process that logs as they do.

`python -m tests.support.kafka_clients SERVERS` prints the name of each. With `mock` the broker is one in this process,
which ends while the clients are still open.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException

import cdc_native
from cdc_common.clients.group_offsets import CommittedOffsets
from cdc_common.clients.kafka import client_config, logged_admin
from cdc_common.errors.codes import CdcError
from cdc_common.program.logs import configure_logging
from cdc_common.settings import KafkaSettings, LogSettings
from materializer.records import RawPartition
from publisher.kafka.producers import ConfluentProducer, NativeProducer
from publisher.kafka.sender import Sender
from publisher.kafka.topic_admin import TopicAdmin
from publisher.kafka.unread import GroupReader
from schematizer.catalogue.outbox import OutboxMessage
from schematizer.kafka import RegistrationTopic, SendError
from schematizer.measures.offsets import Offsets, OffsetsError
from stream_runtime.kafka import (
    FencingProducer,
    GroupPositions,
    RawReader,
    ReadBudget,
    TopicReader,
    Topics,
    read_partition,
    read_timestamps,
    send_all,
)
from stream_runtime.kafka.producer import PRODUCER_DEFAULTS
from stream_runtime.kafka.source_reader import SourceReader
from stream_runtime.records import Message
from tests.support.mock_brokers import mock_broker

if TYPE_CHECKING:
    from collections.abc import Callable

RAW = RawPartition("orders", 0)
PATIENCE = 1.0  # seconds: the programs wait for 30


class Clients:
    """Each method makes a client, and uses it as its program does."""

    def __init__(self, settings: KafkaSettings) -> None:
        self.settings = settings
        self.kept: list[object] = []

    def keep(self, client: Any) -> Any:  # noqa: ANN401 - of any class
        self.kept.append(client)
        return client

    def settings_check(self) -> None:
        client_config(self.settings)

    def admin(self) -> None:
        topics = Topics(self.settings)
        self.keep(logged_admin(self.settings, {}))
        for _ in range(3):  # each one after a failure is new
            with suppress(CdcError):
                topics.partition_counts()
        with suppress(CdcError):
            topics.bounds([RAW])

    def committed(self) -> None:
        self.keep(CommittedOffsets(self.settings, "g")).committed([(RAW.topic, 0)], PATIENCE)

    def positions(self) -> None:
        self.keep(GroupPositions(self.settings, "g")).read([RAW])

    def transactional(self) -> None:
        consumer = GroupPositions(self.settings, "g").consumer
        for is_native in {False, PRODUCER_DEFAULTS.is_native}:
            own = PRODUCER_DEFAULTS._replace(is_native=is_native)
            with suppress(CdcError, KafkaException):
                producer = self.keep(FencingProducer(self.settings, "g", str(RAW), consumer, own))
                producer.begin()
                producer.send(Message(RAW.topic, 0, b"k", b"v"))
                producer.commit()

    def plain(self) -> None:
        send_all(self.settings, [Message(RAW.topic, 0, b"k", b"v")])

    def raw_reader(self) -> None:
        reader = self.keep(RawReader(self.settings, "g", 100))
        reader.add({RAW: 0})
        reader.read(ReadBudget(10, 1000), PATIENCE)

    def topic_reader(self) -> None:
        self.keep(TopicReader(self.settings, RAW.topic)).read_messages()

    def partition(self) -> None:
        list(read_partition(self.settings, *RAW))

    def timestamps(self) -> None:
        read_timestamps(self.settings, {RAW: 0}, PATIENCE)

    def source_reader(self) -> None:
        reader = self.keep(SourceReader(self.settings, "g"))
        reader.add(RAW, 0)
        reader.read(10, PATIENCE)

    def sender(self) -> None:
        self.keep(Sender(self.settings)).poll(PATIENCE)

    def producers(self) -> None:
        own = dict(client_config(self.settings))
        made = [ConfluentProducer(own, 1000)]
        made += [NativeProducer(own, 1000)] if cdc_native.is_enabled() else []  # type: ignore[list-item]
        for producer in made:
            self.keep(producer).send(RAW.topic, 0, b"k", b"v", None)
            producer.poll(PATIENCE)

    def topic_admin(self) -> None:
        admin = self.keep(TopicAdmin(self.settings))
        for call in (admin.read_partition_counts, admin.check_reachable, lambda: admin.read_latest_values(RAW.topic)):
            with suppress(CdcError):
                call()

    def group_reader(self) -> None:
        self.keep(GroupReader(self.settings, "g", RAW.topic, 1)).read()

    def registrations(self) -> None:
        self.keep(RegistrationTopic(self.settings, RAW.topic)).send([OutboxMessage(1, "k", "{}")])

    def measures(self) -> None:
        offsets = self.keep(Offsets(self.settings))
        for _ in range(2):
            with suppress(OffsetsError):
                offsets.sample([RAW.topic])


CLIENTS: dict[str, str] = {
    "settings_check": "cdc_common.clients.kafka",
    "admin": "cdc_common.clients.kafka",
    "committed": "cdc_common.clients.group_offsets",
    "positions": "stream_runtime.kafka.positions",
    "transactional": "stream_runtime.kafka.producer",
    "plain": "stream_runtime.kafka.producer",
    "raw_reader": "stream_runtime.kafka.consumers",
    "topic_reader": "stream_runtime.kafka.topic_reader",
    "partition": "stream_runtime.kafka.partition_reader",
    "timestamps": "stream_runtime.kafka.unread",
    "source_reader": "stream_runtime.kafka.consumers",
    "sender": "publisher.kafka.producers",
    "producers": "publisher.kafka.producers",
    "topic_admin": "publisher.kafka.topic_admin",
    "group_reader": "publisher.kafka.unread",
    "registrations": "schematizer.kafka",
    "measures": "schematizer.measures.offsets",
}
"""The methods of Clients, and the modules whose clients they make."""


def _hurry() -> None:
    for name, module in list(sys.modules.items()):
        for constant in ("TIMEOUT", "ANSWER_SECONDS", "_SEND_SECONDS"):
            if name.startswith(
                ("stream_runtime.kafka", "stream_runtime.kafka.source_reader", "schematizer.")
            ) and hasattr(module, constant):
                setattr(module, constant, PATIENCE)


def main(servers: str) -> None:
    configure_logging(LogSettings(format="json"))
    _hurry()
    with ExitStack() as broker:
        if servers == "mock":
            mock = broker.enter_context(mock_broker())
            mock.create_topic(RAW.topic)
            servers = mock.servers
        clients = Clients(KafkaSettings(bootstrap_servers=servers, connect_timeout_seconds=PATIENCE))
        for name in sorted(CLIENTS):
            use: Callable[[], None] = getattr(clients, name)
            with suppress(CdcError, KafkaException, SendError, TimeoutError):
                use()
            sys.stdout.write(f"{name}\n")
    time.sleep(2 * PATIENCE)  # what is open loses its broker
    for client in clients.kept:
        if isinstance(client, (Sender, ConfluentProducer, NativeProducer)):
            client.poll(PATIENCE)
    clients.kept.clear()


if __name__ == "__main__":
    main(sys.argv[1])
