"""The cut of a partition: the messages of the internal topic that are joined, and the frontier that they give.

All messages before a committed position are joined. In the middle of a change that has two messages in the partition,
the cut is before the change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.messages.avro.skipping import read_long
from joinery.joining.records import Kind

if TYPE_CHECKING:
    from joinery.joining.records import Routed

Place = tuple[int, int]
"""An input's number, and a partition of its topic."""


class Cut(NamedTuple):
    """A cut of a partition of the internal topic, and of the partition of the target with its number."""

    # The messages of the internal topic before this offset are in it.
    offset: int
    # The next offset of each partition of the inputs.
    frontier: Mapping[Place, int]
    # Whether all joined rows were sent that there were at the start.
    has_begun: bool


class CutFinder:
    """Takes the messages of one partition, in order."""

    def __init__(self, inputs: int) -> None:
        self._inputs = inputs
        self._offset = 0
        self._frontier: dict[Place, int] = {}
        self._halves: set[Place] = set()  # only the first of two messages of a change was taken
        self._after: dict[Place, int] = {}  # the frontier's changes since the cut
        self._marks: dict[Place, int] = {}
        self._has_begun = False

    @property
    def cut(self) -> Cut:
        return Cut(self._offset, self._frontier, self._has_begun)

    def take(self, offset: int, routed: Routed) -> None:
        origin = routed.origin
        place = (origin.input, origin.partition)
        if routed.kind is Kind.MARK:
            self._marks[place] = read_long(routed.row.columns, 0)[0]
        elif routed.has_more:
            self._halves.add(place)
        else:
            if routed.kind is Kind.PUT:
                self._halves.discard(place)
            self._after[place] = origin.offset + 1
        if not self._halves:
            self._frontier |= self._after
            self._after.clear()
            self._offset = offset + 1
            self._has_begun = self._has_begun or self._is_marked()

    def _is_marked(self) -> bool:
        """Whether each partition of each input has its mark."""
        if len(self._marks) < self._inputs:
            return False
        counts = [[count for (of, _), count in self._marks.items() if of == number] for number in range(self._inputs)]
        return all(found and len(found) >= found[0] for found in counts)
