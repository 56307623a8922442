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

    # The size of the local state.
    bytes: int = 0
    # How many versions of the state were stored.
    versions: int = 0
    # Bytes from the checkpoint location.
    read: int = 0
    # Bytes to the checkpoint location.
    written: int = 0
    # How many states the worker brought to another version since the last report.
    restores: int = 0
    # How long the state has nothing to do, as Processor.rest.
    rest: Rest | None = None
    # Whether more than times was stored.
    busy: bool = False
    # The size of all states of the worker's machine, if they were measured since the last report.
    disk: DiskUse | None = None

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

    # The first processed offset.
    first: int
    # The offset after the last processed one.
    end: int
    # How many messages were processed.
    messages: int
    # How many changes, or messages, came out.
    changes: int
    # How many chunks were committed.
    chunks: int
    # How long the processing took, in seconds.
    seconds: float
    # How many messages the native core has processed.
    native: int = 0
    # How many of the last messages given are not processed yet, since the time was over.
    left: int = 0
    # How often the brokers had forgotten the idle producer, so that a new one was made.
    renewed: int = 0
    # How long of `seconds` the commits took.
    commit_seconds: float = 0.0
    # The part about the state.
    state: StateReport = StateReport()
    # The program's own part; None if nothing was processed.
    own: Part | None = None

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
