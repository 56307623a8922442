"""Single partitions read to an end, on a real broker: with aborted transactions, and from offsets that are gone."""

from __future__ import annotations

import threading
from itertools import islice
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_common.settings import KafkaSettings
from materializer.records import RawPartition
from stream_runtime.kafka import clients, read_partition, read_raw

if TYPE_CHECKING:
    from dev.local_stack.servers.kafka import KafkaBroker

pytestmark = pytest.mark.servers
PARTITION = 1


@pytest.fixture
def topic(kafka: KafkaBroker, request: pytest.FixtureRequest) -> str:
    name = f"{request.node.name}.raw.ks.t"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})  # its requests end with it
    admin.create_topics([NewTopic(name, 2, 1)])[name].result()
    return name


@pytest.fixture
def settings(kafka: KafkaBroker) -> KafkaSettings:
    return KafkaSettings(bootstrap_servers=kafka.bootstrap_servers)


def send(settings: KafkaSettings, topic: str, values: range) -> None:
    producer = Producer({"bootstrap.servers": settings.bootstrap_servers})
    for value in values:
        producer.produce(topic, str(value).encode(), b"k", PARTITION)
    assert not producer.flush(30)


def test_a_partition_is_read_without_what_was_aborted(settings: KafkaSettings, topic: str) -> None:
    writer = Producer({"bootstrap.servers": settings.bootstrap_servers, "transactional.id": topic})
    writer.init_transactions(30)
    for value, commits in ((b"1", True), (b"2", False), (None, True)):
        writer.begin_transaction()
        writer.produce(topic, value, b"k", PARTITION)
        writer.flush(30)
        (writer.commit_transaction if commits else writer.abort_transaction)(30)
    assert list(read_partition(settings, topic, PARTITION)) == [(b"k", b"1"), (b"k", None)]
    assert list(read_partition(settings, topic, 0)) == []


def test_raw_records_of_a_range(settings: KafkaSettings, topic: str) -> None:
    send(settings, topic, range(10))
    where = RawPartition(topic, PARTITION)
    read = list(read_raw(settings, where, 3, 7))
    assert [(record.offset, record.value) for record in read] == [(at, b"%d" % at) for at in range(3, 7)]
    assert list(read_raw(settings, where, 7, 7)) == []


def test_the_last_of_a_range_is_waited_for(settings: KafkaSettings, topic: str) -> None:
    send(settings, topic, range(2))
    records = read_raw(settings, RawPartition(topic, PARTITION), 0, 3)
    assert [record.offset for record in islice(records, 2)] == [0, 1]
    late = threading.Timer(2.0, send, (settings, topic, range(2, 3)))
    late.start()
    assert [record.offset for record in records] == [2]
    late.join()


def test_records_that_never_come_are_an_error(
    settings: KafkaSettings, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "TIMEOUT", 3.0)
    with pytest.raises(KafkaException) as raised:
        list(read_raw(settings, RawPartition(topic, PARTITION), 0, 1))
    assert raised.value.args[0].code() == KafkaError._TIMED_OUT


def test_offsets_that_are_gone_are_an_error(settings: KafkaSettings, topic: str) -> None:
    send(settings, topic, range(4))
    admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers})
    for done in admin.delete_records([TopicPartition(topic, PARTITION, 2)]).values():
        done.result()
    with pytest.raises(KafkaException) as raised:
        list(read_raw(settings, RawPartition(topic, PARTITION), 1, 4))
    assert raised.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET
