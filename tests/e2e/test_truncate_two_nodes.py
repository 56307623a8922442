"""TRUNCATE and DROP on two nodes that hold everything twice: in a workload, and while one of them dies."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.clients import cql
from dev.local_stack.servers.cassandra import CDC_DATACENTER
from dev.local_stack.servers.stack import Stack
from dev.verify.model import duplicates
from tests.support.e2e.evolution import KEYSPACE, PARTITIONS, Table
from tests.support.e2e.replicas import TRUNCATE_SECONDS, TWICE, truncate_and_kill, truncation_options
from tests.support.e2e.truncated_table import causes, workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.programs import Setting

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900), pytest.mark.exhaustive]

SETTINGS: dict[str, Setting] = {
    "publisher.heartbeat_seconds": 1,
    "publisher.drop_seconds": 3,
    "materializer.truncate_seconds": TRUNCATE_SECONDS,
}
RETRY_SECONDS = TRUNCATE_SECONDS + 5


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Stack, CqlClient]]:
    with (
        Stack(datacenters={CDC_DATACENTER: 2}, options=truncation_options(), settings=SETTINGS) as stack,
        cql.connect(stack.servers.cassandra_hosts[:1], stack.servers.cassandra_port) as client,
    ):
        client.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {TWICE}")
        yield stack, client


def make_table(pair: tuple[Stack, CqlClient], name: str) -> Table:
    stack, client = pair
    t = Table(client, stack.servers, name)
    t.run("CREATE TABLE $t (p int, c int, v int, PRIMARY KEY (p, c)) WITH cdc = true")
    t.run_on_all(*(f"INSERT INTO $t (p, c, v) VALUES ({p}, 0, 0)" for p in PARTITIONS))
    t.settle()
    return t


def test_truncations_in_a_workload(pair: tuple[Stack, CqlClient]) -> None:
    stack, _ = pair
    t = make_table(pair, "workload")
    with workload(stack, t):
        for seconds in (3, 1, 3):
            time.sleep(seconds)
            t.run("TRUNCATE $t")
        time.sleep(1)
    t.settle()
    t.check()
    assert "truncate" in causes(t)
    t.close()


def test_a_node_dies_during_a_truncation_that_is_tried_again(pair: tuple[Stack, CqlClient]) -> None:
    """One node has truncated once, the other one perhaps twice; and hints come afterwards."""
    stack, _ = pair
    _, second = stack.cassandra.nodes
    t = make_table(pair, "died")

    with workload(stack, t):
        truncate_and_kill(t, second)
        time.sleep(2)
        t.run(f"INSERT INTO $t (p, c, v) VALUES (1, 1, {int(time.time())})")  # a hint from before the next truncation
        time.sleep(RETRY_SECONDS)
        second.start()
        t.run("TRUNCATE $t")
        time.sleep(1)
    duplicates.await_hints(stack)
    t.settle()
    second.stop()
    t.run(*(f"INSERT INTO $t (p, c, v) VALUES ({p}, 95, 1)" for p in PARTITIONS))
    second.start()
    duplicates.await_hints(stack)
    t.settle()
    t.check()
    assert "truncate" in causes(t)
    t.close()
    stack.check()


def test_a_dropped_table_and_one_with_its_id(pair: tuple[Stack, CqlClient]) -> None:
    _, client = pair
    t = make_table(pair, "dropped")
    query = f"SELECT id FROM system_schema.tables WHERE keyspace_name = '{KEYSPACE}' AND table_name = 'dropped'"
    [row] = client.execute(query)
    t.run("DROP TABLE $t")
    found = t.wait(lambda changes: sum(change.value is not None for change in changes) >= len(PARTITIONS))
    assert {(change.value["op"], change.value["source"]["cause"]) for change in found if change.value is not None} == {
        ("d", "drop")
    }
    t.run(f"CREATE TABLE $t (p int, c int, v int, PRIMARY KEY (p, c)) WITH cdc = true AND id = {row['id']}")
    t.run_on_all("INSERT INTO $t (p, c, v) VALUES (1, 1, 1)")
    t.settle()
    t.check()
    t.close()
