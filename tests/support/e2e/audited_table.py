"""A table that an audit compares while clients write to it, with differences that are planted in it."""

from __future__ import annotations

import random
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.e2e.planted import Planter
from tests.support.materializer.raw_builder import int_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.stack import Stack
    from tests.support.e2e.audit_command import Audited

KEYSPACE, TABLE = "audited", "t"
NAME = f"{KEYSPACE}.{TABLE}"
REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
COLUMNS = """p int, c int, v text, n decimal, m map<text, int>, l list<frozen<list<int>>>, u place, s text static,
    PRIMARY KEY (p, c)"""
PARTITIONS, ROWS = 60, 900
FUTURE_US = 3600 * 1_000_000


PLANTED = {
    (1, 101, "v"): "state_newer",
    (1, 102, "v"): "state_newer",
    (1, 104, "v"): "value_differs",
    (2, 103, ""): "missing_row",
    (3, 105, ""): "extra_row",
}
PLANTED_AGAIN = {place: cause for place, cause in PLANTED.items() if cause != "missing_row"}
"""The difference that `plant` alone plants."""


def statements(chance: random.Random, count: int, first: int = 0) -> Iterator[str]:
    for number in range(count):
        p, c = chance.randrange(first, PARTITIONS), chance.randrange(30)
        key, row = f"{p}", f"{p}, {c}"
        yield chance.choices(
            (
                f"INSERT INTO {NAME} (p, c, v, n) VALUES ({row}, 'v{number}', {number}.50)",
                f"INSERT INTO {NAME} (p, c, v, u) VALUES ({row}, '', {{x: {number}, z: 'z'}}) USING TTL 7200",
                f"INSERT INTO {NAME} (p, c, v) VALUES ({row}, 'soon') USING TTL {chance.randint(1, 40)}",
                f"UPDATE {NAME} SET m = m + {{'k': {number}}}, l = l + [[{number}]] WHERE p = {p} AND c = {c}",
                f"UPDATE {NAME} SET s = 's{number}' WHERE p = {key}",
                f"DELETE FROM {NAME} WHERE p = {p} AND c = {c}",
                f"DELETE m FROM {NAME} WHERE p = {p} AND c = {c}",
                f"DELETE FROM {NAME} WHERE p = {p} AND c > {c} AND c < {c + 3}",
                f"DELETE FROM {NAME} WHERE p = {p}",
            ),
            (40, 10, 10, 20, 8, 5, 3, 3, 1),
        )[0]


class Load(threading.Thread):
    """Writes until it is stopped: so many statements four times a second. The partitions below `first` rest."""

    def __init__(self, client: CqlClient, first: int, statements: int) -> None:
        super().__init__(daemon=True)
        self._statements = statements
        self.count = 0
        self._client = client
        self._first = first
        self._stop_now = threading.Event()

    def run(self) -> None:
        chance = random.Random(2)
        while not self._stop_now.is_set():
            for statement in statements(chance, self._statements, self._first):
                self._client.execute(statement)
                self.count += 1
            time.sleep(0.25)

    def stop(self) -> None:
        self._stop_now.set()
        self.join()


@contextmanager
def loaded(
    client: CqlClient,
    replication: str = REPLICATION,
    options: str = "",
    before: Callable[[], None] | None = None,
    statements_at_once: int = 20,
) -> Iterator[Load]:
    """The table, which clients write to. The partitions 0 to 9 rest, and one of them has a row that is in no log.

    options: more of the table, as CQL. before: what else is written before the clients write. statements_at_once: about
    70 statements a second by default; what an audit meets matters, not how much of it.
    """
    client.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {replication}")
    client.execute(f"CREATE TYPE {KEYSPACE}.place (x int, y int, z text)")
    client.execute(f"CREATE TABLE {NAME} ({COLUMNS}) WITH cdc = true {options}")
    for statement in statements(random.Random(1), ROWS):
        client.execute(statement)
    client.execute(f"ALTER KEYSPACE {KEYSPACE} WITH durable_writes = false")
    client.execute(f"INSERT INTO {NAME} (p, c, v) VALUES (2, 103, 'missing')")
    client.execute(f"ALTER KEYSPACE {KEYSPACE} WITH durable_writes = true")
    if before is not None:
        before()
    load = Load(client, 10, statements_at_once)
    load.start()
    yield load
    load.stop()
    client.execute(f"DROP KEYSPACE {KEYSPACE}")


def plant(stack: Stack, client: CqlClient) -> None:
    """Plant differences in the state only: a changed value, a write time that is too new, another value of the same
    time, a row.
    """
    now_us = time.time_ns() // 1000
    for c, v in ((101, "changed"), (102, "too new"), (104, "same time")):
        client.execute(f"INSERT INTO {NAME} (p, c, v) VALUES (1, {c}, '{v}') USING TIMESTAMP {now_us}")
    [node] = client.execute("SELECT host_id FROM system.local")
    planter = Planter(stack.servers, node["host_id"], KEYSPACE, TABLE)
    for p, c, v, timestamp in (
        (1, 101, "planted", now_us + 1),
        (1, 102, "too new", now_us + FUTURE_US),
        (1, 104, "the same time", now_us),
        (3, 105, "extra", now_us),
    ):
        planter.plant(int_bytes(p), (int_bytes(c),), {"v": v.encode()}, timestamp)
    planter.wait_until_folded("cassandra-materializer")


def causes(audited: Audited) -> dict[tuple[int, int | None, str], str]:
    """The cause of each difference, by p, c and column."""
    return {
        (difference["key"]["p"], difference["key"].get("c"), name): column["cause"]
        for difference in audited.of("difference")
        for name, column in difference["columns"].items()
    }
