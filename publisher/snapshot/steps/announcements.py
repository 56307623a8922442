"""Says to the materializer and to the other hosts that a snapshot has begun or is over on this host."""

from __future__ import annotations

from time import time_ns
from typing import TYPE_CHECKING

from cdc_common.messages.repairs import RepairStep
from cdc_common.node.snapshot_rows import SnapshotRows
from publisher.snapshot.rows.messages import SnapshotOrigin, make_repair_steps, make_step
from publisher.snapshot.state.cluster import tell_hosts

if TYPE_CHECKING:
    from cdc_common.messages.snapshots import HostState
    from publisher.settings import Settings
    from publisher.snapshot.connections.link import Link
    from publisher.snapshot.state.current_record import CurrentRecord
    from publisher.tables.published_table import PublishedTable


class Announcements:
    """The raw partitions get control messages, and the other hosts read rows in the filler's keyspace."""

    def __init__(self, settings: Settings, link: Link, current: CurrentRecord) -> None:
        self._settings = settings
        self._link = link
        self._current = current

    def origin(self, started: int) -> SnapshotOrigin:
        """Return the origin of messages that are sent from `started` (µs) on."""
        record = self._current.record
        return SnapshotOrigin(
            record.snapshot,
            self._link.node.host_id.bytes,
            started,
            truncated_at=record.truncated_at,
            is_repair=record.portion.repair is not None,
        )

    def tell_hosts(self, state: HostState) -> None:
        """Write this host's row."""
        client = self._link.client
        rows = SnapshotRows(client.rows, client.write, self._settings.filler.keyspace)
        tell_hosts(rows, self._current.record, self._link.node.host_id, state)

    def send(self, table: PublishedTable, state: HostState) -> None:
        """Send the state, and wait until it is acknowledged: in every raw partition, or for a repair in those of its
        Cassandra partitions.
        """
        if state != "ended":
            self.tell_hosts(state)  # before purging waits for all of them
        record = self._current.record
        hosts = [host.bytes for host in record.hosts]
        origin = self.origin(time_ns() // 1000)
        if record.portion.repair is None:
            self._link.send_to_all(make_step(table, origin, hosts, state))
        else:
            self._link.send_and_wait(table, make_repair_steps(table, origin, self._repair_steps(hosts, state)))

    def _repair_steps(self, hosts: list[bytes], state: HostState) -> list[tuple[bytes, RepairStep]]:
        """The step of each Cassandra partition. Of one that this node does not have, it has sent nothing."""
        record, repair = self._current.record, self._current.record.portion.repair
        if repair is None:
            return []
        step = RepairStep(record.snapshot, tuple(hosts), repair.until_ms, state)
        ends = zip(repair.keys, record.replicas, strict=True) if state == "ended" else ()
        counts = dict.fromkeys(repair.keys, 0) | dict(ends)
        return [
            (key, step._replace(flushed_to=record.own_flushed_to if count else (0, 0), replicas=count))
            for key, count in counts.items()
        ]
