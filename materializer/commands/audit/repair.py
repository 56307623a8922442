"""`--repair`: asks for the replacement of Cassandra partitions in which rows differ (decision 0041).

The publishers find the request in a row of the filler's keyspace, and send what their nodes have. The job replaces a
partition once it has all of it. This module only asks, and waits for both.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias
from uuid import UUID, uuid4

from cdc_common.clients.cassandra import connect
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.topics import partition_for
from cdc_common.node.snapshot_rows import NO_HOST, Part, RepairRequest, SnapshotRows, datacenter_hosts
from materializer.commands.audit.states import open_committed
from materializer.fold.repairs import read_repairs
from materializer.records import RawPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cdc_common.clients.cassandra import CassandraClient
    from materializer.commands.audit.plan import AuditPlan
    from materializer.commands.audit.report import Report
    from materializer.settings import Settings
    from stream_runtime.query.spark_tasks import SparkTasks

KEYS_AT_ONCE = 100
"""Cassandra partitions for which each node flushes once."""
_LOOK_SECONDS = 2.0
_SETTLE_SECONDS = 60.0  # after the time of a repair: until the job has seen that it is over

Outcome: TypeAlias = Literal["done", "failed", "open", "unknown"]


class RepairLook(NamedTuple):
    """The repair to look for in the state of one raw partition."""

    # The raw partition whose state is read.
    raw_partition: RawPartition
    # The repair's id.
    repair: UUID
    # The keys of the Cassandra partitions that it repairs.
    keys: tuple[bytes, ...]


def look_for_repair(settings: Settings, look: RepairLook) -> dict[bytes, Outcome]:
    """Return how far the repair of each Cassandra partition is in the committed state. Runs as a task in Spark."""
    found: dict[bytes, Outcome] = dict.fromkeys(look.keys, "unknown")
    with open_committed(settings, look.raw_partition) as state:
        if state is not None:
            found.update(
                {repair.partition_key: repair.state for repair in read_repairs(state) if repair.id == look.repair}
            )
    return found


class Repair:
    """Repairs Cassandra partitions, some at a time, and reports each."""

    def __init__(self, plan: AuditPlan, tasks: SparkTasks, report: Report) -> None:
        self._plan = plan
        self._tasks = tasks
        self._report = report

    def run(self, keys: Sequence[bytes]) -> int:
        """How many Cassandra partitions were replaced. CdcError if the publishers cannot be asked."""
        replaced = 0
        with _connect_to_one(self._plan.settings) as client:
            rows = SnapshotRows(client.rows, client.write, self._plan.settings.filler.keyspace)
            hosts = datacenter_hosts(client)
            for first in range(0, len(keys), KEYS_AT_ONCE):
                some = tuple(keys[first : first + KEYS_AT_ONCE])
                outcomes = self._repair(rows, hosts, some)
                for key in some:
                    self._report.repaired(key, is_replaced=outcomes[key] == "done")
                    replaced += outcomes[key] == "done"
        return replaced

    def _repair(self, rows: SnapshotRows, hosts: Sequence[UUID], keys: tuple[bytes, ...]) -> Mapping[bytes, Outcome]:
        now = time.time()
        until = now + self._plan.options.repair_seconds
        request = RepairRequest(int(until * 1000), keys)
        name = self._plan.table().table.qualified_name
        part = Part(
            uuid4(),
            NO_HOST,
            UUID(bytes=self._plan.table_id),
            name,
            tuple(hosts),
            str(request),
            "running",
            int(now * 1e6),
        )
        rows.report(part)
        self._report.say(f"Repair {part.snapshot}: {len(keys)} Cassandra partitions, {len(hosts)} nodes")
        missing = self._wait_for_hosts(rows, part, until)
        if missing:
            self._report.say(f"Nodes that have not sent their part: {', '.join(sorted(map(str, missing)))}")
        return self._wait_for_states(part.snapshot, keys, until if not missing else time.time())

    def _wait_for_hosts(self, rows: SnapshotRows, part: Part, until: float) -> set[UUID]:
        """The hosts that have not ended their part in time, or have given up."""
        while True:
            states = {row.host_id: row.state for row in rows.read() if row.snapshot == part.snapshot}
            missing = {host for host in part.hosts if states.get(host) != "ended"}
            if not missing or "given_up" in states.values() or time.time() > until:
                return missing
            time.sleep(_LOOK_SECONDS)

    def _wait_for_states(self, repair: UUID, keys: tuple[bytes, ...], until: float) -> dict[bytes, Outcome]:
        """Wait until each Cassandra partition is replaced, or its repair has failed."""
        found: dict[bytes, Outcome] = {}
        waiting = set(keys)
        while True:
            looks = [RepairLook(raw_partition, repair, own) for raw_partition, own in self._by_raw_partition(waiting)]
            for outcomes in self._tasks.run(partial(look_for_repair, self._plan.settings), looks):
                found |= outcomes
            waiting = {key for key in keys if found[key] not in {"done", "failed"}}
            if not waiting or time.time() > until + _SETTLE_SECONDS:
                return found
            time.sleep(_LOOK_SECONDS)

    def _by_raw_partition(self, keys: set[bytes]) -> Iterator[tuple[RawPartition, tuple[bytes, ...]]]:
        def number(key: bytes) -> int:
            return partition_for(key, self._plan.raw_partitions)

        for partition, own in groupby(sorted(keys, key=number), key=number):
            yield RawPartition(self._plan.topic, partition), tuple(own)


@contextmanager
def _connect_to_one(settings: Settings) -> Iterator[CassandraClient]:
    """A client of the first node that answers: its peers are asked for where it is. CdcError if none does."""
    *first, last = settings.cassandra.contact_points
    with ExitStack() as stack:
        for contact_point in first:
            try:
                client = stack.enter_context(connect(settings.cassandra, only=contact_point))
            except CdcError as error:
                if error.code is not Code.CASSANDRA_UNREACHABLE:
                    raise
            else:
                break
        else:
            client = stack.enter_context(connect(settings.cassandra, only=last))
        yield client
