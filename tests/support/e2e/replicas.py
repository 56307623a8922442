"""Helpers of tests with several replicas: a node that misses writes, and TRUNCATE with a node that dies."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError
from dev.local_stack.servers.cassandra import CDC_DATACENTER
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.stack import SYNC_PERIOD_MS
from dev.verify.model import duplicates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dev.local_stack.servers.cassandra import CassandraNode
    from tests.support.e2e.evolution import Table

TWICE = f"{{'class': 'NetworkTopologyStrategy', '{CDC_DATACENTER}': 2}}"
TRUNCATE_SECONDS = 5.0  # materializer.truncate_seconds
TRUNCATE_TIMEOUT_SECONDS = 8.0
_SEEN_SECONDS = 60.0


def truncation_options() -> CassandraOptions:
    """Hints go out soon, and a TRUNCATE that a node does not answer fails soon."""
    yaml = {
        "hints_flush_period_in_ms": duplicates.HINTS_FLUSH_SECONDS * 1000,
        "truncate_request_timeout_in_ms": int(TRUNCATE_TIMEOUT_SECONDS * 1000),
    }
    return CassandraOptions(commitlog_sync_period_ms=SYNC_PERIOD_MS, yaml=yaml)


@contextmanager
def cut_off(node: CassandraNode, peer: CassandraNode) -> Iterator[None]:
    """The node misses what is written during this time, and the peer keeps no hints of it."""
    node.nodetool("disablebinary")
    node.nodetool("disablegossip")
    peer.nodetool("disablehandoff")
    _await_state(peer, node, "DN")
    yield
    node.nodetool("enablegossip")
    node.nodetool("enablebinary")
    peer.nodetool("enablehandoff")
    _await_state(peer, node, "UN")


def _await_state(peer: CassandraNode, node: CassandraNode, state: str) -> None:
    """Wait until the peer sees the node in this state."""
    deadline = time.monotonic() + _SEEN_SECONDS
    while not any(line.startswith(f"{state}  {node.address} ") for line in peer.nodetool("status").splitlines()):
        assert time.monotonic() < deadline, peer.nodetool("status")
        time.sleep(0.5)


def truncate_and_kill(table: Table, node: CassandraNode) -> None:
    """A TRUNCATE during which the node dies: it may fail, and the others may have executed it."""

    def truncate() -> None:
        try:
            table.run("TRUNCATE $t")
        except CdcError:
            has_failed.set()

    has_failed = threading.Event()
    attempt = threading.Thread(target=truncate)
    attempt.start()
    node.kill()
    attempt.join()
