"""What the filler sees of its own node: how full the commit log's newest segment is, and what forbids to write."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

from cdc_program.node_sizes import MIB, cdc_total_space, commitlog_segment_size
from filler.schedule import Schedule, SegmentAge
from filler.segments import SegmentFill, folder_bytes, newest_fill, segment_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdc_program.settings import FillerSettings


class NodeLimits(NamedTuple):
    """The node's settings, in bytes."""

    segment_bytes: int
    cdc_total_bytes: int


def limits(told: Mapping[str, str] | None, settings: FillerSettings) -> NodeLimits:
    """As the node says, else as our settings say (3.11)."""
    return NodeLimits(
        commitlog_segment_size(told) or settings.commitlog_segment_mib * MIB,
        cdc_total_space(told) or settings.cdc_total_space_mib * MIB,
    )


class NodeWatch:
    """Looked at once a period."""

    def __init__(self, settings: FillerSettings, limits: NodeLimits) -> None:
        self._settings = settings
        self._limits = limits
        self._folder = settings.commitlog_directory or settings.cdc_raw_directory
        self._schedule = Schedule(limits.segment_bytes, settings.max_segment_age_seconds, settings.period_seconds)
        self._age = SegmentAge()
        self._fill: SegmentFill | None = None

    def lacking(self, now: float) -> int:
        """The bytes that this node's log lacks until the next period."""
        self._fill = newest_fill(self._folder, self._fill)
        if self._fill is None:
            return 0
        return self._schedule.lacking(self._fill.written, self._age.of(self._fill.file.id, now))

    def held(self) -> str:
        """Why nothing may be written to this node, or empty."""
        folder = self._settings.cdc_raw_directory
        used, most = folder_bytes(folder), self._limits.cdc_total_bytes * self._settings.cdc_raw_percent // 100
        if used > most:
            return f"{folder} holds {used >> 20} MiB, more than {self._settings.cdc_raw_percent} % of cdc_total_space"
        disk = shutil.disk_usage(folder)
        if disk.free * 100 < disk.total * self._settings.disk_free_percent:
            return f"less than {self._settings.disk_free_percent} % of the disk of {folder} is free"
        return ""

    def full_segments(self) -> int:
        """Segments of a 3.11 node before its newest, which wait for a flush."""
        if self._fill is None:
            return 0
        return sum(file.id < self._fill.file.id for file in segment_files(self._folder))
