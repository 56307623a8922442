"""What the filler sees of its own node: how full the commit log's newest segment is, and what forbids to write."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

from cdc_program.node_sizes import MIB, cdc_total_space, commitlog_segment_size
from filler.flush import needs_flush
from filler.schedule import Schedule, SegmentAge
from filler.segments import SegmentFill, folder_bytes, newest_fill, segment_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdc_program.settings import FillerSettings


class NodeLimits(NamedTuple):
    """The node's settings, in bytes."""

    segment_bytes: int
    cdc_total_bytes: int


class Look(NamedTuple):
    """At one moment: bytes in the newest segment, its age in s, the bytes that it lacks until the next period, and
    why nothing may be written to this node, or empty.
    """

    written: int
    age: float
    lacking: int
    held: str


def limits(told: Mapping[str, str] | None, settings: FillerSettings) -> NodeLimits:
    """As the node says, else as our settings say (3.11)."""
    return NodeLimits(
        commitlog_segment_size(told) or settings.commitlog_segment_mib * MIB,
        cdc_total_space(told) or settings.cdc_total_space_mib * MIB,
    )


class NodeWatch:
    """Looked at once a period."""

    def __init__(self, settings: FillerSettings, limits: NodeLimits, release: str) -> None:
        self._settings = settings
        self._folder = settings.commitlog_directory or settings.cdc_raw_directory
        self.follow(limits, release)
        self._age = SegmentAge()
        self._fill: SegmentFill | None = None

    def follow(self, limits: NodeLimits, release: str) -> None:
        """The node's settings and version as they are from now on."""
        own = self._settings
        self._limits = limits
        self._counts_unflushed = needs_flush(release)
        self._schedule = Schedule(limits.segment_bytes, own.max_segment_age_seconds, own.period_seconds)

    def look(self, now: float) -> Look:
        """`now`: of the monotonic clock; CdcError CDC_RAW_MISSING or SEGMENT_CORRUPT."""
        self._fill = newest_fill(self._folder, self._fill)
        held = self._held()
        if self._fill is None:
            return Look(0, 0.0, 0, held)
        age = self._age.of(self._fill.file.id, now)
        return Look(self._fill.written, age, self._schedule.lacking(self._fill.written, age), held)

    def full_segments(self) -> int:
        """Segments of a 3.11 node before its newest, which wait for a flush."""
        if self._fill is None:
            return 0
        return sum(file.id < self._fill.file.id for file in segment_files(self._folder))

    def _held(self) -> str:
        """As Cassandra counts, and the publisher warns: a segment less than cdc_total_space; of 3.11 the segments that
        are not flushed count, too.
        """
        folder, percent = self._settings.cdc_raw_directory, self._settings.cdc_raw_percent
        used = folder_bytes(folder)
        if self._counts_unflushed:
            used += len(segment_files(self._folder)) * self._limits.segment_bytes
        if used * 100 > max(self._limits.cdc_total_bytes - self._limits.segment_bytes, 1) * percent:
            return f"{folder} holds {used >> 20} MiB, more than {percent} % of what it may"
        for each in {folder, self._folder}:
            disk = shutil.disk_usage(each)
            if disk.free * 100 < disk.total * self._settings.disk_free_percent:
                return f"less than {self._settings.disk_free_percent} % of the disk of {each} is free"
        return ""
