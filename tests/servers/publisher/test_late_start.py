"""The first start of a publisher on a node whose cdc_raw is full, so that it already refuses writes."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.clients import cql
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.stack import SYNC_PERIOD_MS
from tests.support.publisher.publisher_process import PublisherProcess, eventually, settings_beside
from tests.support.publisher.sent import int_value

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dev.local_stack.servers.cassandra import CassandraCluster, CassandraNode
    from tests.support.publisher.sent import Sent

    SentBy = Callable[..., list[Sent]]

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(600)]

TOTAL_MIB, SEGMENT_MIB = 12, 1
WRITE_BYTES = 32 * 1024
MORE_WRITES = 2 * (TOTAL_MIB << 20) // WRITE_BYTES  # by then a segment that was in use is full, too
SECONDS = 180.0


@pytest.fixture(params=["5.0", "4.0", "3.11"])
def node(request: pytest.FixtureRequest, own_cluster: Callable[..., CassandraCluster]) -> CassandraNode:
    options = CassandraOptions(
        commitlog_sync_period_ms=SYNC_PERIOD_MS, commitlog_segment_mib=SEGMENT_MIB, cdc_total_space_mib=TOTAL_MIB
    )
    return own_cluster(version=request.param, options=options).nodes[0]


class Load:
    """Rows of one table; what the node refuses is left out."""

    def __init__(self, client: cql.CqlClient) -> None:
        self._client = client
        self._next = 0
        self.written: set[bytes] = set()
        client.execute("CREATE KEYSPACE late WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        client.execute("CREATE TABLE late.t (p int PRIMARY KEY, v text) WITH cdc = true")

    def write(self) -> bool:
        """False if it is refused."""
        self._next += 1
        try:
            self._client.execute(f"INSERT INTO late.t (p, v) VALUES ({self._next}, '{'x' * WRITE_BYTES}')")
        except CdcError as error:
            if error.code is not Code.CASSANDRA_QUERY:
                raise
            return False
        self.written.add(int_value(self._next))
        return True


def test_all_that_was_written_comes_out_and_writes_are_accepted_again(
    node: CassandraNode, kafka_parts: dict[str, object], sent: SentBy, tmp_path: Path
) -> None:
    is_flushed = node.cluster.release.startswith("3.")
    settings = settings_beside(node.cluster, tmp_path / "state") | kafka_parts
    if is_flushed:  # what 3.11 does not tell
        settings |= {
            "node.commitlog_directory": node.commitlog,
            "node.cdc_total_space_mib": TOTAL_MIB,
            "node.commitlog_segment_mib": SEGMENT_MIB,
        }
    publisher = PublisherProcess(settings, tmp_path)
    with cql.connect([node.address], node.port) as client:
        load = Load(client)
        deadline = time.monotonic() + SECONDS
        while load.write():
            assert time.monotonic() < deadline, "never full"
        assert not load.write()
        before = set(load.written)
        assert before
        try:
            publisher.start()
            eventually(lambda: "CDC-046" in publisher.log())
            deadline = time.monotonic() + SECONDS
            while len(load.written) < len(before) + MORE_WRITES:
                assert time.monotonic() < deadline, publisher.command("status")[1]
                if not load.write():
                    if is_flushed:
                        node.nodetool("flush")  # as the filler does
                    time.sleep(0.2)
            if is_flushed:
                node.nodetool("flush")
            sent("late", "t", lambda found: {raw_message.key for raw_message in found} >= before, SECONDS)
            eventually(lambda: "CDC-047" in publisher.log())
            alert, *_ = [json.loads(line) for line in publisher.log().splitlines() if "CDC-047" in line]
            assert alert["since"].startswith("before 20")
            assert alert["until"] >= alert["since"].removeprefix("before ")  # of whole seconds
            assert alert["tables"] == ["late.t"]
            assert ("Run nodetool repair" in alert["fix"]) == node.cluster.release.startswith("4.0")
            assert publisher.stop() == 0
            assert "Traceback" not in publisher.log()
        finally:
            publisher.kill()
