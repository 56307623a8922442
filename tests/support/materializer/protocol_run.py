"""A raw partition and the task that counts its messages, run as Spark's workers do.

The task is given the whole raw partition in batches, from the first offset on: it goes on where the group stands.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import Consumer, Message, TopicPartition

from cdc_common.settings import KafkaSettings
from materializer.records import RawPartition, RawRecord
from materializer.settings import MaterializerSettings
from materializer.worker.open_partitions import OpenPartitions
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.object_store import ObjectStore
from tests.support.materializer.counting import CHANGE_PARTITIONS, IDLE_KEY, CountingPlan, change_topic_of

if TYPE_CHECKING:
    from collections.abc import Iterator

BATCH = 50
CHUNK = 20
SNAPSHOT_EVERY = 4
KEPT = 3
ROOT = Path(__file__).resolve().parents[3]


class Setup(NamedTuple):
    """The servers and folders of a run; raw messages are those of partition 0 of the topic.

    `location` is the checkpoint location, if it is none in the folder.
    """

    bootstrap: str
    prefix: str
    folder: str
    location: str = ""

    @property
    def raw(self) -> RawPartition:
        return RawPartition(f"{self.prefix}.raw.shop.orders", 0)

    @property
    def changes(self) -> str:
        return change_topic_of(self.raw.topic)

    @property
    def state(self) -> Path:
        return Path(self.folder) / "state"

    @property
    def checkpoint(self) -> str:
        return self.location or str(Path(self.folder) / "checkpoint")

    @property
    def stored(self) -> Path:
        """The partition's folder in a local checkpoint location."""
        return Path(self.checkpoint) / self.prefix / str(self.raw)

    @property
    def checkpoints(self) -> CheckpointStore:
        return CheckpointStore(ObjectStore(self.checkpoint), self.prefix, self.raw)

    def plan(self, **settings: object) -> CountingPlan:
        materializer = MaterializerSettings(
            group_id=self.prefix,
            checkpoint_location=self.checkpoint,
            state_directory=self.state,
            chunk_max_messages=CHUNK,
            snapshot_every_versions=SNAPSHOT_EVERY,
            changelog_retention_versions=KEPT,
            changelog_retention_seconds=0,
        )
        kafka = KafkaSettings(bootstrap_servers=self.bootstrap, topic_prefix=self.prefix)
        return CountingPlan({}, kafka, materializer.model_copy(update=settings))

    def records(self) -> list[RawRecord]:
        """All of the raw partition."""
        return [
            RawRecord(message.key() or b"", message.value() or b"", message.offset() or 0, message.timestamp()[1])
            for message in read_topic(self.bootstrap, self.raw.topic, 1)
        ]

    def run(self, until: int | None = None, **settings: object) -> None:
        """Run in this process, up to an offset."""
        plan = self.plan(**settings)
        records = self.records()[:until]
        open_partitions = OpenPartitions()
        try:
            for start in range(0, len(records), BATCH):
                open_partitions.process(plan, self.raw, records[start : start + BATCH])
        finally:
            open_partitions.close_all()

    def counts(self) -> dict[bytes, list[list[int]]]:
        """The committed change messages of each key: [before, after]."""
        found: dict[bytes, list[list[int]]] = defaultdict(list)
        for message in read_topic(self.bootstrap, self.changes, CHANGE_PARTITIONS):
            key, value = message.key(), message.value()
            assert key is not None
            assert value is not None
            found[key].append(json.loads(value))
        return found

    def check(self, until: int | None = None) -> None:
        """Every raw message came out once, in order."""
        expected: dict[bytes, list[list[int]]] = defaultdict(list)
        for record in self.records()[:until]:
            if record.key == IDLE_KEY:
                continue
            before = len(expected[record.key])
            expected[record.key].append([before, before + 1])
        assert self.counts() == expected


def read_topic(bootstrap: str, topic: str, partitions: int) -> Iterator[Message]:
    """Its committed messages."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "protocol-run",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # the end shows in an answer without messages
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    unfinished = set(range(partitions))
    while unfinished:
        message = consumer.poll(1.0)  # which does not wait for more, as `consume` does
        if message is None:
            continue
        if message.error() is None:
            yield message
        else:
            unfinished.discard(message.partition())
    consumer.close()
