"""An audit repairs partitions whose two replicas differ: one of them has missed writes, and no hint brought them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from local_stack.clients import cql
from local_stack.servers.cassandra import CDC_DATACENTER, CassandraOptions
from local_stack.servers.stack import SYNC_PERIOD_MS, Stack
from tests.support.e2e.audit_command import audit
from tests.support.e2e.audited_table import NAME, PLANTED, causes, loaded, plant

if TYPE_CHECKING:
    from local_stack.clients.cql import CqlClient
    from local_stack.servers.cassandra import CassandraNode
    from local_stack.servers.programs import Setting

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1200), pytest.mark.exhaustive]

REPLICATION = f"{{'class': 'NetworkTopologyStrategy', '{CDC_DATACENTER}': 2}}"
SETTINGS: dict[str, Setting] = {"publisher.heartbeat_seconds": 2, "materializer.stalled_publisher_seconds": 20}
FLAGS = ("--consistency", "ALL", "--log-delay-seconds", "10")
DOWN_SECONDS = 60.0


def test_replicas_that_differ() -> None:
    """No read repairs them, so that each replica's image is another one."""
    options = CassandraOptions(commitlog_sync_period_ms=SYNC_PERIOD_MS)
    with (
        Stack(datacenters={CDC_DATACENTER: 2}, options=options, settings=SETTINGS) as stack,
        cql.connect(stack.servers.cassandra_hosts[:1], stack.servers.cassandra_port) as client,
        loaded(client, REPLICATION, "AND read_repair = 'NONE'", lambda: miss_writes(stack, client)),
    ):
        plant(stack, client)
        audited = audit(stack, NAME, *FLAGS, "--repair")
        again = audit(stack, NAME, *FLAGS)
    assert causes(audited) == PLANTED
    assert {each["key"]["p"]: each["replaced"] for each in audited.of("repair")} == {1: True, 2: True, 3: True}
    assert (again.status, again.of("difference"), again.of("not_audited")) == (0, [], []), again.progress


def miss_writes(stack: Stack, client: CqlClient) -> None:
    """The second node misses a row of each partition that is repaired, and the deletion of another one."""
    first, second = stack.cassandra.nodes
    for p in (1, 2, 3):
        client.execute(f"INSERT INTO {NAME} (p, c, v) VALUES ({p}, 300, 'on both, then deleted')")
    second.nodetool("disablebinary")
    second.nodetool("disablegossip")
    first.nodetool("disablehandoff")
    await_state(first, second, "DN")
    for p in (1, 2, 3):
        client.execute(f"INSERT INTO {NAME} (p, c, v) VALUES ({p}, 301, 'on one node')")
        client.execute(f"DELETE FROM {NAME} WHERE p = {p} AND c = 300")
    second.nodetool("enablegossip")
    second.nodetool("enablebinary")
    first.nodetool("enablehandoff")
    await_state(first, second, "UN")


def await_state(first: CassandraNode, second: CassandraNode, state: str) -> None:
    """Until the first node knows it of the second."""
    deadline = time.monotonic() + DOWN_SECONDS
    while not any(line.startswith(f"{state}  {second.address} ") for line in first.nodetool("status").splitlines()):
        assert time.monotonic() < deadline, first.nodetool("status")
        time.sleep(0.5)
