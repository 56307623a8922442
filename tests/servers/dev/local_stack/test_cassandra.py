"""Clusters of this file's own: broken settings, several datacenters, other versions, restarts."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import Cluster
from cassandra.policies import FallthroughRetryPolicy, WhiteListRoundRobinPolicy

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.kafka import KafkaBroker

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(os.environ.get("SERVERS") == "containers", reason="these are about child processes"),
]
SMALL = CassandraOptions(heap_mib=400, commitlog_segment_mib=1)


def write(cluster: CassandraCluster, replication: str, rows: int = 10) -> None:
    """Through the CDC datacenter: a node with cdc_enabled: false leaves `cdc` out of the schema that it writes."""
    only = WhiteListRoundRobinPolicy(cluster.contact_points)
    driver = Cluster(cluster.contact_points, port=cluster.port, connect_timeout=30, load_balancing_policy=only)
    session = driver.connect()
    session.default_timeout = 30
    session.execute(f"CREATE KEYSPACE a WITH replication = {replication}")
    session.execute("CREATE TABLE a.b (k int PRIMARY KEY, v text) WITH cdc = true")
    insert = session.prepare("INSERT INTO a.b (k, v) VALUES (?, ?)")
    insert.consistency_level = ConsistencyLevel.ALL
    insert.retry_policy = FallthroughRetryPolicy()
    for number in range(rows):
        session.execute(insert, (number, "x" * 1000))
    driver.shutdown()


def has_segments(folder: Path) -> bool:
    return any(file.stat().st_size for file in folder.glob("CommitLog-*.log"))


def test_a_broken_setting_fails_at_once_and_shows_why() -> None:
    cluster = CassandraCluster(options=CassandraOptions(heap_mib=400, yaml={"no_such_setting": 1}))
    started = time.monotonic()
    with pytest.raises(CdcError) as caught, cluster:
        pytest.fail("it started")
    assert time.monotonic() - started < 90
    assert caught.value.code is Code.SERVER_FAILED
    assert "no_such_setting" in str(caught.value)
    assert cluster.nodes[0].log.exists()
    assert str(cluster.nodes[0].log) in str(caught.value)
    cluster.close()
    assert not cluster.folder.path.exists()


@pytest.mark.exhaustive
def test_two_datacenters_log_changes_in_one() -> None:
    with CassandraCluster(datacenters={"main": 1, "cdc": 1}, options=SMALL) as cluster:
        main, cdc = cluster.nodes
        assert cluster.contact_points == [cdc.address]
        assert "Datacenter: main" in main.nodetool("status")
        write(cluster, "{'class': 'NetworkTopologyStrategy', 'main': 1, 'cdc': 1}")
        wait_until(lambda: any(cdc.cdc_raw.glob("*_cdc.idx")), "an index file in the CDC datacenter", 60)
        assert not any(main.cdc_raw.iterdir())


@pytest.mark.exhaustive
def test_a_killed_node_comes_back_with_its_data() -> None:
    with CassandraCluster(options=SMALL) as cluster:
        write(cluster, "{'class': 'SimpleStrategy', 'replication_factor': 1}")
        time.sleep(2 * SMALL.commitlog_sync_period_ms / 1000)
        cluster.nodes[0].kill()
        assert not cluster.nodes[0].is_running
        cluster.nodes[0].start()
        driver = Cluster(cluster.contact_points, port=cluster.port, connect_timeout=30)
        assert driver.connect().execute("SELECT count(*) FROM a.b", timeout=30).one()[0] == 10
        driver.shutdown()


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", ["4.1", "4.0", "3.11"])
def test_older_versions_start_by_the_same_call(version: str) -> None:
    with CassandraCluster(version, options=SMALL) as cluster:
        write(cluster, "{'class': 'SimpleStrategy', 'replication_factor': 1}", rows=2000)
        cluster.nodes[0].nodetool("flush")
        wait_until(lambda: has_segments(cluster.nodes[0].cdc_raw), "a segment in cdc_raw", 30)


@pytest.mark.exhaustive
def test_kafka_keeps_port_and_data_over_a_kill_and_a_stop() -> None:
    with KafkaBroker() as broker:
        address, topic_folder = broker.bootstrap_servers, broker.folder.path / "data"
        for hurt in (broker.kill, broker.stop):
            hurt()
            assert not broker.is_running
            broker.start()
            assert broker.bootstrap_servers == address
        assert (topic_folder / "meta.properties").exists()
    assert not broker.folder.path.exists()
