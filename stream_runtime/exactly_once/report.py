"""The report of a task to the driver."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from stream_runtime.records import Rest
from stream_runtime.state.unused import DiskUse


class Part(Protocol):
    """A program's own part of a report."""

    def and_then(self, later: Any, /) -> Part:  # noqa: ANN401 - a part of the same program
        """Both, one after the other."""
        ...


class StateReport(NamedTuple):
    """The part of a report about a state."""

    bytes: int = 0
    """The size of the local state."""
    versions: int = 0
    """How many versions of the state were stored."""
    read: int = 0
    """Bytes from the checkpoint location."""
    written: int = 0
    """Bytes to the checkpoint location."""
    restores: int = 0
    """How many states the worker brought to another version since the last report."""
    rest: Rest | None = None
    """How long the state has nothing to do, as Processor.rest."""
    busy: bool = False
    """Whether more than times was stored."""
    disk: DiskUse | None = None
    """The size of all states of the worker's machine, if they were measured since the last report."""

    def and_then(self, later: StateReport) -> StateReport:
        """Both, one after the other."""
        return later._replace(
            versions=self.versions + later.versions,
            read=self.read + later.read,
            written=self.written + later.written,
            restores=self.restores + later.restores,
            disk=later.disk or self.disk,
        )


class Report(NamedTuple):
    """A task has processed the offsets [first, end) of one partition.

    A share of several partitions has a report for each of them. Together they have counts, and no offsets.
    """

    first: int
    end: int
    messages: int
    """How many messages were processed."""
    changes: int
    """How many changes, or messages, came out."""
    chunks: int
    seconds: float
    native: int = 0
    """How many messages the native core has processed."""
    left: int = 0
    """How many of the last messages given are not processed yet, since the time was over."""
    renewed: int = 0
    """How often the brokers had forgotten the idle producer, so that a new one was made."""
    commit_seconds: float = 0.0
    """How long of `seconds` the commits took."""
    state: StateReport = StateReport()
    own: Part | None = None
    """The program's own part; None if nothing was processed."""

    def with_chunk(self, first: int, end: int, *, changes: int, native: int, own: Part | None = None) -> Report:
        """The report with one more chunk, or part of one: the offsets from `first` to before `end`."""
        return self._replace(
            first=self.first if self.chunks else first,
            end=end,
            messages=self.messages + end - first,
            changes=self.changes + changes,
            chunks=self.chunks + 1,
            native=self.native + native,
            own=both(self.own, own),
        )

    def and_then(self, later: Report) -> Report:
        """Both, one after the other."""
        return later._replace(
            first=self.first if self.chunks else later.first,
            end=later.end if later.chunks else self.end,
            messages=self.messages + later.messages,
            changes=self.changes + later.changes,
            chunks=self.chunks + later.chunks,
            seconds=self.seconds + later.seconds,
            native=self.native + later.native,
            renewed=self.renewed + later.renewed,
            commit_seconds=self.commit_seconds + later.commit_seconds,
            state=self.state.and_then(later.state),
            own=both(self.own, later.own),
        )


def both(earlier: Part | None, later: Part | None) -> Part | None:
    """Two parts, one after the other; either may be missing."""
    if earlier is None or later is None:
        return earlier if later is None else later
    return earlier.and_then(later)


NOTHING_DONE = Report(-1, -1, 0, 0, 0, 0.0)
