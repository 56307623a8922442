"""A publisher that keeps running while its node is upgraded uses the settings and the version after the upgrade."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from unittest import mock

from cdc_common.clients.cassandra import read_node
from cdc_common.settings import NodeSettings
from publisher.losses.loss_watch import LossWatch
from publisher.monitoring.status_collector import StatusCollector
from publisher.parts import NodeParts
from publisher.progress import Progress
from publisher.settings import Settings
from publisher.topics.waiting import WaitingTables
from tests.support.publisher.segment_files import SegmentFileBuilder
from tests.support.upgraded_node import UpgradedNode

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
GIVEN_MIB = 100
UPGRADED = {"cdc_enabled": "true", "cdc_total_space": "64MiB", "commitlog_segment_size": "1MiB"}


def test_after_3_11_the_commit_log_does_not_count_and_the_node_reports_its_settings(tmp_path: Path) -> None:
    cdc_raw, commitlog = tmp_path / "cdc_raw", tmp_path / "commitlog"
    for folder, segment in ((cdc_raw, 1), (commitlog, 2)):
        folder.mkdir()
        SegmentFileBuilder(folder, segment, size=MIB)
    own = NodeSettings(cdc_raw_directory=cdc_raw, commitlog_directory=commitlog, cdc_total_space_mib=GIVEN_MIB)
    node = UpgradedNode()
    client = cast("Any", node)
    watch = LossWatch(client, read_node(client), Settings(node=own))
    schema, sender, tails, quarantine, spool, disposal, snapshots = (mock.MagicMock() for _ in range(7))
    positions = mock.Mock(clock=0)
    waiting = WaitingTables(tmp_path / "waiting.json")
    node_parts = NodeParts(
        bytes(16), schema, tails, positions, quarantine, spool, disposal, watch, snapshots, waiting, 30.0
    )
    collector = StatusCollector(own, node_parts, sender, Progress(0.0))
    assumed_segment = 32 * MIB  # of those in the commit log's folder
    space = collector.collect(0.0)
    assert (space.used, space.full_at) == (MIB + assumed_segment, GIVEN_MIB * MIB - assumed_segment)
    node.release, node.live_settings = "4.1.10", UPGRADED
    watch.check_again()
    collector.update_node()
    space = collector.collect(1.0)
    assert (space.used, space.full_at) == (MIB, 63 * MIB)
    assert collector.newest().cassandra == "4.1.10"
