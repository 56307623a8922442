"""A publisher that runs on while its node is upgraded counts and says what is true of the node then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from unittest import mock

from cdc_program.cassandra import live_settings, read_node
from cdc_program.settings import NodeSettings, Settings
from publisher.loss_watch import Watch
from publisher.progress import Report
from publisher.status_collector import Overview, Parts
from tests.support.publisher.segment_files import SegmentFileBuilder
from tests.support.upgraded_node import UpgradedNode

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
GIVEN_MIB = 100
UPGRADED = {"cdc_enabled": "true", "cdc_total_space": "64MiB", "commitlog_segment_size": "1MiB"}


def test_from_3_11_its_log_counts_no_more_and_it_tells_its_settings(tmp_path: Path) -> None:
    cdc_raw, commitlog = tmp_path / "cdc_raw", tmp_path / "commitlog"
    for folder, segment in ((cdc_raw, 1), (commitlog, 2)):
        folder.mkdir()
        SegmentFileBuilder(folder, segment, size=MIB)
    own = NodeSettings(cdc_raw_directory=cdc_raw, commitlog_directory=commitlog, cdc_total_space_mib=GIVEN_MIB)
    node = UpgradedNode()
    client = cast("Any", node)
    watch = Watch(client, read_node(client), Settings(node=own))
    schema, sender, tails, quarantine, spool = (mock.MagicMock() for _ in range(5))
    parts = Parts(schema, sender, mock.Mock(clock=0), tails, watch, quarantine, spool)
    overview = Overview(watch.node, live_settings(client), own, parts)
    assumed_segment = 32 * MIB  # of those in the commit log's folder
    space = overview.look(0.0, Report(0.0))
    assert (space.used, space.full_at) == (MIB + assumed_segment, GIVEN_MIB * MIB - assumed_segment)
    node.release, node.live_settings = "4.1.10", UPGRADED
    watch.look()
    overview.follow(watch.node, watch.told)
    space = overview.look(1.0, Report(0.0))
    assert (space.used, space.full_at) == (MIB, 63 * MIB)
    assert overview.newest().cassandra == "4.1.10"
