"""Whether the events of a backlog are those of the model.

A row that moves to another topic has a `d` and an `r` of the cause `moved` there, wherever its move falls among its
changes. These are checked as pairs. A pair whose images are equal is left out of the comparison; another one is the
change that the schema of the new topic makes.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from dev.local_stack.clients.change import Change
from dev.local_stack.clients.history import changes_nothing
from dev.verify.model.backlog_model import Expected, Key
from dev.verify.model.outcome import base_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dev.local_stack.clients.cql import CqlClient
    from dev.verify.model.backlog import Backlog
    from dev.verify.model.backlog_model import ExpectedTable, Image, Kind

SHOWN = 3  # events around a difference


class Event(NamedTuple):
    """A change of one row."""

    # The values of the row's key.
    key: Key
    # The row_sequence.
    sequence: int
    # The message.
    change: Change

    @property
    def ts_us(self) -> int:
        """The time of the write or of the statement."""
        assert self.change.value is not None
        found: int = self.change.value["source"]["ts_us"]
        return found


def is_moved(change: Change) -> bool:
    return change.value is not None and change.value["source"]["cause"] == "moved"


def select_problems(client: CqlClient, backlog: Backlog) -> Iterator[str]:
    """A line for each row that SELECT shows otherwise than the model: then the model is wrong."""
    for table in backlog.tables:
        shown = {}
        for row in client.rows(backlog.keyspace, table.name):
            key = tuple(row[name] for name in table.key)
            shown[(*key, None)[:2]] = image(table, row, {name: c.kind for name, c in table.columns.items()})
        expected = table.rows()
        for key in sorted(shown.keys() | expected.keys(), key=repr):
            if shown.get(key) != expected.get(key):
                yield f"{table.name} {key}: SELECT shows {shown.get(key)}, the model {expected.get(key)}"


def event_problems(table: ExpectedTable, changes: Sequence[Change]) -> Iterator[str]:
    """A line for each key whose events are not the model's, and for each break of a sequence."""
    came: dict[Key, list[Event]] = defaultdict(list)
    history: list[tuple[int, str]] = []
    for change in changes:
        if base_of(change.table) == table.name:
            event = event_of(change)
            came[event.key].append(event)
            history.append((event.ts_us, change.table))
    for key in sorted(came.keys() | table.events.keys(), key=repr):
        events = sorted(came.get(key, ()), key=lambda event: event.sequence)
        yield from (f"{table.name} {key}: {line}" for line in sequence_problems(events, history))
        yield from (
            f"{table.name} {key}: {line}"
            for line in compared(list(seen_events(table, events)), table.events.get(key, []))
        )


def event_of(change: Change) -> Event:
    assert change.value is not None
    first, second, *_ = *change.key.values(), None
    return Event((first, second), change.value["source"]["row_sequence"], change)


def sequence_problems(events: Sequence[Event], history: Sequence[tuple[int, str]]) -> Iterator[str]:
    """Find errors in the events themselves: the sequence, no-op changes, and moves that are no pairs.

    A row that has ended when its table moves to another topic begins again above the numbers of all rows that had
    ended, also if the table has come back. history: the time and topic of each change of the table.
    """
    for before, after in itertools.pairwise(events):
        is_next = after.sequence == before.sequence + 1
        if not is_next and not (after.sequence > before.sequence and begins_after_move(before, after, history)):
            yield f"row_sequence {after.sequence} follows {before.sequence}"
    for event in events:
        value = event.change.value
        if value is not None and value["op"] == "u" and changes_nothing(value):
            yield f"row_sequence {event.sequence} changes nothing"
    moves = [value["op"] for event in events if is_moved(event.change) and (value := event.change.value)]
    if moves != ["d", "r"] * (len(moves) // 2):
        yield f"moves are not pairs: {moves}"


def begins_after_move(before: Event, after: Event, history: Sequence[tuple[int, str]]) -> bool:
    """Whether the row begins, and its table was in another topic than before at some time in between."""
    value = after.change.value
    if value is None or value["op"] != "c":
        return False
    return any(topic != before.change.table for ts_us, topic in history if before.ts_us <= ts_us <= after.ts_us)


def compared(seen: Sequence[Expected], expected: Sequence[Expected]) -> Iterator[str]:
    """The first difference, with what is around it."""
    if list(seen) == list(expected):
        return
    at = next((at for at, pair in enumerate(zip(seen, expected, strict=False)) if pair[0] != pair[1]), None)
    at = min(len(seen), len(expected)) if at is None else at
    yield (
        f"{len(seen)} events came of {len(expected)}; from event {at + 1} on came "
        f"{list(map(text, seen[at : at + SHOWN]))}, expected {list(map(text, expected[at : at + SHOWN]))}"
    )


def text(event: Expected) -> str:
    return f"{event.op} {dict(event.before or ())} -> {dict(event.after or ())}"


def seen_events(table: ExpectedTable, events: Iterable[Event]) -> Iterator[Expected]:
    """The operations and the images, as the model has them."""
    left: Image | None = None  # the row as it was in the topic that it leaves
    for event in events:
        value = event.change.value
        assert value is not None
        before, after = (
            None if value[which] is None else image(table, value[which], table.kinds) for which in ("before", "after")
        )
        if not is_moved(event.change):
            yield Expected(value["op"], before, after)
        elif value["op"] == "d":
            left = before
        elif after != left:
            yield Expected("u", left, after)


def image(table: ExpectedTable, row: Mapping[str, Any], kinds: Mapping[str, Kind]) -> Image:
    """The columns that are not null, without the key's, whatever these were called."""
    found = {}
    for name, value in row.items():
        if name in table.key_names or value is None:
            continue
        kind = kinds.get(name)
        plain = repr(value) if kind is None else kind.shown(kind.plain(value))
        if plain is not None:
            found[name] = plain
    return tuple(sorted(found.items()))
