"""The audit reads by SELECT from a node that gives up at few tombstones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.token_ranges import MAXIMUM, MINIMUM, Span
from cdc_common.clients.cassandra import connect_raw
from cdc_common.errors.codes import CdcError, Code
from cdc_common.program.pace import Pace
from cdc_common.settings import CassandraSettings
from dev.local_stack.clients import cql
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.choice import cassandra_cluster
from materializer.commands.audit.select import SelectedUnits, Unread
from materializer.commands.audit.shown import STATIC_UNIT, AuditedTable
from tests.support.materializer.raw_builder import CATALOG, TABLE, WRITER, int_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.cassandra import CassandraCluster

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(400)]

RING = Span(MINIMUM, MAXIMUM)
LIMITS = {"tombstone_warn_threshold": 50, "tombstone_failure_threshold": 100}


@pytest.fixture(scope="module")
def node() -> Iterator[CassandraCluster]:
    cluster = cassandra_cluster(options=CassandraOptions(yaml=LIMITS))
    try:
        yield cluster.start()
    finally:
        cluster.close()


@pytest.fixture(scope="module")
def client(node: CassandraCluster) -> Iterator[CqlClient]:
    with cql.connect(node.contact_points, node.port) as client:
        client.execute(
            f"CREATE KEYSPACE {TABLE.keyspace} WITH replication = "
            "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        )
        client.execute(
            f"CREATE TABLE {TABLE.qualified_name} (k int, c int, st text static, a text, b text, s set<text>, "
            "PRIMARY KEY (k, c))"
        )
        yield client


def read(node: CassandraCluster, page_rows: int) -> tuple[set[tuple[int, int | None]], list[Unread]]:
    """The units that were read, (k, c), and what was not."""
    settings = CassandraSettings(contact_points=node.contact_points, port=node.port)
    table = AuditedTable(TABLE, "5.0", CATALOG.key_encoders(TABLE.id.bytes, WRITER.digest).clustering)
    units, unread = set(), []
    with connect_raw(settings, "LOCAL_QUORUM", 30) as reader:
        for found in SelectedUnits(table, reader, page_rows, Pace(0)).read(RING):
            if isinstance(found, Unread):
                unread.append(found)
                continue
            assert found.token == decorated_token(found.partition_key)
            clustering = None if found.clustering is None else int.from_bytes(found.clustering[0] or b"", "big")
            assert (clustering is None) == (found.unit == STATIC_UNIT)
            key = int.from_bytes(found.partition_key, "big"), clustering
            assert key not in units
            units.add(key)
    return units, unread


def test_only_what_lies_among_too_many_tombstones_is_left_out(node: CassandraCluster, client: CqlClient) -> None:
    for k in range(30):
        for c in range(5):
            client.execute(f"INSERT INTO {TABLE.qualified_name} (k, c, st, a, s) VALUES ({k}, {c}, 'st', 'a', {{'e'}})")
    expected = {(k, c) for k in range(30) for c in (None, *range(5))}
    assert read(node, 7) == (expected, [])
    for c in range(3, 203):
        client.execute(f"DELETE FROM {TABLE.qualified_name} WHERE k = 11 AND c = {c}")
    for page_rows in (2, 500):
        units, unread = read(node, page_rows)
        assert [(unread_span.span, unread_span.reason in {"tombstones", "failure"}) for unread_span in unread] == [
            (Span(*2 * [decorated_token(int_bytes(11))]), True)
        ]
        assert expected - units <= {(11, c) for c in (None, *range(5))}


def test_a_statement_that_cassandra_refuses_is_an_error(node: CassandraCluster, client: CqlClient) -> None:
    client.execute(f"ALTER TABLE {TABLE.qualified_name} DROP b")
    with pytest.raises(CdcError) as caught:
        read(node, 10)
    assert caught.value.code is Code.CASSANDRA_QUERY
