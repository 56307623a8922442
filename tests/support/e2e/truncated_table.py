"""Helpers of the tests of TRUNCATE on several nodes."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dev.local_stack.clients import cql
from tests.support.e2e.evolution import KEYSPACE, PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dev.local_stack.servers.stack import Stack
    from tests.support.e2e.evolution import Table


@contextmanager
def workload(stack: Stack, table: Table) -> Iterator[None]:
    """Writes through the first node, at ONE, all the time."""
    stop = threading.Event()
    first = stack.cassandra.nodes[0]

    def write() -> None:
        with cql.connect([first.address], first.port) as client:
            number = 0
            while not stop.is_set():
                number += 1
                p, c = number % len(PARTITIONS), number % 90
                client.execute(f"INSERT INTO {KEYSPACE}.{table.name} (p, c, v) VALUES ({p}, {c}, {number})")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


def causes(table: Table) -> set[str]:
    return {change.value["source"]["cause"] for change in table.changes if change.value is not None}
