"""Each check of `cassandra-publisher check` fails on real nodes; and one starts to fail while the publisher runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dev.local_stack.clients import cql
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.local_stack.servers.cassandra_options import CassandraOptions
from tests.support.publisher.publisher_process import PublisherProcess, eventually, settings_beside
from tests.support.small_disk import fill, small_disk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(600)]

OPTIONS = CassandraOptions(
    heap_mib=400,
    commitlog_segment_mib=1,
    commitlog_sync_period_ms=20_000,
    yaml={"cdc_on_repair_enabled": False, "cdc_block_writes": False},
)
KEYSPACES = {
    "elsewhere": "{'class': 'NetworkTopologyStrategy', 'main': 1}",
    "anywhere": "{'class': 'SimpleStrategy', 'replication_factor': 1}",
    "once": "{'class': 'NetworkTopologyStrategy', 'cdc': 1}",
    "fleeting": "{'class': 'NetworkTopologyStrategy', 'cdc': 1} AND durable_writes = false",
}
WATCHED_SECONDS = 150.0  # it looks once a minute


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[CassandraCluster]:
    """Yield a cluster with a table in each of KEYSPACES."""
    datacenters = {"main": 1, "cdc": 1}
    with CassandraCluster(datacenters=datacenters, options=OPTIONS, folder=tmp_path / "cluster") as cluster:
        with cql.connect([cluster.contact_points[0]], cluster.port) as client:
            for name, replication in KEYSPACES.items():
                client.execute(f"CREATE KEYSPACE {name} WITH replication = {replication}")
                client.execute(f"CREATE TABLE {name}.t (k int PRIMARY KEY) WITH cdc = true")
        yield cluster


@pytest.fixture
def publisher(cluster: CassandraCluster, kafka_parts: dict[str, object], tmp_path: Path) -> Iterator[PublisherProcess]:
    """Beside the node of the datacenter `cdc`; not started."""
    own = {"node.cdc_raw_directory": cluster.cdc_nodes[0].cdc_raw}
    process = PublisherProcess(settings_beside(cluster, tmp_path / "state") | kafka_parts | own, tmp_path)
    yield process
    process.kill()


def findings(publisher: PublisherProcess, **changed: object) -> set[tuple[str, str, str]]:
    """(status, check, keyspace or empty) of each that is not well; its line ends with a fix."""
    before = dict(publisher.settings)
    publisher.settings.update({name.replace("__", "."): value for name, value in changed.items()})
    try:
        _, output = publisher.command("check")
    finally:
        publisher.settings = before
    found = set()
    for line in output.splitlines():
        status, _, rest = line.partition(" ")
        if status in {"warn", "fail"}:
            assert "Fix: " in line
            keyspace = next((name for name in KEYSPACES if f" {name} " in line), "")
            found.add((status, rest.split()[0], keyspace))
    assert found, output
    return found


def test_each_is_seen_to_fail(cluster: CassandraCluster, publisher: PublisherProcess, tmp_path: Path) -> None:
    always = {
        ("fail", "cdc_block_writes", ""),
        ("fail", "cdc_on_repair_enabled", ""),
        ("warn", "commitlog_sync", ""),
        ("fail", "durable_writes", "fleeting"),
        ("fail", "replication", "elsewhere"),
        ("fail", "replication", "anywhere"),
        ("warn", "replication", "once"),
        ("warn", "replication", "fleeting"),
    }
    assert findings(publisher) == always
    unused = f"{LOCALHOST}:{free_ports(1)[0]}"
    away = findings(publisher, kafka__bootstrap_servers=unused, kafka__connect_timeout_seconds=2)
    assert away == always | {("fail", "kafka", "")}
    assert findings(publisher, node__cdc_raw_directory=tmp_path / "none") == always | {("fail", "cdc_raw", "")}
    chosen = findings(publisher, publisher__include_tables="once.*,nothing.*")
    assert chosen == {listed for listed in always if listed[2] in {"", "once"}} | {("warn", "tables", "")}
    main = next(node for node in cluster.nodes if not node.cdc_enabled)
    assert ("fail", "cdc_enabled", "") in findings(publisher, cassandra__contact_points=main.address)
    with small_disk(tmp_path / "disk", 4) as disk:
        fill(disk, 512 * 1024)
        assert findings(publisher, node__cdc_raw_directory=disk) == always | {("warn", "disk", "")}


def test_a_check_that_starts_to_fail_is_reported(cluster: CassandraCluster, publisher: PublisherProcess) -> None:
    publisher.settings["publisher.accept_loss"] = "cdc_block_writes,cdc_on_repair_enabled"
    publisher.settings["publisher.include_tables"] = "once.t"
    publisher.start()
    assert "changes are lost" not in publisher.log()
    with cql.connect([cluster.contact_points[0]], cluster.port) as client:
        client.execute("ALTER KEYSPACE once WITH durable_writes = false")
        eventually(lambda: "changes are lost" in publisher.log(), WATCHED_SECONDS)
        assert "CDC-017" in publisher.log()
        eventually(lambda: "losing      The keyspace once" in publisher.command("status")[1])
        client.execute("ALTER KEYSPACE once WITH durable_writes = true")
        eventually(lambda: '"changes are no longer lost"' in publisher.log(), WATCHED_SECONDS)
        client.execute(f"ALTER KEYSPACE once WITH replication = {KEYSPACES['elsewhere']}")
        eventually(lambda: publisher.log().count("changes are lost") == 2, WATCHED_SECONDS)
    assert publisher.stop() == 0
