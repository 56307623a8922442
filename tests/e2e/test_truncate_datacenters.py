"""TRUNCATE with two datacenters: in a workload of the other one, missed by a node, and before one is replaced."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError
from cdc_common.settings import KafkaSettings
from dev.local_stack.clients import cql
from dev.local_stack.servers.cassandra import CDC_DATACENTER
from dev.local_stack.servers.stack import Stack
from dev.verify.model import duplicates
from materializer.planning.table_schemas import read_table_schemas
from tests.support.e2e.evolution import KEYSPACE, PARTITIONS, Table
from tests.support.e2e.replicas import TRUNCATE_SECONDS, TRUNCATE_TIMEOUT_SECONDS, truncate_and_kill, truncation_options
from tests.support.e2e.truncated_table import causes, workload
from tests.support.publisher.publisher_process import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.cassandra import CassandraNode
    from dev.local_stack.servers.programs import Setting

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1200), pytest.mark.exhaustive]

REPLICATION = f"{{'class': 'NetworkTopologyStrategy', 'main': 1, '{CDC_DATACENTER}': 2}}"
SETTINGS: dict[str, Setting] = {
    "publisher.heartbeat_seconds": 1,
    "publisher.snapshot": "when_needed",
    "publisher.snapshot_max_mib_per_second": 0,
    "materializer.truncate_seconds": TRUNCATE_SECONDS,
    "kafka.raw_partitions": 2,
}
TRIES = 3
SNAPSHOT_SECONDS = 600.0  # a minute until a host is known to have missed it, two for the request, one for its reading


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with Stack(datacenters={"main": 1, CDC_DATACENTER: 2}, options=truncation_options(), settings=SETTINGS) as stack:
        yield stack


@pytest.fixture(scope="module")
def client(stack: Stack) -> Iterator[CqlClient]:
    """A client of the datacenter without CDC."""
    main = stack.cassandra.nodes[0]
    with cql.connect([main.address], main.port) as client:
        client.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {REPLICATION}")
        yield client


def is_missed_by(node: CassandraNode, stack: Stack, t: Table, table_id: UUID) -> bool:
    """Truncate while the node is frozen; whether it misses it. Its clock is late at first when it goes on, so that it
    may take an expired message for a new one.
    """
    t.run_on_all(*(f"INSERT INTO $t (p, c, v) VALUES ({p}, 0, 0)" for p in PARTITIONS))
    t.settle()
    before = truncated_at(node, table_id)
    node.pause()
    try:
        with pytest.raises(CdcError):
            t.run("TRUNCATE $t")
        time.sleep(TRUNCATE_TIMEOUT_SECONDS)  # what waits for it expires
    finally:
        node.resume()
    eventually(lambda: stack.cassandra.cdc_nodes[0].sees(node), 60)
    time.sleep(2)  # it has executed what it takes
    return truncated_at(node, table_id) == before


def truncated_at(node: CassandraNode, table_id: UUID) -> bytes | None:
    """The node's record of the table's last TRUNCATE."""
    with cql.connect([node.address], node.port) as client:
        [local] = client.execute("SELECT truncated_at FROM system.local")
    records: dict[UUID, bytes] = local["truncated_at"] or {}
    return records.get(table_id)


def make_table(stack: Stack, client: CqlClient, name: str) -> Table:
    t = Table(client, stack.servers, name)
    with cql.connect(stack.servers.cassandra_hosts, stack.servers.cassandra_port) as owner:
        # A node without CDC would lose `cdc = true` (SchemaKeyspace).
        owner.execute(f"CREATE TABLE {KEYSPACE}.{name} (p int, c int, v int, PRIMARY KEY (p, c)) WITH cdc = true")
    t.run_on_all(*(f"INSERT INTO $t (p, c, v) VALUES ({p}, 0, 0)" for p in PARTITIONS))
    t.settle()
    return t


def test_truncations_in_a_workload_of_the_other_datacenter(stack: Stack, client: CqlClient) -> None:
    """Several within materializer.truncate_seconds, and a repair afterwards."""
    t = make_table(stack, client, "workload")
    with workload(stack, t):
        for seconds in (3.0, 1.0, 1.0, 2 * TRUNCATE_SECONDS + 3, 1.0):
            time.sleep(seconds)
            t.run("TRUNCATE $t")
        time.sleep(1)
    duplicates.await_hints(stack)
    t.settle()
    t.check()
    stack.cassandra.cdc_nodes[0].nodetool("repair", "--full", KEYSPACE, t.name)
    t.settle()
    t.check()
    assert "truncate" in causes(t)
    t.close()
    stack.check()


def test_a_node_dies_during_a_truncation_that_is_tried_again(stack: Stack, client: CqlClient) -> None:
    """Hints and a repair come afterwards."""
    _, second = stack.cassandra.cdc_nodes
    t = make_table(stack, client, "died")

    with workload(stack, t):
        truncate_and_kill(t, second)
        time.sleep(2)
        second.start()
        t.run("TRUNCATE $t")
        time.sleep(1)
    duplicates.await_hints(stack)
    second.nodetool("repair", "--full", KEYSPACE, t.name)
    t.settle()
    t.check()
    assert "truncate" in causes(t)
    t.close()
    stack.check()


def test_the_rows_of_a_node_that_misses_a_truncation_come_back_by_a_snapshot(stack: Stack, client: CqlClient) -> None:
    """TRUNCATE fails, and is not tried again: SELECT at ALL has this node's rows."""
    _, second = stack.cassandra.cdc_nodes
    t = make_table(stack, client, "missed")
    query = f"SELECT id FROM system_schema.tables WHERE keyspace_name = '{KEYSPACE}' AND table_name = 'missed'"
    [row] = client.execute(query)
    kafka = KafkaSettings(bootstrap_servers=stack.servers.kafka, topic_prefix=stack.servers.topic_prefix)

    def request() -> int:
        return read_table_schemas(kafka).requests.get(row["id"].bytes, 0)

    assert any(is_missed_by(second, stack, t, row["id"]) for _ in range(TRIES))
    t.run(*(f"INSERT INTO $t (p, c, v) VALUES ({p}, 1, 1)" for p in PARTITIONS))
    eventually(lambda: request() > 0, SNAPSHOT_SECONDS)
    eventually(lambda: request() == 0, SNAPSHOT_SECONDS)  # it lacks nothing any more
    t.settle()
    t.check()
    assert {"truncate", "write"} <= causes(t)
    assert "r" in {change.value["op"] for change in t.changes if change.value is not None}
    t.close()
    stack.check()


def test_a_node_is_replaced_after_a_truncation(stack: Stack, client: CqlClient) -> None:
    """The new node's log has what it streams; and it takes part in the next TRUNCATE."""
    _, second = stack.cassandra.cdc_nodes
    t = make_table(stack, client, "replaced")
    t.run("TRUNCATE $t")
    t.run_on_all(*(f"INSERT INTO $t (p, c, v) VALUES ({p}, 1, 1)" for p in PARTITIONS))
    t.settle()
    beside = stack.publishers[1], stack.fillers[1]
    for program in beside:
        program.stop()
    second.replace()
    stack.fillers[1].start()
    duplicates.publish_anew(stack, 1)
    t.run_on_all(*(f"INSERT INTO $t (p, c, v) VALUES ({p}, 2, 2)" for p in PARTITIONS))
    t.settle()
    t.check()
    with workload(stack, t):
        time.sleep(2)
        t.run("TRUNCATE $t")
        time.sleep(1)
    duplicates.await_hints(stack)
    t.settle()
    t.check()
    t.close()
    stack.check()
