"""The steps of a history, and how Hypothesis draws them: of small alphabets, so that steps meet all the time.

A step is plain data and means something in every history, whatever the table is like by then: columns and values are
numbers, taken modulo how many there are. So any step can be left out, and a printed history can be run again.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from hypothesis import strategies as st

Skew: TypeAlias = Literal["rising", "tie", "past", "future"]
HOSTS = (1, 2)


class Op(NamedTuple):
    """One column of a statement: `set` a value or an element, `remove` it, `replace` or `clear` a collection."""

    column: int
    what: Literal["set", "remove", "replace", "clear"] = "set"
    element: int = 0
    value: int = 0


class Origin(NamedTuple):
    """The place and time at which a statement's mutation is logged.

    hosts: 2 sends nothing before the next `HandOver`. versions_behind: how many of the last schema changes the node has
    not heard of. skew: the write timestamp. is_joined: it is a part of the mutation before it.
    """

    hosts: tuple[int, ...] = (1,)
    versions_behind: int = 0
    skew: Skew = "rising"
    is_joined: bool = False


class Write(NamedTuple):
    """INSERT or UPDATE of a row, or of the static row (c None); a `ttl` in s."""

    p: int
    c: int | None
    ops: tuple[Op, ...]
    is_insert: bool = False
    ttl: int = 0
    origin: Origin = Origin()


class Delete(NamedTuple):
    """Deletes a row, the rows with `c` <= c < `c` + `width`, or the partition."""

    p: int
    what: Literal["row", "range", "partition"]
    c: int = 0
    width: int = 1
    origin: Origin = Origin()


class Alter(NamedTuple):
    """ALTER TABLE or ALTER TYPE, or the registry's assignment of another topic; `skew` is of DROP USING TIMESTAMP."""

    what: Literal["drop", "add", "add_field", "rename_field", "rename_key", "assign"]
    column: int = 0
    skew: Skew = "rising"
    is_type_known: bool = True


class Recreate(NamedTuple):
    """DROP TABLE and CREATE TABLE of the same name."""

    shape: int


class Pass(NamedTuple):
    """Time passes; then maybe a heartbeat of each host to each raw partition."""

    seconds: int
    with_heartbeats: bool = True
    versions_behind: int = 0


class HandOver(NamedTuple):
    """The second host's publisher sends what its log holds."""


class Snapshot(NamedTuple):
    """A snapshot of both hosts begins with what they have logged by then, sends so many row images of it, or ends: then
    the first host has ended and the second one has given up.
    """

    what: Literal["begin", "send", "end"]
    images: int = 1


class Fold(NamedTuple):
    """Fold up to `records` records of each raw partition, in at most `parts` chunks."""

    records: int
    parts: int


class Restart(NamedTuple):
    """The job goes on with other settings: `reorder_ms`, and how many rows one chunk may change."""

    reorder_ms: int
    max_changes: int


class Reshard(NamedTuple):
    """The raw topic gets other partitions; `is_caught_up`: only after everything was folded."""

    partitions: int
    is_caught_up: bool


class Check(NamedTuple):
    """Fold everything and compare with the model."""


Step: TypeAlias = Write | Delete | Alter | Recreate | Pass | HandOver | Snapshot | Fold | Restart | Reshard | Check


class History(NamedTuple):
    """shape: of the first table. partitions: of the raw topic at first. is_stepwise: each step is followed by a Check.
    is_reversed: whether all records, at the end, are folded again in reverse, or every second one first.
    """

    shape: int
    partitions: int
    is_stepwise: bool
    is_reversed: bool
    steps: list[Step]


ALL = 1_000_000

_skews: st.SearchStrategy[Skew] = st.sampled_from(["rising", "rising", "rising", "tie", "past", "future"])
_ops = st.builds(
    Op,
    st.integers(0, 6),
    st.sampled_from(["set", "set", "set", "remove", "replace", "clear"]),
    st.integers(0, 2),
    st.integers(0, 1),
)
_origins = st.builds(
    Origin,
    st.sampled_from([(1,), (1,), (2,), (1, 2)]),
    st.sampled_from([0, 0, 0, 1, 2]),
    _skews,
    st.sampled_from([False, False, False, True]),
)
_keys = st.integers(0, 2)
_writes = st.builds(
    Write,
    _keys,
    st.sampled_from([0, 0, 1, 1, 2, None]),
    st.lists(_ops, max_size=2).map(tuple),
    st.booleans(),
    st.sampled_from([0, 0, 1, 4]),
    _origins,
)
_deletes = st.builds(
    Delete,
    _keys,
    st.sampled_from(["row", "range", "partition"]),
    st.integers(0, 2),
    st.integers(1, 3),
    _origins,
)
_alters = st.builds(
    Alter,
    st.sampled_from(["drop", "drop", "drop", "add", "add", "add_field", "rename_field", "rename_key", "assign"]),
    st.integers(0, 8),
    _skews,
    st.booleans(),
)
_passes = st.builds(Pass, st.sampled_from([0, 1, 2, 5, 9]), st.booleans(), st.integers(0, 1))
_folds = st.builds(Fold, st.sampled_from([1, 2, ALL]), st.sampled_from([1, 2, ALL]))
_shares: tuple[tuple[st.SearchStrategy[Step], int], ...] = (
    (_writes, 8),
    (_deletes, 2),
    (_alters, 4),
    (_passes, 3),
    (_folds, 3),
    (st.builds(HandOver), 1),
    (st.builds(Snapshot, st.sampled_from(["begin", "send", "send", "end"]), st.sampled_from([1, 3, ALL])), 3),
    (st.builds(Restart, st.sampled_from([0, 0, 2000]), st.sampled_from([1, 2, 3, ALL])), 1),
    (st.builds(Reshard, st.integers(1, 3), st.booleans()), 1),
    (st.builds(Check), 1),
    (st.builds(Recreate, st.sampled_from([0, 0, 0, 0, 1, 2, 3])), 1),
)
# one_of takes the same strategy only once.
_step = st.one_of([strategy.map(lambda step: step) for strategy, share in _shares for _ in range(share)])
# A list of lists is longer on average than a list, and shrinks as well.
_steps = st.lists(st.lists(_step, min_size=1, max_size=8), min_size=1, max_size=8)
histories = st.builds(
    History,
    st.sampled_from([0, 0, 0, 1, 2, 3]),
    st.integers(1, 2),
    st.booleans(),
    st.booleans(),
    _steps.map(lambda parts: [step for part in parts for step in part]),
)
