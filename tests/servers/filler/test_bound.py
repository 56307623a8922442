"""A write on an idle node is in a complete segment in time, and so can be deleted once it is published."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.cassandra import CassandraCluster
from tests.support.filler.nodes import LATE_SECONDS, SMALL, own_clusters, seconds_to_deletable, settings
from tests.support.filler.process import FillerProcess

if TYPE_CHECKING:
    from pathlib import Path


log = logging.getLogger(__name__)
pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, own_clusters]

LONG_BOUND_SECONDS = 40.0
SYNC_SECONDS = 2.0  # the node syncs five times a second, and two busy cores take their time
FLUSH_SECONDS = 10.0


def test_5_0_hands_over_within_the_bound(tmp_path: Path) -> None:
    with CassandraCluster(options=SMALL, folder=tmp_path / "cluster") as cluster:
        [node] = cluster.nodes
        filler = FillerProcess(tmp_path / "filler.log", settings(node, max_segment_age_seconds=LONG_BOUND_SECONDS))
        try:
            filler.wait_for("ready")
            took = seconds_to_deletable(node, 1, tmp_path / "reader", LONG_BOUND_SECONDS + SYNC_SECONDS)
            log.info("5.0, bound %.0f s: complete and read after %.1f s", LONG_BOUND_SECONDS, took)
            assert filler.stop() == 0
        finally:
            filler.kill()


def test_3_11_hands_over_within_the_bound_and_a_flush(tmp_path: Path) -> None:
    with CassandraCluster("3.11", options=SMALL, folder=tmp_path / "cluster") as cluster:
        [node] = cluster.nodes
        command = ",".join(node.nodetool_command())
        more = {"commitlog_directory": node.commitlog, "nodetool": command, "flush_seconds": FLUSH_SECONDS}
        bounds = {"max_segment_age_seconds": LONG_BOUND_SECONDS, "commitlog_segment_mib": 1}
        filler = FillerProcess(tmp_path / "filler.log", settings(node, **more, **bounds))
        try:
            filler.wait_for("ready")
            took = seconds_to_deletable(node, 1, tmp_path / "reader", LONG_BOUND_SECONDS + FLUSH_SECONDS + LATE_SECONDS)
            log.info("3.11, bound %.0f s: in cdc_raw and read after %.1f s", LONG_BOUND_SECONDS, took)
            wait_until(lambda: filler.status()["flushes"] >= 1, "the end of a flush", LATE_SECONDS)
            assert filler.stop() == 0
        finally:
            filler.kill()
