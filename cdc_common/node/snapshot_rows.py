"""The rows through which the publishers of a datacenter coordinate a snapshot, or the repair of Cassandra partitions.

They are in the filler's keyspace, one for each snapshot and host. A publisher that is asked for a snapshot writes its
own row, with the hosts that it expects. An audit writes a row of no host. A publisher takes part if it finds a row that
expects it and has no row of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from cdc_common.clients.cassandra import CassandraClient

TABLE = "snapshots"
NO_HOST = UUID(int=0)
"""The host of a row that asks all others."""
KEPT_SECONDS = 30 * 24 * 3600
"""How long Cassandra keeps a row after it was written last."""

_REPAIR = "repair"


class Part(NamedTuple):
    """One host's part of a snapshot, as its row has it."""

    # The id of the snapshot.
    snapshot: UUID
    # The id of the host.
    host_id: UUID
    # The id of the table.
    table_id: UUID
    # The name of the table.
    table_name: str
    # The ids of all hosts that take part.
    hosts: tuple[UUID, ...]
    # The part of the table that is sent, as text.
    portion: str
    # How far the host is.
    state: str
    # The time of the request, in µs.
    requested_at: int


class RepairRequest(NamedTuple):
    """The `portion` of a repair."""

    # The time, in ms, after which the repair changes nothing.
    until_ms: int
    # The keys of the Cassandra partitions.
    keys: tuple[bytes, ...]

    def __str__(self) -> str:
        return f"{_REPAIR}:{self.until_ms}:{','.join(key.hex() for key in self.keys)}"


def parse_repair(text: str) -> RepairRequest | None:
    """The inverse of str(RepairRequest); None for the portion of a snapshot. ValueError."""
    kind, _, rest = text.partition(":")
    if kind != _REPAIR:
        return None
    until_ms, _, keys = rest.partition(":")
    return RepairRequest(int(until_ms), tuple(bytes.fromhex(key) for key in keys.split(",")))


class SnapshotRows:
    """The rows of all hosts. CdcError as CassandraClient's: the table is there once a filler has run."""

    def __init__(
        self, read: Callable[[str], list[dict[str, Any]]], write: Callable[[str, Sequence[object]], None], keyspace: str
    ) -> None:
        columns = ", ".join(Part._fields)
        marks = ", ".join("?" for _ in Part._fields)
        self._read = read
        self._write = write
        self._select = f"SELECT {columns} FROM {keyspace}.{TABLE}"  # noqa: S608 - the name is a checked setting
        self._insert = f"INSERT INTO {keyspace}.{TABLE} ({columns}) VALUES ({marks})"  # noqa: S608 - names

    def read(self) -> list[Part]:
        return [
            Part(**{**row, "hosts": tuple(row["hosts"] or ()), "portion": row["portion"] or ""})
            for row in self._read(self._select)
        ]

    def report(self, part: Part) -> None:
        self._write(self._insert, part._replace(hosts=set(part.hosts)))  # type: ignore[arg-type]  # CQL's set


def datacenter_hosts(client: CassandraClient) -> list[UUID]:
    """The host ids of all nodes of the datacenter of the node that the client is connected to, that one first."""
    own = client.rows("SELECT host_id, data_center FROM system.local WHERE key = 'local'")[0]
    peers = client.rows("SELECT host_id, data_center FROM system.peers")
    others = {row["host_id"] for row in peers if row["data_center"] == own["data_center"] and row["host_id"]}
    return [own["host_id"], *sorted(others - {own["host_id"]})]
