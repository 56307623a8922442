"""The filler's own keyspace: on every node of the CDC datacenter and nowhere else, however they come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import NAMESPACE_OID, uuid5

import structlog

from cdc_program.cassandra import peer_datacenters
from filler.election import Member

if TYPE_CHECKING:
    from uuid import UUID

    from cdc_program.cassandra import CassandraClient, Node
    from cdc_program.settings import FillerSettings

STRATEGY = "org.apache.cassandra.locator.NetworkTopologyStrategy"
MEMBERS = "members"
_REPLICATION_OF = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = %s"

log = structlog.get_logger(__name__)


def prepare(client: CassandraClient, settings: FillerSettings, node: Node) -> None:
    """Make the keyspace and its two tables where they are not there.

    Every node's filler does, maybe at once. The tables' ids are told, for Cassandra would make one for each. Only the
    first start needs the right to make keyspaces: IF NOT EXISTS asks for it even where there is one.
    """
    written, members = f"{settings.keyspace}.{settings.table}", f"{settings.keyspace}.{MEMBERS}"
    if not client.rows(_REPLICATION_OF, (settings.keyspace,)):
        replication = _replication(node, _nodes(client, node))
        client.rows(f"CREATE KEYSPACE IF NOT EXISTS {settings.keyspace} WITH replication = {replication}")
    follow_nodes(client, settings, node)
    client.rows(
        f"CREATE TABLE IF NOT EXISTS {written} (id int PRIMARY KEY, filling blob)"
        f" WITH id = {uuid5(NAMESPACE_OID, written)} AND cdc = true AND gc_grace_seconds = 0"
        " AND comment = 'Written by cassandra-filler so that commit log segments are handed over in time.'"
    )
    client.rows(
        f"CREATE TABLE IF NOT EXISTS {members} (host_id uuid PRIMARY KEY, lacking bigint, held text)"
        f" WITH id = {uuid5(NAMESPACE_OID, members)} AND gc_grace_seconds = 0"
        " AND comment = 'What the commit log of each node lacks, by the cassandra-filler beside it.'"
    )


def follow_nodes(client: CassandraClient, settings: FillerSettings, node: Node) -> None:
    """Replicate to as many nodes as the datacenter has now."""
    found = dict(client.rows(_REPLICATION_OF, (settings.keyspace,))[0]["replication"])
    count = _nodes(client, node)
    if found != {"class": STRATEGY, node.datacenter: str(count)}:
        client.rows(f"ALTER KEYSPACE {settings.keyspace} WITH replication = {_replication(node, count)}")
        log.info("keyspace replicated anew", keyspace=settings.keyspace, datacenter=node.datacenter, nodes=count)


class Members:
    """The row of each live filler."""

    def __init__(self, client: CassandraClient, settings: FillerSettings, seconds_to_live: int) -> None:
        table = f"{settings.keyspace}.{MEMBERS}"
        self._client = client
        self._select = f"SELECT host_id, lacking, held FROM {table}"  # noqa: S608 - the names are checked settings
        self._insert = f"INSERT INTO {table} (host_id, lacking, held) VALUES (?, ?, ?) USING TTL {seconds_to_live}"  # noqa: S608 - likewise

    def tell(self, member: Member) -> None:
        self._client.write(self._insert, member)

    def others(self, own: UUID) -> list[Member]:
        """As this node has heard from them."""
        found = (Member(row["host_id"], row["lacking"], row["held"]) for row in self._client.rows(self._select))
        return [member for member in found if member.host_id != own]


def _nodes(client: CassandraClient, node: Node) -> int:
    return 1 + peer_datacenters(client).count(node.datacenter)


def _replication(node: Node, count: int) -> str:
    return f"{{'class': 'NetworkTopologyStrategy', '{node.datacenter}': {count}}}"
