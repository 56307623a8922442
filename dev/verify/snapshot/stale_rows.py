"""Rows of tokens that a node no longer owns: another node joined, nothing was cleaned up, and their owners have deleted
them and forgotten even the deletion. A snapshot that sends them brings them back.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from dev.local_stack.clients import cql
from dev.local_stack.servers.cassandra import CDC_DATACENTER
from dev.local_stack.servers.stack import Stack
from dev.verify.model.__main__ import SETTINGS, options_of
from dev.verify.snapshot.progress import SNAPSHOT_SECONDS, Snapshots, pass_present_log
from tests.support.e2e.evolution import KEYSPACE, Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.local_stack.servers.programs import Setting

KEYS = range(120)
KEPT = 60  # the keys from here on are deleted
SOUND, DEFECTIVE = "sound", "defective"
VERSION = "5.0"
GC_GRACE_SECONDS = 1


def stale_row_problems(seed_defect: Callable[[Stack], None], report: Callable[[str], None]) -> list[str]:
    """Find errors of a table whose snapshot is taken after `seed_defect`. AssertionError if another one, whose
    snapshot is taken before, is not right.
    """
    options = replace(options_of(VERSION), num_tokens=8)  # so that the node that joins gets some of the first one's
    settings: dict[str, Setting] = {
        **SETTINGS,
        "publisher.snapshot": "initial",
        "publisher.snapshot_max_mib_per_second": 0,
    }
    with (
        Stack(
            version=VERSION, datacenters={CDC_DATACENTER: 1}, options=options, settings=settings, report=report
        ) as stack,
        cql.connect(stack.servers.cassandra_hosts, stack.servers.cassandra_port) as client,
    ):
        once = f"{{'class': 'NetworkTopologyStrategy', '{CDC_DATACENTER}': 1}}"
        client.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {once}")
        sound, defective = (Table(client, stack.servers, name) for name in (SOUND, DEFECTIVE))
        _leave_stale_rows(stack, [sound, defective])
        pass_present_log(client, KEYSPACE, stack.publishers)
        _check_snapshot(stack, sound)
        seed_defect(stack)
        try:
            _check_snapshot(stack, defective)
        except AssertionError as error:
            stack.check()
            return [str(error)]
        return []


def _leave_stale_rows(stack: Stack, tables: list[Table]) -> None:
    for table in tables:
        table.run(
            f"CREATE TABLE $t (p int, c int, v int, PRIMARY KEY (p, c)) WITH gc_grace_seconds = {GC_GRACE_SECONDS}"
        )
        table.run_on_all(*(f"INSERT INTO $t (p, c, v) VALUES ({p}, 0, 0)" for p in KEYS))
    stack.cassandra.nodes[0].nodetool("flush", KEYSPACE)
    stack.add_node(CDC_DATACENTER)
    for table in tables:
        table.run_on_all(*(f"DELETE FROM $t WHERE p = {p} AND c = 0" for p in KEYS[KEPT:]))
    time.sleep(GC_GRACE_SECONDS + 1)
    for node in stack.cassandra.nodes:
        node.nodetool("flush", KEYSPACE)
        node.nodetool("compact", KEYSPACE)


def _check_snapshot(stack: Stack, table: Table) -> None:
    """AssertionError if what comes out of the table's snapshot is not what SELECT shows."""
    table.run("ALTER TABLE $t WITH cdc = true")
    snapshots = Snapshots(stack.publishers, [f"{KEYSPACE}.{table.name}"])
    deadline = time.monotonic() + SNAPSHOT_SECONDS
    while not snapshots.are_over():
        assert time.monotonic() < deadline, "the snapshot has not ended"
        time.sleep(1)
    table.settle()
    table.check()
    table.close()
