"""Finds the place in the log up to which a table is published after its `cdc` was switched off.

The log holds the switch itself: the node writes each ALTER to it, as a mutation of system_schema. Everything written
before it is published, even if it is read later. The switch may be in a segment without CDC data, which never reaches
cdc_raw. So the last segment is the one that was newest when the switch was first seen in the schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cassandra_storage.formats.commitlog.segment import CommitLogPosition
from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.mutation import first_table, read_mutation
from cassandra_storage.formats.rows.row import Cell
from cassandra_storage.formats.schema.schema_keyspace import KEYSPACE, SCHEMA_TABLES, system_table_id

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

_TABLES = system_table_id(KEYSPACE, "tables").bytes
_LAST_POSITION = 2**31 - 1
ANY_SEGMENT = 2**63 - 1  # above all ids
_TRUE = b"\x01"


class _End(NamedTuple):
    """Updates before `position` are published; those from `last_segment` on are not, wherever the switch is. Switches
    written at `after` (µs) or before are older ones.
    """

    position: CommitLogPosition
    last_segment: int
    after: int

    @classmethod
    def of_segment(cls, last_segment: int, after: int) -> _End:
        return cls(CommitLogPosition(last_segment, _LAST_POSITION), last_segment, after)

    def after_switch(self, switch: _Switch) -> _End:
        if switch.written_at <= self.after:
            return self
        if switch.is_on:
            return _End.of_segment(self.last_segment, switch.written_at)
        return self._replace(position=min(self.position, switch.position))


class _Switch(NamedTuple):
    """A row of system_schema.tables in the log. `written_at`: its timestamp, µs."""

    is_on: bool
    written_at: int
    position: CommitLogPosition


class CdcSwitches:
    """`newest_segment`: the id of the newest segment that the node has begun."""

    def __init__(self, newest_segment: Callable[[], int]) -> None:
        self._newest_segment = newest_segment
        self._ends: dict[bytes, _End] = {}
        self.names: dict[bytes, str] = {}
        self._read_early: dict[bytes, _Switch] = {}  # the last switch of a table whose cdc the schema shows as on

    @property
    def tables(self) -> frozenset[bytes]:
        """The ids of the tables that were published, and whose cdc is off."""
        return frozenset(self._ends)

    def switch_off(self, table_id: bytes, on_at: int) -> None:
        """The schema shows that the table's cdc is off. `on_at`: when it became what it was with cdc on, µs."""
        end = _End.of_segment(self._newest_segment(), on_at)
        early = self._read_early.pop(table_id, None)
        self._ends[table_id] = end if early is None else end.after_switch(early)

    def switch_on(self, table_id: bytes) -> None:
        """The schema shows that the table's cdc is on."""
        self._ends.pop(table_id, None)

    def is_published_at(self, table_id: bytes, segment: int, position: int) -> bool:
        """Return False if a mutation of a published table was written after its cdc was switched off."""
        end = self._ends.get(table_id)
        return end is None or (segment, position) < end.position

    def unpublished_in(self, segment: int) -> dict[bytes, bool]:
        """The tables with mutations in this segment that may not be published: True if none is, False if it depends on
        its position.
        """
        return {
            table_id: segment > end.position.segment_id
            for table_id, end in self._ends.items()
            if (segment, _LAST_POSITION) > end.position
        }

    def note_mutation(
        self, mutation: bytes, messaging_version: int, position: CommitLogPosition, published: Container[bytes]
    ) -> bool:
        """Take note of the switches that a mutation of system_schema makes; True if an end has changed."""
        if first_table(mutation) not in SCHEMA_TABLES:
            return False
        has_changed = False
        for table_id, name, switch in _switches(mutation, messaging_version, position):
            self.names[table_id] = name
            end = self._ends.get(table_id)
            if end is None:
                if table_id in published:
                    self._read_early[table_id] = switch
                continue
            self._ends[table_id] = end.after_switch(switch)
            has_changed = has_changed or self._ends[table_id] != end
        return has_changed

    def to_json(self) -> dict[str, list[int]]:
        """Return, by table id, the segment and position of the end, the last segment, and the time of the switch on
        (µs).
        """
        return {table_id.hex(): [*end.position, end.last_segment, end.after] for table_id, end in self._ends.items()}

    def load(self, stored: Mapping[str, Any]) -> None:
        """Load to_json's value. ValueError, AttributeError or TypeError if it is damaged."""
        for table_id, (segment, position, last_segment, after) in stored.items():
            end = CommitLogPosition(int(segment), int(position))
            self._ends[bytes.fromhex(table_id)] = _End(end, int(last_segment), int(after))


def _switches(
    mutation: bytes, messaging_version: int, position: CommitLogPosition
) -> Iterator[tuple[bytes, str, _Switch]]:
    """Yield each row of system_schema.tables with its table's id and name. Yield nothing if the mutation cannot be
    read: a later Cassandra's schema may have other columns, and the newest segment is the end then.
    """
    try:
        updates = read_mutation(mutation, messaging_version, SCHEMA_TABLES)
    except FormatError:
        return
    for update in updates:
        if update.table.id.bytes != _TABLES:
            continue
        for row in update.rows:
            table_id, cdc = row.columns.get("id"), row.columns.get("cdc")
            if isinstance(table_id, Cell) and isinstance(cdc, Cell):
                name = f"{update.partition_key.decode()}.{(row.clustering[0] or b'').decode()}"
                yield table_id.value, name, _Switch(cdc.value == _TRUE, cdc.timestamp, position)
