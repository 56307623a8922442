"""What the filler writes, and how often. Its rows fill the commit log, so that segments are handed over in time."""

from __future__ import annotations

import os
from time import monotonic, sleep
from typing import TYPE_CHECKING

import structlog

from cdc_program.cassandra import check_cdc_enabled, connect, read_node
from cdc_program.errors import CdcError, Code

if TYPE_CHECKING:
    from cdc_program.cassandra import CassandraClient
    from cdc_program.settings import FillerSettings, Settings

STRATEGY = "org.apache.cassandra.locator.NetworkTopologyStrategy"
COMPLAINT_SECONDS = 10.0
_AWAY = frozenset({Code.CASSANDRA_UNREACHABLE, Code.CASSANDRA_QUERY})

log = structlog.get_logger(__name__)


def run(settings: Settings) -> None:
    """Write until interrupted; CdcError if it cannot begin."""
    with connect(settings.cassandra) as client:
        check_cdc_enabled(client)
        prepare(client, settings.filler)
        log.info("ready", table=_table(settings.filler), bytes_per_second=settings.filler.bytes_per_second)
        write_for_ever(client, settings.filler)


def prepare(client: CassandraClient, settings: FillerSettings) -> None:
    """Make the keyspace, on all nodes of this datacenter and no other, and the table."""
    datacenter = read_node(client).datacenter
    peers = client.rows("SELECT data_center FROM system.peers")
    nodes = 1 + sum(peer["data_center"] == datacenter for peer in peers)
    replication = f"{{'class': 'NetworkTopologyStrategy', '{datacenter}': {nodes}}}"
    client.rows(f"CREATE KEYSPACE IF NOT EXISTS {settings.keyspace} WITH replication = {replication}")
    found = client.rows(
        "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = %s", (settings.keyspace,)
    )[0]["replication"]
    if dict(found) != {"class": STRATEGY, datacenter: str(nodes)}:
        client.rows(f"ALTER KEYSPACE {settings.keyspace} WITH replication = {replication}")
    client.rows(
        f"CREATE TABLE IF NOT EXISTS {_table(settings)} (id int PRIMARY KEY, filling blob)"
        " WITH cdc = true AND gc_grace_seconds = 0"
        " AND comment = 'Written by cassandra-filler so that commit log segments are handed over in time.'"
    )


def write_for_ever(client: CassandraClient, settings: FillerSettings) -> None:
    """One row, overwritten; a write that is refused is tried again at the next turn."""
    insert = f"INSERT INTO {_table(settings)} (id, filling) VALUES (0, ?) USING TTL {settings.ttl_seconds}"  # noqa: S608 - the names are checked settings
    filling = os.urandom(settings.write_bytes)  # a compressed commit log must not shrink it
    interval = settings.write_bytes / settings.bytes_per_second
    complained = -COMPLAINT_SECONDS
    next_write = monotonic()
    while True:
        try:
            client.write(insert, (filling,))
        except CdcError as error:
            if error.code not in _AWAY:
                raise
            if monotonic() - complained >= COMPLAINT_SECONDS:
                complained = monotonic()
                log.warning("not written", code=error.code.text, problem=error.problem)
        next_write = max(next_write + interval, monotonic())
        sleep(next_write - monotonic() if next_write > monotonic() else 0)


def _table(settings: FillerSettings) -> str:
    return f"{settings.keyspace}.{settings.table}"
