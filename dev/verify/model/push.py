"""Making 3.11 hand its log over: a segment goes to cdc_raw once it is full and all that it holds is flushed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.cassandra import CassandraNode
    from dev.local_stack.servers.programs import Setting

SEGMENT_MIB = 1  # small, so that little has to be written to fill one
# With these the filler has it handed over by itself, within half a minute.
BY_FILLER: Mapping[str, Setting] = {
    "node.commitlog_segment_mib": SEGMENT_MIB,
    "filler.max_segment_age_seconds": 15,
    "filler.period_seconds": 1,
    "filler.flush_seconds": 15,
}
WRITE_BYTES = 100_000
KEYSPACE = "push"


def pusher(client: CqlClient, nodes: Sequence[CassandraNode], replication: str) -> Callable[[], None]:
    """Return a function that fills the segment that is being written and flushes it, by a table without CDC."""
    client.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {replication}")
    client.execute(f"CREATE TABLE {KEYSPACE}.filling (id int PRIMARY KEY, bytes blob)")

    def push() -> None:
        for number in range(-(-SEGMENT_MIB * 1024 * 1024 // WRITE_BYTES) + 1):
            client.execute_at_all(
                f"INSERT INTO {KEYSPACE}.filling (id, bytes) VALUES ({number}, 0x{'00' * WRITE_BYTES}) USING TTL 60"
            )
        for node in nodes:
            node.nodetool("flush")

    return push
