"""What the filler sees of its own node: how full the commit log's newest segment is, and what forbids to write."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING, NamedTuple

from cdc_program.errors import CdcError, Code
from filler.schedule import Schedule, SegmentAge
from filler.segments import SegmentFill, folder_bytes, newest_fill

if TYPE_CHECKING:
    from cdc_program.cassandra import CassandraClient
    from cdc_program.settings import FillerSettings

_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_MEBIBYTE = 1 << 20
_SIZES = {  # what we need: (setting, its unit where the value has none) of 4.1 and later, then of 4.0
    "commitlog_segment": (("commitlog_segment_size", "MiB"), ("commitlog_segment_size_in_mb", "MiB")),
    "cdc_total_space": (("cdc_total_space", "MiB"), ("cdc_total_space_in_mb", "MiB")),
}


class NodeLimits(NamedTuple):
    """The node's settings, in bytes."""

    segment_bytes: int
    cdc_total_bytes: int


def read_limits(client: CassandraClient, settings: FillerSettings) -> NodeLimits:
    """As the node says (4.0 and later have system_views.settings), else as our settings say (3.11)."""
    try:
        rows = client.rows("SELECT name, value FROM system_views.settings")
    except CdcError as error:
        if error.code is Code.CASSANDRA_UNREACHABLE:
            raise
        rows = []
    told = {row["name"]: row["value"] for row in rows}
    return NodeLimits(
        _size(told, "commitlog_segment") or settings.commitlog_segment_mib * _MEBIBYTE,
        _size(told, "cdc_total_space") or settings.cdc_total_space_mib * _MEBIBYTE,
    )


def _size(told: dict[str, str | None], name: str) -> int:
    for setting, unit in _SIZES[name]:
        match = re.fullmatch(r"(\d+)(B|KiB|MiB|GiB)?", told.get(setting) or "")
        if match:
            return int(match[1]) * _UNITS[match[2] or unit]
    return 0


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
        return self._schedule.lacking(self._fill.written, self._age.of(self._fill.segment_id, now))

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
        names = [name for name in os.listdir(self._folder) if name.endswith(".log")]  # noqa: PTH208 - names are enough
        newest = self._fill.path.name if self._fill else ""
        return sum(name < newest for name in names)
