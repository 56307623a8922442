"""The queue to Kafka is bounded, and accepts the largest message that a topic may accept. Calls to a broker that never
answers end after the timeout.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from cdc_program.errors import CdcError, Code
from cdc_program.settings import KafkaSettings
from local_stack.process.network import LOCALHOST, free_ports
from publisher.inflight import PendingMessages
from publisher.kafka import sender as sender_module
from publisher.kafka.sender import MOST_MESSAGE_BYTES, QUEUE_BYTES, Sender
from publisher.kafka.topic_admin import TopicAdmin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


SECONDS = 60.0


@pytest.fixture
def sender() -> Sender:
    """Nobody answers it."""
    return Sender(KafkaSettings(bootstrap_servers=f"{LOCALHOST}:{free_ports(1)[0]}"))


def send(sender: Sender, size: int) -> bool:
    return sender.send("topic", b"key", bytes(size), PendingMessages(outstanding=1))


def test_it_takes_so_many_bytes_and_no_more(sender: Sender) -> None:
    assert [send(sender, QUEUE_BYTES // 4) for _ in range(5)] == [True, True, True, True, False]
    assert not sender.send_to_raw_partition("topic", 0, b"heartbeat")


@pytest.mark.parametrize("size", [QUEUE_BYTES + 1, MOST_MESSAGE_BYTES - 1000])
def test_what_is_larger_goes_alone(sender: Sender, size: int) -> None:
    assert send(sender, 1)
    assert not send(sender, size)
    alone = Sender(KafkaSettings(bootstrap_servers=f"{LOCALHOST}:{free_ports(1)[0]}"))
    assert send(alone, size)
    assert not send(alone, 1)


def test_all_sizes_are_sent_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """To librdkafka's own broker, which is in this process and makes the topic when it is asked for it."""
    mock = {"test.mock.num.brokers": 1, "allow.auto.create.topics": True}
    monkeypatch.setattr(sender_module, "Producer", lambda config: Producer({**config, **mock}))
    sender, pending = Sender(KafkaSettings()), PendingMessages()
    for size in (100, QUEUE_BYTES + 1, 200, MOST_MESSAGE_BYTES - 1000, 300):
        pending.outstanding += 1
        while not sender.send("topic", b"key", bytes(size), pending):
            sender.poll(0.1)
    sender.flush(SECONDS)
    assert pending.outstanding == 0
    assert sender.acknowledged == 5


def test_what_no_topic_takes_is_an_error(sender: Sender) -> None:
    with pytest.raises(CdcError, match="MSG_SIZE_TOO_LARGE") as caught:
        send(sender, MOST_MESSAGE_BYTES + 1)
    assert caught.value.code is Code.KAFKA_REFUSED


@pytest.fixture
def mute() -> Iterator[str]:
    """The address of a broker that takes connections and answers nothing, as one that is frozen."""
    with socket.create_server((LOCALHOST, 0)) as server:
        yield f"{LOCALHOST}:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    "ask",
    [
        TopicAdmin.check_reachable,
        TopicAdmin.read_partition_counts,
        lambda admin: admin.check_raw_topics({"cdc.raw.shop.orders"}),
        lambda admin: admin.ensure_raw_topic("cdc.raw.shop.orders"),
        lambda admin: admin._create_topic("cdc.raw.shop.orders", 1, {}),
        lambda admin: admin._read_config("cdc.raw.shop.orders"),
        lambda admin: admin.read_latest_values("cdc.tables"),
    ],
    ids=["reachable", "counts", "check", "ensure", "create", "config", "read"],
)
def test_a_broker_that_never_answers_is_away(mute: str, ask: Callable[[TopicAdmin], object]) -> None:
    with pytest.raises(CdcError) as caught:
        ask(TopicAdmin(KafkaSettings(bootstrap_servers=mute, connect_timeout_seconds=0.5)))
    assert caught.value.code is Code.KAFKA_UNREACHABLE
