"""TRUNCATE on a real node, while everything runs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.clients import cql
from tests.support.e2e.evolution import KEYSPACE, told

if TYPE_CHECKING:
    from dev.local_stack.servers.addresses import Servers
    from tests.support.e2e.evolution import MakeTable

pytestmark = pytest.mark.servers


def test_a_truncated_table_loses_its_rows_and_begins_again(table: MakeTable) -> None:
    t = table("truncated", "v text, m map<int, int>, st text static")
    t.run(
        "INSERT INTO $t (p, c, v, st) VALUES (1, 1, 'v', 'st')",
        "UPDATE $t SET m = {1: 1} WHERE p = 1 AND c = 2",
        "UPDATE $t USING TIMESTAMP 4000000000000000 SET v = 'late' WHERE p = 3 AND c = 3",
        "DELETE FROM $t USING TIMESTAMP 4000000000000000 WHERE p = 4",
    )
    t.settle()
    t.run("TRUNCATE $t")
    found = t.settle()
    ended = [change for change in found if change.value is not None and change.value["source"]["cause"] == "truncate"]
    assert told(ended) == [
        ("d", 1, {"v": "v", "st": "st"}, None),
        ("d", 2, {"m": '{"1":1}', "st": "st"}, None),
        ("d", 3, {"v": "late"}, None),
    ]
    t.run(
        "INSERT INTO $t (p, c, v) VALUES (1, 1, 'again') USING TIMESTAMP 5",
        "INSERT INTO $t (p, c, v) VALUES (3, 3, 'again')",
        "INSERT INTO $t (p, c, v) VALUES (4, 1, 'again')",
    )
    assert told(t.settle()) == [("c", c, None, {"v": "again"}) for c in (1, 3, 1)]
    t.check()


@pytest.mark.exhaustive
def test_writes_go_on_while_a_table_is_truncated(table: MakeTable, servers: Servers) -> None:
    t = table("busy", "v int")
    stop = threading.Event()

    def write() -> None:
        with cql.connect(servers.cassandra_hosts, servers.cassandra_port) as client:
            number = 0
            while not stop.is_set():
                number += 1
                client.execute(f"INSERT INTO {KEYSPACE}.busy (p, c, v) VALUES ({number % 6}, {number % 90}, {number})")
                stop.wait(0.01)  # some meet each truncation; more would only cost time

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            t.settle()
            t.run("TRUNCATE $t")
    finally:
        stop.set()
        writer.join()
    t.settle()
    t.check()
    assert any(change.value and change.value["source"]["cause"] == "truncate" for change in t.changes)
