"""Producers and consumers by schema, against a running service and a Kafka in memory: topics that change, and a service
that is away or refuses.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import httpx
import pytest
from confluent_kafka import KafkaError, KafkaException

from cdc_common.clients.by_schema import consumer
from cdc_common.clients.by_schema.consumer import SchemaConsumer
from cdc_common.clients.by_schema.kafka import Service
from cdc_common.clients.by_schema.messages import Encoder, MisfitError
from cdc_common.clients.by_schema.producer import SchemaProducer
from cdc_common.clients.registry.errors import RegistryRequestError
from cdc_common.clients.registry.schematizer import SchematizerClient
from cdc_common.clients.registry.views import FieldText, SourceDocumentation
from tests.support.schematizer.memory_clients import MemoryConsumer, MemoryMessage, MemoryProducer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Producer

    from tests.support.schematizer.registry_process import Registry

Produce: TypeAlias = Callable[..., SchemaProducer]
Consume: TypeAlias = Callable[..., tuple[SchemaConsumer, MemoryConsumer]]

REST = "/api/v1"
WRITER, READER = Service("team", "writer"), Service("team", "reader")
SOON = 0.05  # seconds
DEADLINE_SECONDS = 60.0
KEY = json.dumps({"type": "record", "name": "user_key", "fields": [{"name": "id", "type": "int"}]})


def record(*names: str, key: str = "id") -> str:
    more = [{"name": name, "type": ["null", "string"], "default": None} for name in names]
    fields = [{"name": "id", "type": "int"}, *more]
    return json.dumps({"type": "record", "name": "users", "primaryKey": [key], "fields": fields})


@pytest.fixture
def client(registry: Registry) -> Iterator[SchematizerClient]:
    with SchematizerClient(registry.url, attempts=1) as opened:
        yield opened


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """A namespace for this test alone."""
    return f"by.{request.node.name}".replace("[", "-").replace("]", "")


@pytest.fixture
def kafka() -> MemoryProducer:
    return MemoryProducer()


@pytest.fixture
def produce(client: SchematizerClient, namespace: str, kafka: MemoryProducer) -> Iterator[Produce]:
    """Opens a producer of the source `users`."""
    opened: list[SchemaProducer] = []

    def make(schema: str | int, key: str | None = None, seconds: float = SOON) -> SchemaProducer:
        made = cast("Producer", kafka)
        known: dict[str, Any] = {"namespace": namespace, "source": "users", "refresh_seconds": seconds}
        opened.append(SchemaProducer(client, made, WRITER, schema=schema, key=key, **known))
        return opened[-1]

    yield make
    for producer in opened:
        producer.close()


@pytest.fixture
def consume(client: SchematizerClient, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Consume]:
    """Opens a consumer of the source `users`, or of what is given."""
    opened: list[SchemaConsumer] = []
    monkeypatch.setattr(consumer, "Consumer", MemoryConsumer)

    def make(**given: Any) -> tuple[SchemaConsumer, MemoryConsumer]:  # noqa: ANN401 - the consumer's
        wanted = {"sources": [(namespace, "users")], "refresh_seconds": SOON, **given}
        opened.append(SchemaConsumer(client, {"group.id": namespace}, READER, **wanted))
        return opened[-1], cast("MemoryConsumer", opened[-1]._consumer)

    yield make
    for open_consumer in opened:
        open_consumer.close()
        assert cast("MemoryConsumer", open_consumer._consumer).is_closed


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(SOON)


def go_away(client: SchematizerClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def request(*_arguments: object, **_options: object) -> object:
        raise httpx.ConnectError("away")

    monkeypatch.setattr(client._transport._client, "request", request)


# Producers


def test_values_go_to_the_topic_that_the_service_names(
    registry: Registry, client: SchematizerClient, namespace: str, kafka: MemoryProducer, produce: Produce
) -> None:
    producer = produce(record("a"), KEY)
    kafka.full = 2
    producer.produce({"id": 1}, {"id": 1})
    producer.produce(None, {"id": 1})
    [value_id, key_id] = [client.schemas(producer.topic)[at].schema_id for at in (0, 1)]
    value, key = Encoder(value_id, record("a")).encode({"id": 1}), Encoder(key_id, KEY).encode({"id": 1})
    assert kafka.sent == [(f"{namespace}.users", key, value), (f"{namespace}.users", key, None)]
    path = f"{REST}/producers?topic={producer.topic}"
    wait_until(lambda: bool(registry.call("GET", path).body))
    [seen] = registry.call("GET", path).body
    assert (seen["team"], seen["service"], seen["schema_id"]) == ("team", "writer", value_id)
    assert seen["expected_frequency_seconds"] == 60


def test_another_primary_key_is_another_topic_at_once(namespace: str, kafka: MemoryProducer, produce: Produce) -> None:
    producer = produce(record("a"))
    producer.produce({"id": 1}, "1")
    producer.set_schema(record("a", key="a"))
    producer.produce({"id": 1, "a": "x"}, b"x")
    topics = f"{namespace}.users", f"{namespace}.users-v2"
    assert [(message.topic, message.key) for message in kafka.sent] == [(topics[0], "1"), (topics[1], b"x")]
    with pytest.raises(RegistryRequestError):
        producer.set_schema('{"type": "nothing"}')
    assert producer.topic == topics[1]


def test_a_field_that_becomes_personal_moves_a_running_producer(
    client: SchematizerClient, namespace: str, produce: Produce
) -> None:
    producer = produce(record("a"))
    first = producer.topic
    client.document(namespace, "users", SourceDocumentation(fields={"a": FieldText(pii=True)}))
    wait_until(lambda: producer.topic != first)
    assert producer.topic == f"pii-{namespace}.users-v2"


def test_a_schema_by_its_id(client: SchematizerClient, namespace: str, kafka: MemoryProducer, produce: Produce) -> None:
    made = client.register(namespace, "avro", record("a"), key=KEY)
    produce(made.schema_id).produce({"id": 1}, {"id": 7})
    assert made.key_schema_id is not None
    key = Encoder(made.key_schema_id, KEY).encode({"id": 7})
    assert kafka.sent == [(made.topic, key, Encoder(made.schema_id, record("a")).encode({"id": 1}))]
    with pytest.raises(RegistryRequestError, match="takes values of schema 100000"):
        produce(100_000)


def test_a_producer_goes_on_while_the_service_is_away(
    client: SchematizerClient, kafka: MemoryProducer, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = produce(record("a"))
    go_away(client, monkeypatch)
    time.sleep(4 * SOON)
    producer.produce({"id": 1})
    assert kafka.sent[0].topic == producer.topic
    with pytest.raises(RegistryRequestError, match="away"):
        produce(record("a"))


def test_a_schema_that_is_refused_later_stops_the_producer_until_it_is_not(
    registry: Registry, produce: Produce
) -> None:
    producer = produce(record("a"))
    path = f"{REST}/topics/{producer.topic}/status"

    def is_refused() -> bool:
        try:
            producer.produce({"id": 1})
        except RegistryRequestError as error:
            return error.status == 409
        return False

    registry.call("PUT", path, {"status": "read-only"})
    wait_until(is_refused)
    registry.call("PUT", path, {"status": "read-write"})
    wait_until(lambda: not is_refused())


def test_what_kafka_refuses_is_raised_by_flush_once(kafka: MemoryProducer, produce: Produce) -> None:
    producer = produce(record())
    kafka.error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    producer.produce({"id": 1})
    with pytest.raises(KafkaException):
        producer.flush()
    producer.flush()
    seen: list[object] = []
    producer.produce({"id": 1}, on_delivery=lambda error, _: seen.append(error))
    producer.flush()
    assert seen == [kafka.error]


def test_a_key_without_a_schema_is_text_or_bytes(produce: Produce) -> None:
    with pytest.raises(MisfitError, match="give text or bytes"):
        produce(record()).produce({"id": 1}, {"id": 1})


# Consumers


def message(client: SchematizerClient, namespace: str, number: int, text: str, **more: Any) -> MemoryMessage:  # noqa: ANN401
    """A message with the schema `text`, at the offset `number`, which is its id."""
    made = client.register(namespace, "avro", text)
    return MemoryMessage(made.topic, b"k", Encoder(made.schema_id, text).encode({"id": number, **more}), number)


def next_value(reads: SchemaConsumer) -> Any:  # noqa: ANN401 - what the schema says
    received = reads.poll(0)
    assert received is not None
    return received.value


def test_a_message_is_processed_when_the_next_one_is_asked_for(
    registry: Registry, client: SchematizerClient, namespace: str, consume: Consume
) -> None:
    first, second = (message(client, namespace, number, record("a")) for number in (1, 2))
    reads, kafka = consume()
    kafka.coming.extend((first, second, first._replace(of_value=None, at=3)))
    received = [next(iter(reads)) for _ in range(3)]
    assert [message.value for message in received] == [{"id": 1, "a": None}, {"id": 2, "a": None}, None]
    assert [(message.namespace, message.source, message.key) for message in received] == [
        (namespace, "users", b"k")
    ] * 3
    assert kafka.stored == [(first.of_topic, 1), (first.of_topic, 2)]
    reads.commit()
    assert kafka.stored[-1] == (first.of_topic, 3)
    path = f"{REST}/consumers?topic={first.of_topic}"
    wait_until(lambda: bool(registry.call("GET", path).body))
    [seen] = registry.call("GET", path).body
    assert (seen["team"], seen["service"], seen["consumer_group"]) == ("team", "reader", namespace)


def test_a_topic_that_comes_later_is_read_as_the_reader_s_schema(
    client: SchematizerClient, namespace: str, consume: Consume
) -> None:
    first = message(client, namespace, 1, record("a"), a="x")
    reads, kafka = consume(schema=record("b"))
    kafka.coming.append(first)
    assert next_value(reads) == {"id": 1, "b": None}
    kafka.coming.append(message(client, namespace, 2, record("b", key="b"), b="y"))
    wait_until(lambda: reads._wanted == [f"{namespace}.users", f"{namespace}.users-v2"])
    assert next_value(reads) == {"id": 2, "b": "y"}
    assert kafka.topics == [f"{namespace}.users", f"{namespace}.users-v2"]


@pytest.mark.parametrize("what", ["data_target", "schema"])
def test_topics_of_a_data_target_or_of_a_schema(
    client: SchematizerClient, namespace: str, consume: Consume, what: str
) -> None:
    made = client.register(namespace, "avro", record(what))  # a schema that no other source has
    client.register(namespace, "avro", record(what, key=what))
    client.put_data_target(namespace, "redshift", "cluster", owner="team")
    group = client.put_consumer_group(namespace, f"{namespace}-group", [(namespace, None)])
    assert [(data_source.namespace, data_source.source) for data_source in group.data_sources] == [(namespace, None)]
    given = {"data_target": namespace} if what == "data_target" else {"schema": made.schema_id}
    reads, kafka = consume(sources=(), **given)
    assert reads.poll(0) is None
    assert kafka.topics == [made.topic, f"{made.topic}-v2"]


def test_what_is_known_is_read_while_the_service_is_away_and_the_rest_waits(
    client: SchematizerClient, namespace: str, consume: Consume, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [message(client, namespace, number, record("a")) for number in (1, 2)]
    unknown = message(client, namespace, 3, record("a", "b"))
    reads, kafka = consume()
    kafka.coming.append(known[0])
    assert next_value(reads)["id"] == 1
    with monkeypatch.context() as patch:
        go_away(client, patch)
        kafka.coming.extend((known[1], unknown))
        assert next_value(reads)["id"] == 2
        assert [reads.poll(0) for _ in range(3)] == [None] * 3
        assert kafka.stored == [(known[0].of_topic, 1), (known[0].of_topic, 2)]
    assert next_value(reads) == {"id": 3, "a": None, "b": None}


def test_a_message_that_cannot_be_read_is_named_and_can_be_passed_over(
    client: SchematizerClient, namespace: str, consume: Consume
) -> None:
    good = message(client, namespace, 2, record("a"))
    reads, kafka = consume()
    kafka.coming.extend((MemoryMessage(good.of_topic, None, b"plain", 1), good))
    with pytest.raises(MisfitError, match=rf"{good.of_topic} \[0\] at offset 1"):
        reads.poll(0)
    assert kafka.stored == []
    assert next_value(reads)["id"] == 2
    assert kafka.stored == [(good.of_topic, 1)]


def test_keys_are_decoded_where_they_have_a_schema(client: SchematizerClient, namespace: str, consume: Consume) -> None:
    made = client.register(namespace, "avro", record(), key=KEY)
    assert made.key_schema_id is not None
    reads, kafka = consume()
    kafka.coming.append(MemoryMessage(made.topic, Encoder(made.key_schema_id, KEY).encode({"id": 5}), None))
    received = reads.poll(0)
    assert received is not None
    assert received.key == {"id": 5}


def test_a_partition_that_has_gone_to_another_consumer(
    client: SchematizerClient, namespace: str, consume: Consume
) -> None:
    one = message(client, namespace, 1, record())
    reads, kafka = consume()
    kafka.coming.append(one)
    assert reads.poll(0) is not None
    kafka.is_lost = True
    assert reads.poll(0) is None
    reads.commit()
    assert kafka.stored == []


def test_errors_of_kafka(client: SchematizerClient, namespace: str, consume: Consume) -> None:
    client.register(namespace, "avro", record())
    reads, kafka = consume()
    for code in (KafkaError._PARTITION_EOF, KafkaError.TOPIC_AUTHORIZATION_FAILED):
        kafka.coming.append(MemoryMessage("", None, None, 0, KafkaError(code)))
    assert reads.poll(0) is None
    with pytest.raises(KafkaException):
        reads.poll(0)


def test_what_a_consumer_cannot_begin_with(client: SchematizerClient, namespace: str) -> None:
    client.register(namespace, "avro", record())
    sources = [(namespace, "users")]

    def begin(settings: dict[str, Any], **given: Any) -> None:  # noqa: ANN401 - the consumer's
        SchemaConsumer(client, settings, READER, **given)

    group = {"group.id": "g"}
    for name, value in (("auto.offset.reset", "latest"), ("enable.auto.offset.store", True)):
        with pytest.raises(ValueError, match=name):
            begin({**group, name: value}, sources=sources)
    with pytest.raises(ValueError, match=r"group\.id"):
        begin({}, sources=sources)
    with pytest.raises(ValueError, match="Give sources, a data target"):
        begin(group, schema=record())
    with pytest.raises(ValueError, match="not both"):
        begin(group, sources=sources, data_target="d")
    with pytest.raises(RegistryRequestError, match="usres"):
        begin(group, sources=[*sources, (namespace, "usres")])
    with pytest.raises(RegistryRequestError, match="100000"):
        begin(group, schema=100_000)
