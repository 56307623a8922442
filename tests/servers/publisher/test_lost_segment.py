"""A segment is deleted while no publisher runs: the publisher says so, and a snapshot brings what was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdc_common.clients.cassandra import connect, read_node
from cdc_common.settings import CassandraSettings, KafkaSettings
from dev.local_stack.clients import cql as cql_client
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.stack import SYNC_PERIOD_MS
from filler.keyspace import create_keyspace
from filler.settings import FillerSettings
from publisher.log.cdc_raw import list_cdc_segments
from publisher.settings import Settings
from tests.support.publisher.publisher_process import eventually
from tests.support.publisher.snapshot_table import SECONDS, Folded, publisher_beside

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.cassandra import CassandraCluster
    from dev.local_stack.servers.kafka import KafkaBroker

pytestmark = [pytest.mark.servers, pytest.mark.timeout(240), pytest.mark.exhaustive]

ROWS = 30


def insert(client: CqlClient, keys: range) -> None:
    for key in keys:
        client.execute(f"INSERT INTO ks.t (k, v) VALUES ({key}, {key})")


def test_a_snapshot_brings_what_was_in_it(
    own_cluster: Callable[..., CassandraCluster],
    kafka: KafkaBroker,
    kafka_parts: dict[str, object],
    topic_prefix: str,
    tmp_path: Path,
) -> None:
    cluster = own_cluster(options=CassandraOptions(commitlog_segment_mib=1, commitlog_sync_period_ms=SYNC_PERIOD_MS))
    [node] = cluster.nodes
    assert node.cdc_raw is not None
    publisher = publisher_beside(node, cluster, kafka_parts, tmp_path / "publisher")
    with connect(CassandraSettings(contact_points=[node.address], port=node.port), only=node.address) as client:
        create_keyspace(client, FillerSettings(), read_node(client))
    settings = Settings(
        kafka=KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topic_prefix=topic_prefix, raw_partitions=3)
    )
    with cql_client.connect([node.address], node.port) as client:
        client.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        client.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v int) WITH cdc = true")
        client.execute("CREATE TABLE ks.padding (k int PRIMARY KEY, v blob)")
        try:
            publisher.start()
            insert(client, range(ROWS))
            eventually(lambda: publisher.status()["messages"] == ROWS)
            assert publisher.stop() == 0
            insert(client, range(ROWS, 2 * ROWS))
            begun = [file for file in list_cdc_segments(node.cdc_raw) if file.index_path.exists()]
            for _ in range(16):
                client.execute(f"INSERT INTO ks.padding (k, v) VALUES (1, 0x{'00' * (128 << 10)})")
            node.nodetool("flush")
            for file in begun:
                file.path.unlink()
                file.index_path.unlink()
            insert(client, range(2 * ROWS, 3 * ROWS))
            publisher.start(publisher__snapshot="when_needed")
            eventually(
                lambda: [snapshot["state"] for snapshot in publisher.status()["snapshots"]] == ["ended"], SECONDS
            )
            assert "CDC-069" in publisher.log()
            Folded(settings, client, "ks", "t").check()
            eventually(lambda: publisher.status()["need_snapshot"] == [])
        finally:
            publisher.kill()
