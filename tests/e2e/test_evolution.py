"""Tables that are altered, dropped and made again while everything runs, on a real node."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from cdc_common.messages.tables import mark_from_json
from cdc_common.messages.topics import tables_topic
from tests.support.e2e.evolution import KEYSPACE, MOST_SECONDS, Table, told
from tests.support.e2e.kafka_topics import read_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.addresses import Servers
    from dev.local_stack.servers.stack import Stack
    from tests.support.e2e.evolution import MakeTable

pytestmark = pytest.mark.servers


def test_columns_are_dropped_and_added(table: MakeTable) -> None:
    t = table("columns", "v text, w text, st text static")
    t.run(
        "INSERT INTO $t (p, c, v, w) VALUES (1, 1, 'v', 'w')",
        "UPDATE $t SET v = 'only' WHERE p = 1 AND c = 2",
        "INSERT INTO $t (p, c, w) VALUES (1, 3, 'w')",
        "UPDATE $t USING TIMESTAMP 4000000000000000 SET v = 'late' WHERE p = 1 AND c = 3",
        "UPDATE $t USING TIMESTAMP 4000000000000000 SET v = 'late' WHERE p = 1 AND c = 4",
        "UPDATE $t SET st = 'st' WHERE p = 2",
    )
    t.settle()
    t.run("ALTER TABLE $t ADD x int")
    assert told(t.settle()) == []
    t.run("UPDATE $t SET x = 1 WHERE p = 1 AND c = 1")
    assert told(t.settle()) == [("u", 1, {"v": "v", "w": "w"}, {"v": "v", "w": "w", "x": 1})]
    t.run("ALTER TABLE $t DROP v")
    assert told(t.settle()) == [
        ("u", 1, {"v": "v", "w": "w", "x": 1}, {"w": "w", "x": 1}),
        ("d", 2, {"v": "only"}, None),
        ("u", 3, {"v": "late", "w": "w"}, {"w": "w"}),
        ("d", 4, {"v": "late"}, None),
    ]  # once flushed, cells newer than the drop make Cassandra's own SELECT fail until the column is there again
    t.run("ALTER TABLE $t ADD v text", "ALTER TABLE $t DROP st")
    assert told(t.settle()) == [
        ("u", 3, {"w": "w"}, {"v": "late", "w": "w"}),
        ("c", 4, None, {"v": "late"}),
    ]
    t.run("INSERT INTO $t (p, c, v) VALUES (1, 1, 'new')")
    assert told(t.settle()) == [("u", 1, {"w": "w", "x": 1}, {"v": "new", "w": "w", "x": 1})]
    t.check()


def test_a_static_column_is_dropped_from_every_row(table: MakeTable) -> None:
    t = table("statics", "v text, st text static, s2 text static")
    t.run(
        "INSERT INTO $t (p, c, v, st) VALUES (1, 1, 'v', 'st')",
        "INSERT INTO $t (p, st, s2) VALUES (50, 'st', 's2')",
        "INSERT INTO $t (p, st) VALUES (51, 'st')",
    )
    t.settle()
    t.run("ALTER TABLE $t DROP st")
    changes = t.settle()
    assert [change for change in told(changes) if change[1] == 1] == [("u", 1, {"v": "v", "st": "st"}, {"v": "v"})]
    assert [change for change in told(changes) if change[1] == -1] == [
        ("u", -1, {"st": "st", "s2": "s2"}, {"s2": "s2"}),
        ("d", -1, {"st": "st"}, None),
    ]
    t.check()


def test_a_user_type_is_extended_and_its_fields_are_renamed(table: MakeTable, client: CqlClient) -> None:
    client.execute(f"CREATE TYPE IF NOT EXISTS {KEYSPACE}.pair (x int, y text)")
    t = table("types", "f frozen<pair>, u pair, l list<frozen<pair>>")
    t.run("INSERT INTO $t (p, c, f, u, l) VALUES (1, 1, {x: 1, y: 'f'}, {x: 2, y: 'u'}, [{x: 3, y: 'l'}])")
    t.settle()
    client.execute(f"ALTER TYPE {KEYSPACE}.pair ADD z int")
    t.run("UPDATE $t SET u.z = 7, f = {x: 1, y: 'f', z: 8} WHERE p = 1 AND c = 1")
    [(_, _, before, after)] = told(t.settle())
    assert before is not None
    assert after is not None
    assert before["u"] == {"x": 2, "y": "u", "z": None}
    assert (after["u"], after["f"]) == ({"x": 2, "y": "u", "z": 7}, {"x": 1, "y": "f", "z": 8})
    t.check()
    client.execute(f"ALTER TYPE {KEYSPACE}.pair RENAME y TO name")
    assert told(t.settle()) == []
    t.check()  # what was published with the former name is read by the new one
    t.run("UPDATE $t SET u.name = 'n' WHERE p = 1 AND c = 1")
    [(_, _, _, after)] = told(t.settle())
    assert after is not None
    assert after["u"] == {"x": 2, "name": "n", "z": 7}
    t.run("ALTER TABLE $t DROP f", "UPDATE $t SET l = [] WHERE p = 1 AND c = 1")  # 4.0+ drops no u: it is not frozen
    left = {"u": {"x": 2, "name": "n", "z": 7}}
    found = told(t.settle())
    assert [op for op, *_ in found] == ["u", "u"]
    assert found[-1][3] == left
    t.check()


def test_a_renamed_key_column_starts_a_new_topic(table: MakeTable) -> None:
    t = table("renamed", "v text")
    t.run("INSERT INTO $t (p, c, v) VALUES (1, 1, 'a')", "INSERT INTO $t (p, c, v) VALUES (2, 1, 'b')")
    t.settle()
    t.run("ALTER TABLE $t RENAME c TO k")
    changes = t.settle("renamed-v2", clustering="k")
    former = [change for change in changes if change.table == "renamed"]
    latter = [change for change in changes if change.table == "renamed-v2"]
    assert [op for op, *_ in told(former)] == ["d", "d"]
    assert told(latter) == [("r", 1, None, {"v": "a"}), ("r", 1, None, {"v": "b"})]
    assert latter[0].key.keys() == {"p", "k"}
    t.run("UPDATE $t SET v = 'A' WHERE p = 1 AND k = 1")
    assert told(t.settle("renamed-v2", clustering="k")) == [("u", 1, {"v": "a"}, {"v": "A"})]
    t.check("renamed-v2")


def test_a_table_made_anew_ends_the_keys_of_the_former_one(table: MakeTable, stack: Stack) -> None:
    t = table("anew", "v text, st text static")
    t.run(*(f"INSERT INTO $t (p, c, v, st) VALUES ({p}, 1, 'old', 'st')" for p in (1, 2)))
    t.run("INSERT INTO $t (p, st) VALUES (50, 'alone')")
    t.settle()
    t.run(
        "UPDATE $t SET v = 'last' WHERE p = 2 AND c = 1",
        "DROP TABLE $t",
        "CREATE TABLE $t (p int, c int, v text, w int, st text static, PRIMARY KEY (p, c)) WITH cdc = true",
        "INSERT INTO $t (p, c, v, w) VALUES (2, 1, 'new', 1)",
    )
    found = [(op, c, after) for op, c, _, after in told(t.settle())]
    assert found == [
        ("d", 1, None),
        ("u", 1, {"v": "last", "st": "st"}),
        ("d", 1, None),
        ("c", 1, {"v": "new", "w": 1}),
        ("d", -1, None),
    ]
    t.check()
    stack.check()


def test_a_dropped_tables_last_writes_are_published(table: MakeTable) -> None:
    t = table("history", "v text")
    t.settle()
    t.run("INSERT INTO $t (p, c, v) VALUES (1, 1, 'last')", "DROP TABLE $t")
    found = t.wait(lambda changes: bool(told(changes)))
    assert told(found) == [("c", 1, None, {"v": "last"})]


def test_cdc_off_and_on_marks_the_table(table: MakeTable, stack: Stack, servers: Servers) -> None:
    t = table("holes", "v text")
    t.settle()
    t.run("ALTER TABLE $t WITH cdc = false")
    publisher, materializer = stack.publishers[0], stack.materializer
    wait_for(lambda: f'"{KEYSPACE}.holes"' in lines(publisher.output(), "CDC-064"))
    t.run("INSERT INTO $t (p, c, v) VALUES (1, 1, 'not seen')", "ALTER TABLE $t WITH cdc = true")
    t.run("INSERT INTO $t (p, c, v) VALUES (1, 2, 'seen')")
    assert ("c", 2, None, {"v": "seen"}) in told(t.settle())
    wait_for(lambda: f'"{KEYSPACE}.holes"' in lines(publisher.output(), "CDC-065"))
    wait_for(lambda: f'"{KEYSPACE}.holes"' in lines(materializer.output(), "CDC-065"))
    marks = [value for key, value in read_all(servers.kafka, tables_topic(servers.topic_prefix)) if len(key) == 16]
    assert abs(mark_from_json(marks[-1]) / 1e6 - time.time()) < MOST_SECONDS


def test_what_says_nothing_about_columns_makes_no_schema(table: MakeTable, servers: Servers) -> None:
    t = table("settings", "v text")
    t.settle()
    before = digests(servers, t)
    t.run("ALTER TABLE $t WITH comment = 'none' AND gc_grace_seconds = 77 AND compression = {'enabled': false}")
    assert told(t.settle()) == []
    assert digests(servers, t) == before
    assert len(before) == 1


def test_a_view_is_refused_by_name_and_nothing_stops(table: MakeTable, stack: Stack) -> None:
    t = table("base", "v text")
    t.run(
        f"CREATE MATERIALIZED VIEW {KEYSPACE}.by_c AS SELECT * FROM $t WHERE p IS NOT NULL AND c IS NOT NULL"
        " PRIMARY KEY (c, p) WITH cdc = true",
        "INSERT INTO $t (p, c, v) VALUES (1, 1, 'a')",
    )
    assert told(t.settle()) == [("c", 1, None, {"v": "a"})]
    said = lines(stack.publishers[0].output(), "CDC-063")
    assert said.count(f'"{KEYSPACE}.by_c"') == 1
    stack.check()


def test_tables_are_altered_under_load(table: MakeTable, client: CqlClient, stack: Stack) -> None:
    t = table("load", "v text, w text")
    done = threading.Event()

    def write() -> None:
        for count in range(100_000):
            if done.is_set():
                return
            t.run(f"UPDATE $t SET v = '{count}' WHERE p = {count % 5} AND c = {count % 17}")
            if not count % 7:
                t.run(f"DELETE FROM $t WHERE p = {count % 5} AND c = {count % 11}")
            done.wait(0.01)  # 100 a second meet each change of the table; more would only cost time

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(3):
            t.run(f"ALTER TABLE $t ADD x{number} text", "ALTER TABLE $t DROP w")
            client.execute(f"CREATE TYPE {KEYSPACE}.made{number} (a int)")
            t.run(f"ALTER TABLE $t ADD u{number} frozen<made{number}>")
            t.run(f"INSERT INTO $t (p, c, u{number}, x{number}) VALUES (1, {50 + number}, {{a: 1}}, 'x')")
            time.sleep(0.5)
            t.run("ALTER TABLE $t ADD w text", f"ALTER TABLE $t DROP u{number}")
            t.run(f"UPDATE $t SET w = 'w' WHERE p = 2 AND c = {50 + number}")
    finally:
        done.set()
        writer.join()
    t.settle()
    t.check()
    stack.check()


def digests(servers: Servers, table: Table) -> set[bytes]:
    """The digests of a table's schemas in the tables topic."""
    name = f'"keyspace":"{KEYSPACE}","name":"{table.name}"'.encode()
    messages = read_all(servers.kafka, tables_topic(servers.topic_prefix))
    return {key[16:] for key, value in messages if name in value and len(key) == 32}


def lines(log: str, code: str) -> str:
    return "\n".join(line for line in log.splitlines() if code in line)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
