"""Find how much cdc_raw may hold and how large a segment is: as the node reports it, as [node] sets it,
or by default.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cdc_common.settings import NodeSettings

MIB = 1 << 20
_DEFAULT_CDC_TOTAL_BYTES = 4096 * MIB
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}
# The name in Cassandra 4.1 and later, and the name in 4.0, whose value is a bare number of MiB.
_CDC_TOTAL_SPACE = ("cdc_total_space", "cdc_total_space_in_mb")
_COMMITLOG_SEGMENT_SIZE = ("commitlog_segment_size", "commitlog_segment_size_in_mb")


class NodeSizes(NamedTuple):
    """The sizes of a node's commit log."""

    # The bytes that cdc_raw may hold.
    cdc_total: int
    # The bytes of one segment.
    segment: int
    # Whether neither the node nor the settings say how much cdc_raw may hold.
    is_default: bool


def node_sizes(live_settings: Mapping[str, str] | None, settings: NodeSettings) -> NodeSizes:
    """`live_settings`: what the node reports, see cdc_common.clients.cassandra; CdcError CDC_RAW_MISSING."""
    segment = _size(live_settings, _COMMITLOG_SEGMENT_SIZE) or settings.commitlog_segment_mib * MIB
    total = _size(live_settings, _CDC_TOTAL_SPACE) or settings.cdc_total_space_mib * MIB
    if total:
        return NodeSizes(total, segment, is_default=False)
    return NodeSizes(_default_cdc_total(settings.cdc_raw_directory), segment, is_default=True)


def _default_cdc_total(cdc_raw: Path) -> int:
    """The default of DatabaseDescriptor.applySimpleConfig: 4096 MiB, or an eighth of the disk if that is less."""
    try:
        disk = shutil.disk_usage(cdc_raw)
    except OSError as error:
        raise CdcError(
            Code.CDC_RAW_MISSING,
            f"The directory {cdc_raw} cannot be read: {error.strerror}.",
            "Set node.cdc_raw_directory to the node's cdc_raw_directory (cassandra.yaml).",
        ) from error
    return min(_DEFAULT_CDC_TOTAL_BYTES, disk.total // 8)


def _size(live_settings: Mapping[str, str] | None, names: tuple[str, ...]) -> int:
    """The size in bytes; 0 if the node does not report it."""
    for name in names:
        match = re.fullmatch(r"(\d+)(B|KiB|MiB|GiB)?", (live_settings or {}).get(name, ""))
        if match:
            return int(match[1]) * _UNITS[match[2] or "MiB"]
    return 0
