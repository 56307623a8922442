"""The filler of a node whose disk runs full writes nothing, and goes on by itself once there is room."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.servers.cassandra import CassandraCluster
from tests.support.filler.nodes import BOUND_SECONDS, PERIOD_SECONDS, SMALL, own_clusters, settings, wait_completed
from tests.support.filler.process import FillerProcess
from tests.support.small_disk import fill, small_disk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.servers.cassandra import CassandraNode

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, own_clusters]

DISK_MIB = 400
SHORT_BYTES = DISK_MIB * 1024 * 1024 * 8 // 100  # a tenth must be free


@pytest.fixture
def node(tmp_path: Path) -> Iterator[CassandraNode]:
    with (
        small_disk(tmp_path / "disk", DISK_MIB) as disk,
        CassandraCluster(options=SMALL, folder=disk / "cluster") as cluster,
    ):
        yield cluster.nodes[0]


def test_it_stops_by_itself_while_the_disk_is_short(node: CassandraNode, tmp_path: Path) -> None:
    filler = FillerProcess(tmp_path / "filler.log", settings(node))
    try:
        filler.wait_for("ready")
        wait_completed(node)
        ballast = fill(tmp_path / "disk", SHORT_BYTES)
        filler.wait_for("paused")
        assert "CDC-015" in filler.log()
        assert "paused: less than 10 % of the disk" in filler.command("status")[1].splitlines()[-1]
        time.sleep(2 * PERIOD_SECONDS)
        written = filler.status()["written"]
        time.sleep(BOUND_SECONDS)
        assert filler.status()["written"] == written
        ballast.unlink()
        filler.wait_for("resumed")
        wait_completed(node)
        assert filler.stop() == 0
    finally:
        filler.kill()
