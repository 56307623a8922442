"""How much `cdc_raw` may hold: from the node, from the settings, or Cassandra's default."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

from cdc_program.node_sizes import MIB, cdc_total_space, commitlog_segment_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdc_program.settings import PublisherSettings

_DEFAULT_TOTAL = 4096 * MIB


class Allowance(NamedTuple):
    """Bytes that cdc_raw may hold, and bytes of a segment; `is_assumed`: neither node nor settings give the total."""

    total: int
    segment: int
    is_assumed: bool


def determine_allowance(live_settings: Mapping[str, str] | None, settings: PublisherSettings) -> Allowance:
    """The node's live settings (None for 3.11) take precedence over the publisher's.

    The default is DatabaseDescriptor.applySimpleConfig's: 4096 MiB, or an eighth of the disk if that is less.
    """
    segment = commitlog_segment_size(live_settings) or settings.commitlog_segment_mib * MIB
    total = cdc_total_space(live_settings) or settings.cdc_total_space_mib * MIB
    if total:
        return Allowance(total, segment, is_assumed=False)
    disk = shutil.disk_usage(settings.cdc_raw_directory)
    return Allowance(min(_DEFAULT_TOTAL, disk.total // 8), segment, is_assumed=True)
