"""A message without a key goes to every raw partition, also to those that were added while the publisher runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.tables import request_key, request_to_json
from cdc_common.messages.topics import tables_topic
from cdc_common.settings import KafkaSettings
from publisher.inflight import PendingMessages
from publisher.kafka.sender import Refusal, Sender
from publisher.kafka.topic_admin import TopicAdmin
from publisher.tables.published_table import PublishedTable
from publisher.topics.raw_topics import RawTopics, RegistryIds, send_to_all_raw_partitions
from stream_runtime.kafka import send_all
from stream_runtime.records import Message
from tests.support.materializer.raw_builder import TABLE, WRITER
from tests.support.publisher.finish import finish
from tests.support.publisher.publisher_process import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker
    from publisher.kafka.table_error import TableError


class FakeTopicAdmin:
    """publisher.kafka.topic_admin.TopicAdmin, of one raw topic."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def ensure_raw_topic(self, topic: str) -> tuple[int, bool]:
        is_new = topic not in self.counts
        return self.counts.setdefault(topic, 2), is_new

    def check_raw_topics(self, _topics: set[str]) -> dict[str, TableError]:
        return {}

    def read_partition_counts(self) -> dict[str, int]:
        return self.counts


class FakeSender:
    """publisher.kafka.sender.Sender, acknowledging at once."""

    def __init__(self) -> None:
        self.partitions: list[int] = []

    def send(self, _topic: str, _key: bytes, _value: bytes, pending: PendingMessages) -> bool:
        pending.acknowledge()
        return True

    def send_to_raw_partition(self, _topic: str, partition: int, _value: bytes, pending: PendingMessages) -> bool:
        self.partitions.append(partition)
        pending.acknowledge()
        return True

    def poll(self, _seconds: float) -> None:
        return

    def take_refusals(self, _topic: str) -> list[Refusal]:
        return []

    def refresh_metadata(self, _topic: str) -> None:
        return


def raw_topics_of(admin: object, sender: object, folder: Path, prefix: str = "cdc", cluster: str = "test") -> RawTopics:
    ids = RegistryIds(folder / "registry.json", "http://registry", cast("Any", None))
    ids._ids[f"{prefix}.raw.shop.orders-value"] = 1
    return RawTopics(prefix, cluster, cast("Any", admin), cast("Any", sender), ids)


def test_partitions_that_come_later_are_seen(tmp_path: Path) -> None:
    admin, sender = FakeTopicAdmin(), FakeSender()
    raw_topics = raw_topics_of(admin, sender, tmp_path)
    table = PublishedTable(TABLE, TABLE.id.bytes, WRITER.digest)
    assert raw_topics.open(table).partitions == 2
    admin.counts["cdc.raw.shop.orders"] = 5
    raw_topics.refresh_partition_counts()
    raw_topic = raw_topics.open(table)
    finish(send_to_all_raw_partitions(cast("Any", sender), raw_topic, b"", PendingMessages()))
    assert sender.partitions == [0, 1, 2, 3, 4]
    admin.counts.clear()  # the sender reports a missing topic
    raw_topics.refresh_partition_counts()
    assert raw_topics.open(table).partitions == 5
    recreated = replace(TABLE, id=uuid4())
    assert raw_topics.open(PublishedTable(recreated, recreated.id.bytes, b"digest")).partitions == 2  # created again


@pytest.mark.servers
def test_a_recreated_table_keeps_its_topic(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> None:
    admin = TopicAdmin(KafkaSettings(bootstrap_servers=kafka.bootstrap_servers))
    raw_topics = raw_topics_of(admin, FakeSender(), tmp_path, topic_prefix)
    recreated = replace(TABLE, id=uuid4())
    for table in (
        PublishedTable(TABLE, TABLE.id.bytes, WRITER.digest),
        PublishedTable(recreated, recreated.id.bytes, b"d"),
    ):
        raw_topic = raw_topics.open(table)
    raw_topics.refresh_partition_counts()
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, raw_topic.name, incremental_configs=[entry])
    client.incremental_alter_configs([resource])[resource].result()
    eventually(lambda: bool(raw_topics.refresh_partition_counts()))
    for found, problem in raw_topics.refresh_partition_counts():
        assert found.id in {TABLE.id.bytes, recreated.id.bytes}
        assert "it must be delete" in problem.problem


@pytest.mark.servers
def test_a_partition_that_came_just_now_is_sent_to(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> None:
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, raw_partitions=2)
    sender = Sender(settings)
    admin = TopicAdmin(settings)
    raw_topics = raw_topics_of(admin, sender, tmp_path, topic_prefix)
    raw_topics.open_tables_topic()
    table = PublishedTable(TABLE, TABLE.id.bytes, WRITER.digest)
    topic, pending = raw_topics.open(table).name, PendingMessages()
    finish(send_to_all_raw_partitions(sender, raw_topics.open(table), b"", pending))
    sender.flush(30)  # now the producer has heard of two partitions
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    client.create_partitions([NewPartitions(topic, 5)])[topic].result()
    eventually(lambda: admin.read_partition_counts()[topic] == 5)
    raw_topics.refresh_partition_counts()
    finish(send_to_all_raw_partitions(sender, raw_topics.open(table), b"", pending))
    sender.flush(30)
    assert pending.outstanding == 0
    assert {partition for name, partition in sender.last_sent if name == topic} == {0, 1, 2, 3, 4}


@pytest.mark.servers
def test_the_prefix_of_another_cluster_is_refused(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> None:
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, raw_partitions=1)
    sender, admin = Sender(settings), TopicAdmin(settings)
    table = PublishedTable(TABLE, TABLE.id.bytes, WRITER.digest, needs_snapshot_since=1)
    one, again, two = (raw_topics_of(admin, sender, tmp_path, topic_prefix, name) for name in ("one", "one", "two"))
    one.open_tables_topic()
    one.open(table)
    one.send_mark(table)
    again.open_tables_topic()
    with pytest.raises(
        CdcError, match="table schemas of the Cassandra cluster one; this node belongs to two"
    ) as caught:
        two.open_tables_topic()
    assert caught.value.code is Code.TOPIC_PREFIX_TAKEN
    assert "kafka.topic_prefix" in caught.value.fix
    raw_topics_of(admin, sender, tmp_path, f"{topic_prefix}-two", "two").open_tables_topic()


@pytest.mark.servers
def test_requests_for_snapshots_are_read_as_they_come(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> None:
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topic_prefix=topic_prefix)
    sender = Sender(settings)
    raw_topics = raw_topics_of(TopicAdmin(settings), sender, tmp_path, topic_prefix)
    raw_topics.open_tables_topic()
    raw_topics.open(PublishedTable(TABLE, TABLE.id.bytes, WRITER.digest))
    assert raw_topics.requests == {}
    for lost_at in (5, 7, 0):
        key, value = request_key(TABLE.id.bytes), request_to_json(lost_at)
        send_all(settings, [Message(tables_topic(topic_prefix), 0, key, value)])  # as the materializer does
        raw_topics.read_requests()
        assert raw_topics.requests == {TABLE.id.bytes: lost_at}
        raw_topics.read_requests()  # nothing new
        assert raw_topics.requests == {TABLE.id.bytes: lost_at}
    send_all(settings, [Message(tables_topic(topic_prefix), 0, request_key(bytes(16)), b"{}")])
    raw_topics.read_requests()
    assert raw_topics.requests == {TABLE.id.bytes: 0}


@pytest.mark.servers
def test_brokers_that_a_new_topic_lacks_are_waited_for(kafka: KafkaBroker, topic_prefix: str) -> None:
    admin = TopicAdmin(KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, replication_factor=7))
    with pytest.raises(CdcError, match="too few brokers") as caught:
        admin.ensure_raw_topic(f"{topic_prefix}.raw.shop.orders")
    assert caught.value.code is Code.KAFKA_UNREACHABLE
