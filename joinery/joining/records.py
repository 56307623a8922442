"""Records of the join: rows under their join keys, the messages of the internal topic, and joined changes.

A row's columns are opaque here: they are the Avro bytes that go into the joined row, or into its key.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    """The kind of a message of the internal topic."""

    # The row is new under its join key.
    PUT = 0
    # The row keeps its join key, and has other columns.
    UPDATE = 1
    # The row leaves its join key.
    RETRACT = 2
    # No row: all earlier messages of a partition of an input are before this one. Its columns are the number of the
    # partitions of the input's topic, as a long.
    MARK = 3


class Group(NamedTuple):
    """A join key, and the rows that have it."""

    # The Avro bytes of the join key's columns in the joined key.
    key: bytes
    # Distinguishes rows that meet no other row, because a column of their join key is null; empty for all others.
    alone: bytes = b""


class Row(NamedTuple):
    """A version of an input's row."""

    # The rows that it meets.
    group: Group
    # The Avro bytes of its primary key's columns in the joined key, without those of the join key. They identify the
    # row within its group.
    ident: bytes
    # The Avro bytes of its columns in the joined row.
    columns: bytes


class Origin(NamedTuple):
    """The change of an input that is the cause of a message."""

    # The number of the input.
    input: int
    # Kafka's partition of the input's topic.
    partition: int
    # The offset in that partition.
    offset: int
    # The row's sequence after the change.
    sequence: int
    # The time of the write (µs since 1970).
    ts_us: int
    # Why the row changed, as in change messages.
    cause: str


class Routed(NamedTuple):
    """A message of the internal topic."""

    # Its kind.
    kind: Kind
    # The row. The columns of a retracted row are empty.
    row: Row
    # The change that it comes from.
    origin: Origin
    # Whether the row may be unknown: earlier messages may have been compacted away before the join began.
    may_miss: bool = False
    # Whether another message of the same change follows in the same partition.
    has_more: bool = False
    # The number of the definition that it was routed by; 0 if an older release has routed it.
    definition: int = 0


class Joined(NamedTuple):
    """A change of a joined row."""

    # The Avro bytes of the joined row's key.
    key: bytes
    # The Avro bytes of the joined row before the change; None if there was none.
    before: bytes | None
    # The Avro bytes of the joined row after the change; None if there is none.
    after: bytes | None
    # The sequence of each input's row; None for an input that has no row here.
    rows: tuple[int | None, ...]
    # The offset in the internal topic, which is the sequence of the joined row.
    offset: int
    # The change of an input that is the cause.
    origin: Origin
    # Whether the joined row is sent because the join begins.
    is_snapshot: bool = False

    @property
    def op(self) -> str:
        """The operation, as in Debezium's envelope."""
        if self.is_snapshot:
            return "r"
        if self.before is None:
            return "c"
        return "d" if self.after is None else "u"


class Sizes(NamedTuple):
    """The sizes of groups that messages have met."""

    # How many rows of each input the state has more, or less.
    added: tuple[int, ...]
    # The most rows of each input that a group has got.
    largest: tuple[int, ...]
    # The most combinations with rows of other inputs that a message has met.
    fan_out: int

    def and_then(self, later: Sizes) -> Sizes:
        """Both, one after the other."""
        added = tuple(map(sum, zip(self.added, later.added, strict=True)))
        largest = tuple(map(max, zip(self.largest, later.largest, strict=True)))
        return Sizes(added, largest, max(self.fan_out, later.fan_out))


class Rule(NamedTuple):
    """The part of a join's definition that the join itself needs."""

    # Whether each input is optional.
    optional: tuple[bool, ...]
    # The bytes of each input's columns in the joined key, where it has no row.
    absent_idents: tuple[bytes, ...]
    # The bytes of each input's columns in the joined row, where it has no row.
    absent_columns: tuple[bytes, ...]
    # The number of joined rows that one change of an input may change at most.
    most_rows: int
    # The number of the definition (joinery.planning.digest); 0 takes messages of any.
    definition: int = 0

    def takes(self, routed: Routed) -> bool:
        """Whether a message was routed by this definition."""
        return not self.definition or routed.definition in (0, self.definition)

    def has_rows(self, counts: tuple[int, ...]) -> bool:
        """Whether a group with so many rows of each input has joined rows."""
        return any(counts) and all(count > 0 or optional for count, optional in zip(counts, self.optional, strict=True))

    def keeps_alone(self, number: int) -> bool:
        """Whether a row of this input has a joined row even if it meets no other row."""
        return all(optional for other, optional in enumerate(self.optional) if other != number)
