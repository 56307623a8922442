"""Real nodes of 3.11, 4.0 and 4.1 as sources: the real publisher, the real fold, and what SELECT shows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from cdc_program.settings import KafkaSettings, Settings
from local_stack import cql, programs
from local_stack.cassandra import CassandraOptions
from local_stack.choice import cassandra_cluster
from local_stack.compare import compare
from local_stack.history import History
from local_stack.network import LOCALHOST, free_ports
from tests.e2e.evolution import told
from tests.e2e.folded_topic import FoldedTopic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from local_stack.cql import CqlClient
    from local_stack.interfaces import CassandraServers, KafkaServer

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(not os.environ.get("CDC_EXHAUSTIVE"), reason="a run of its own: make evolution"),
]

OPTIONS = CassandraOptions(commitlog_segment_mib=1, commitlog_sync_period_ms=100)
TABLES = (
    (
        "CREATE TABLE ks.plain (p int, c int, s text static, v text, m map<text, int>, u pair, PRIMARY KEY (p, c))"
        " WITH cdc = true"
    ),
    "CREATE TABLE ks.flat (p int PRIMARY KEY, a text, b int) WITH COMPACT STORAGE AND cdc = true",
    "CREATE TABLE ks.dense (p int, c int, v text, PRIMARY KEY (p, c)) WITH COMPACT STORAGE AND cdc = true",
    "CREATE TABLE ks.bare (p int, c text, PRIMARY KEY (p, c)) WITH COMPACT STORAGE AND cdc = true",
    "CREATE TABLE ks.fill (p int PRIMARY KEY, b blob) WITH cdc = true",
)
STATEMENTS = (
    "INSERT INTO ks.plain (p, c, s, v, m, u) VALUES (1, 1, 's', 'v', {'a': 1}, {x: 1, y: 'y'})",
    "UPDATE ks.plain SET m['b'] = 2, u.x = 7, v = null WHERE p = 1 AND c = 1",
    "INSERT INTO ks.plain (p, c, v) VALUES (1, 2, 'v')",
    "DELETE FROM ks.plain WHERE p = 1 AND c >= 2",
    "INSERT INTO ks.flat (p, a, b) VALUES (1, 'a', 1)",
    "INSERT INTO ks.flat (p, a) VALUES (2, 'b')",
    "UPDATE ks.flat SET a = null WHERE p = 1",
    "DELETE FROM ks.flat WHERE p = 2",
    "INSERT INTO ks.flat (p, b) VALUES (3, 3)",
    "DELETE b FROM ks.flat WHERE p = 3",
    "INSERT INTO ks.dense (p, c, v) VALUES (1, 1, 'a')",
    "INSERT INTO ks.dense (p, c, v) VALUES (1, 2, 'b')",
    "DELETE FROM ks.dense WHERE p = 1 AND c = 1",
    "INSERT INTO ks.bare (p, c) VALUES (1, 'x')",
    "INSERT INTO ks.bare (p, c) VALUES (1, 'y')",
    "DELETE FROM ks.bare WHERE p = 1 AND c = 'x'",
)
EXPECTED: dict[str, list[tuple[str, Any, Any]]] = {
    "plain": [
        ("c", None, {"s": "s", "v": "v", "m": {"a": 1}, "u": {"x": 1, "y": "y"}}),
        (
            "u",
            {"s": "s", "v": "v", "m": {"a": 1}, "u": {"x": 1, "y": "y"}},
            {"s": "s", "m": {"a": 1, "b": 2}, "u": {"x": 7, "y": "y"}},
        ),
        ("c", None, {"s": "s", "v": "v"}),
        ("d", {"s": "s", "v": "v"}, None),
    ],
    "flat": [
        ("c", None, {"a": "a", "b": 1}),
        ("u", {"a": "a", "b": 1}, {"b": 1}),
        ("c", None, {"a": "b"}),
        ("d", {"a": "b"}, None),
        ("c", None, {"b": 3}),
        ("d", {"b": 3}, None),
    ],
    "dense": [("c", None, {"v": "a"}), ("d", {"v": "a"}, None), ("c", None, {"v": "b"})],
    "bare": [("c", None, {}), ("d", {}, None), ("c", None, {})],
}


@pytest.fixture(params=["3.11", "4.0", "4.1"])
def node(request: pytest.FixtureRequest) -> Iterator[CassandraServers]:
    cluster = cassandra_cluster(request.param, options=OPTIONS)
    try:
        yield cluster.start()
    finally:
        cluster.close(keep=request.session.testsfailed > 0)


@pytest.fixture
def client(node: CassandraServers) -> Iterator[CqlClient]:
    with cql.connect(node.contact_points, node.port) as client:
        yield client


@pytest.fixture
def settings(kafka: KafkaServer, topic_prefix: str) -> Settings:
    return Settings(
        kafka=KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topic_prefix=topic_prefix, raw_partitions=2)
    )


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_ports(1)[0]
    schematizer = programs.schematizer(tmp_path_factory.mktemp("registry"), port).start()
    yield f"http://{LOCALHOST}:{port}"
    schematizer.stop()


def test_rows_of_all_kinds_of_tables_come_out_as_select_shows_them(
    node: CassandraServers, client: CqlClient, settings: Settings, registry: str, tmp_path: Path
) -> None:
    client.run("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    client.run("CREATE TYPE ks.pair (x int, y text)")
    for statement in (*TABLES, *STATEMENTS):
        client.run(statement)
    for count in range(280):  # 3.11 hands a segment over when it is full and flushed
        client.run("INSERT INTO ks.fill (p, b) VALUES (%s, %s)", (count, bytes(8000)))
    node.nodes[0].nodetool("flush")
    publisher = programs.publisher(
        tmp_path,
        node.nodes[0].address,
        node.nodes[0].cdc_raw,
        {
            "cassandra.contact_points": node.nodes[0].address,
            "cassandra.port": node.port,
            "kafka.bootstrap_servers": settings.kafka.bootstrap_servers,
            "kafka.topic_prefix": settings.kafka.topic_prefix,
            "kafka.raw_partitions": settings.kafka.raw_partitions,
            "registry.url": registry,
        },
        "publisher",
    ).start()
    try:
        for name, expected in EXPECTED.items():
            check_table(client, settings, name, expected)
        publisher.check()
    finally:
        publisher.stop()


def check_table(client: CqlClient, settings: Settings, name: str, expected: list[tuple[str, Any, Any]]) -> None:
    topic = FoldedTopic(settings, "ks", name)
    try:
        changes = topic.changes(lambda found: len(found) >= len(expected))
    finally:
        topic.close()
    assert sorted_by_key(changes) == expected, name
    history = History()
    history.add(changes)
    assert list(history.problems()) == []
    result = compare(client, history, [("ks", name)])
    assert result.differences == []
    assert result.tables[f"ks.{name}"] > 0


def sorted_by_key(changes: list[Any]) -> list[tuple[str, Any, Any]]:
    """(op, before, after) in the order of the keys."""
    ordered = sorted(changes, key=lambda change: [str(part) for part in change.key.values()])
    return [(op, before, after) for change in ordered for op, _, before, after in told([change])]
