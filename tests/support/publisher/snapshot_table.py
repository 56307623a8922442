"""A table that holds data before cdc = true, writes to it while a snapshot is taken, and what comes out of it."""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING, Any, Self

from dev.local_stack.clients.compare import compare
from dev.local_stack.clients.history import History
from tests.support.e2e.folded_topic import FoldedTopic
from tests.support.publisher.publisher_process import PublisherProcess, eventually, settings_beside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cassandra.cluster import Session

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.cassandra import CassandraCluster, CassandraNode
    from publisher.settings import Settings

PARTITIONS, ROWS = 40, 60
SECONDS = 90.0


class Folded:
    """A table's raw topic, folded, beside the table."""

    def __init__(self, settings: Settings, client: CqlClient, keyspace: str, table: str) -> None:
        self.history = History()
        self._topic = FoldedTopic(settings, keyspace, table)
        self._client = client
        self._name = keyspace, table

    def read(self) -> None:
        """Read what is there now, and a little longer."""
        rounds = iter(range(4))
        self.history.add(self._topic.changes(lambda _: next(rounds, None) is None))

    def differences(self) -> list[str]:
        self.read()
        return compare(self._client, self.history, [self._name]).differences

    def changes(self) -> Iterator[dict[str, Any]]:
        for changes in self.history.changes.values():
            for change in changes:
                assert change.value is not None
                yield change.value

    def check(self) -> None:
        eventually(lambda: not self.differences(), SECONDS)
        assert list(self.history.problems()) == []
        assert self.history.count


def fill_table(cql: Session | CqlClient, table: str, flush: Callable[[], object]) -> None:
    """Fill the table in several SSTables: rows, statics, collections, TTLs, and deletions of each kind."""
    pick = random.Random(1)
    cql.execute(
        f"CREATE TABLE {table} (p int, c int, st text STATIC, v text, n int, s set<text>, m map<text, int>,"
        " PRIMARY KEY (p, c))"
    )
    insert = cql.prepare(f"INSERT INTO {table} (p, c, v, n, s, m) VALUES (?, ?, ?, ?, ?, ?) USING TTL ?")
    for p in range(PARTITIONS):
        for c in range(ROWS):
            tags = {pick.choice("abc") for _ in range(pick.randrange(3))}
            ttl = pick.choice((0, 0, 0, 5, 86_400))
            cql.execute(insert, (p, c, "v" * pick.randrange(30), c, tags, {"k": c}, ttl))
        cql.execute(f"UPDATE {table} SET st = 'of {p}' WHERE p = {p}")
    flush()
    for p in range(0, PARTITIONS, 2):
        cql.execute(f"DELETE FROM {table} WHERE p = {p} AND c = 3")
        cql.execute(f"DELETE FROM {table} WHERE p = {p} AND c >= 10 AND c < 20")
        cql.execute(f"UPDATE {table} SET s = s + {{'new'}}, m = {{'only': 1}}, v = null WHERE p = {p} AND c = 5")
        cql.execute(f"INSERT INTO {table} (p, c, n) VALUES ({p}, 15, 0)")
    cql.execute(f"DELETE FROM {table} WHERE p = 7")
    cql.execute(f"INSERT INTO {table} (p, c, n) VALUES (7, 1000, 1)")
    flush()
    for p in range(0, PARTITIONS, 5):
        cql.execute(f"UPDATE {table} SET v = 'in the memtable' WHERE p = {p} AND c = 30")


def pass_present_log(publisher: PublisherProcess, cql: Session | CqlClient, keyspace: str) -> None:
    """Wait until the publisher is past what was written before cdc = true: the log contains it, too, and shows it once
    another table has changes there.
    """
    cql.execute(f"CREATE TABLE {keyspace}.mark (p int PRIMARY KEY) WITH cdc = true")
    eventually(lambda: publisher.status()["tables"] == 1)
    cql.execute(f"INSERT INTO {keyspace}.mark (p) VALUES (1)")
    eventually(lambda: publisher.status()["messages"] == 1)


class Writes:
    """Statements of a thread of their own, until they are stopped."""

    def __init__(self, cql: Session | CqlClient, table: str) -> None:
        self._cql, self._table = cql, table
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.count = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _write(self) -> None:
        pick = random.Random(2)
        while not self._end.is_set():
            p, c = pick.randrange(PARTITIONS), pick.randrange(ROWS)
            statement = pick.choice(
                (
                    f"UPDATE {self._table} SET n = {pick.randrange(1000)} WHERE p = {p} AND c = {c}",
                    f"UPDATE {self._table} SET s = s - {{'a'}}, m['x'] = 1 WHERE p = {p} AND c = {c}",
                    f"DELETE FROM {self._table} WHERE p = {p} AND c = {c}",
                    f"DELETE FROM {self._table} WHERE p = {p} AND c > {c} AND c < {c + 4}",
                )
            )
            self._cql.execute(statement)
            self.count += 1
            time.sleep(0.01)


def publisher_beside(
    node: CassandraNode, cluster: CassandraCluster, kafka_parts: dict[str, object], folder: Path
) -> PublisherProcess:
    folder.mkdir()
    own = {
        "cassandra.contact_points": node.address,
        "node.cdc_raw_directory": node.cdc_raw,
        "publisher.nodetool": ",".join(node.nodetool_command()),
        "publisher.snapshot_max_mib_per_second": 0,
    }
    return PublisherProcess(settings_beside(cluster, folder / "state") | kafka_parts | own, folder)
