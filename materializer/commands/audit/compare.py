"""Compares the two sides of a unit, and says whether a difference counts and what its likely cause is. Pure.

A first look finds candidates: units that differ. A write that is on its way differs too. So a second look, once the
state has everything that was in the nodes' logs at the first one, decides which of them count.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.rows.row import Cell
from materializer.commands.audit.shown import ShownCell

if TYPE_CHECKING:
    from cassandra_storage.formats.rows.deletion import DeletionTime
    from cassandra_storage.formats.rows.row import Row
    from materializer.commands.audit.shown import Side

CLOCK_SECONDS = 5
"""The most by which the clocks of the nodes and of this machine may differ."""
ROW = ""
"""Stands for the unit as a whole, beside the names of its columns."""


class Cause(StrEnum):
    """The likely cause of a difference: docs/guides/snapshot-and-audit.md says what to do about each."""

    MISSING_ROW = "missing_row"
    EXTRA_ROW = "extra_row"
    DELETED_IN_STATE = "deleted_in_state"
    MISSING_VALUE = "missing_value"
    EXTRA_VALUE = "extra_value"
    STATE_OLDER = "state_older"
    STATE_NEWER = "state_newer"
    VALUE_DIFFERS = "value_differs"
    TTL_DIFFERS = "ttl_differs"


class ColumnPair(NamedTuple):
    """One column on both sides, or a unit as a whole."""

    # The column in the state; None where it is null, or the unit is absent.
    state: ShownCell | None
    # The column as SELECT shows it; None where it is null, or the unit is absent.
    selected: ShownCell | None


class Seen(NamedTuple):
    """A pair at an earlier look: digests instead of values, so that no values have to be stored."""

    # A digest of the state's value.
    state: str
    # A digest of SELECT's value.
    selected: str
    # The write time of the state's value, in µs.
    state_time: int | None
    # The write time of SELECT's value, in µs.
    selected_time: int | None


class Verdict(NamedTuple):
    """The result of a second look at a unit, by column."""

    # Columns that differ as they did at the first look.
    counted: Mapping[str, ColumnPair]
    # Columns that differ in another way, and need one more look.
    changed: Mapping[str, ColumnPair]


def differences(state: Side, selected: Side) -> dict[str, ColumnPair]:
    """The columns that differ. If one side lacks the unit, only that is returned."""
    if state.is_there != selected.is_there:
        return {ROW: _whole(state, selected)}
    pairs = {
        name: ColumnPair(state.cells.get(name), selected.cells.get(name)) for name in {**state.cells, **selected.cells}
    }
    return {name: pair for name, pair in pairs.items() if not _is_equal(*pair)}


def seen(pairs: Mapping[str, ColumnPair]) -> dict[str, Seen]:
    return {
        name: Seen(_digest(state), _digest(selected), _time(state), _time(selected))
        for name, (state, selected) in pairs.items()
    }


def judge(before: Mapping[str, Seen], state: Side, selected: Side) -> Verdict:
    """The second look at a unit.

    The state has caught up with the first SELECT, and the second SELECT came after the state was read. So a column is
    right if the state shows what one of the two SELECTs shows, or a write between theirs.
    """
    counted: dict[str, ColumnPair] = {}
    changed: dict[str, ColumnPair] = {}
    for name, pair in differences(state, selected).items():
        first = before.get(name)
        if first is None:
            changed[name] = pair  # written since
        elif (first.state, first.selected) == (_digest(pair.state), _digest(pair.selected)):
            counted[name] = pair
        elif not _is_between(name, first, pair):
            changed[name] = pair
    return Verdict(counted, changed)


def cause_of(name: str, pair: ColumnPair, row: Row | None, deletion: DeletionTime) -> Cause:
    """The likely cause. row: what the state has, deleted cells included. deletion: what covers it in the state."""
    state, selected = pair
    if state is None:
        if _is_deleted(name, _time(selected), row, deletion):
            return Cause.DELETED_IN_STATE
        return Cause.MISSING_ROW if name == ROW else Cause.MISSING_VALUE
    if selected is None:
        return Cause.EXTRA_ROW if name == ROW else Cause.EXTRA_VALUE
    if state.timestamp is not None and selected.timestamp is not None and state.timestamp != selected.timestamp:
        return Cause.STATE_OLDER if state.timestamp < selected.timestamp else Cause.STATE_NEWER
    return Cause.VALUE_DIFFERS if state.value != selected.value else Cause.TTL_DIFFERS


def _whole(state: Side, selected: Side) -> ColumnPair:
    return ColumnPair(*(_as_cell(side) if side.is_there else None for side in (state, selected)))


def _as_cell(side: Side) -> ShownCell:
    """A unit that is there. The value stands for all that is in it: a row that was deleted and written again since the
    look before is another one, even if SELECT cannot tell when.
    """
    times = [cell.timestamp for cell in side.cells.values() if cell.timestamp is not None]
    content = sorted((name, _digest(cell)) for name, cell in side.cells.items())
    return ShownCell(repr(content).encode(), max(times, default=None))


def _is_equal(state: ShownCell | None, selected: ShownCell | None) -> bool:
    if state is None or selected is None:
        return state is selected
    return (
        state.value == selected.value
        and (state.timestamp == selected.timestamp or None in (state.timestamp, selected.timestamp))
        and _is_same_expiry(state.expires, selected.expires)
    )


def _is_same_expiry(first: int | None, second: int | None) -> bool:
    """SELECT shows the time to live at a second that only its coordinator knows exactly."""
    if first is None or second is None:
        return first is second
    return abs(first - second) <= CLOCK_SECONDS


def _is_between(name: str, first: Seen, pair: ColumnPair) -> bool:
    """Whether the state shows what the first SELECT showed, or a write between the two. A row that is there, or is not,
    as the first SELECT showed it is right whatever its columns are: they are compared once both sides have it.
    """
    if name == ROW:
        return (pair.state is not None) == bool(first.selected)
    if _digest(pair.state) == first.selected:
        return True
    time, earliest, latest = _time(pair.state), first.selected_time, _time(pair.selected)
    return time is not None and earliest is not None and latest is not None and earliest < time < latest


def _digest(cell: ShownCell | None) -> str:
    """A digest of the parts that do not change from one look to the next: the time at which a cell expires is an
    estimate.
    """
    if cell is None:
        return ""
    parts = f"{cell.timestamp} {cell.expires is not None} ".encode() + cell.value
    return blake2b(parts, digest_size=12).hexdigest()


def _time(cell: ShownCell | None) -> int | None:
    return None if cell is None else cell.timestamp


def _is_deleted(name: str, written: int | None, row: Row | None, deletion: DeletionTime) -> bool:
    """Whether the state has a deletion that covers a write of this time; of one without a time, whether it has any."""
    times = [deletion.marked_for_delete_at]
    if row is not None:
        times.append(row.deletion.time.marked_for_delete_at)
        data = row.columns.get(name)
        if isinstance(data, Cell):
            times += [data.timestamp] if data.is_tombstone else []
        elif data is not None:
            times.append(data.deletion.marked_for_delete_at)
            times += [cell.timestamp for cell in data.cells if cell.is_tombstone]
    newest = max(times)
    return newest >= written if written is not None else newest > -(2**63)
