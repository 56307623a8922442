"""Nodes with small segments, and what the tests of the filler ask of them."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from cdc_common.settings import NodeSettings
from dev.local_stack.clients.cql import connect
from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.cassandra import CassandraNode
from dev.local_stack.servers.cassandra_options import CassandraOptions
from publisher.log.position import Positions
from publisher.log.tail import SegmentTails

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.servers.stack import Stack

SMALL = CassandraOptions(heap_mib=400, commitlog_segment_mib=1, commitlog_sync_period_ms=200, cdc_total_space_mib=64)
BOUND_SECONDS = 8.0
LATE_SECONDS = 30.0  # two busy cores may be that late
PERIOD_SECONDS = 0.5
WRITER = "this filler writes for the datacenter"
HOST_ID = "SELECT host_id FROM system.local"
own_clusters = pytest.mark.skipif(os.environ.get("SERVERS") == "containers", reason="these are about child processes")


def settings(node: CassandraNode, **more: object) -> dict[str, object]:
    return {
        "cassandra.contact_points": node.address,
        "cassandra.port": node.port,
        "log.level": "debug",
        "node.cdc_raw_directory": node.cdc_raw,
        "filler.max_segment_age_seconds": BOUND_SECONDS,
        "filler.period_seconds": PERIOD_SECONDS,
        **{f"{_table_of(name)}.{name}": value for name, value in more.items()},
    }


def _table_of(setting: str) -> str:
    return "node" if setting in NodeSettings.model_fields else "filler"


def completed(node: CassandraNode) -> set[str]:
    return {index.name for index in node.cdc_raw.glob("*_cdc.idx") if "COMPLETED" in index.read_text()}


def wait_completed(node: CassandraNode, more: int = 1) -> None:
    before = len(completed(node))
    seconds = more * BOUND_SECONDS + LATE_SECONDS
    wait_until(lambda: len(completed(node)) >= before + more, f"{more} completed segments of {node.name}", seconds)


def host_id(node: CassandraNode) -> bytes:
    with connect([node.address], node.port) as client:
        return bytes(client.execute(HOST_ID)[0]["host_id"].bytes)


def seconds_to_deletable(node: CassandraNode, replicas: int, folder: Path, most: float) -> float:
    """Return the seconds from a write's acknowledgement until the segment that holds it is complete and read to its
    end. replicas: nodes of the datacenter.
    """
    folder.mkdir()
    marker = f"a value to be found {time.time_ns()}".encode()
    with connect([node.address], node.port) as client:
        where = f"{{'class': 'NetworkTopologyStrategy', '{node.datacenter}': {replicas}}}"
        client.execute(f"CREATE KEYSPACE IF NOT EXISTS k WITH replication = {where}")
        client.execute("CREATE TABLE IF NOT EXISTS k.t (k int PRIMARY KEY, v text) WITH cdc = true")
        client.execute("INSERT INTO k.t (k, v) VALUES (1, %s)", (marker.decode(),))
    began = time.monotonic()
    tails = SegmentTails(node.cdc_raw, Positions.load(folder / "position.json", UUID(int=1)))
    holder = None
    while time.monotonic() - began < most:
        for tail in tails.poll():
            if any(marker in entry.mutation for entry in tail.entries()):
                holder = tail
        if holder is not None and holder.is_at_end:
            return time.monotonic() - began
        time.sleep(0.05)
    raise AssertionError(f"{'not complete' if holder else 'not seen'} after {most} s: {list(node.cdc_raw.iterdir())}")


def let_fillers_flush(stack: Stack) -> None:
    """Each by the nodetool of its node as it is now: this setting is not changed later."""
    for filler, node in zip(stack.fillers, stack.cassandra.cdc_nodes, strict=True):
        assert isinstance(node, CassandraNode)
        filler.settings["filler.nodetool"] = ",".join(node.nodetool_command())
        filler.restart()
