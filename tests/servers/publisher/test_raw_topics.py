"""What has no key goes to every partition that a raw topic has, also to those that it got while we run."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions

from cdc_program.errors import CdcError, Code
from cdc_program.settings import KafkaSettings
from publisher import kafka as kafka_topics
from publisher.heartbeats import Heartbeats
from publisher.inflight import Mark
from publisher.raw_topics import Channels, RegistryIds, send_everywhere
from publisher.schema import PublishedTable
from tests.support.materializer.raw_builder import TABLE, WRITER
from tests.support.publisher.publisher_process import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from local_stack.servers.interfaces import KafkaServer


class Topics:
    """publisher.kafka.Topics, of one raw topic."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def ensure_raw(self, topic: str) -> int:
        return self.counts.setdefault(topic, 2)

    def check_raw(self, _topics: set[str]) -> None:
        return

    def partition_counts(self) -> dict[str, int]:
        return self.counts


class Sender:
    """publisher.kafka.Sender, acknowledging at once."""

    def __init__(self) -> None:
        self.partitions: list[int] = []

    def send(self, _topic: str, _key: bytes, _value: bytes, waiting: Mark) -> bool:
        waiting.acknowledge()
        return True

    def send_to_partition(self, _topic: str, partition: int, _value: bytes, waiting: Mark) -> bool:
        self.partitions.append(partition)
        waiting.acknowledge()
        return True

    def poll(self, _seconds: float) -> None:
        return

    def learn(self, _topic: str) -> None:
        return


def channels_of(topics: object, sender: object, folder: Path, prefix: str = "cdc") -> Channels:
    ids = RegistryIds(folder / "registry.json", "http://registry", cast("Any", None))
    ids._ids[f"{prefix}.raw.shop.orders-value"] = 1
    return Channels(prefix, "test", cast("Any", topics), cast("Any", sender), ids)


def test_partitions_that_come_later_are_seen(tmp_path: Path) -> None:
    topics, sender = Topics(), Sender()
    channels = channels_of(topics, sender, tmp_path)
    table = PublishedTable(TABLE, TABLE.id.bytes, WRITER.digest)
    assert channels.get(table).partitions == 2
    topics.counts["cdc.raw.shop.orders"] = 5
    channels.recount()
    channel = channels.get(table)
    send_everywhere(cast("Any", sender), channel, b"", Mark(0, 0), lambda: None)
    assert sender.partitions == [0, 1, 2, 3, 4]
    beats = Heartbeats(10)
    list(beats.due([channel], {}, 0))
    assert [partition for _, partition in beats.due([channel], {}, 10)] == [0, 1, 2, 3, 4]
    topics.counts.clear()  # a topic that is gone is for what is sent there to tell
    channels.recount()
    assert channels.get(table).partitions == 5
    anew = replace(TABLE, id=uuid4())
    assert channels.get(PublishedTable(anew, anew.id.bytes, b"digest")).partitions == 2  # made anew


@pytest.mark.servers
def test_a_table_made_anew_has_the_topic_of_the_former_one(
    kafka: KafkaServer, topic_prefix: str, tmp_path: Path
) -> None:
    topics = kafka_topics.Topics(KafkaSettings(bootstrap_servers=kafka.bootstrap_servers))
    channels = channels_of(topics, Sender(), tmp_path, topic_prefix)
    anew = replace(TABLE, id=uuid4())
    for table in (PublishedTable(TABLE, TABLE.id.bytes, WRITER.digest), PublishedTable(anew, anew.id.bytes, b"d")):
        channel = channels.get(table)
    channels.recount()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, channel.topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result()
    with pytest.raises(CdcError, match="it must be delete"):
        keep_counting(channels)


@pytest.mark.servers
def test_a_partition_that_came_just_now_is_sent_to(kafka: KafkaServer, topic_prefix: str, tmp_path: Path) -> None:
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, raw_partitions=2)
    sender = kafka_topics.Sender(settings)
    topics = kafka_topics.Topics(settings)
    channels = channels_of(topics, sender, tmp_path, topic_prefix)
    channels.start()
    table = PublishedTable(TABLE, TABLE.id.bytes, WRITER.digest)
    topic, mark = channels.get(table).topic, Mark(0, 0)
    send_everywhere(sender, channels.get(table), b"", mark, lambda: None)
    sender.flush(30)  # now the producer has heard of two partitions
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result()
    eventually(lambda: topics.partition_counts()[topic] == 5)
    channels.recount()
    send_everywhere(sender, channels.get(table), b"", mark, lambda: None)
    sender.flush(30)
    assert mark.outstanding == 0
    assert {partition for name, partition in sender.last_sent if name == topic} == {0, 1, 2, 3, 4}


@pytest.mark.servers
def test_brokers_that_a_new_topic_lacks_are_waited_for(kafka: KafkaServer, topic_prefix: str) -> None:
    topics = kafka_topics.Topics(KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, replication_factor=7))
    with pytest.raises(CdcError, match="too few brokers") as caught:
        topics.ensure_raw(f"{topic_prefix}.raw.shop.orders")
    assert caught.value.code is Code.KAFKA_UNREACHABLE


def keep_counting(channels: Channels) -> None:
    """The broker takes a setting a moment after it has said so."""
    for _ in range(100):
        channels.recount()
        time.sleep(0.1)
