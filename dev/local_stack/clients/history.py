"""Keeps the changes of each key, in order, and checks what needs no database: sequence, chain and operations."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from dev.local_stack.clients.change import Change, Record

Key: TypeAlias = tuple[str, Hashable]


class History:
    """The changes of every key; tombstones are counted but are no changes."""

    def __init__(self) -> None:
        self.changes: dict[Key, list[Change]] = defaultdict(list)
        self.count = 0
        self.tombstones = 0
        self.latencies: list[float] = []
        self.newest_write = 0.0  # time.time() of the newest write whose change has come

    def add(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if change.value is None:
                self.tombstones += 1
                continue
            self.count += 1
            self.changes[key_of(change)].append(change)
            self.latencies.append(latency(change))
            self.newest_write = max(self.newest_write, change.seen - self.latencies[-1])

    def tables(self) -> set[str]:
        return {table for table, _ in self.changes}

    def latest(self, table: str) -> Iterator[tuple[Record, Record]]:
        """(key, envelope) of each key of `keyspace.table` that has not been deleted."""
        for (name, _), changes in self.changes.items():
            if name == table:
                value = changes[-1].value
                if value is not None and value["after"] is not None:
                    yield changes[-1].key, value

    def problems(self) -> Iterator[str]:
        """One line for each break of a chain: see `chain_problems`."""
        for (table, _), changes in self.changes.items():
            for problem in chain_problems(changes):
                yield f"{table} {readable(changes[0].key)}: {problem}"


def key_of(change: Change) -> Key:
    return change.name, frozen(change.key)


def latency(change: Change) -> float:
    """Seconds from the write, by its timestamp, until this client saw the change."""
    assert change.value is not None
    return change.seen - float(change.value["source"]["ts_us"]) / 1e6


def chain_problems(changes: list[Change], *, may_be_purged: bool = False) -> Iterator[str]:
    """Find errors in the changes of one key, in the order in which they came: gaps or repeats of `row_sequence`,
    a `before` that is not the `after` of the change before it, an `op` that does not fit its images, a `u` that changes
    nothing. After a deletion that may have been purged, `row_sequence` may leave out numbers.
    """
    previous: Record | None = None
    for change in changes:
        value = change.value
        assert value is not None
        sequence = value["source"]["row_sequence"]
        if previous is not None:
            expected = previous["source"]["row_sequence"] + 1
            can_be_higher = may_be_purged and previous["after"] is None
            if sequence != expected and not (can_be_higher and sequence > expected):
                yield f"row_sequence {sequence} follows {previous['source']['row_sequence']}"
        if not same(value["before"], previous["after"] if previous else None):
            yield f"before of row_sequence {sequence} is not the after of the change before it"
        if value["op"] != _operation(value):
            yield f"op {value['op']} of row_sequence {sequence} does not fit its images"
        if value["op"] == "u" and changes_nothing(change.as_written or value):
            yield f"row_sequence {sequence} changes nothing"
        previous = value


def changes_nothing(value: Record) -> bool:
    """Whether an update's row is the same before and after. A field that Avro cannot represent may have changed: it is
    null on both sides, and named.
    """
    source = value["source"]
    return same(value["before"], value["after"]) and not (source.get("empty") or source.get("unreadable"))


def _operation(value: Record) -> str:
    match value["before"] is None, value["after"] is None:
        case True, False:
            source = value["source"]
            return "r" if source.get("snapshot") == "true" or source.get("cause") == "moved" else "c"
        case False, False:
            return "u"
        case False, True:
            return "d"
    return "none"


def same(left: object, right: object) -> bool:
    """Equality of decoded Avro values in which NaN equals itself, and 0.0 is not -0.0."""
    return frozen(left) == frozen(right)


def frozen(value: Any) -> Hashable:  # noqa: ANN401 - whatever Avro decodes to
    """A hashable twin of a decoded Avro value."""
    if isinstance(value, dict):
        return tuple((name, frozen(item)) for name, item in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(frozen(item) for item in value)
    if isinstance(value, float):
        return repr(value)
    hashable: Hashable = value
    return hashable


def readable(record: Record) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in record.items())


def percentile(values: Iterable[float], share: float) -> float:
    """The value that `share` (0 to 1) of the values do not exceed; NaN of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan
