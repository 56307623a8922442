"""Real nodes of 3.11, 4.0 and 4.1 as sources: the real publisher, the real fold, and what SELECT shows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from cdc_common.settings import KafkaSettings, Settings
from dev.local_stack.clients import cql
from dev.local_stack.clients.compare import compare
from dev.local_stack.clients.history import History
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.servers import programs
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.choice import cassandra_cluster
from tests.support.e2e.evolution import told
from tests.support.e2e.folded_topic import FoldedTopic
from tests.support.e2e.newest_columns import by_newest_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dev.local_stack.clients.change import Change
    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.cassandra import CassandraCluster
    from dev.local_stack.servers.kafka import KafkaBroker

pytestmark = [
    pytest.mark.servers,
    pytest.mark.exhaustive,
]

OPTIONS = CassandraOptions(
    commitlog_segment_mib=1, commitlog_sync_period_ms=100, yaml={"enable_drop_compact_storage": True}
)
FILLED = 280  # blobs of 8000 bytes: more than two segments
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
# Then, in one segment: what is read after a drop was written before it, a non-frozen user type cell by cell too.
ALTERED = (
    "UPDATE ks.plain SET u.x = 8 WHERE p = 1 AND c = 1",
    "ALTER TABLE ks.plain DROP m",
    "ALTER TABLE ks.flat DROP COMPACT STORAGE",
    "ALTER TABLE ks.dense DROP COMPACT STORAGE",
    "ALTER TABLE ks.bare DROP COMPACT STORAGE",
    "INSERT INTO ks.plain (p, c, v) VALUES (1, 3, 'last')",
    "INSERT INTO ks.flat (p, column1, value) VALUES (1, 'one', 0x01)",
    "INSERT INTO ks.flat (p, a) VALUES (4, 'alone')",
    "INSERT INTO ks.dense (p, c, v) VALUES (1, 3, 'c')",
    "INSERT INTO ks.bare (p, c) VALUES (1, 'z')",
)
# The topic in which a table's rows are in the end, and one of them.
LAST: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("plain", {"p": 1, "c": 3, "v": "last"}),
    "flat": ("flat-v2", {"p": 4, "column1": None, "a": "alone"}),
    "dense": ("dense", {"p": 1, "c": 3, "v": "c"}),
    "bare": ("bare", {"p": 1, "c": "z"}),
}
DROPS_USER_TYPE = "ALTER TABLE ks.plain DROP u"  # refused since 4.0


@pytest.fixture(params=["3.11", "4.0", "4.1"])
def node(request: pytest.FixtureRequest) -> Iterator[CassandraCluster]:
    cluster = cassandra_cluster(request.param, options=OPTIONS)
    try:
        yield cluster.start()
    finally:
        cluster.close(keep=request.session.testsfailed > 0)


@pytest.fixture
def client(node: CassandraCluster) -> Iterator[CqlClient]:
    with cql.connect(node.contact_points, node.port) as client:
        yield client


@pytest.fixture
def settings(kafka: KafkaBroker, topic_prefix: str) -> Settings:
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
    node: CassandraCluster, client: CqlClient, settings: Settings, registry: str, tmp_path: Path
) -> None:
    client.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    client.execute("CREATE TYPE ks.pair (x int, y text)")
    run(node, client, *TABLES, *STATEMENTS)
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
    tables = {name: Folded(client, settings, name) for name in EXPECTED}
    try:
        for name, table in tables.items():
            table.read(partial(has_come, count=len(EXPECTED[name])))
            assert table.told() == EXPECTED[name], name
            table.check()
        drops_user_type = node.release.startswith("3.11")
        run(node, client, *ALTERED[:2], *([DROPS_USER_TYPE] if drops_user_type else []), *ALTERED[2:])
        for name, table in tables.items():
            topic, row = LAST[name]
            table.read(partial(is_latest, topic=topic, row=row))
            table.check(topic)
        publisher.check()
    finally:
        for table in tables.values():
            table.close()
        publisher.stop()


def run(node: CassandraCluster, client: CqlClient, *statements: str) -> None:
    """Run them and have the node hand over its log: 3.11 does when a segment is full and flushed."""
    for statement in statements:
        client.execute(statement)
    for count in range(FILLED):
        client.execute("INSERT INTO ks.fill (p, b) VALUES (%s, %s)", (count, bytes(8000)))
    node.nodes[0].nodetool("flush")


def has_come(history: History, count: int) -> bool:
    return history.count >= count


def is_latest(history: History, topic: str, row: dict[str, Any]) -> bool:
    """Whether a topic has this row now."""
    return any(row.items() <= value["after"].items() for _, value in history.latest(f"ks.{topic}"))


class Folded:
    """The changes of a table so far."""

    def __init__(self, client: CqlClient, settings: Settings, name: str) -> None:
        self._client = client
        self._name = name
        self._topic = FoldedTopic(settings, "ks", name)
        self._history = History()

    def read(self, is_enough: Callable[[History], bool]) -> None:
        def add(changes: list[Change]) -> bool:
            self._history.add(changes)
            changes.clear()
            return is_enough(self._history)

        self._topic.changes(add)

    def told(self) -> list[tuple[str, Any, Any]]:
        """(op, before, after) in the order of the keys."""
        changes = [change for of in self._history.changes.values() for change in of]
        ordered = sorted(changes, key=lambda change: [str(part) for part in change.key.values()])
        return [(op, before, after) for change in ordered for op, _, before, after in told([change])]

    def check(self, topic: str | None = None) -> None:
        """Chains hold, and the latest of each key in a topic is what SELECT shows."""
        history, latest = by_newest_columns(self._history), History()
        changes = (change for of in history.changes.values() for change in of)
        latest.add(replace(change, table=self._name) for change in changes if change.table == (topic or self._name))
        assert list(history.problems()) == []
        result = compare(self._client, latest, [("ks", self._name)])
        assert result.differences == []
        assert result.tables[f"ks.{self._name}"] > 0

    def close(self) -> None:
        self._topic.close()
