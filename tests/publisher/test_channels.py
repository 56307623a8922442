"""What has no key goes to every partition that a raw topic has, also to those that it got while we run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from publisher.channels import Channels, RegistryIds, send_everywhere
from publisher.heartbeats import Heartbeats
from publisher.inflight import Mark
from publisher.schema import PublishedTable
from tests.materializer.raw_builder import TABLE, WRITER

if TYPE_CHECKING:
    from pathlib import Path


class Topics:
    """publisher.kafka.Topics, of one raw topic."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def ensure_raw(self, topic: str) -> int:
        return self.counts.setdefault(topic, 2)

    def check_raw(self, _topics: list[str]) -> None:
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


def test_partitions_that_come_later_are_seen(tmp_path: Path) -> None:
    topics, sender = Topics(), Sender()
    ids = RegistryIds(tmp_path / "registry.json", "http://registry", cast("Any", None))
    ids._ids["cdc.raw.shop.orders-value"] = 1
    channels = Channels("cdc", "test", cast("Any", topics), cast("Any", sender), ids)
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
