"""How much `cdc_raw` may hold: what the node says, what the operator says, or Cassandra's own default."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

from cdc_program.node_sizes import MIB, cdc_total_space, commitlog_segment_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdc_program.settings import PublisherSettings

_DEFAULT_TOTAL = 4096 * MIB


class Allowance(NamedTuple):
    """Bytes that cdc_raw may hold and bytes of one segment; `is_assumed` where neither node nor operator said."""

    total: int
    segment: int
    is_assumed: bool


def allowance(told: Mapping[str, str] | None, settings: PublisherSettings) -> Allowance:
    """`told`: the node's live settings (None of 3.11), before what our own say.

    The default is DatabaseDescriptor.applySimpleConfig's: 4096 MiB, or an eighth of the disk if that is less.
    """
    segment = commitlog_segment_size(told) or settings.commitlog_segment_mib * MIB
    total = cdc_total_space(told) or settings.cdc_total_space_mib * MIB
    if total:
        return Allowance(total, segment, is_assumed=False)
    disk = shutil.disk_usage(settings.cdc_raw_directory)
    return Allowance(min(_DEFAULT_TOTAL, disk.total // 8), segment, is_assumed=True)
