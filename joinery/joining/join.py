"""Joins a chunk of messages of one partition of the internal topic: (state, messages) → (writes, changes).

A change of an input's row changes the joined rows of all combinations with the other inputs' rows of its group. They
come out in the order of their idents, so that a transaction may hold only a part of them: the state then records the
last combination, and still has the input's row as it was before.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.messages.avro.encoding import encode_long
from joinery.joining.combinations import combinations, place_of
from joinery.joining.errors import DefinitionError, FanOutError, JoinError, LostHistoryError
from joinery.joining.layout import (
    BEGUN,
    CONTINUATION,
    LOADING,
    PHASE,
    Continuation,
    StoredRow,
    decode_continuation,
    encode_continuation,
    frontier_key,
    half_key,
)
from joinery.joining.overlay import Overlay
from joinery.joining.records import Joined, Kind, Routed, Sizes
from joinery.joining.start import has_begun, is_marked, mark, snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from joinery.joining.combinations import Combination, Place
    from joinery.joining.records import Rule
    from stream_runtime.state.reader import StateReader


class JoinedChunk(NamedTuple):
    """The result of a chunk, or of its first part."""

    # The writes to the state; None deletes a key.
    writes: dict[bytes, bytes | None]
    # The changes of joined rows, in order.
    changes: list[Joined]
    # How many messages, from the end, are left. If it is all of them, a part of the first one may be done.
    left: int = 0
    # How many messages had a version that the state has already, or a newer one.
    late: int = 0
    # The sizes of the groups that the messages have met.
    sizes: Sizes = Sizes((), (), 0)


class _Step(NamedTuple):
    """The versions of a row between which a message lies."""

    # The message.
    routed: Routed
    # The offset of the message.
    offset: int
    # The row before it; None if there is none.
    before: StoredRow | None
    # The row after it; None if there is none.
    after: StoredRow | None

    @property
    def input(self) -> int:
        return self.routed.origin.input

    @property
    def changes_nothing(self) -> bool:
        """Whether joined rows are the same before and after it."""
        return self.before is self.after or (
            self.before is not None and self.after is not None and self.before.columns == self.after.columns
        )


def join_chunk(
    rule: Rule, state: StateReader, messages: Sequence[tuple[int, Routed]], most_bytes: int, *, is_new: bool = False
) -> JoinedChunk:
    """Join the messages, which are (offset, message), or the first of them. JoinError for the first one only: a
    message after others is left, so that those are committed.

    most_bytes: of changes; the last one may exceed it. is_new: whether the state is to load rows first.
    """
    join = _ChunkJoin(rule, state, most_bytes)
    if is_new:
        join.load_first()
    return join.join_all(messages)


class _ChunkJoin:
    def __init__(self, rule: Rule, state: StateReader, most_bytes: int) -> None:
        self._rule = rule
        self._state = state
        self._overlay = Overlay(state, len(rule.optional))
        self._has_begun = has_begun(state)
        self._bytes_left = most_bytes
        self._changes: list[Joined] = []
        self._late = 0
        self._added = [0] * len(rule.optional)
        self._largest = [0] * len(rule.optional)
        self._fan_out = 0

    def load_first(self) -> None:
        """Send nothing until all inputs are loaded."""
        self._overlay.put(PHASE, LOADING)
        self._has_begun = False

    def join_all(self, messages: Sequence[tuple[int, Routed]]) -> JoinedChunk:
        done = 0
        for offset, routed in messages:
            if routed.kind is Kind.MARK and done:
                break  # it reads what those before it have written
            try:
                if not self._rule.takes(routed):
                    raise DefinitionError
                is_done = self._take_mark(offset, routed) if routed.kind is Kind.MARK else self._join(offset, routed)
            except JoinError:
                if not done:
                    raise
                break
            if not is_done:
                break
            done += 1
            if self._bytes_left <= 0:
                break
        sizes = Sizes(tuple(self._added), tuple(self._largest), self._fan_out)
        return JoinedChunk(self._overlay.writes, self._changes, len(messages) - done, self._late, sizes)

    def _join(self, offset: int, routed: Routed) -> bool:
        """Whether the whole message is joined."""
        step = self._step(offset, routed)
        if step is None:
            self._late += 1
        elif self._has_begun and not step.changes_nothing:
            after = self._begin(step)
            if not self._emit(step, after):
                return False
        if step is not None:
            self._write(step)
        self._move_frontier(routed)
        return True

    def _take_mark(self, offset: int, routed: Routed) -> bool:
        """Send all joined rows with the last mark. Whether that is done."""
        if not mark(self._overlay, self._state, routed, len(self._rule.optional)) or self._has_begun:
            return True
        for phase, joined in snapshot(self._rule, self._state, self._overlay, offset, routed):
            self._changes.append(joined)
            self._bytes_left -= len(joined.key) + len(joined.after or b"")
            if self._bytes_left <= 0:
                self._overlay.put(PHASE, phase)
                return False
        self._overlay.put(PHASE, BEGUN)
        self._has_begun = True
        return True

    def _move_frontier(self, routed: Routed) -> None:
        """The frontier is after a change once all its messages in this partition are joined."""
        origin = routed.origin
        half = half_key(origin.input, origin.partition)
        if routed.has_more:
            self._overlay.put(half, b"\x01")
            return
        if routed.kind is Kind.PUT and self._overlay.get(half) is not None:
            self._overlay.put(half, None)
        self._overlay.put(frontier_key(origin.input, origin.partition), encode_long(origin.offset + 1))

    def _step(self, offset: int, routed: Routed) -> _Step | None:
        """The message's step; None if the state has this version of the row, or a newer one. LostHistoryError."""
        kind, row, origin, may_miss = routed[:4]
        before = self._overlay.row(row.group, origin.input, row.ident)
        if before is not None and before.sequence >= origin.sequence:
            return None
        is_known = not may_miss or is_marked(self._overlay, origin.input, origin.partition)
        if before is None and kind is not Kind.PUT and is_known:
            raise LostHistoryError("it changes a row whose earlier messages were deleted before they were read")
        after = None if kind is Kind.RETRACT else StoredRow(row.ident, origin.sequence, row.columns)
        return _Step(routed, offset, before, after)

    def _begin(self, step: _Step) -> Place | None:
        """The place where the last part ended; None without one. FanOutError."""
        counts = self._overlay.counts(step.routed.row.group)
        fan_out = _fan_out(step, counts)
        if self._rule.has_rows(_with(counts, step.input, 1)) and fan_out > self._rule.most_rows:
            raise FanOutError(step.routed.row.group, counts, fan_out, self._rule.most_rows)
        stored = self._overlay.get(CONTINUATION)
        if stored is None:
            return None
        continuation = decode_continuation(stored)
        assert continuation.offset == step.offset
        return continuation.last

    def _emit(self, step: _Step, after: Place | None) -> bool:
        """Make the changes of all combinations after this place, and return whether they fitted."""
        group = step.routed.row.group
        counts = self._overlay.counts(group)
        if not self._rule.has_rows(_with(counts, step.input, 1)):
            return True
        others = [number for number in range(len(counts)) if number != step.input]
        for combination in combinations(self._overlay, group, others, counts, after):
            for joined in self._changes_of(step, counts, combination):
                self._changes.append(joined)
                self._bytes_left -= len(joined.key) + len(joined.before or b"") + len(joined.after or b"")
            if self._bytes_left <= 0 and others:
                continuation = Continuation(step.offset, place_of(combination))
                self._overlay.put(CONTINUATION, encode_continuation(continuation))
                return False
        self._fan_out = max(self._fan_out, _fan_out(step, counts))
        return True

    def _changes_of(self, step: _Step, counts: tuple[int, ...], combination: Combination) -> Iterator[Joined]:
        """The changes of the joined rows of one combination. A row that takes the place of none, or gives it back,
        changes two joined rows, or one if both have the same key.
        """
        before, after = step.before, step.after
        has_other = self._has_other(step, counts)
        if (before is not None and after is not None) or (has_other and self._has_key_of_absent(step)):
            if self._columns(step, combination, before) != self._columns(step, combination, after):
                yield self._changed(step, combination, before, after)
            return
        if before is not None:
            yield self._changed(step, combination, before, None, has_after=False)
        if has_other and before is None:
            yield self._changed(step, combination, None, None, has_after=False)
        if after is not None:
            yield self._changed(step, combination, None, after, has_before=False)
        if has_other and before is not None:
            yield self._changed(step, combination, None, None, has_before=False)

    def _has_other(self, step: _Step, counts: tuple[int, ...]) -> bool:
        """Whether there are joined rows without a row of this input before or after the message."""
        own = counts[step.input] + (step.after is not None) - (step.before is not None)
        is_alone = 0 in (counts[step.input], own)
        return is_alone and self._rule.has_rows(_with(counts, step.input, 0))

    def _has_key_of_absent(self, step: _Step) -> bool:
        """Whether the joined key says nothing about the row: its primary key is the join key."""
        return step.routed.row.ident == self._rule.absent_idents[step.input]

    def _changed(  # noqa: PLR0913 - both versions may be there without a row
        self,
        step: _Step,
        combination: Combination,
        before: StoredRow | None,
        after: StoredRow | None,
        *,
        has_before: bool = True,
        has_after: bool = True,
    ) -> Joined:
        key = self._key(step, combination, after if has_after else before)
        return Joined(
            key,
            key + self._columns(step, combination, before) if has_before else None,
            key + self._columns(step, combination, after) if has_after else None,
            tuple(
                None if row is None else row.sequence
                for row in _whole(step.input, combination, after if has_after else before)
            ),
            step.offset,
            step.routed.origin,
        )

    def _key(self, step: _Step, combination: Combination, own: StoredRow | None) -> bytes:
        rows = zip(_whole(step.input, combination, own), self._rule.absent_idents, strict=True)
        return step.routed.row.group.key + b"".join(absent if row is None else row.ident for row, absent in rows)

    def _columns(self, step: _Step, combination: Combination, own: StoredRow | None) -> bytes:
        rows = zip(_whole(step.input, combination, own), self._rule.absent_columns, strict=True)
        return b"".join(absent if row is None else row.columns for row, absent in rows)

    def _write(self, step: _Step) -> None:
        """Write the row as it is after the message, once all changes are made."""
        group, number = step.routed.row.group, step.input
        if step.after is not None:
            self._overlay.put_row(group, number, step.after)
        elif step.before is not None:
            self._overlay.delete_row(group, number, step.before.ident)
        more = (step.after is not None) - (step.before is not None)
        if more:
            counts = self._overlay.counts(group)
            count = counts[number] + more
            self._overlay.put_counts(group, _with(counts, number, count))
            self._added[number] += more
            self._largest[number] = max(self._largest[number], count)
        if self._overlay.get(CONTINUATION) is not None:
            self._overlay.put(CONTINUATION, None)


def _fan_out(step: _Step, counts: tuple[int, ...]) -> int:
    """The number of combinations with the rows of the other inputs, by the counters."""
    return prod(max(1, count) for number, count in enumerate(counts) if number != step.input)


def _with(counts: tuple[int, ...], number: int, count: int) -> tuple[int, ...]:
    return (*counts[:number], count, *counts[number + 1 :])


def _whole(number: int, combination: Combination, own: StoredRow | None) -> Combination:
    """A row of each input."""
    return (*combination[:number], own, *combination[number:])
