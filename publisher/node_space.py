"""How much `cdc_raw` may hold: what the node says, what the operator says, or Cassandra's own default."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

from cdc_program.node_sizes import MIB, cdc_total_space, commitlog_segment_size

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_DEFAULT_TOTAL, _DEFAULT_SEGMENT = 4096 * MIB, 32 * MIB


class Allowance(NamedTuple):
    """Bytes that cdc_raw may hold and bytes of one segment; `is_assumed` where neither node nor operator said."""

    total: int
    segment: int
    is_assumed: bool


def allowance(settings: Mapping[str, str] | None, given_mib: int, folder: Path) -> Allowance:
    """`settings`: the node's live ones (None of 3.11); `given_mib`: what the operator says, 0 for nothing.

    The default is DatabaseDescriptor.applySimpleConfig's: 4096 MiB, or an eighth of the disk if that is less.
    """
    told = cdc_total_space(settings)
    segment = commitlog_segment_size(settings) or _DEFAULT_SEGMENT
    if told or given_mib:
        return Allowance(told or given_mib * MIB, segment, is_assumed=False)
    return Allowance(min(_DEFAULT_TOTAL, shutil.disk_usage(folder).total // 8), segment, is_assumed=True)
