"""Three nodes: what one filler writes serves all, whichever node leaves or comes, and stops where CDC is off."""

from __future__ import annotations

import logging
import shutil
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.clients.cql import connect
from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.cassandra import CassandraCluster
from filler.keyspace import STRATEGY
from tests.support.filler.nodes import (
    BOUND_SECONDS,
    LATE_SECONDS,
    SMALL,
    WRITER,
    completed,
    host_id,
    own_clusters,
    settings,
    wait_completed,
)
from tests.support.filler.process import FillerProcess
from tests.support.program_process import READY_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.servers.cassandra import CassandraNode

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, own_clusters]

ROOMY = replace(SMALL, cdc_total_space_mib=1024)  # nothing is deleted here
NODES_SECONDS = 90.0  # it looks at the nodes once a minute
ROUNDS = 4
MORE_THAN_NEEDED = 1.3  # mutations' own overhead, and segments that nodes began at other times


def replication(node: CassandraNode) -> dict[str, str]:
    with connect([node.address], node.port) as client:
        [keyspace] = client.execute("SELECT * FROM system_schema.keyspaces WHERE keyspace_name = 'cdc_filler'")
    return dict(keyspace["replication"])


def wait_replication(node: CassandraNode, count: int) -> None:
    wanted = {"class": STRATEGY, "cdc": str(count)}
    wait_until(lambda: replication(node) == wanted, f"replication to {count} nodes", NODES_SECONDS)


def test_three_nodes_one_writer_and_a_node_that_leaves_and_comes_again(tmp_path: Path) -> None:
    with CassandraCluster(datacenters={"cdc": 3}, options=ROOMY, folder=tmp_path / "cluster") as cluster:
        nodes = sorted(cluster.cdc_nodes, key=host_id)
        fillers = [FillerProcess(tmp_path / f"{node.name}.log", settings(node)) for node in nodes]
        try:
            for filler in fillers:
                filler.wait_for("ready")
            fillers[0].wait_for(WRITER)
            wait_replication(nodes[0], 3)
            for node in nodes:
                wait_completed(node)
            write_once(nodes, fillers)

            leaving = next(node for node in nodes[1:] if node is not cluster.nodes[0])
            rest = [node for node in nodes if node is not leaving]
            gone = fillers[nodes.index(leaving)]
            assert gone.stop() == 0
            leaving.nodetool("decommission", *(["--force"] if cluster.release >= "4" else []))
            leaving.stop()
            wait_replication(rest[0], 2)
            wait_completed(rest[1])

            shutil.rmtree(leaving.folder)
            leaving.start()
            wait_replication(rest[0], 3)
            again = FillerProcess(tmp_path / "again.log", settings(leaving))
            fillers.append(again)
            again.wait_for("ready")
            wait_completed(leaving)

            wait_until(lambda: len(writers(fillers)) == 1, "one writer", 60.0)
            writers(fillers)[0].kill()
            before = time.monotonic()
            wait_until(lambda: len(writers(fillers)) == 1, "a successor", 60.0)
            log.info("kill -9 of the writer: another writes after %.1f s", time.monotonic() - before)
            wait_completed(nodes[0])
        finally:
            for filler in fillers:
                filler.kill()
                assert "Traceback" not in filler.log()


def writers(fillers: list[FillerProcess]) -> list[FillerProcess]:
    return [filler for filler in fillers if filler.running.poll() is None and filler.status()["is_writer"]]


def write_once(nodes: list[CassandraNode], fillers: list[FillerProcess]) -> None:
    """Wait for some rounds, and check that all fillers together write what one node's log lacks, and that one of them
    writes it.
    """
    begun = [filler.status()["written"] for filler in fillers]
    done = [len(completed(node)) for node in nodes]
    wait_completed(nodes[0], ROUNDS)
    wrote = [filler.status()["written"] - before for filler, before in zip(fillers, begun, strict=True)]
    filled = [len(completed(node)) - before for node, before in zip(nodes, done, strict=True)]
    log.info("bytes written by each filler: %s, segments completed on each node: %s", wrote, filled)
    assert wrote[1:] == [0, 0]
    assert min(filled) >= ROUNDS - 1
    assert wrote[0] <= (ROUNDS + 1) * (SMALL.commitlog_segment_mib << 20) * MORE_THAN_NEEDED


def test_it_stops_by_itself_while_cdc_is_off(tmp_path: Path) -> None:
    with CassandraCluster(options=ROOMY, folder=tmp_path / "cluster") as cluster:
        [node] = cluster.nodes
        filler = FillerProcess(tmp_path / "filler.log", settings(node))
        try:
            filler.wait_for("ready")
            wait_completed(node)
            node.stop()
            node.cdc_enabled = False
            node.start()
            wait_until(lambda: "CDC-012" in filler.status()["waiting"], "its word that CDC is off", NODES_SECONDS)
            written = filler.status()["written"]
            time.sleep(2 * BOUND_SECONDS)
            assert filler.status()["written"] == written
            assert "waiting: CDC-012" in filler.command("status")[1].splitlines()[-1]
            node.stop()
            node.cdc_enabled = True
            node.start()
            wait_until(lambda: filler.status()["written"] > written, "a write again", READY_SECONDS + LATE_SECONDS)
            assert filler.stop() == 0
        finally:
            filler.kill()
