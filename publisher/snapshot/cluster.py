"""How the publishers of a datacenter take a snapshot together, by rows in the filler's keyspace.

When all rows of a snapshot (cdc_program.snapshot_rows) say that the part has ended, each publisher drops its own mark.
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Literal, TypeAlias
from uuid import UUID

import structlog

from cdc_program.errors import CdcError, Code
from cdc_program.snapshot_rows import KEPT_SECONDS, Part
from publisher.snapshot.portion import parse
from publisher.snapshot.records import new_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cdc_program.snapshot_rows import SnapshotRows
    from publisher.schema import PublishedTable
    from publisher.snapshot.portion import Portion
    from publisher.snapshot.records import Record, Records

_OF_CASSANDRA = (Code.CASSANDRA_QUERY, Code.CASSANDRA_AUTH, Code.CASSANDRA_UNREACHABLE)

PartState: TypeAlias = Literal["running", "ended", "given_up"]

log = structlog.get_logger(__name__)


class Together:
    """This host's view of the snapshots of all hosts."""

    def __init__(self, rows: SnapshotRows, records: Records, host_id: UUID) -> None:
        self._rows = rows
        self._records = records
        self._host_id = host_id
        self._problem = ""
        self._ended: frozenset[UUID] = frozenset()
        self.is_possible = False

    def follow(self, tables: Iterable[PublishedTable]) -> None:
        """Read all rows, take part in what others have begun, and say how far this host is. A problem is logged once:
        each host's part can also be asked for by hand.
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
        """Whether the snapshot has ended on every host that it expects."""
        return record.phase == "ended" and (len(record.hosts) == 1 or record.snapshot in self._ended)

    def turn_of(self, hosts: Iterable[UUID]) -> int:
        """In which place this one of the hosts begins snapshots that are due, from 0: others may see that they are."""
        return sorted({*hosts, self._host_id}).index(self._host_id)

    def _join(self, parts: Sequence[Part], tables: dict[UUID, PublishedTable]) -> bool:
        """Take part in what others have begun; whether there was any.

        Also if this host has sent the same since: the raw partitions wait for its end of each snapshot.
        """
        has_joined = False
        own = {part.snapshot for part in parts if part.host_id == self._host_id}
        for part in sorted(parts, key=lambda each: each.requested_at):
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
        return has_joined

    def _report(self, parts: Sequence[Part]) -> None:
        known = {part.snapshot: part.state for part in parts if part.host_id == self._host_id}
        for record in self._records.all_of_marks():
            state = _state(record)
            is_of_several = len(record.hosts) > 1 or record.portion.repair is not None
            if is_of_several and known.get(record.snapshot) != state:
                self._rows.report(
                    Part(
                        record.snapshot,
                        self._host_id,
                        UUID(hex=record.table_id),
                        record.name,
                        record.hosts,
                        str(record.portion),
                        state,
                        int(record.requested_at * 1e6),
                    )
                )

    def _note(self, error: CdcError) -> None:
        self.is_possible = False
        if error.code is not Code.CASSANDRA_UNREACHABLE and self._problem != error.problem:
            self._problem = error.problem
            log.info("snapshots are taken on each node by hand", reason=error.problem)


def _portion(part: Part) -> Portion:
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
    return frozenset(each for each, expected in hosts.items() if expected <= done.get(each, set()))
