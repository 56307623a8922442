"""A snapshot of tables that held data before cdc = true: what comes out is what SELECT shows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from cdc_common.clients.cassandra import connect, read_node
from cdc_common.messages.tables import mark_from_json
from cdc_common.messages.topics import tables_topic
from cdc_common.settings import CassandraSettings, KafkaSettings
from dev.local_stack.clients import cql as cql_client
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.stack import SYNC_PERIOD_MS
from filler.keyspace import create_keyspace
from filler.settings import FillerSettings
from publisher.settings import Settings
from publisher.snapshot.state.records import Records
from tests.support.e2e.kafka_topics import read_all
from tests.support.publisher.publisher_process import PublisherProcess, eventually
from tests.support.publisher.snapshot_table import (
    PARTITIONS,
    SECONDS,
    Folded,
    Writes,
    fill_table,
    pass_present_log,
    publisher_beside,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from uuid import UUID

    from cassandra.cluster import Session

    from dev.local_stack.servers.cassandra import CassandraCluster
    from dev.local_stack.servers.kafka import KafkaBroker
    from publisher.snapshot.state.records import Record

pytestmark = [pytest.mark.servers, pytest.mark.timeout(240)]

SLOW_MIB = 0.1  # a second, of 0.4 in all: what is recorded once a second shows the middle, and the kill is in it


@pytest.fixture
def publisher(publisher: PublisherProcess, cassandra: CassandraCluster, fresh_keyspace: str) -> PublisherProcess:
    publisher.settings["publisher.nodetool"] = ",".join(cassandra.nodes[0].nodetool_command())
    publisher.settings["publisher.snapshot_max_mib_per_second"] = 0
    publisher.settings["publisher.include_tables"] = f"{fresh_keyspace}.*"  # not what other tests have left
    return publisher


@pytest.fixture
def fold(
    cassandra: CassandraCluster, kafka: KafkaBroker, topic_prefix: str, fresh_keyspace: str
) -> Iterator[Callable[[str], Folded]]:
    settings = Settings(
        kafka=KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topic_prefix=topic_prefix, raw_partitions=3)
    )
    with cql_client.connect(cassandra.contact_points, cassandra.port) as client:
        yield lambda table: Folded(settings, client, fresh_keyspace, table)


def shown(publisher: PublisherProcess) -> list[tuple[str, str]]:
    return [(snapshot["table"], snapshot["state"]) for snapshot in publisher.status()["snapshots"]]


@pytest.mark.exhaustive
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
    fill_table(cql, table, lambda: cassandra.nodes[0].nodetool("flush", fresh_keyspace))
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
        publisher.start()  # it may end before a command that would follow it: that would begin another one
        eventually(lambda: (found := records.read(table)) is not None and found.is_final, SECONDS)
    eventually(lambda: f"{table} has ended" in publisher.command("status")[1])  # its status is renewed once a second
    assert writes.count > 20
    ended = records.read(table)
    assert ended is not None
    assert (ended.snapshot, ended.phase, ended.done) == (killed.snapshot, "ended", 1.0)
    assert ended.started > killed.started
    assert fresh_keyspace not in cassandra.nodes[0].nodetool("listsnapshots")
    folded = fold("t")
    folded.check()
    snapshot = Counter((change["op"], change["source"].get("snapshot")) for change in folded.changes())
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
    kafka_parts: dict[str, object],
    topic_prefix: str,
    tmp_path: Path,
) -> None:
    options = CassandraOptions(commitlog_sync_period_ms=SYNC_PERIOD_MS)
    cluster = own_cluster(nodes=2, options=options)
    publishers = [publisher_beside(node, cluster, kafka_parts, tmp_path / node.name) for node in cluster.nodes]
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
            eventually(
                lambda: all((record := one.read("two.t")) and record.is_mark_cleared for one in records), SECONDS
            )
            found = [one.read("two.t") for one in records]
            assert len({record.snapshot for record in found if record}) == 1
            assert sum(record.rows for record in found if record) == 300
            assert all(record.rows > 0 for record in found if record)
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

            given_up = given_up_at_once(publishers[0], records[0])
            assert rows_sent(publishers, records) == [300, 300]
            with connect(settings, only=cluster.nodes[0].address) as client:
                rows = client.rows("SELECT snapshot, state FROM cdc_filler.snapshots")
            states = [row["state"] for row in rows if row["snapshot"] == given_up]
            assert len(states) == 2  # the other publisher has sent it, if it looked before that
            assert "given_up" in states
            assert "running" not in states
        finally:
            for publisher in publishers:
                publisher.kill()


def given_up_at_once(publisher: PublisherProcess, records: Records) -> UUID:
    """The id of a snapshot of both.t that is over, maybe before another publisher has looked for it."""
    for option in ("--detach", "--cancel"):
        status, said = publisher.command("snapshot", "both.t", option)
        assert status == 0, said
    begun = records.read("both.t")
    assert begun is not None
    eventually(lambda: bool((record := records.read("both.t")) and record.is_final), SECONDS)
    return begun.snapshot


def rows_sent(publishers: list[PublisherProcess], records: list[Records], *options: str) -> list[int]:
    """Return the rows that each node sends in a snapshot of both.t with these options."""
    status, said = publishers[0].command("snapshot", "both.t", *options)
    assert status == 0, said
    begun = records[0].read("both.t")
    assert begun is not None

    def parts() -> list[Record]:
        return [record for one in records if (record := one.read("both.t")) and record.snapshot == begun.snapshot]

    eventually(lambda: [part.phase for part in parts()] == ["ended"] * len(records), SECONDS)
    return [part.rows for part in parts()]
