"""Mutations as large as a node takes: one row that is larger than the whole queue, and one partition of many rows."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.query import BatchStatement, BatchType

from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.stack import SYNC_PERIOD_MS
from publisher.kafka.sender import QUEUE_BYTES
from tests.support.publisher.publisher_process import PublisherProcess, settings_beside
from tests.support.publisher.sent import at_least, cell, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cassandra.cluster import Session

    from dev.local_stack.servers.cassandra import CassandraCluster, CassandraNode
    from tests.support.publisher.sent import Sent

    SentBy = Callable[..., list[Sent]]

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(600)]

SECONDS = 120.0
MIB = 1 << 20
LARGER = QUEUE_BYTES + 4 * MIB
ROWS, ROW_BYTES = 60_000, 200  # a protocol's batch has at most 65,535 statements
OPTIONS = CassandraOptions(
    heap_mib=1200,
    commitlog_segment_mib=64,
    commitlog_sync_period_ms=SYNC_PERIOD_MS,
    yaml={
        "native_transport_max_frame_size": "64MiB",
        "native_transport_max_request_data_in_flight": "256MiB",
        "write_request_timeout": "120s",
    },
)


@pytest.fixture
def node(own_cluster: Callable[..., CassandraCluster]) -> CassandraNode:
    return own_cluster(options=OPTIONS).nodes[0]


@pytest.fixture
def session(node: CassandraNode) -> Iterator[Session]:
    policy = WhiteListRoundRobinPolicy([node.address])
    profile = ExecutionProfile(load_balancing_policy=policy, request_timeout=SECONDS)
    patience = {"connect_timeout": SECONDS, "control_connection_timeout": SECONDS}  # the driver's own is 5 s
    profiles = {EXEC_PROFILE_DEFAULT: profile}
    with Cluster([node.address], port=node.port, execution_profiles=profiles, **patience) as driver:
        session = driver.connect()
        session.execute("CREATE KEYSPACE large WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE large.t (p int, c int, v blob, PRIMARY KEY (p, c)) WITH cdc = true")
        yield session


@pytest.fixture
def publisher(node: CassandraNode, kafka_parts: dict[str, object], tmp_path: Path) -> Iterator[PublisherProcess]:
    process = PublisherProcess(settings_beside(node.cluster, tmp_path / "state") | kafka_parts, tmp_path)
    yield process
    process.kill()


def test_a_row_that_is_larger_than_the_queue(publisher: PublisherProcess, session: Session, sent: SentBy) -> None:
    insert = session.prepare("INSERT INTO large.t (p, c, v) VALUES (1, ?, ?)")
    publisher.start()
    session.execute(insert, (1, bytes(LARGER)))
    session.execute(insert, (2, b"after"))
    large, small = rows(sent("large", "t", at_least(2), SECONDS))
    assert large.update is not None
    assert small.update is not None
    assert cell(large.update.rows[0], "v").value == bytes(LARGER)
    assert cell(small.update.rows[0], "v").value == b"after"
    log.info("a row of %d MiB: at most %.1f MiB resident", LARGER // MIB, publisher.most_memory_mib())
    assert publisher.stop() == 0


def test_a_partition_of_many_rows_in_one_mutation(publisher: PublisherProcess, session: Session, sent: SentBy) -> None:
    insert = session.prepare("INSERT INTO large.t (p, c, v) VALUES (1, ?, ?)")
    batch = BatchStatement(BatchType.UNLOGGED)
    for number in range(ROWS):
        batch.add(insert, (number, number.to_bytes(4, "big") * (ROW_BYTES // 4)))
    publisher.start()
    session.execute(batch)
    found = rows(sent("large", "t", at_least(ROWS), SECONDS))
    assert len({(raw_message.message.segment, raw_message.message.position) for raw_message in found}) == 1
    assert [raw_message.message.index for raw_message in found] == list(range(ROWS))
    log.info("%d rows of %d bytes: at most %.1f MiB resident", ROWS, ROW_BYTES, publisher.most_memory_mib())
    assert publisher.stop() == 0
