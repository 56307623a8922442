"""The queue to Kafka is bounded, and accepts the largest message that a topic may accept. Calls to a broker that never
answers end after the timeout.
"""

from __future__ import annotations

import socket
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from confluent_kafka import KafkaError, KafkaException
from pydantic import SecretStr

import cdc_native
from cdc_common.clients.kafka import LIBRDKAFKA_LOGGER
from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings import KafkaSettings
from dev.local_stack.process.network import LOCALHOST, free_ports
from publisher.inflight import PendingMessages
from publisher.kafka import sender as sender_module
from publisher.kafka.producers import BY_KEY, ConfluentProducer, NativeProducer, Report
from publisher.kafka.sender import MOST_MESSAGE_BYTES, QUEUE_BYTES, QUEUE_MESSAGES, Sender
from publisher.kafka.topic_admin import TopicAdmin
from tests.support.refusing_broker import refusing_broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


SECONDS = 60.0
REFUSED_SECONDS = 10.0
Kind: TypeAlias = type[NativeProducer] | type[ConfluentProducer]
MOCK = {"test.mock.num.brokers": 1, "allow.auto.create.topics": True}
"""librdkafka's own broker, which is in this process and makes a topic of four partitions when it is asked for it."""


@pytest.fixture(
    autouse=True,
    params=[
        pytest.param(
            NativeProducer,
            marks=pytest.mark.skipif(not cdc_native.is_compiled(), reason="not compiled: test_compiled says so"),
        ),
        ConfluentProducer,
    ],
)
def producer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kind:
    """All of this holds for both producers."""
    monkeypatch.setattr(sender_module, "open_producer", request.param)
    kind: Kind = request.param
    return kind


@pytest.fixture
def mock_brokers(producer: Kind, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes all senders talk to MOCK, with more properties."""

    def use(**more: object) -> None:
        properties = {**MOCK, **{name.replace("_", "."): value for name, value in more.items()}}
        monkeypatch.setattr(
            sender_module, "open_producer", lambda config, most: producer({**config, **properties}, most)
        )

    return use


def send_until_it_fails(sender: Sender, topic: str, partition: int, pending: PendingMessages) -> None:
    for _ in range(100):
        sender.send_to_raw_partition(topic, partition, b"value", pending)
        sender.poll(0.1)


def poll_until_it_fails(sender: Sender) -> None:
    for _ in range(600):
        sender.poll(0.1)


@pytest.fixture
def sender() -> Sender:
    """No broker answers it."""
    servers = f"{LOCALHOST}:{free_ports(1)[0]}"
    return Sender(KafkaSettings(bootstrap_servers=servers, connect_timeout_seconds=0.5))


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


def test_all_sizes_are_sent_one_after_the_other(mock_brokers: Callable[..., None]) -> None:
    mock_brokers()
    sender, pending = Sender(KafkaSettings()), PendingMessages()
    for size in (100, QUEUE_BYTES + 1, 200, MOST_MESSAGE_BYTES - 1000, 300):
        pending.outstanding += 1
        while not sender.send("topic", b"key", bytes(size), pending):
            sender.poll(0.1)
    sender.flush(SECONDS)
    assert pending.outstanding == 0
    assert sender.acknowledged == 5
    assert len(sender) == 0


def test_it_takes_so_many_messages_and_no_more(sender: Sender) -> None:
    pending = PendingMessages(outstanding=QUEUE_MESSAGES)
    assert all(sender.send("topic", b"key", b"value", pending) for _ in range(QUEUE_MESSAGES))
    assert not sender.send("topic", b"key", b"value", pending)
    assert len(sender) >= QUEUE_MESSAGES
    sender.poll(0.0)
    assert pending.outstanding == QUEUE_MESSAGES


def test_what_is_acknowledged_is_counted_by_whom_it_was_sent_for(mock_brokers: Callable[..., None]) -> None:
    mock_brokers()
    sender = Sender(KafkaSettings())
    counts = (1, 3, 0, 200, 7)
    pendings = [PendingMessages(outstanding=count) for count in counts]
    left = [pending for pending in pendings for _ in range(pending.outstanding)]
    for number, pending in enumerate(left[::2] + left[1::2]):  # each is sent for twice, others between
        assert sender.send(f"topic{number % 3}", bytes((number,)), b"value", pending)
        assert sender.send_to_raw_partition("topic0", number % 4, b"heartbeat")
        if not number % 50:
            sender.poll(0.01)
    sender.flush(SECONDS)
    assert [pending.outstanding for pending in pendings] == [0] * len(counts)
    assert sender.acknowledged == 2 * len(left)
    assert sender.latency_seconds > 0
    assert {(topic, partition) for topic in ("topic0", "topic1", "topic2") for partition in range(4)} == set(
        sender.last_sent
    )
    before = dict(sender.last_sent)
    assert sender.send_to_raw_partition("topic1", 2, b"heartbeat")
    sender.flush(SECONDS)
    assert {place for place, when in sender.last_sent.items() if when != before[place]} == {("topic1", 2)}


def test_what_no_topic_takes_is_an_error(sender: Sender) -> None:
    with pytest.raises(CdcError, match=r"topic topic.*MSG_SIZE_TOO_LARGE.*Broker: Message size too large") as caught:
        send(sender, MOST_MESSAGE_BYTES + 1)
    assert caught.value.code is Code.KAFKA_REFUSED


def test_a_partition_that_the_topic_does_not_have_is_an_error(mock_brokers: Callable[..., None]) -> None:
    mock_brokers()
    sender = Sender(KafkaSettings())
    sender.refresh_metadata("orders")
    pending = PendingMessages(outstanding=2)
    assert sender.send("orders", b"key", b"value", pending)
    with pytest.raises(CdcError, match=r"topic orders.*_UNKNOWN_PARTITION"):
        send_until_it_fails(sender, "orders", 9, pending)


def test_a_message_that_is_refused_later_is_an_error_of_its_topic(mock_brokers: Callable[..., None]) -> None:
    mock_brokers(**{"message.timeout.ms": 100, "linger.ms": 0, "test.mock.broker.rtt": 5000})
    sender, pending = Sender(KafkaSettings()), PendingMessages(outstanding=1)
    assert sender.send("orders", b"key", b"value", pending)
    with pytest.raises(CdcError, match="topic orders"):
        poll_until_it_fails(sender)
    assert pending.outstanding == 1
    assert sender.acknowledged == 0
    with pytest.raises(CdcError, match="topic orders"):
        sender.poll(0)


def test_refusals_that_are_kept_are_no_error(mock_brokers: Callable[..., None]) -> None:
    """Refusals of librdkafka come at once, and those of the broker later: each with its `pending`."""
    mock_brokers(**{"message.timeout.ms": 200, "linger.ms": 0, "test.mock.broker.rtt": 5000})
    sender = Sender(KafkaSettings(), keeps_refusals=True)
    many, two = PendingMessages(outstanding=5), PendingMessages(outstanding=2)
    assert sender.send("orders", b"key", bytes(MOST_MESSAGE_BYTES + 1), many)
    for number in range(7):
        pending = many if number % 3 != 1 else two
        assert sender.send("orders" if number % 2 else "users", b"key", b"value", pending)
    assert sender.send_to_raw_partition("users", 0, b"heartbeat")
    refused: dict[tuple[object, str, bool], int] = {}
    deadline = monotonic() + SECONDS
    while sum(refused.values()) < 9 and monotonic() < deadline:
        sender.poll(0.1)
        for refusal in [*sender.take_refusals("users"), *sender.take_refusals()]:
            place = refusal.pending, refusal.topic, refusal.is_too_large
            refused[place] = refused.get(place, 0) + refusal.messages
    assert refused == {
        (many, "users", False): 3,
        (many, "orders", False): 2,
        (many, "orders", True): 1,
        (two, "users", False): 1,
        (two, "orders", False): 1,
        (None, "users", False): 1,
    }
    assert (many.outstanding, two.outstanding, sender.acknowledged) == (5, 2, 0)
    assert sender.take_refusals() == []


def test_partitions_of_a_topic_that_nobody_knows(sender: Sender) -> None:
    with pytest.raises(CdcError) as caught:
        sender.refresh_metadata("topic")
    assert caught.value.code is Code.KAFKA_UNREACHABLE


def test_lines_of_librdkafka_go_to_the_log(
    sender: Sender, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LIBRDKAFKA_LOGGER, "filters", [])  # which let a line pass once in a while
    assert send(sender, 1)
    for _ in range(100):
        sender.poll(0.1)
        if caplog.records:
            break
    assert caplog.records[0].name == "librdkafka"
    assert caplog.records[0].levelname == "ERROR"
    assert "Connect to" in caplog.records[0].getMessage()


def test_a_property_that_does_not_exist(mock_brokers: Callable[..., None]) -> None:
    mock_brokers(**{"no.such.property": 1})
    with pytest.raises((ValueError, KafkaException), match=r"no\.such\.property"):
        Sender(KafkaSettings())


def test_keys_have_one_partition_by_both_producers() -> None:
    """The partition is that of Kafka's Java client."""
    placed = []
    for kind in (NativeProducer, ConfluentProducer):
        if kind is NativeProducer and not cdc_native.is_compiled():
            continue
        opened: NativeProducer | ConfluentProducer = kind({**MOCK, "partitioner": "murmur2"}, QUEUE_BYTES)
        partitions = {}
        for number in range(40):
            opened.send("topic", BY_KEY, b"key%d" % number, b"value", PendingMessages())
            while not (report := opened.poll(1.0)).places:
                pass
            [(_, partitions[number])] = report.places
        placed.append(partitions)
    assert all(partitions == placed[0] for partitions in placed)
    assert {placed[0][number] for number in range(40)} == {0, 1, 2, 3}


def test_a_login_that_is_refused_while_it_runs_is_told() -> None:
    """librdkafka would try without limit, and the login of the settings file may be a new one."""
    login: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}

    def poll_until_refused(sender: Sender) -> None:
        deadline = monotonic() + REFUSED_SECONDS
        while monotonic() < deadline:
            sender.poll(0.1)

    with refusing_broker() as servers:
        sender = Sender(
            KafkaSettings(bootstrap_servers=servers, sasl_username="cdc", sasl_password=SecretStr("old"), **login)
        )
        with pytest.raises(CdcError, match="Invalid username or password") as caught:
            poll_until_refused(sender)
    assert caught.value.code is Code.KAFKA_REFUSED


def test_a_login_that_one_of_several_brokers_refuses_is_tried_again() -> None:
    sender = Sender(KafkaSettings())
    refused, down = (KafkaError(code) for code in (KafkaError._AUTHENTICATION, KafkaError._ALL_BROKERS_DOWN))
    for error, acknowledged in ((refused, 0), (refused, 1), (down, 0), (down, 1), (refused, 0)):
        sender._take(Report([], acknowledged, 0.0, [], [error] if not acknowledged else [], []), 0.0)
        assert sender._failure is None
    sender._take(Report([], 0, 0.0, [], [down], []), 0.0)
    assert sender._failure is not None


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
