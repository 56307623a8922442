"""Measures the filler's node: how full the newest commit log segment is, and whether writes must pause."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

from filler.flush import needs_flush
from filler.schedule import Schedule, SegmentAge
from filler.segments import SegmentFill, folder_bytes, newest_fill, segment_files

if TYPE_CHECKING:
    from cdc_common.node.sizes import NodeSizes
    from filler.settings import Settings


class Measurement(NamedTuple):
    """One measurement of the node's newest segment."""

    # The bytes in the newest segment.
    written: int
    # Its age, in seconds.
    age: float
    # The bytes of padding that it needs until the next period.
    padding: int
    # The reason to pause writes to this node; empty if there is none.
    paused: str


class NodeWatch:
    """Measures the node once a period."""

    def __init__(self, settings: Settings, sizes: NodeSizes, release: str) -> None:
        self._settings = settings.filler
        self._cdc_raw = settings.node.cdc_raw_directory
        self._folder = settings.node.commitlog_directory or self._cdc_raw
        self.update_node(sizes, release)
        self._age = SegmentAge()
        self._fill: SegmentFill | None = None

    def update_node(self, sizes: NodeSizes, release: str) -> None:
        """The node's sizes and version from now on."""
        own = self._settings
        self._sizes = sizes
        self._counts_unflushed = needs_flush(release)
        self._schedule = Schedule(sizes.segment, own.max_segment_age_seconds, own.period_seconds)

    def measure(self, now: float) -> Measurement:
        """`now`: of the monotonic clock; CdcError CDC_RAW_MISSING or SEGMENT_CORRUPT."""
        self._fill = newest_fill(self._folder, self._fill)
        paused = self._pause_reason()
        if self._fill is None:
            return Measurement(0, 0.0, 0, paused)
        age = self._age.measure(self._fill.file.id, now)
        return Measurement(self._fill.written, age, self._schedule.padding(self._fill.written, age), paused)

    def full_segments(self) -> int:
        """The number of segments of a 3.11 node that are older than its newest: they wait for a flush."""
        if self._fill is None:
            return 0
        return sum(file.id < self._fill.file.id for file in segment_files(self._folder))

    def _pause_reason(self) -> str:
        """Counts cdc_raw as Cassandra does and as the publisher warns: the limit is cdc_total_space less a segment;
        on 3.11 the segments that are not flushed count too.
        """
        percent = self._settings.cdc_raw_percent
        used = folder_bytes(self._cdc_raw)
        if self._counts_unflushed:
            used += len(segment_files(self._folder)) * self._sizes.segment
        if used * 100 > max(self._sizes.cdc_total - self._sizes.segment, 1) * percent:
            return f"{self._cdc_raw} holds {used >> 20} MiB, more than {percent} % of its limit"
        for folder in {self._cdc_raw, self._folder}:
            disk = shutil.disk_usage(folder)
            if disk.free * 100 < disk.total * self._settings.disk_free_percent:
                return f"less than {self._settings.disk_free_percent} % of the disk of {folder} is free"
        return ""
