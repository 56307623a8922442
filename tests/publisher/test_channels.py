"""What has no key goes to every partition that a raw topic has, also to those that it got while we run."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from cdc_program.errors import CdcError
from cdc_program.settings import KafkaSettings
from publisher import kafka as kafka_topics
from publisher.channels import Channels, RegistryIds, send_everywhere
from publisher.heartbeats import Heartbeats
from publisher.inflight import Mark
from publisher.schema import PublishedTable
from tests.materializer.raw_builder import TABLE, WRITER

if TYPE_CHECKING:
    from pathlib import Path

    from local_stack.interfaces import KafkaServer


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


def keep_counting(channels: Channels) -> None:
    """The broker takes a setting a moment after it has said so."""
    for _ in range(100):
        channels.recount()
        time.sleep(0.1)
