"""Random changelogs of inputs that are joined, and the join of their rows by SQL, which DuckDB judges.

A row is (id, x, v): its primary key, its join key, which may be null, and a value. An input whose join key is its
primary key has at most one row for each join key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import duckdb

from cdc_common.messages.avro.encoding import NULL, VALUE, encode_long
from joinery.joining.records import Group, Kind, Origin, Routed, Row, Rule
from joinery.routing.route import InputChange, place, route

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from joinery.joining.records import Joined

TARGET_PARTITIONS = 2
SOURCE_PARTITIONS = 2


class Input(NamedTuple):
    """An input of a join."""

    # Whether it is optional.
    is_optional: bool
    # Whether its join key is its primary key.
    is_unique: bool


class Change(NamedTuple):
    """A change that a test asks for: a row is written or, with `v` of None, deleted."""

    # The number of the input.
    input: int
    # The primary key.
    id: int
    # The join key; that of a unique input is its primary key.
    x: int | None
    # The value.
    v: int | None


Values = tuple[int, int | None, int]
"""(id, x, v)"""


def rule_of(inputs: Sequence[Input], most_rows: int = 10**9) -> Rule:
    return Rule(
        tuple(given.is_optional for given in inputs),
        tuple(b"" if given.is_unique else NULL for given in inputs),
        tuple(NULL for _ in inputs),
        most_rows,
    )


def mark_of(of: int, source: int, partitions: int = SOURCE_PARTITIONS) -> Routed:
    """The mark of a source partition of an input."""
    row = Row(Group(b""), b"", encode_long(partitions))
    return Routed(Kind.MARK, row, Origin(of, source, 0, 0, 0, "snapshot"))


def number(value: int | None) -> bytes:
    """A nullable long."""
    return NULL if value is None else VALUE + encode_long(value)


@dataclass
class Changelogs:
    """The inputs' changes, by input and source partition, and the messages that they are routed to."""

    inputs: Sequence[Input]
    # The rows after each change, by (input, source partition): (id, row or None).
    changes: defaultdict[tuple[int, int], list[tuple[int, Values | None]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    # The messages that are not in the internal topic yet, by (input, source partition, partition of the topic).
    sent: defaultdict[tuple[int, int, int], list[Routed]] = field(default_factory=lambda: defaultdict(list))
    # The internal topic.
    topic: defaultdict[int, list[Routed]] = field(default_factory=lambda: defaultdict(list))
    _rows: dict[tuple[int, int], Values] = field(default_factory=dict)
    _sequences: defaultdict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))

    def add(self, change: Change) -> None:
        """Make a change and route it."""
        of, row_id = change.input, change.id
        before = self._rows.pop((of, row_id), None)
        if change.v is None:
            after = None
        else:
            x = row_id if self.inputs[of].is_unique else change.x
            after = self._rows[of, row_id] = (row_id, x, change.v)
        if before is None and after is None:
            return
        self._sequences[of, row_id] += 1
        source = row_id % SOURCE_PARTITIONS
        log = self.changes[of, source]
        origin = Origin(of, source, len(log), self._sequences[of, row_id], 1_000 * len(log), "write")
        log.append((row_id, after))
        routed = route(InputChange(self._placed(of, before), self._placed(of, after), origin))
        for target, message in place(routed, TARGET_PARTITIONS):
            self.sent[of, source, target].append(message)

    def deliver(self, of: int, source: int, target: int) -> bool:
        """Append the next message from a source partition to a partition of the internal topic, if there is one."""
        queue = self.sent[of, source, target]
        if queue:
            self.topic[target].append(queue.pop(0))
        return bool(queue)

    def mark(self, random: Random) -> None:
        """Put the mark of each source partition among its messages to each partition."""
        for of, source, target in product(range(len(self.inputs)), range(SOURCE_PARTITIONS), range(TARGET_PARTITIONS)):
            queue = self.sent[of, source, target]
            queue.insert(random.randint(0, len(queue)), mark_of(of, source))

    def rows_at(self, frontier: Mapping[tuple[int, int], int]) -> list[list[Values]]:
        """The rows of each input at a frontier."""
        found: list[list[Values]] = []
        for of in range(len(self.inputs)):
            rows: dict[int, Values] = {}
            for source in range(SOURCE_PARTITIONS):
                for row_id, row in self.changes[of, source][: frontier.get((of, source), 0)]:
                    rows.pop(row_id, None)
                    if row is not None:
                        rows[row_id] = row
            found.append(list(rows.values()))
        return found

    @property
    def end(self) -> dict[tuple[int, int], int]:
        """The frontier that has all changes."""
        return {place: len(log) for place, log in self.changes.items()}

    def group_of(self, of: int, values: Values) -> Group:
        """The group of a row, also of one that joins nothing."""
        alone = b"" if values[1] is not None else bytes((of,)) + number(values[0])
        return Group(number(values[1]), alone)

    def _placed(self, of: int, values: Values | None) -> Row | None:
        if values is None or (values[1] is None and not rule_of(self.inputs).keeps_alone(of)):
            return None
        ident = b"" if self.inputs[of].is_unique else number(values[0])
        return Row(self.group_of(of, values), ident, number(values[2]))


def sql_join(inputs: Sequence[Input], rows: Sequence[Sequence[Values]]) -> dict[bytes, bytes]:
    """The joined rows by their keys, as DuckDB joins the inputs' rows."""
    with duckdb.connect() as database:
        for of, values in enumerate(rows):
            database.execute(f"CREATE TABLE t{of} (id BIGINT, x BIGINT, v BIGINT)")
            if values:
                database.executemany(f"INSERT INTO t{of} VALUES (?, ?, ?)", list(values))
        columns = ", ".join(f"t{of}.id, t{of}.v" for of in range(len(inputs)))
        keys = ", ".join(f"t{of}.x" for of in range(len(inputs)))
        found = database.execute(f"SELECT coalesce({keys}), {columns} FROM {_tables(inputs)}").fetchall()
    return dict(_image(inputs, row) for row in found)


def _tables(inputs: Sequence[Input]) -> str:
    required = [of for of, given in enumerate(inputs) if not given.is_optional]
    optional = [of for of, given in enumerate(inputs) if given.is_optional]
    if required:
        first, *rest = required
        joins = [f"JOIN t{of} ON t{first}.x = t{of}.x" for of in rest]
        joins += [f"LEFT JOIN t{of} ON t{first}.x = t{of}.x" for of in optional]
        return " ".join((f"t{first}", *joins))
    made = "t0"
    for of in range(1, len(inputs)):
        known = ", ".join(f"t{other}.x" for other in range(of))
        made += f" FULL JOIN t{of} ON coalesce({known}, NULL) = t{of}.x"
    return made


def _image(inputs: Sequence[Input], row: Sequence[int | None]) -> tuple[bytes, bytes]:
    x, *values = row
    ids, columns = values[::2], values[1::2]
    idents = [b"" if given.is_unique else number(row_id) for given, row_id in zip(inputs, ids, strict=True)]
    key = number(x) + b"".join(idents)
    return key, key + b"".join(map(number, columns))


class Fold:
    """Joined changes, folded by key. It checks the chain, and that sequences rise."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}
        self._sequences: dict[bytes, int] = {}

    def take(self, changes: Sequence[Joined]) -> None:
        for change in changes:
            assert change.before is not None or change.after is not None
            assert self.rows.pop(change.key, None) == change.before
            assert change.before != change.after
            assert self._sequences.get(change.key, -1) < change.offset
            self._sequences[change.key] = change.offset
            if change.after is not None:
                assert change.after.startswith(change.key)
                self.rows[change.key] = change.after
