"""Snapshots of replicas that are not alike: one has missed writes, one has rows that it does not own any more. And a
node that joins after a TRUNCATE.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cdc_common.messages.raw import decode
from dev.local_stack.clients import cql
from dev.local_stack.servers.cassandra import CDC_DATACENTER
from dev.local_stack.servers.stack import Stack
from dev.verify.model import duplicates
from dev.verify.model.raw_log import Place, RawLog
from dev.verify.snapshot.progress import Snapshots
from tests.support.e2e.evolution import KEYSPACE, PARTITIONS, Table
from tests.support.e2e.replicas import TRUNCATE_SECONDS, TWICE, cut_off, truncation_options
from tests.support.e2e.truncated_table import causes, workload
from tests.support.publisher.publisher_process import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.programs import Setting

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1200), pytest.mark.exhaustive]

SETTINGS: dict[str, Setting] = {
    "publisher.heartbeat_seconds": 1,
    "publisher.snapshot": "initial",
    "publisher.snapshot_max_mib_per_second": 0,
    "materializer.truncate_seconds": TRUNCATE_SECONDS,
    "kafka.raw_partitions": 2,
}
SNAPSHOT_SECONDS = 400.0
KEYS = range(120)
KEPT = 60  # the keys from here on are deleted
REPLICAS = 2
COLUMNS = "(p int, c int, v int, PRIMARY KEY (p, c))"


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Stack, CqlClient]]:
    options = replace(truncation_options(), num_tokens=8)  # so that a node that joins gets some of each other's
    with (
        Stack(datacenters={CDC_DATACENTER: 2}, options=options, settings=SETTINGS) as stack,
        cql.connect(stack.servers.cassandra_hosts[:1], stack.servers.cassandra_port) as client,
    ):
        client.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {TWICE}")
        yield stack, client


def await_snapshot(stack: Stack, t: Table) -> None:
    """Which the publishers begin by themselves."""
    eventually(Snapshots(stack.publishers, [f"{KEYSPACE}.{t.name}"]).are_over, SNAPSHOT_SECONDS)


def test_a_replica_that_missed_writes(pair: tuple[Stack, CqlClient]) -> None:
    """Rows of either replica are sent, and rows that either has deleted are not there in the end."""
    stack, client = pair
    first, second = stack.cassandra.nodes
    t = Table(client, stack.servers, "missed")
    t.run(f"CREATE TABLE $t {COLUMNS} WITH read_repair = 'NONE'")
    t.run_on_all(*(f"INSERT INTO $t (p, c, v) VALUES ({p}, {c}, 0)" for p in PARTITIONS for c in range(4)))
    with cut_off(second, first):
        for p in PARTITIONS:
            t.run(
                f"DELETE FROM $t WHERE p = {p} AND c = 0",
                f"INSERT INTO $t (p, c, v) VALUES ({p}, 1, 1)",
                f"INSERT INTO $t (p, c, v) VALUES ({p}, 9, 9)",
            )
    t.run("ALTER TABLE $t WITH cdc = true")
    await_snapshot(stack, t)
    t.settle()
    t.check()
    last = {(change.key["p"], change.key["c"]): change.value for change in t.changes}
    for p in PARTITIONS:
        deleted, updated, only_on_one = (last.get((p, c)) for c in (0, 1, 9))
        assert deleted is None or deleted["after"] is None  # it never comes if the node with the deletion is first
        assert updated is not None
        assert updated["after"]["v"] == 1
        assert only_on_one is not None
    t.close()
    stack.check()


def test_a_node_joins_after_a_truncation_and_nothing_is_cleaned_up(pair: tuple[Stack, CqlClient]) -> None:
    """The first two nodes keep rows of `stale` that they do not own any more. The owners have forgotten even the
    deletion of these rows. The new node has of `truncated` what it streams.
    """
    stack, client = pair
    truncated, stale = (Table(client, stack.servers, name) for name in ("truncated", "stale"))
    truncated.run(f"CREATE TABLE $t {COLUMNS} WITH cdc = true")
    stale.run(f"CREATE TABLE $t {COLUMNS} WITH gc_grace_seconds = 0")
    for t in (truncated, stale):
        t.run_on_all(*(f"INSERT INTO $t (p, c, v) VALUES ({p}, 0, 0)" for p in KEYS))
    truncated.settle()
    truncated.run("TRUNCATE $t")
    truncated.run_on_all(*(f"INSERT INTO $t (p, c, v) VALUES ({p}, 1, 1)" for p in KEYS))
    truncated.settle()

    stack.add_node(CDC_DATACENTER)
    check_truncated(stack, truncated)
    check_stale(stack, stale)
    stack.check()


def check_truncated(stack: Stack, t: Table) -> None:
    t.run_on_all(*(f"INSERT INTO $t (p, c, v) VALUES ({p}, 2, 2)" for p in KEYS))
    t.settle()
    t.check()
    assert "truncate" in causes(t)
    with workload(stack, t):
        time.sleep(2)
        t.run("TRUNCATE $t")
        time.sleep(1)
    duplicates.await_hints(stack)
    t.settle()
    t.check()
    t.close()


def check_stale(stack: Stack, t: Table) -> None:
    t.run_on_all(*(f"DELETE FROM $t WHERE p = {p} AND c = 0" for p in KEYS[KEPT:]))
    time.sleep(2)  # longer than gc_grace_seconds
    for node in stack.cassandra.nodes:
        node.nodetool("flush", KEYSPACE, t.name)
        node.nodetool("compact", KEYSPACE, t.name)
    t.run("ALTER TABLE $t WITH cdc = true")
    await_snapshot(stack, t)
    t.settle()
    t.check()
    hosts = senders(stack, t)
    sent = {int.from_bytes(key, "big") for key in hosts}
    assert sent >= set(KEYS[:KEPT])
    assert sent.isdisjoint(KEYS[KEPT:])
    assert {len(hosts[p.to_bytes(4, "big")]) for p in KEYS[:KEPT]} == {REPLICAS}
    assert len({host for of in hosts.values() for host in of}) == len(stack.cassandra.nodes)
    t.close()


def is_read(raw: RawLog, folded: Mapping[Place, int]) -> bool:
    """Whether all that has come out has been read."""
    raw.poll(1.0)
    return all(raw.records[place] and raw.records[place][-1].offset + 1 >= end for place, end in folded.items())


def senders(stack: Stack, t: Table) -> dict[bytes, set[bytes]]:
    """The hosts that have sent row images, by Cassandra partition."""
    raw = RawLog(stack.servers, KEYSPACE, [t.name])
    raw.open()
    found: dict[bytes, set[bytes]] = defaultdict(set)
    try:
        folded = raw.folded()
        eventually(lambda: is_read(raw, folded), SNAPSHOT_SECONDS)
        for records in raw.records.values():
            for record in records:
                message = decode(record.value)
                if message.kind == "snapshot_row":
                    found[record.key].add(message.host_id)
    finally:
        raw.close()
    return found
