"""Rows that were written while a table's cdc was on are read after it was switched off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dev.local_stack.clients import cql
from dev.local_stack.servers.cassandra_options import CassandraOptions
from tests.support.publisher.publisher_process import PublisherProcess, settings_beside
from tests.support.publisher.sent import int_value, rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.cassandra import CassandraCluster, CassandraNode
    from tests.support.publisher.sent import Sent

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

SEGMENT_MIB = 1
ROWS = 20


@pytest.fixture(params=["5.0", pytest.param("3.11", marks=pytest.mark.exhaustive)])
def node(request: pytest.FixtureRequest, own_cluster: Callable[..., CassandraCluster]) -> CassandraNode:
    options = CassandraOptions(commitlog_segment_mib=SEGMENT_MIB)
    return own_cluster(version=request.param, options=options).nodes[0]


@pytest.fixture
def publisher(node: CassandraNode, kafka_parts: dict[str, object], tmp_path: Path) -> PublisherProcess:
    settings = settings_beside(node.cluster, tmp_path / "state") | kafka_parts
    settings |= {"node.commitlog_directory": node.commitlog, "node.commitlog_segment_mib": SEGMENT_MIB}
    return PublisherProcess(settings, tmp_path)


def insert(client: CqlClient, table: str, keys: range) -> set[bytes]:
    for key in keys:
        client.execute(f"INSERT INTO ks.{table} (k, v) VALUES ({key}, {key})")
    return {int_value(key) for key in keys}


def hand_over(node: CassandraNode, client: CqlClient) -> None:
    """3.11 moves a segment to cdc_raw when it is full and flushed."""
    if node.cluster.release.startswith("3."):
        for _ in range(12):
            client.execute(f"INSERT INTO ks.padding (k, v) VALUES (1, 0x{'00' * (256 << 10)})")
        node.nodetool("flush")


def keys(sent: list[Sent]) -> set[bytes | None]:
    return {row.key for row in rows(sent)}


@pytest.mark.parametrize("is_stopped", [pytest.param(False, marks=pytest.mark.exhaustive), True])
def test_what_was_written_before_the_switch_is_published(
    node: CassandraNode, publisher: PublisherProcess, sent: Callable[..., list[Sent]], *, is_stopped: bool
) -> None:
    """The publisher reads the log only after it has seen the switch. A table that stays on marks the end."""
    with cql.connect([node.address], node.port) as client:
        client.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        client.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v int) WITH cdc = true")
        client.execute("CREATE TABLE ks.last (k int PRIMARY KEY, v int) WITH cdc = true")
        client.execute("CREATE TABLE ks.padding (k int PRIMARY KEY, v blob)")
        try:
            publisher.start()
            if is_stopped:
                assert publisher.stop() == 0
            written = insert(client, "t", range(ROWS))
            client.execute("ALTER TABLE ks.t WITH cdc = false")
            if is_stopped:
                publisher.start()
                publisher.wait_for("CDC-064")
                assert publisher.stop() == 0  # the end is kept
            insert(client, "t", range(ROWS, 2 * ROWS))
            marks = insert(client, "last", range(ROWS))
            if is_stopped:
                publisher.start()
            hand_over(node, client)
            assert keys(sent("ks", "last", lambda found: keys(found) >= marks)) == marks
            assert keys(sent("ks", "t", lambda found: keys(found) >= written)) == written
            client.execute("ALTER TABLE ks.t WITH cdc = true")
            again = insert(client, "t", range(100, 100 + ROWS))
            hand_over(node, client)
            assert keys(sent("ks", "t", lambda found: keys(found) >= again)) >= written | again
            assert "CDC-065" in publisher.log()
        finally:
            publisher.kill()
