"""A snapshot of tables that held data before cdc = true: what comes out is what SELECT shows."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Self

import pytest

from cdc_messages.tables import mark_from_json
from cdc_messages.topics import tables_topic
from cdc_program.cassandra import connect, read_node
from cdc_program.settings import CassandraSettings, FillerSettings, KafkaSettings, Settings
from filler.keyspace import create_keyspace
from local_stack.clients import cql as cql_client
from local_stack.clients.compare import compare
from local_stack.clients.history import History
from local_stack.servers.cassandra import CassandraOptions
from local_stack.servers.stack import SYNC_PERIOD_MS
from publisher.snapshot.records import Records
from tests.support.e2e.folded_topic import FoldedTopic
from tests.support.e2e.kafka_topics import read_all
from tests.support.publisher.publisher_process import PublisherProcess, eventually, settings_beside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cassandra.cluster import Session

    from local_stack.servers.cassandra import CassandraCluster, CassandraNode
    from local_stack.servers.kafka import KafkaBroker
    from publisher.snapshot.records import Record

pytestmark = [pytest.mark.servers, pytest.mark.timeout(240)]

PARTITIONS, ROWS = 40, 60
SLOW_MIB = 0.25  # a second: slow enough to be killed in the middle
SECONDS = 90.0


@pytest.fixture
def publisher(publisher: PublisherProcess, cassandra: CassandraCluster, fresh_keyspace: str) -> PublisherProcess:
    publisher.settings["publisher.nodetool"] = ",".join(cassandra.nodes[0].nodetool_command())
    publisher.settings["publisher.snapshot_max_mib_per_second"] = 0
    publisher.settings["publisher.include_tables"] = f"{fresh_keyspace}.*"  # not what other tests have left
    return publisher


class Folded:
    """A table's raw topic, folded, beside the table."""

    def __init__(self, settings: Settings, client: cql_client.CqlClient, keyspace: str, table: str) -> None:
        self.history = History()
        self._topic = FoldedTopic(settings, keyspace, table)
        self._client = client
        self._name = keyspace, table

    def read(self) -> None:
        """What is there now, and a little longer."""
        rounds = iter(range(4))
        self.history.add(self._topic.changes(lambda _: next(rounds, None) is None))

    def differences(self) -> list[str]:
        self.read()
        return compare(self._client, self.history, [self._name]).differences

    def changes(self) -> Iterator[dict[str, Any]]:
        for each in self.history.changes.values():
            for change in each:
                assert change.value is not None
                yield change.value

    def check(self) -> None:
        eventually(lambda: not self.differences(), SECONDS)
        assert list(self.history.problems()) == []
        assert self.history.count


@pytest.fixture
def fold(
    cassandra: CassandraCluster, kafka: KafkaBroker, topic_prefix: str, fresh_keyspace: str
) -> Iterator[Callable[[str], Folded]]:
    settings = Settings(
        kafka=KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topic_prefix=topic_prefix, raw_partitions=3)
    )
    with cql_client.connect(cassandra.contact_points, cassandra.port) as client:
        yield lambda table: Folded(settings, client, fresh_keyspace, table)


def fill(cql: Session, table: str, flush: Callable[[], object]) -> None:
    """In several SSTables: rows, statics, collections, TTLs, and deletions of each kind."""
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


def pass_present_log(publisher: PublisherProcess, cql: Session, keyspace: str) -> None:
    """Until the publisher is past what was written before cdc = true: the log has it, too, and shows it once another
    table has changes there.
    """
    cql.execute(f"CREATE TABLE {keyspace}.mark (p int PRIMARY KEY) WITH cdc = true")
    eventually(lambda: publisher.status()["tables"] == 1)
    cql.execute(f"INSERT INTO {keyspace}.mark (p) VALUES (1)")
    eventually(lambda: publisher.status()["messages"] == 1)


def shown(publisher: PublisherProcess) -> list[tuple[str, str]]:
    return [(each["table"], each["state"]) for each in publisher.status()["snapshots"]]


class Writes:
    """Statements of a thread of their own, until they are stopped."""

    def __init__(self, cql: Session, table: str) -> None:
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


def test_a_snapshot_under_writes_and_a_kill_gives_what_select_shows(
    publisher: PublisherProcess,
    cassandra: CassandraCluster,
    cql: Session,
    fresh_keyspace: str,
    fold: Callable[[str], Folded],
    kafka: KafkaBroker,
    topic_prefix: str,
    tmp_path: Path,
) -> None:
    table = f"{fresh_keyspace}.t"
    fill(cql, table, lambda: cassandra.nodes[0].nodetool("flush", fresh_keyspace))
    publisher.start(publisher__snapshot_max_mib_per_second=SLOW_MIB)
    pass_present_log(publisher, cql, fresh_keyspace)
    cql.execute(f"ALTER TABLE {table} WITH cdc = true")
    eventually(lambda: publisher.status()["tables"] == 2)
    records = Records(tmp_path / "state")
    with Writes(cql, table) as writes:
        status, said = publisher.command("snapshot", table, "--detach")
        assert status == 0, said
        assert "nodetool repair" in said
        eventually(lambda: (found := records.read(table)) is not None and found.rows > 400, SECONDS)
        publisher.kill()
        killed = records.read(table)
        assert killed is not None
        assert killed.phase == "sending"
        publisher.start()
        status, said = publisher.command("snapshot", table)
        assert status == 0, said
        assert "has ended" in said
    assert writes.count > 20
    ended = records.read(table)
    assert ended is not None
    assert (ended.snapshot, ended.phase, ended.done) == (killed.snapshot, "ended", 1.0)
    assert ended.started > killed.started
    assert fresh_keyspace not in cassandra.nodes[0].nodetool("listsnapshots")
    folded = fold("t")
    folded.check()
    snapshot = Counter((each["op"], each["source"].get("snapshot")) for each in folded.changes())
    assert {snapshot_of for op, snapshot_of in snapshot if op == "r"} == {"true"}, snapshot
    assert snapshot["r", "true"] > PARTITIONS
    eventually(lambda: (found := records.read(table)) is not None and found.is_mark_cleared)
    marks = [value for key, value in read_all(kafka.bootstrap_servers, tables_topic(topic_prefix)) if len(key) == 16]
    assert mark_from_json(marks[-1]) == 0
    assert shown(publisher) == [(table, "ended")]
    assert f'cdc_publisher_snapshot_state{{state="ended",table="{table}"}} 1.0' in publisher.get("/metrics")[1]
    assert "Traceback" not in publisher.log()


def test_counters_come_once(
    publisher: PublisherProcess, cql: Session, fresh_keyspace: str, fold: Callable[[str], Folded]
) -> None:
    table = f"{fresh_keyspace}.counts"
    cql.execute(f"CREATE TABLE {table} (p int PRIMARY KEY, n counter)")
    for p in range(30):
        cql.execute(f"UPDATE {table} SET n = n + {p} WHERE p = {p}")
    cql.execute(f"DELETE FROM {table} WHERE p = 3")
    publisher.start(publisher__snapshot="initial")
    pass_present_log(publisher, cql, fresh_keyspace)
    cql.execute(f"ALTER TABLE {table} WITH cdc = true")
    eventually(lambda: (table, "ended") in shown(publisher), SECONDS)
    folded = fold("counts")
    folded.check()
    for p in range(0, 40, 4):
        cql.execute(f"UPDATE {table} SET n = n + 100 WHERE p = {p}")
    status, said = publisher.command("snapshot", table)
    assert status == 0, said
    folded.check()


@pytest.mark.exhaustive
def test_two_nodes_take_one_snapshot_together(
    own_cluster: Callable[..., CassandraCluster],
    kafka: KafkaBroker,
    kafka_side: dict[str, object],
    topic_prefix: str,
    tmp_path: Path,
) -> None:
    options = CassandraOptions(commitlog_sync_period_ms=SYNC_PERIOD_MS)
    cluster = own_cluster(nodes=2, options=options)
    publishers = [publisher_beside(node, cluster, kafka_side, tmp_path / node.name) for node in cluster.nodes]
    records = [Records(tmp_path / node.name / "state") for node in cluster.nodes]
    settings = CassandraSettings(contact_points=[cluster.nodes[0].address], port=cluster.nodes[0].port)
    with connect(settings, only=cluster.nodes[0].address) as client:
        create_keyspace(client, FillerSettings(), read_node(client))
    with cql_client.connect([cluster.nodes[0].address], cluster.nodes[0].port) as cql:
        cql.execute("CREATE KEYSPACE two WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        cql.execute("CREATE TABLE two.t (p int PRIMARY KEY, v text)")
        for p in range(300):
            cql.execute(f"INSERT INTO two.t (p, v) VALUES ({p}, 'v{p}')")
        cql.execute("CREATE KEYSPACE both WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}")
        cql.execute("CREATE TABLE both.t (p int PRIMARY KEY, v text)")
        for p in range(300):
            cql.execute_at_all(f"INSERT INTO both.t (p, v) VALUES ({p}, 'v{p}')")
        try:
            for publisher in publishers:
                publisher.start()
            cql.execute("ALTER TABLE two.t WITH cdc = true")
            eventually(lambda: all(publisher.status()["tables"] == 1 for publisher in publishers))
            status, said = publishers[0].command("snapshot", "two.t")
            assert status == 0, said
            assert "the publishers of 1 more" in said
            eventually(lambda: all((each := one.read("two.t")) and each.is_mark_cleared for one in records), SECONDS)
            found = [one.read("two.t") for one in records]
            assert len({each.snapshot for each in found if each}) == 1
            assert sum(each.rows for each in found if each) == 300
            assert all(each.rows > 0 for each in found if each)
            kafka_settings = KafkaSettings(
                bootstrap_servers=kafka.bootstrap_servers, topic_prefix=topic_prefix, raw_partitions=3
            )
            Folded(Settings(kafka=kafka_settings), cql, "two", "t").check()

            cql.execute("ALTER TABLE both.t WITH cdc = true")
            eventually(lambda: all(publisher.status()["tables"] == 2 for publisher in publishers))
            sent = rows_sent(publishers, records, "--primary-range")
            assert sum(sent) == 300
            assert min(sent) > 0
            Folded(Settings(kafka=kafka_settings), cql, "both", "t").check()
            token = cql.execute("SELECT token(p) AS placed FROM both.t WHERE p = 5")[0]["placed"]
            assert rows_sent(publishers, records, "--tokens", str(token)) == [1, 1]
        finally:
            for publisher in publishers:
                publisher.kill()


def rows_sent(publishers: list[PublisherProcess], records: list[Records], *options: str) -> list[int]:
    """By each node, in a snapshot of both.t with these options."""
    status, said = publishers[0].command("snapshot", "both.t", *options)
    assert status == 0, said
    begun = records[0].read("both.t")
    assert begun is not None

    def parts() -> list[Record]:
        return [each for one in records if (each := one.read("both.t")) and each.snapshot == begun.snapshot]

    eventually(lambda: [each.phase for each in parts()] == ["ended"] * len(records), SECONDS)
    return [each.rows for each in parts()]


def publisher_beside(
    node: CassandraNode, cluster: CassandraCluster, kafka_side: dict[str, object], folder: Path
) -> PublisherProcess:
    folder.mkdir()
    own = {
        "cassandra.contact_points": node.address,
        "node.cdc_raw_directory": node.cdc_raw,
        "publisher.nodetool": ",".join(node.nodetool_command()),
        "publisher.snapshot_max_mib_per_second": 0,
    }
    return PublisherProcess(settings_beside(cluster, folder / "state") | kafka_side | own, folder)
