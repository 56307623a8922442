"""The materializer's own part of what a task reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from materializer.fold.result import ChunkResult
    from stream_runtime.exactly_once.report import Report


class FoldReport(NamedTuple):
    """The fold's findings."""

    # How many messages were dead-lettered.
    dead_letters: int = 0
    # Ids of publishers that have sent nothing for too long.
    stalled_publishers: Sequence[str] = ()
    # As ChunkResult's of the last chunk.
    running_snapshots: Sequence[str] = ()
    # As ChunkResult's of the last chunk.
    lost_hosts: Mapping[str, int] = {}
    # How many changes of each operation.
    ops: Mapping[str, int] = {}
    # As ChunkResult's.
    null_values: Mapping[str, int] = {}

    @classmethod
    def of(cls, result: ChunkResult) -> FoldReport:
        return cls(
            sum(letter.value is not None for letter in result.dead_letters),
            result.stalled_publishers,
            result.running_snapshots,
            result.lost_hosts,
            Counter(map(attrgetter("op"), result.changes)),
            result.null_values or {},
        )

    def and_then(self, later: FoldReport) -> FoldReport:
        """Both, one after the other."""
        return later._replace(
            dead_letters=self.dead_letters + later.dead_letters,
            ops=Counter(self.ops) + Counter(later.ops),
            null_values=Counter(self.null_values) + Counter(later.null_values),
        )


_NOTHING = FoldReport()


def fold_part(report: Report) -> FoldReport:
    """The fold's part of a report; an empty one if nothing was folded."""
    return report.own if isinstance(report.own, FoldReport) else _NOTHING
