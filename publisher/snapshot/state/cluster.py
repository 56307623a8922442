"""Coordinate the publishers of a datacenter that take a snapshot together, by rows in the filler's keyspace.

When all rows of a snapshot (cdc_common.node.snapshot_rows) say that the part has ended, each publisher drops its own
mark. The worker writes its host's row before it sends the first message that names other hosts, and before the record
says that the part is over: from then on a new snapshot may replace it. A row that it could not write is written here.
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Literal, TypeAlias
from uuid import UUID

import structlog

from cdc_common.errors.codes import CdcError, Code
from cdc_common.node.snapshot_rows import KEPT_SECONDS, Part
from publisher.snapshot.state.records import new_record
from publisher.snapshot.state.token_selection import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cdc_common.node.snapshot_rows import SnapshotRows
    from publisher.snapshot.state.records import Record, Records
    from publisher.snapshot.state.token_selection import TokenSelection
    from publisher.tables.published_table import PublishedTable

_OF_CASSANDRA = (Code.CASSANDRA_QUERY, Code.CASSANDRA_AUTH, Code.CASSANDRA_UNREACHABLE)

PartState: TypeAlias = Literal["running", "ended", "given_up"]

log = structlog.get_logger(__name__)


class SnapshotGroup:
    """This host's view of the snapshots of all hosts."""

    def __init__(self, rows: SnapshotRows, records: Records, host_id: UUID) -> None:
        self._rows = rows
        self._records = records
        self._host_id = host_id
        self._problem = ""
        self._ended: frozenset[UUID] = frozenset()
        self.is_possible = False

    def exchange(self, tables: Iterable[PublishedTable]) -> None:
        """Read the rows of all hosts, take part in what others have begun, and write how far this host is.

        A problem is logged once: each host's part can also be asked for by hand.
        """
        try:
            parts = self._rows.read()
            self._report(parts)  # first: a record that is over may make room for the next one
            if self._join(parts, {table.table.id: table for table in tables}):
                self._report(self._rows.read())
        except CdcError as error:
            if error.code not in _OF_CASSANDRA:
                raise
            self._note(error)
            return
        self._problem, self.is_possible = "", True
        self._ended = _ended(parts)

    def has_ended(self, record: Record) -> bool:
        """Return whether the snapshot has ended on every host that it expects."""
        return record.phase == "ended" and (len(record.hosts) == 1 or record.snapshot in self._ended)

    def turn_of(self, hosts: Iterable[UUID]) -> int:
        """Return this host's place, from 0, in the order in which the hosts begin due snapshots. Later hosts may then
        see that an earlier one has begun.
        """
        return sorted({*hosts, self._host_id}).index(self._host_id)

    def _join(self, parts: Sequence[Part], tables: dict[UUID, PublishedTable]) -> bool:
        """Take part in what others have begun; whether there was any.

        Also if this host has sent the same since: the raw partitions wait for its end of each snapshot. One that all
        who know it have given up is given up here too, without sending anything. One whose record is lost begins again.
        """
        has_joined = False
        given_up = {part.snapshot for part in parts} - {part.snapshot for part in parts if part.state != "given_up"}
        own = {part.snapshot for part in parts if part.host_id == self._host_id and part.state != "running"}
        for part in sorted(parts, key=lambda part: part.requested_at):
            table = tables.get(part.table_id)
            if table is None or part.snapshot in own or self._host_id not in part.hosts:
                continue
            known = self._records.read(table.table.qualified_name)
            if known is not None and (known.snapshot == part.snapshot or not known.is_final):
                continue
            portion = _portion(part)
            if portion.repair is not None:
                if portion.repair.until_ms < time() * 1000:
                    continue
            elif part.requested_at < (time() - KEPT_SECONDS) * 1e6:
                continue  # the row that says that this host has ended may be gone first
            if self._records.begin(new_record(table.table, part.snapshot, part.hosts, portion)):
                log.info("takes part in a snapshot", table=part.table_name, snapshot=str(part.snapshot))
                has_joined = True
                if part.snapshot in given_up:
                    self._records.want(table.table.qualified_name, "cancel")
        return has_joined

    def _report(self, parts: Sequence[Part]) -> None:
        known = {part.snapshot: part.state for part in parts if part.host_id == self._host_id}
        for record in self._records.all_of_marks():
            is_cancelled = not record.is_final and self._records.wanted(record.name) == "cancel"
            state: PartState = "given_up" if is_cancelled else _state(record)
            before = known.get(record.snapshot)
            if before != state and (before is None or state != "running"):
                self._rows.report(_part(record, self._host_id, state))

    def _note(self, error: CdcError) -> None:
        self.is_possible = False
        if error.code is not Code.CASSANDRA_UNREACHABLE and self._problem != error.problem:
            self._problem = error.problem
            log.info("snapshots are taken on each node by hand", reason=error.problem)


def tell_hosts(rows: SnapshotRows, record: Record, host_id: UUID, state: PartState) -> None:
    """Write this host's row. CdcError CASSANDRA_UNREACHABLE; where there is no such table, or no right to it, each host
    is asked by hand.
    """
    try:
        rows.report(_part(record, host_id, state))
    except CdcError as error:
        if error.code not in {Code.CASSANDRA_QUERY, Code.CASSANDRA_AUTH}:
            raise


def _part(record: Record, host_id: UUID, state: PartState) -> Part:
    return Part(
        record.snapshot,
        host_id,
        UUID(hex=record.table_id),
        record.name,
        record.hosts,
        str(record.portion),
        state,
        int(record.requested_at * 1e6),
    )


def _portion(part: Part) -> TokenSelection:
    try:
        return parse(part.portion)
    except ValueError as error:
        raise CdcError(
            Code.CASSANDRA_QUERY,
            f"Snapshot {part.snapshot} of {part.table_name} is of a part that this version does not know: {error}.",
            "Install the same version of the publisher on all nodes.",
        ) from error


def _state(record: Record) -> PartState:
    if record.phase == "ended":
        return "ended"
    return "given_up" if record.phase == "given_up" else "running"


def _ended(parts: Iterable[Part]) -> frozenset[UUID]:
    hosts: dict[UUID, set[UUID]] = {}
    done: dict[UUID, set[UUID]] = {}
    for part in parts:
        hosts.setdefault(part.snapshot, set()).update(part.hosts)
        if part.state == "ended":
            done.setdefault(part.snapshot, set()).add(part.host_id)
    return frozenset(snapshot for snapshot, expected in hosts.items() if expected <= done.get(snapshot, set()))
