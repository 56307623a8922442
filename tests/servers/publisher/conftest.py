"""A publisher beside the tests' real servers, and what it has sent."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition

from cdc_common.messages import topics
from cdc_common.messages.watermarks import decode
from cdc_common.settings import KafkaSettings
from dev.local_stack.servers.cassandra import CassandraCluster
from publisher.inflight import PendingPosition
from publisher.log.cdc_raw import list_cdc_segments
from publisher.log.position import Positions
from stream_runtime.kafka import TopicReader
from tests.support.publisher.flaky_registry import FlakyRegistry
from tests.support.publisher.publisher_process import PublisherProcess, settings_beside
from tests.support.publisher.sent import Sent, SentSchemas, open_consumer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cassandra.cluster import Session

    from cdc_common.messages.watermarks import Watermark
    from dev.local_stack.servers.kafka import KafkaBroker

ANSWER_SECONDS = 30.0
SYNC_SECONDS = 1.5  # the tests' commit log syncs once a second


@pytest.fixture(scope="session")
def registry_url() -> Iterator[str]:
    """A registry that registers every schema."""
    with FlakyRegistry() as registry:
        yield registry.url


@pytest.fixture
def kafka_parts(kafka: KafkaBroker, registry_url: str, topic_prefix: str) -> dict[str, object]:
    """Settings: the tests' broker and registry, and topics of the test's own."""
    return {
        "kafka.bootstrap_servers": kafka.bootstrap_servers,
        "kafka.topic_prefix": topic_prefix,
        "registry.url": registry_url,
    }


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[Callable[..., CassandraCluster]]:
    """Starts a cluster of the test's own, of the arguments of CassandraCluster."""
    with ExitStack() as running:
        yield lambda **given: running.enter_context(CassandraCluster(folder=tmp_path / "cluster", **given))


@pytest.fixture
def publisher(
    cassandra: CassandraCluster, cql: Session, kafka_parts: dict[str, object], tmp_path: Path
) -> Iterator[PublisherProcess]:
    """Not started yet; it starts after the data of other tests, whose tables may be dropped."""
    folder = cassandra.nodes[0].cdc_raw
    assert folder is not None
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    skip_present_log(folder, state, cql)
    process = PublisherProcess(settings_beside(cassandra, state) | kafka_parts, tmp_path)
    yield process
    process.kill()


def skip_present_log(folder: Path, state: Path, cql: Session) -> None:
    time.sleep(SYNC_SECONDS)
    positions = Positions.load(state / "position.json", cql.execute("SELECT host_id FROM system.local").one().host_id)
    for file in list_cdc_segments(folder):
        index = file.read_index()
        if index is not None:
            positions.move([PendingPosition(file.id, index.offset, is_end=index.is_completed)])
    positions.save()


@pytest.fixture
def watermarks(kafka: KafkaBroker, topic_prefix: str) -> Callable[[], list[Watermark]]:
    """The watermarks that have been sent."""
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap_servers)

    def read() -> list[Watermark]:
        messages = TopicReader(settings, topics.watermarks_topic(topic_prefix)).read_to_end()
        return [decode(value) for _, value in messages]

    return read


@pytest.fixture
def sent(kafka: KafkaBroker, topic_prefix: str) -> Callable[..., list[Sent]]:
    """Waits until a table's raw topic satisfies a condition and returns all of it, in the order of each partition."""

    def wait(keyspace: str, table: str, enough: Callable[[list[Sent]], bool], seconds: float = 60.0) -> list[Sent]:
        schemas = SentSchemas(kafka.bootstrap_servers, topics.tables_topic(topic_prefix))
        topic = topics.raw_topic(topic_prefix, keyspace, table)
        found: list[Sent] = []
        deadline = time.monotonic() + seconds
        consumer = open_consumer(kafka.bootstrap_servers)
        try:
            # Each call has an end: after a pause of the broker the client may wait for an answer that never comes.
            while topic not in consumer.list_topics(timeout=ANSWER_SECONDS).topics:
                assert time.monotonic() < deadline, f"{topic} is not made"
                time.sleep(0.1)
            partitions = consumer.list_topics(timeout=ANSWER_SECONDS).topics[topic].partitions
            consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
            while not enough(found):
                assert time.monotonic() < deadline, f"{len(found)} messages in {topic}"
                for message in consumer.consume(1000, timeout=0.2):
                    assert message.error() is None
                    partition, value = message.partition(), message.value()
                    assert partition is not None
                    assert value is not None
                    found.append(schemas.decode(partition, message.key(), value))
        finally:
            consumer.close()
        return found

    return wait
