"""All groups of a state, with their rows, by one scan of the state."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile, islice, product
from typing import TYPE_CHECKING, NamedTuple

from joinery.joining.combinations import combinations, place_of
from joinery.joining.layout import AFTER_ROWS, StoredRow, counts_key, decode_counts, decode_row, split_row
from joinery.joining.records import Group

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from joinery.joining.combinations import Combination, Place
    from joinery.joining.overlay import Overlay
    from stream_runtime.state.reader import StateReader

MOST_ROWS = 10_000  # of a group, which are in memory; those of larger ones are read again, one by one
_LAST = b"\xff"  # no input has this number


class GroupRows(NamedTuple):
    """A group, and its rows."""

    # The group.
    group: Group
    # The rows of each input, by rising idents; None if there are too many.
    rows: Sequence[Sequence[StoredRow]] | None
    # The number of rows of each input.
    counts: tuple[int, ...]

    def combinations(self, overlay: Overlay, after: Place | None) -> Iterator[Combination]:
        """As joinery.joining.combinations, of all inputs."""
        if self.rows is None:
            return combinations(overlay, self.group, range(len(self.counts)), self.counts, after)
        found: Iterator[Combination] = product(*(rows or (None,) for rows in self.rows))
        if after is None:
            return found
        return islice(dropwhile(lambda combination: place_of(combination) != after, found), 1, None)


def groups_of(state: StateReader, inputs: int, start: bytes) -> Iterator[GroupRows]:
    """The groups whose rows begin at this key of the state, or after it, in order."""
    following: bytes | None = start
    while following is not None:
        following = yield from _scan(state, inputs, following)


def _scan(state: StateReader, inputs: int, start: bytes) -> Generator[GroupRows, None, bytes | None]:
    """The groups up to one that is too large, and the key after that."""
    prefix, group = b"", None
    rows: list[list[StoredRow]] = []
    left = MOST_ROWS
    for key, value in state.scan(start, AFTER_ROWS):
        if group is None or not key.startswith(prefix):
            if group is not None:
                yield GroupRows(group, rows, tuple(map(len, rows)))
            prefix, group = split_row(key)
            rows, left = [[] for _ in range(inputs)], MOST_ROWS
        if not left:
            yield GroupRows(group, None, decode_counts(state.get(counts_key(group)), inputs))
            return prefix + _LAST
        left -= 1
        rows[key[len(prefix)]].append(decode_row(key[len(prefix) + 1 :], value))
    if group is not None:
        yield GroupRows(group, rows, tuple(map(len, rows)))
    return None
