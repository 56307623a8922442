"""Sizes that a node tells among its live settings (system_views.settings), whatever its version calls them. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MIB = 1 << 20
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}
# The name of 4.1 and later, and that of 4.0, which gives a bare number of MiB.
_CDC_TOTAL_SPACE = ("cdc_total_space", "cdc_total_space_in_mb")
_COMMITLOG_SEGMENT_SIZE = ("commitlog_segment_size", "commitlog_segment_size_in_mb")


def cdc_total_space(told: Mapping[str, str] | None) -> int:
    """In bytes; 0 where the node does not tell it (`told` is None of 3.11)."""
    return _size(told, _CDC_TOTAL_SPACE)


def commitlog_segment_size(told: Mapping[str, str] | None) -> int:
    """In bytes; 0 where the node does not tell it (`told` is None of 3.11)."""
    return _size(told, _COMMITLOG_SEGMENT_SIZE)


def _size(told: Mapping[str, str] | None, names: tuple[str, ...]) -> int:
    for name in names:
        match = re.fullmatch(r"(\d+)(B|KiB|MiB|GiB)?", (told or {}).get(name, ""))
        if match:
            return int(match[1]) * _UNITS[match[2] or "MiB"]
    return 0
