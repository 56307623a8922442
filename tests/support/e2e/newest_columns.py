"""Messages of a table whose columns came and went while they were written, by the columns that it has in the end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dev.local_stack.clients.history import History

if TYPE_CHECKING:
    from dev.local_stack.clients.change import Change, Record


def by_newest_columns(history: History) -> History:
    """All messages with the columns of the one that came last of their table: only so are the images a chain."""
    changes = [change for of in history.changes.values() for change in of]
    newest: dict[str, Change] = {}
    for change in changes:
        if change.name not in newest or change.seen >= newest[change.name].seen:
            newest[change.name] = change
    result = History()
    result.add(_projected(change, newest[change.name]) for change in changes)
    return result


def _projected(change: Change, newest: Change) -> Change:
    value, last = _value(change), _value(newest)
    names = (last["after"] or last["before"]).keys()
    images = {which: value[which] and {name: value[which].get(name) for name in names} for which in ("before", "after")}
    return replace(change, value=value | images, as_written=change.as_written or value)


def _value(change: Change) -> Record:
    assert change.value is not None  # a history holds no tombstones
    return change.value
