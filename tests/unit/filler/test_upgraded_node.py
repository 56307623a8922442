"""A filler that runs while its node is upgraded from 3.11 stops flushing, and uses what the node reports then."""

from __future__ import annotations

import sys
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from cdc_common.clients.cassandra import read_node
from cdc_common.node.sizes import node_sizes
from cdc_common.settings import NodeSettings
from dev.local_stack.process.processes import wait_until
from filler.loop import CLUSTER_CHECK_SECONDS, Filler
from filler.node import NodeWatch
from filler.settings import FillerSettings, Settings
from tests.support.publisher.segment_files import SegmentFileBuilder, mutation
from tests.support.upgraded_node import UpgradedNode

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
FLUSH_SECONDS = 10.0
UPGRADED = {"cdc_enabled": "true", "commitlog_segment_size": "2MiB", "cdc_total_space": "1024MiB"}


def test_an_upgraded_node_is_flushed_no_more(tmp_path: Path) -> None:
    for segment in (1, 2):
        builder = SegmentFileBuilder(tmp_path, segment, size=MIB)
        builder.append(mutation(segment))
        builder.sync()
    settings = Settings(
        node=NodeSettings(cdc_raw_directory=tmp_path, commitlog_directory=tmp_path, commitlog_segment_mib=1),
        filler=FillerSettings(
            flush_seconds=FLUSH_SECONDS, nodetool=[sys.executable, "-c", "pass"], disk_free_percent=0
        ),
    )
    node = UpgradedNode()
    client = cast("Any", node)
    sizes = node_sizes(None, settings.node)
    watch = NodeWatch(settings, sizes, node.release)
    filler = Filler(client, settings, read_node(client), watch, sizes.segment)
    times = count(filler._flushed_at + FLUSH_SECONDS, FLUSH_SECONDS)  # of the monotonic clock

    def rounds(periods: int) -> int:
        """The flushes that have been in so many more."""
        for _ in range(periods):
            filler.run_period(next(times), 0.0)
        return filler.status.flushes

    wait_until(lambda: rounds(1) > 0, "a flush", 30.0)
    assert filler.status.segment_bytes == MIB
    node.release, node.live_settings = "4.1.10", UPGRADED
    before = rounds(int(CLUSTER_CHECK_SECONDS / FLUSH_SECONDS))
    assert rounds(3) == before
    assert (filler.status.cassandra, filler.status.segment_bytes) == ("4.1.10", 2 * MIB)
