"""The filler's own keyspace: on every node of the CDC datacenter and no other, as nodes join and leave."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import NAMESPACE_OID, uuid5

import structlog

from cdc_common.clients.cassandra import peer_datacenters
from cdc_common.node.snapshot_rows import KEPT_SECONDS
from filler.election import Member

if TYPE_CHECKING:
    from uuid import UUID

    from cdc_common.clients.cassandra import CassandraClient, Node
    from filler.settings import FillerSettings

STRATEGY = "org.apache.cassandra.locator.NetworkTopologyStrategy"
MEMBERS = "members"
SNAPSHOTS = "snapshots"  # written by publishers: publisher.snapshot.state.cluster
_REPLICATION_OF = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = %s"

log = structlog.get_logger(__name__)


def create_keyspace(client: CassandraClient, settings: FillerSettings, node: Node) -> None:
    """Create the keyspace and its tables if they do not exist.

    Every node's filler does so, perhaps at the same time. The statements give the tables' ids, because Cassandra would
    generate a different one for each. Only the first start needs the permission to create keyspaces: IF NOT EXISTS
    requires it even if the keyspace exists.
    """
    written, members = f"{settings.keyspace}.{settings.table}", f"{settings.keyspace}.{MEMBERS}"
    snapshots = f"{settings.keyspace}.{SNAPSHOTS}"
    if not client.rows(_REPLICATION_OF, (settings.keyspace,)):
        replication = _replication(node, _nodes(client, node))
        client.rows(f"CREATE KEYSPACE IF NOT EXISTS {settings.keyspace} WITH replication = {replication}")
    update_replication(client, settings, node)
    client.rows(
        f"CREATE TABLE IF NOT EXISTS {written} (id int PRIMARY KEY, filling blob)"
        f" WITH id = {uuid5(NAMESPACE_OID, written)} AND cdc = true AND gc_grace_seconds = 0"
        " AND comment = 'Written by cassandra-filler so that commit log segments fill up in time.'"
    )
    client.rows(
        f"CREATE TABLE IF NOT EXISTS {members} (host_id uuid PRIMARY KEY, padding bigint, paused text)"
        f" WITH id = {uuid5(NAMESPACE_OID, members)} AND gc_grace_seconds = 0"
        " AND comment = 'The padding that the commit log of each node needs, as its cassandra-filler reports.'"
    )
    client.rows(
        f"CREATE TABLE IF NOT EXISTS {snapshots} (snapshot uuid, host_id uuid, table_id uuid, table_name text,"
        " hosts set<uuid>, portion text, state text, requested_at bigint, PRIMARY KEY (snapshot, host_id))"
        f" WITH id = {uuid5(NAMESPACE_OID, snapshots)} AND default_time_to_live = {KEPT_SECONDS}"
        " AND comment = 'How far the snapshot of a table is on each node, as its cassandra-publisher reports.'"
    )


def update_replication(client: CassandraClient, settings: FillerSettings, node: Node) -> None:
    """Set the replication factor to the number of nodes that the datacenter has now."""
    found = dict(client.rows(_REPLICATION_OF, (settings.keyspace,))[0]["replication"])
    count = _nodes(client, node)
    if found != {"class": STRATEGY, node.datacenter: str(count)}:
        client.rows(f"ALTER KEYSPACE {settings.keyspace} WITH replication = {_replication(node, count)}")
        log.info("keyspace replication changed", keyspace=settings.keyspace, datacenter=node.datacenter, nodes=count)


class Members:
    """The row of each live filler."""

    def __init__(self, client: CassandraClient, settings: FillerSettings, seconds_to_live: int) -> None:
        table = f"{settings.keyspace}.{MEMBERS}"
        self._client = client
        self._select = f"SELECT host_id, padding, paused FROM {table}"  # noqa: S608 - the names are checked settings
        self._insert = f"INSERT INTO {table} (host_id, padding, paused) VALUES (?, ?, ?) USING TTL {seconds_to_live}"  # noqa: S608 - the same

    def report(self, member: Member) -> None:
        self._client.write(self._insert, member)

    def others(self, own: UUID) -> list[Member]:
        """The other fillers, as this node has them."""
        found = (Member(row["host_id"], row["padding"], row["paused"]) for row in self._client.rows(self._select))
        return [member for member in found if member.host_id != own]


def _nodes(client: CassandraClient, node: Node) -> int:
    return 1 + peer_datacenters(client).count(node.datacenter)


def _replication(node: Node, count: int) -> str:
    return f"{{'class': 'NetworkTopologyStrategy', '{node.datacenter}': {count}}}"
