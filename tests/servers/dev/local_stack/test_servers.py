"""The shared servers answer, and what they write is where they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from dev.local_stack.process.processes import wait_until

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from dev.local_stack.servers.cassandra import CassandraCluster
    from dev.local_stack.servers.kafka import KafkaBroker

pytestmark = pytest.mark.servers


def test_a_write_to_a_cdc_table_reaches_cdc_raw(cassandra: CassandraCluster, cql: Session, fresh_keyspace: str) -> None:
    cql.execute(f"CREATE TABLE {fresh_keyspace}.a (k int PRIMARY KEY, v text) WITH cdc = true")
    cql.execute(f"INSERT INTO {fresh_keyspace}.a (k, v) VALUES (1, 'one')")
    raw = cassandra.nodes[0].cdc_raw
    wait_until(lambda: any(raw.glob("*_cdc.idx")), "an index file in cdc_raw", 20)
    assert any(raw.glob("CommitLog-7-*.log"))


def test_kafka_makes_topics_only_when_told(kafka: KafkaBroker, topic_prefix: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic(f"{topic_prefix}.a", 3, 1)])[f"{topic_prefix}.a"].result(20)
    # A broker knows of a new topic a moment after its controller has made it.
    wait_until(
        lambda: len(admin.list_topics(f"{topic_prefix}.a", 20).topics[f"{topic_prefix}.a"].partitions) == 3,
        "the topic",
        20,
    )
    assert admin.list_topics(f"{topic_prefix}.missing", 20).topics[f"{topic_prefix}.missing"].error is not None
