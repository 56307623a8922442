"""The publisher's node is down, or was replaced by another one."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from dev.local_stack.clients import cql
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.stack import SYNC_PERIOD_MS
from tests.support.filler.nodes import host_id
from tests.support.publisher.publisher_process import PublisherProcess, eventually, settings_beside
from tests.support.publisher.sent import at_least, int_value, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dev.local_stack.servers.cassandra import CassandraCluster, CassandraNode
    from tests.support.publisher.sent import Sent

    SentBy = Callable[..., list[Sent]]

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(900)]

OPTIONS = CassandraOptions(commitlog_sync_period_ms=SYNC_PERIOD_MS, heap_mib=400, commitlog_segment_mib=1)
SECONDS = 120.0


@pytest.fixture
def one(own_cluster: Callable[..., CassandraCluster]) -> CassandraNode:
    return own_cluster(options=OPTIONS).nodes[0]


@pytest.fixture
def pair(own_cluster: Callable[..., CassandraCluster]) -> CassandraCluster:
    return own_cluster(datacenters={"cdc": 2}, options=OPTIONS)


@pytest.fixture
def beside(kafka_parts: dict[str, object], tmp_path: Path) -> Iterator[Callable[[CassandraNode], PublisherProcess]]:
    """Makes a publisher beside a node; the last one is killed at the end."""
    made: list[PublisherProcess] = []

    def publisher(node: CassandraNode) -> PublisherProcess:
        settings = settings_beside(node.cluster, tmp_path / "state") | {
            "cassandra.contact_points": node.address,
            "node.cdc_raw_directory": node.cdc_raw,
            **kafka_parts,
        }
        made.append(PublisherProcess(settings, tmp_path))
        return made[-1]

    yield publisher
    for node in made:
        node.kill()


def test_what_a_dead_node_had_logged_comes_out_once_it_is_back(
    one: CassandraNode, beside: Callable[[CassandraNode], PublisherProcess], sent: SentBy
) -> None:
    publisher = beside(one)
    with cql.connect([one.address], one.port) as client:
        client.execute("CREATE KEYSPACE away WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        for name in ("stays", "dropped"):
            client.execute(f"CREATE TABLE away.{name} (id int PRIMARY KEY, v text) WITH cdc = true")
        publisher.start()
        client.execute("INSERT INTO away.stays (id, v) VALUES (0, 'a')")
        sent("away", "stays", at_least(1))
        publisher.pause()
        for number in range(1, 50):
            for name in ("stays", "dropped"):
                client.execute(f"INSERT INTO away.{name} (id, v) VALUES ({number}, 'b')")
        time.sleep(10 * SYNC_PERIOD_MS / 1000)
    one.kill()
    publisher.resume()
    eventually(lambda: "CDC-010" in publisher.command("status")[1], SECONDS)
    assert publisher.get("/health")[0] == 200
    assert publisher.stop() == 0
    status, output = publisher.fail()
    assert (status, "CDC-010" in output, "Traceback" in output) == (3, True, False)
    one.start()
    with cql.connect([one.address], one.port) as client:
        client.execute("DROP TABLE away.dropped")
    publisher.start()
    wanted = {int_value(number) for number in range(1, 50)}
    for name in ("stays", "dropped"):
        sent("away", name, lambda found: {raw_message.key for raw_message in found} >= wanted, SECONDS)
    assert publisher.stop() == 0
    assert "CDC-04" not in publisher.log()


@pytest.mark.parametrize("is_same_host", [True, False], ids=["replaced", "removed and new"])
def test_a_node_in_the_place_of_another(
    pair: CassandraCluster,
    beside: Callable[[CassandraNode], PublisherProcess],
    sent: SentBy,
    tmp_path: Path,
    *,
    is_same_host: bool,
) -> None:
    """Segments of the old node that no publisher had sent are still in cdc_raw, and are sent too."""
    first, second = pair.nodes
    publisher = beside(second)
    with cql.connect([first.address], first.port) as client:
        client.execute("CREATE KEYSPACE away WITH replication = {'class': 'NetworkTopologyStrategy', 'cdc': 2}")
        client.execute("CREATE TABLE away.stays (id int PRIMARY KEY, v text) WITH cdc = true")
        publisher.start()
        write(client, range(10))
        sent("away", "stays", at_least(10), SECONDS)
        assert publisher.stop() == 0
        write(client, range(10, 20))
        time.sleep(10 * SYNC_PERIOD_MS / 1000)
        old = UUID(bytes=host_id(second))
        second.kill()
        renew(pair, old, is_same_host=is_same_host)
        new = UUID(bytes=host_id(second))
        assert (new == old) == is_same_host
        write(client, range(20, 30))
        if not is_same_host:
            status, output = publisher.fail()
            assert (status, "CDC-042" in output, str(old) in output, str(new) in output) == (4, True, True, True)
            publisher.settings["publisher.state_directory"] = tmp_path / "fresh"
        publisher.start()
        wanted = {int_value(number) for number in range(30)}
        found = sent("away", "stays", lambda found: {raw_message.key for raw_message in found} >= wanted, SECONDS)
    hosts = {row.key: row.message.host_id for row in rows(found)}
    assert hosts[int_value(0)] == (old.bytes if is_same_host else new.bytes)  # streamed, or read again
    assert hosts[int_value(29)] == new.bytes
    assert publisher.stop() == 0
    assert "Traceback" not in publisher.log()


def renew(cluster: CassandraCluster, old: UUID, *, is_same_host: bool) -> None:
    """The second node again, without anything but the cdc_raw that it had."""
    first, second = cluster.nodes
    more = []
    if is_same_host:
        more.append(f"-Dcassandra.replace_address_first_boot={second.address}")
    else:
        eventually(lambda: f"DN  {second.address}" in first.nodetool("status"), SECONDS)
        first.nodetool("removenode", str(old))
    for path in second.folder.iterdir():
        if path.is_dir() and path != second.cdc_raw:
            shutil.rmtree(path)
    cluster.options = replace(cluster.options, jvm_options=more, yaml={"auto_bootstrap": True})
    second.start()
    eventually(lambda: f"UN  {second.address}" in first.nodetool("status"), SECONDS)


def write(client: cql.CqlClient, numbers: range) -> None:
    for number in numbers:
        client.execute_at_all(f"INSERT INTO away.stays (id, v) VALUES ({number}, 'a')")
