"""The publisher sends truncations and drops of real nodes' tables."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from cdc_common.messages import raw
from dev.local_stack.clients import cql as cql_client
from dev.local_stack.servers.cassandra_options import CassandraOptions
from tests.support.publisher.publisher_process import PublisherProcess, settings_beside
from tests.support.publisher.sent import int_value

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.cassandra import CassandraCluster, CassandraNode
    from tests.support.publisher.sent import Sent

pytestmark = [pytest.mark.servers, pytest.mark.timeout(400)]

SEGMENT_MIB = 1
RAW_PARTITIONS = 3
BEFORE, WHILE, AFTER = range(20), range(100, 3000), range(5000, 5020)


@pytest.fixture(params=["5.0", pytest.param("3.11", marks=pytest.mark.exhaustive)])
def node(request: pytest.FixtureRequest, own_cluster: Callable[..., CassandraCluster]) -> CassandraNode:
    options = CassandraOptions(commitlog_segment_mib=SEGMENT_MIB, commitlog_sync_period_ms=100)
    return own_cluster(version=request.param, options=options).nodes[0]


@pytest.fixture
def publisher(node: CassandraNode, kafka_parts: dict[str, object], tmp_path: Path) -> PublisherProcess:
    settings = settings_beside(node.cluster, tmp_path / "state") | kafka_parts
    settings |= {"node.commitlog_directory": node.commitlog, "node.commitlog_segment_mib": SEGMENT_MIB}
    settings |= {"publisher.drop_seconds": 0, "materializer.truncate_seconds": 1}
    return PublisherProcess(settings, tmp_path)


def is_old(node: CassandraNode) -> bool:
    """3.11, whose log comes late."""
    return node.cluster.release.startswith("3.")


def hand_over(node: CassandraNode, client: CqlClient) -> None:
    """3.11 moves a segment to cdc_raw when it is full and flushed, and has CDC data: a filler writes such segments."""
    if is_old(node):
        for _ in range(12):
            client.execute(f"INSERT INTO ks.padding (k, v) VALUES (1, 0x{'00' * (256 << 10)})")
        node.nodetool("flush")


def kept(sent: list[Sent]) -> set[bytes | None]:
    """Return what is left of the table. A truncation deletes all: what its log has up to its place does not count, nor
    what comes before the message that all follows.
    """
    rows: dict[tuple[int, bytes | None], None] = {}
    ends: dict[int, tuple[int, int]] = {}
    for partition, key, message, _ in sent:
        place = message.segment, message.position
        if message.kind in raw.TRUNCATION_KINDS:
            ends[partition] = (2**62, 0) if message.kind == "truncate" else place
            rows = {row: None for row in rows if row[0] != partition}
        elif message.kind == "row" and place > ends.get(partition, (0, 0)):
            rows[partition, key] = None
    return {key for _, key in rows}


def ends(sent: list[Sent], kind: str) -> list[int]:
    """Return the raw partitions that messages of this kind are in, sorted."""
    return sorted(raw_message.partition for raw_message in sent if raw_message.message.kind == kind)


@pytest.mark.parametrize("is_stopped", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_what_is_left_of_a_truncated_and_dropped_table(
    node: CassandraNode, publisher: PublisherProcess, sent: Callable[..., list[Sent]], *, is_stopped: bool
) -> None:
    """Writes go on while the node flushes, takes its snapshot and writes the record: what the publisher has sent of
    them comes once more.
    """
    with cql_client.connect([node.address], node.port) as client:
        client.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        client.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v int) WITH cdc = true")
        client.execute("CREATE TABLE ks.padding (k int PRIMARY KEY, v blob) WITH cdc = true")

        def insert(keys: range, stop: threading.Event | None = None) -> None:
            for key in keys:
                if stop is not None and stop.is_set():
                    break
                client.execute(f"INSERT INTO ks.t (k, v) VALUES ({key}, {key})")

        try:
            publisher.start()
            insert(BEFORE)
            if is_stopped:
                assert publisher.stop() == 0
            stop = threading.Event()
            writer = threading.Thread(target=insert, args=(WHILE, stop))
            writer.start()
            client.execute("TRUNCATE ks.t")
            stop.set()
            writer.join()
            insert(AFTER)
            if is_stopped:
                publisher.start()
            hand_over(node, client)
            expected = {int_value(row["k"]) for row in client.execute("SELECT k FROM ks.t")}
            assert expected >= set(map(int_value, AFTER))
            last = int_value(AFTER[-1])
            found = sent(
                "ks", "t", lambda found: last in {raw_message.key for raw_message in found} and kept(found) == expected
            )
            announced = ends(found, "truncate")
            # It may be settled before the publisher starts, or before 3.11 hands over the log.
            assert announced in [[], list(range(RAW_PARTITIONS))]
            assert announced or is_stopped or is_old(node)
            assert ends(found, "truncated") == list(range(RAW_PARTITIONS))
            [place] = {
                (raw_message.message.segment, raw_message.message.position)
                for raw_message in found
                if raw_message.message.kind in {"truncate", "truncated"}
            }
            assert place > (0, 0)
            client.execute("DROP TABLE ks.t")
            hand_over(node, client)
            found = sent("ks", "t", lambda found: len(ends(found, "drop")) == RAW_PARTITIONS)
            assert kept(found) == set()
        finally:
            publisher.kill()
