"""A snapshot of a node whose disk runs short: its links to SSTables go, and come again; and one of a table in parts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cdc_common.settings import KafkaSettings
from dev.local_stack.clients import cql as cql_client
from dev.local_stack.servers.cassandra import CassandraCluster
from publisher.settings import Settings
from publisher.snapshot.connections.busy import LEAST_SHARE
from publisher.snapshot.connections.nodetool import Nodetool
from publisher.snapshot.state.records import Records
from tests.support.filler.nodes import SMALL, own_clusters
from tests.support.publisher.publisher_process import PublisherProcess, eventually
from tests.support.publisher.snapshot_table import (
    SECONDS,
    Folded,
    Writes,
    fill_table,
    pass_present_log,
    publisher_beside,
)
from tests.support.small_disk import fill, small_disk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.servers.cassandra import CassandraNode
    from dev.local_stack.servers.kafka import KafkaBroker
    from publisher.snapshot.state.records import Record

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(400), own_clusters]

DISK_MIB = 500
SHORT_BYTES = DISK_MIB * 1024 * 1024 * 8 // 100  # a tenth must be free
SLOW_MIB = 0.05
KEYSPACE, TABLE = "short", "short.t"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[CassandraNode]:
    options = replace(SMALL, commitlog_sync_period_ms=100)
    with (
        small_disk(tmp_path / "disk", DISK_MIB) as disk,
        CassandraCluster(options=options, folder=disk / "cluster") as cluster,
    ):
        yield cluster.nodes[0]


@pytest.fixture
def client(node: CassandraNode) -> Iterator[cql_client.CqlClient]:
    with cql_client.connect([node.address], node.port) as client:
        client.execute(
            f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        )
        yield client


@pytest.fixture
def publisher(node: CassandraNode, kafka_parts: dict[str, object], tmp_path: Path) -> Iterator[PublisherProcess]:
    process = publisher_beside(node, node.cluster, kafka_parts | {"kafka.raw_partitions": 2}, tmp_path / "publisher")
    yield process
    process.kill()


@pytest.fixture
def folded(client: cql_client.CqlClient, kafka: KafkaBroker, topic_prefix: str) -> Folded:
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topic_prefix=topic_prefix, raw_partitions=2)
    return Folded(Settings(kafka=settings), client, KEYSPACE, "t")


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "publisher" / "state")


def read(records: Records) -> Record:
    found = records.read(TABLE)
    assert found is not None
    return found


def start(publisher: PublisherProcess, client: cql_client.CqlClient, node: CassandraNode, **changed: object) -> None:
    """Start the publisher with a snapshot of the table that is asked for, and begins."""
    fill_table(client, TABLE, lambda: node.nodetool("flush", KEYSPACE))
    publisher.start(**changed)
    pass_present_log(publisher, client, KEYSPACE)
    client.execute(f"ALTER TABLE {TABLE} WITH cdc = true")
    eventually(lambda: publisher.status()["tables"] == 2)
    status, said = publisher.command("snapshot", TABLE, "--detach")
    assert status == 0, said


def shown(publisher: PublisherProcess, name: str) -> float:
    """One of the snapshot's metrics."""
    start = f'cdc_publisher_snapshot_{name}{{table="{TABLE}"}} '
    [line] = [line for line in publisher.get("/metrics")[1].splitlines() if line.startswith(start)]
    return float(line.removeprefix(start))


def test_links_are_removed_while_the_disk_is_short(
    node: CassandraNode,
    client: cql_client.CqlClient,
    publisher: PublisherProcess,
    records: Records,
    folded: Folded,
    tmp_path: Path,
) -> None:
    start(
        publisher,
        client,
        node,
        publisher__snapshot_max_mib_per_second=SLOW_MIB,
        publisher__snapshot_min_free_percent=10,
        publisher__snapshot_busy_load_per_core=0.001,
    )
    with Writes(client, TABLE) as writes:
        eventually(lambda: read(records).rows > 200, SECONDS)
        eventually(lambda: shown(publisher, "pace_ratio") == LEAST_SHARE, SECONDS)
        assert "the node is busy: its load is " in read(records).problem
        node.nodetool("compact", KEYSPACE, "t")
        eventually(lambda: shown(publisher, "pinned_bytes") > 0, SECONDS)
        flushed_to = read(records).flushed_to
        ballast = fill(tmp_path / "disk", SHORT_BYTES)
        eventually(lambda: "% of the disk of " in read(records).problem, SECONDS)
        short = read(records)
        assert (short.phase, short.pinned_bytes) == ("announced", 0)
        assert short.place is not None
        assert short.tag not in node.nodetool("listsnapshots")
        written = writes.count
        ballast.unlink()
        eventually(lambda: read(records).phase in {"taken", "sending"}, SECONDS)
        eventually(lambda: writes.count > written + 20)
    assert read(records).flushed_to > flushed_to
    publisher.stop()
    publisher.start()
    eventually(lambda: read(records).phase == "ended", SECONDS)
    assert read(records).rows > short.rows
    assert short.tag not in node.nodetool("listsnapshots")
    folded.check()
    log = publisher.log()
    assert "a snapshot gives up its files" in log
    assert "a snapshot slows down" in log
    assert "a sign of a busy node is not known" not in log
    assert "Traceback" not in log


def test_each_part_of_a_table_has_links_of_its_own(
    node: CassandraNode,
    client: cql_client.CqlClient,
    publisher: PublisherProcess,
    records: Records,
    folded: Folded,
) -> None:
    part_gib = 30_000 / (1 << 30)  # the table has about 100 kB
    start(publisher, client, node, publisher__snapshot_part_gib=part_gib)
    with Writes(client, TABLE) as writes:
        eventually(lambda: read(records).phase == "ended", SECONDS)
    assert writes.count > 0
    parts = publisher.log().count("a part of a snapshot is sent")
    assert 2 <= parts <= 20
    assert publisher.log().count("a snapshot has its files") == parts + 1
    assert read(records).tag not in node.nodetool("listsnapshots")
    folded.check()


def test_what_nodetool_says_of_a_busy_node(node: CassandraNode) -> None:
    nodetool = Nodetool(node.nodetool_command())
    assert nodetool.waiting_compactions() >= 0
    assert {"MutationStage", "ReadStage"} <= nodetool.waiting_tasks().keys()
