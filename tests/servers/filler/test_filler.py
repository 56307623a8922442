"""The filler beside real nodes: segments are handed over within the bound, one filler writes for all."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dev.local_stack.clients.cql import connect
from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.cassandra import CassandraCluster
from filler.keyspace import STRATEGY
from tests.support.filler.nodes import (
    BOUND_SECONDS,
    LATE_SECONDS,
    PERIOD_SECONDS,
    SMALL,
    WRITER,
    host_id,
    own_clusters,
    seconds_to_deletable,
    settings,
    wait_completed,
)
from tests.support.filler.process import FillerProcess
from tests.support.program_process import READY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CassandraCluster]:
    """Two nodes of a CDC datacenter."""
    folder = tmp_path_factory.mktemp("pair")
    with CassandraCluster(datacenters={"cdc": 2}, options=SMALL, folder=folder / "cluster") as cluster:
        yield cluster


@own_clusters
@pytest.mark.servers
@pytest.mark.exhaustive
def test_one_of_two_writes_for_both_and_the_other_takes_over(pair: CassandraCluster, tmp_path: Path) -> None:
    nodes = sorted(pair.cdc_nodes, key=host_id)
    fillers = [FillerProcess(tmp_path / f"{node.name}.log", settings(node)) for node in nodes]
    try:
        for filler in fillers:
            filler.wait_for("ready")
        with connect([nodes[0].address], nodes[0].port) as client:
            [keyspace] = client.execute("SELECT * FROM system_schema.keyspaces WHERE keyspace_name = 'cdc_filler'")
            assert dict(keyspace["replication"]) == {"class": STRATEGY, "cdc": "2"}
        fillers[0].wait_for(WRITER)
        says_what_it_does(fillers[0])
        for node in nodes:
            wait_completed(node)
        fillers[1].wait_for("another filler writes for the datacenter", 1 if fillers[1].events(WRITER) else 0)
        wrote = len(fillers[1].events("padding written"))
        wait_completed(nodes[1])
        assert len(fillers[1].events("padding written")) == wrote  # the lowest host id writes for both
        before = len(fillers[1].events(WRITER))
        fillers[0].kill()
        fillers[1].wait_for(WRITER, before + 1)
        for node in nodes:
            wait_completed(node)

        filling = nodes[0].cdc_raw / "filling"
        with filling.open("wb") as file:
            file.truncate((SMALL.cdc_total_space_mib << 20) * 6 // 10)
        again = FillerProcess(tmp_path / "again.log", settings(nodes[0]))
        fillers.append(again)
        again.wait_for("paused")
        assert "CDC-015" in again.log()
        assert "paused: " in again.command("status")[1].splitlines()[-1]
        time.sleep(2 * PERIOD_SECONDS)
        wrote = len(fillers[1].events("padding written")) + len(again.events("padding written"))
        time.sleep(4 * PERIOD_SECONDS)
        assert len(fillers[1].events("padding written")) + len(again.events("padding written")) == wrote
        filling.unlink()
        again.wait_for("resumed")
        again.wait_for("padding written")
        assert again.stop() == 0
        assert fillers[1].stop() == 0
    finally:
        for filler in fillers:
            filler.kill()
            assert "Traceback" not in filler.log()


def says_what_it_does(filler: FillerProcess) -> None:
    wait_until(lambda: filler.status()["written"] > 0, "the first write", BOUND_SECONDS + LATE_SECONDS)
    assert filler.get("/health")[0] == 200
    families = text_string_to_metric_families(filler.get("/metrics")[1])
    found = {sample.name: sample.value for family in families for sample in family.samples}
    assert found["cdc_filler_writer"] == 1
    assert found["cdc_filler_written_bytes_total"] > 0
    assert found["cdc_filler_paused"] == found["cdc_filler_waiting"] == 0
    assert found["process_resident_memory_bytes"] < 128 << 20
    status, shown = filler.command("status")
    assert status == 0, shown
    assert "this one writes" in shown
    assert shown.splitlines()[-1] == "running"


@pytest.mark.exhaustive
@own_clusters
@pytest.mark.servers
def test_a_busy_node_is_left_alone(pair: CassandraCluster, tmp_path: Path) -> None:
    node = pair.cdc_nodes[0]
    filler = FillerProcess(tmp_path / "filler.log", settings(node, keyspace="busy_filler"))
    with connect([node.address], node.port) as client:
        client.execute("CREATE KEYSPACE busy WITH replication = {'class': 'NetworkTopologyStrategy', 'cdc': 2}")
        client.execute("CREATE TABLE busy.t (k int PRIMARY KEY, v blob) WITH cdc = true")
        filler.wait_for("ready")
        deadline = time.monotonic() + 2 * BOUND_SECONDS
        settled, wrote = deadline - 1.5 * BOUND_SECONDS, 0
        while (now := time.monotonic()) < deadline:
            client.execute("INSERT INTO busy.t (k, v) VALUES (0, %s)", (os.urandom(50_000),))
            time.sleep(max(0.0, 0.2 - (time.monotonic() - now)))  # 250 kB/s: a segment in 4 s
            if now < settled:
                wrote = filler.status()["written"]
        assert filler.status()["written"] == wrote
    assert filler.stop() == 0


@own_clusters
@pytest.mark.servers
def test_an_idle_node_hands_over_a_write_in_time(pair: CassandraCluster, tmp_path: Path) -> None:
    """The limit includes what two busy cores may take; `make exhaustive` checks the bound alone."""
    node = pair.cdc_nodes[0]
    filler = FillerProcess(tmp_path / "filler.log", settings(node, keyspace="idle_filler"))
    try:
        filler.wait_for("ready")
        assert seconds_to_deletable(node, 2, tmp_path / "reader", BOUND_SECONDS + LATE_SECONDS) > 0
        assert filler.stop() == 0
    finally:
        filler.kill()


@own_clusters
@pytest.mark.servers
@pytest.mark.exhaustive
def test_3_11_hands_over_a_write_within_the_bound(tmp_path: Path) -> None:
    with CassandraCluster("3.11", options=SMALL, folder=tmp_path / "cluster") as cluster:
        [node] = cluster.nodes
        refused = FillerProcess(tmp_path / "refused.log", settings(node))
        assert refused.running.wait(READY_SECONDS) == 2
        assert "node.commitlog_directory" in refused.log()
        with connect([node.address], node.port) as client:
            client.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            client.execute("CREATE TABLE k.t (k int PRIMARY KEY, v text) WITH cdc = true")
            marker = "a value to be found"
            client.execute("INSERT INTO k.t (k, v) VALUES (1, %s)", (marker,))
        command = ",".join(node.nodetool_command())
        more = {"commitlog_directory": node.commitlog, "nodetool": command, "flush_seconds": 3}
        filler = FillerProcess(tmp_path / "filler.log", settings(node, commitlog_segment_mib=1, **more))
        try:

            def is_handed_over() -> bool:
                assert filler.running.poll() is None, filler.log()
                return any(marker.encode() in segment.read_bytes() for segment in node.cdc_raw.glob("*.log"))

            wait_until(is_handed_over, "the write in cdc_raw", BOUND_SECONDS + 3 + 2 * LATE_SECONDS)
            assert filler.stop() == 0
        finally:
            filler.kill()


def test_without_cassandra_it_says_so(tmp_path: Path) -> None:
    process = FillerProcess(tmp_path / "filler.log", {"cassandra.port": 1, "cassandra.connect_timeout_seconds": 2})
    assert process.running.wait(READY_SECONDS) == 3
    assert "CDC-010" in process.log()
    assert "Traceback" not in process.log()
