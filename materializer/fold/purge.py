"""Purging: what has been dead for longer than gc_grace is deleted from the state; in the end also whole partitions.

A purge changes nothing visible. An empty row is deleted with its row_sequence, and the floor rises to
that number: so (key, row_sequence) never names two events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.rows.deletion import LIVE
from materializer.rows.budget import row_size
from materializer.rows.expiry import NowInSeconds, deletion_second, purged
from materializer.rows.keys import FACTS_SECTION, RANGES_SECTION, STATIC_SECTION, split_data_key
from materializer.rows.overlay import StoredRow
from materializer.rows.partition_state import PartitionFacts

if TYPE_CHECKING:
    from cassandra_storage.formats.rows.deletion import DeletionTime
    from materializer.fold.tools import TableTools
    from materializer.rows.partition_state import PartitionState


class PartitionPurge:
    """Purges one Cassandra partition, at the second `now`, of what has been dead since a second before `before`.

    Call `purge_entry` for each key, then `purge_facts`.
    """

    def __init__(self, tools: TableTools, state: PartitionState, before: int, now: int) -> None:
        self._tools = tools
        self._state = state
        self._before = before
        self._now = now

    def purge_entry(self, data_key: bytes) -> None:
        """Purge the entry at a key of the state."""
        _, section = split_data_key(data_key)
        if section == FACTS_SECTION:
            if self._is_gone(self._state.facts.deletion):
                self._state.put_facts(self._state.facts._replace(deletion=LIVE))
        elif section == RANGES_SECTION:
            self._purge_range(data_key)
        elif section == STATIC_SECTION:
            if self._state.static is not None:
                static = purged(self._state.static, self._before, self._now)
                self._state.put_static(static, NowInSeconds(self._now, self._now))
        else:
            self._purge_row(data_key)

    def purge_facts(self) -> None:
        """Delete the row_sequence of the row that stood for the partition once only a new write can make a row visible.

        Rows with tombstones may still be stored.
        """
        state = self._state
        if state.facts.has_ranges and state.ranges.is_empty:
            state.put_facts(state.facts._replace(has_ranges=False))
        facts = state.facts
        if state.static is None and facts._replace(static_sequence=0) == PartitionFacts():
            self._tools.floor.raise_to(facts.static_sequence)
            state.put_facts(PartitionFacts())

    def _is_gone(self, deletion: DeletionTime) -> bool:
        since = deletion_second(deletion)
        return since is not None and since < self._before

    def _purge_range(self, key: bytes) -> None:
        piece = self._state.ranges.at(key)
        self._tools.budget.spend(len(key))
        if piece is not None and self._is_gone(piece.deletion):
            self._state.ranges.drop(piece)

    def _purge_row(self, key: bytes) -> None:
        value = self._tools.overlay.get_row(key)
        if value is None:
            return
        stored = self._tools.codec.decode(value, is_static=False)
        self._tools.budget.spend(row_size(stored.row))
        row = purged(stored.row, self._before, self._now)
        if row.is_empty:
            self._tools.floor.raise_to(stored.row_sequence)
        left = None if row.is_empty else StoredRow(row, stored.row_sequence)
        self._state.put_row(key, stored, left, NowInSeconds(self._now, self._now))
