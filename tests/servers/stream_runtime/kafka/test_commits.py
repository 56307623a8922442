"""Kafka's transactions keep the contract of a commit protocol, on a real broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException

from cdc_common.errors.codes import CdcError
from cdc_common.settings import KafkaSettings
from stream_runtime.exactly_once.commits import StoredOffset
from stream_runtime.kafka import GroupPositions, Topics, read_partition
from stream_runtime.kafka.commits import KafkaCommits
from tests.support.stream_runtime.commit_contract import CONTRACT

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.local_stack.servers.kafka import KafkaBroker
    from stream_runtime.records import Share, SourcePartition
    from tests.support.stream_runtime.commit_contract import Store

pytestmark = pytest.mark.servers


def first_offset(_partition: SourcePartition) -> StoredOffset:
    return StoredOffset(0, '{"a":"field"}')


class KafkaStore:
    fenced: tuple[type[Exception], ...] = (KafkaException, CdcError)

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self.topic = topic
        self._settings = settings
        topics = Topics(settings)
        topics.make_change_topic(topic, 3, is_keyed=False)
        topics.make_change_topic(f"{topic}.target", 1, is_keyed=False)

    def open(self, share: Share) -> KafkaCommits:
        positions = GroupPositions(self._settings, self.topic)
        return KafkaCommits(self._settings, self.topic, share, positions, first_offset=first_offset)

    def keys(self) -> list[bytes]:
        return [key for key, _ in read_partition(self._settings, f"{self.topic}.target", 0)]


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
def test_kafka_keeps_the_contract(check: Callable[[Store], None], kafka: KafkaBroker, topic_prefix: str) -> None:
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, replication_factor=1)
    check(KafkaStore(settings, topic_prefix))
