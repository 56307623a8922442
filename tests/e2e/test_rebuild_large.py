"""`nodetool rebuild` of the CDC datacenter over 200,000 rows that were there before it, while clients write.

Everything that is there comes through cdc_raw at once, and Cassandra knows no back pressure from there: a table that
does not fit makes the rebuild fail, and is rebuilt in parts.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from cassandra import ConsistencyLevel

from cdc_common.errors.codes import CdcError
from dev.local_stack.clients import cql
from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.cassandra import CDC_DATACENTER
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.stack import SYNC_PERIOD_MS, Stack
from dev.verify.chaos.whole_path import Load
from dev.verify.model import duplicates
from dev.verify.model.check import EXPIRY_SECONDS, Run, Seed
from dev.verify.model.push import SEGMENT_MIB, pusher
from tests.support.e2e.filled_table import SHORT_TTL, fill, filled_table
from tests.support.e2e.linked_segments import LinkedSegments
from tests.support.e2e.publisher_status import read_status

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.cassandra import CassandraNode

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(3600)]

MAIN = "main"
CDC_NODES = 1
KEYSPACE = "rebuilt"
ALONE = f"{{'class': 'NetworkTopologyStrategy', '{MAIN}': 1}}"
REPLICATED = f"{{'class': 'NetworkTopologyStrategy', '{MAIN}': 1, '{CDC_DATACENTER}': {CDC_NODES}}}"
ROWS = 200_000
PARTITIONS = 8_000  # of filled_table.ROWS_EACH rows
TOTAL_MIB = 64  # the rows are some 40 in the log: nothing is refused if all of it has to wait there
SETTLE_SECONDS = 900.0
LOOK_SECONDS = 0.5
SMALL_PARTITIONS = 2_000  # some 9 MiB of the log
SMALL_MIB = 7
PARTS = 10  # of 0.9 MiB, in the room of three segments that two idle ones and one made ahead leave
TRIES = 3  # of a part that finds no room
STATEMENTS = 300
IDLE_SEGMENTS = 3  # the one in use, and what is made ahead
RING = 2**64
TIMEOUT_MS = 15_000  # of a node that shares its cores
TIMEOUTS = ("read", "range", "write")
STREAMED = re.compile(r"Prepare completed. Receiving (\d+) files")
REFUSED = re.compile(r"Rejecting [Mm]utation")


@contextmanager
def stack_of(version: str, total_mib: int) -> Iterator[tuple[Stack, Run]]:
    """Clients speak to the source datacenter, and each of their writes reaches all replicas or fails."""
    options = CassandraOptions(
        commitlog_sync_period_ms=SYNC_PERIOD_MS,
        commitlog_segment_mib=SEGMENT_MIB,
        cdc_total_space_mib=total_mib,
        yaml={f"{name}_request_timeout_in_ms": TIMEOUT_MS for name in TIMEOUTS},
    )
    settings = {
        "publisher.heartbeat_seconds": 1,
        "node.cdc_total_space_mib": total_mib,
        "node.commitlog_segment_mib": SEGMENT_MIB,
    }
    datacenters = {MAIN: 1, CDC_DATACENTER: CDC_NODES}
    with Stack(version=version, datacenters=datacenters, options=options, settings=settings) as stack:
        servers = stack.servers
        [main] = [node.address for node in stack.cassandra.nodes if node.datacenter == MAIN]
        with (
            cql.connect([main], servers.cassandra_port, consistency=ConsistencyLevel.ALL) as client,
            cql.connect(servers.cassandra_hosts, servers.cassandra_port) as schema_client,
        ):
            run = Run(client, schema_client, servers, version, ALONE)
            if version == "3.11":
                run = replace(run, push=pusher(client, stack.cassandra.nodes, REPLICATED))
            yield stack, run


@contextmanager
def filled_stack(version: str, seed: int, total_mib: int, partitions: int) -> Iterator[tuple[Stack, Run, Seed, float]]:
    """Yield a stack with a table whose rows only the source datacenter has, and the time when the last
    row was written.
    """
    with (
        stack_of(version, total_mib) as (stack, run),
        Seed(run, seed, KEYSPACE, [filled_table(partitions)]) as one,
    ):
        fill(one)
        yield stack, run, one, time.time()


@contextmanager
def watched(stack: Stack) -> Iterator[Counter[str]]:
    """The highest fill of each node's cdc_raw in percent, as its publisher tells it."""
    highest: Counter[str] = Counter()
    end = threading.Event()

    def watch_fills() -> None:
        while not end.wait(LOOK_SECONDS):
            for number, publisher in enumerate(stack.publishers):
                status = read_status(stack, number)
                highest[publisher.name] = max(highest[publisher.name], round(100 * status["used"] / status["full_at"]))

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(watch_fills)
        try:
            yield highest
        finally:
            end.set()
        looking.result()


def rebuild(node: CassandraNode, *more: str) -> float:
    """Seconds that it took. Raises CdcError(SERVER_FAILED) when it fails."""
    began = time.monotonic()
    node.nodetool("rebuild", "--keyspace", KEYSPACE, *more, "--", MAIN)
    return time.monotonic() - began


@pytest.mark.parametrize("version", ["5.0"])
def test_no_write_is_refused_while_all_rows_are_rebuilt(version: str, tmp_path: Path) -> None:
    with filled_stack(version, 1, TOTAL_MIB, PARTITIONS) as (stack, run, one, filled):
        [table] = one.tables
        existing = len(run.client.execute(f"SELECT p FROM {KEYSPACE}.{table.name}"))
        assert existing >= ROWS
        one.raw.poll(1.0)
        assert one.raw.count() == 0  # all of it comes by the rebuild
        run.schema_client.execute(f"ALTER KEYSPACE {KEYSPACE} WITH replication = {REPLICATED}")
        nodes = stack.cassandra.cdc_nodes
        asides = [LinkedSegments(node, tmp_path / node.name) for node in nodes]
        for aside in asides:
            aside.start()
        writer = one.writer()
        with watched(stack) as highest, Load(one.generator(), writer):
            began = time.monotonic()
            seconds = [rebuild(node) for node in nodes]
            for node in nodes:
                wait_until(partial(is_idle, node), f"{node.name}'s log to be published", SETTLE_SECONDS)
            published = time.monotonic() - began
        one.settler.wait_until_settled(time.time(), SETTLE_SECONDS)
        settled = time.monotonic() - began
        logged = [sum(path.stat().st_size for path in aside.end()) for aside in asides]
        one.catch_up(max(time.time() + EXPIRY_SECONDS, filled + SHORT_TTL + 1))
        problems, rows = one.problems()
        told = (
            f"{version}: {existing} rows, rebuilt in {[round(each) for each in seconds]} s",
            f"published after {published:.0f} s, all out after {settled:.0f} s",
            f"{[round(each / existing) for each in logged]} bytes a row in the log",
            f"cdc_raw of {TOTAL_MIB} MiB filled to {dict(highest)} percent",
            f"{writer.sent} writes during the rebuild, {one.raw.count()} raw messages, {one.history.count} changes",
            f"{rows} rows compared",
        )
        print("; ".join(told))  # noqa: T201 - what was measured
        assert problems == []
        assert rows > ROWS // 2
        for node, publisher in zip(nodes, stack.publishers, strict=True):
            log = node.log.read_text()
            assert sum(map(int, STREAMED.findall(log))) > 0
            assert not REFUSED.findall(log)
            assert highest[publisher.name] <= 100
            assert "CDC-047" not in publisher.log.read_text()
        stack.check()


@pytest.mark.parametrize("version", ["5.0"])
def test_a_rebuild_that_fills_cdc_raw_fails_and_is_made_in_parts(version: str) -> None:
    with filled_stack(version, 2, SMALL_MIB, SMALL_PARTITIONS) as (stack, run, one, filled):
        [table] = one.tables
        run.schema_client.execute(f"ALTER KEYSPACE {KEYSPACE} WITH replication = {REPLICATED}")
        first, *_ = nodes = stack.cassandra.cdc_nodes
        for publisher in stack.publishers:
            publisher.pause()
        with pytest.raises(CdcError, match="rebuilding node"):
            rebuild(first)
        assert REFUSED.search(first.log.read_text())
        with pytest.raises(CdcError, match="Cassandra refuses"):
            run.client.execute(f"UPDATE {KEYSPACE}.{table.name} SET v = 'refused' WHERE p = 1 AND c = 1")
        for publisher in stack.publishers:
            publisher.resume()
        accepted = f"UPDATE {KEYSPACE}.{table.name} SET v = 'accepted' WHERE p = 1 AND c = 1"
        wait_until(lambda: is_accepted(run.client, accepted), "a write to be accepted again", SETTLE_SECONDS)
        for node in nodes:
            rebuild_in_parts(stack, node)
        one.execute(list(one.generator().statements(STATEMENTS)))
        duplicates.await_hints(stack)
        one.read_all_rows()
        one.settler.wait_until_settled(time.time(), SETTLE_SECONDS)
        one.catch_up(max(time.time() + EXPIRY_SECONDS, filled + SHORT_TTL + 1))
        problems, rows = one.problems()
        assert problems == []
        assert rows > ROWS // 4
        stack.check()


def is_accepted(client: CqlClient, statement: str) -> bool:
    """A node looks at cdc_raw again only when it refuses a write."""
    try:
        client.execute(statement)
    except CdcError:
        return False
    return True


def rebuild_in_parts(stack: Stack, node: CassandraNode) -> None:
    """Each part of the ring when what came of the one before is published."""
    with cql.connect([node.address], node.port) as client:
        ranges = "available_ranges" if stack.servers.cassandra.startswith("3.") else "available_ranges_v2"
        for first, last in parts(stack):
            for attempt in range(TRIES):
                wait_until(lambda: is_idle(node), f"{node.name}'s cdc_raw to be empty", SETTLE_SECONDS)
                client.execute(f"DELETE FROM system.{ranges} WHERE keyspace_name = '{KEYSPACE}'")
                try:
                    rebuild(node, "--tokens", f"({first},{last}]")
                    break
                except CdcError as error:  # what the rebuild that failed had still to write may come first
                    if attempt == TRIES - 1 or "CDCWriteException" not in error.problem:
                        raise


def is_idle(node: CassandraNode) -> bool:
    return len(list(node.cdc_raw.glob("CommitLog-*.log"))) <= IDLE_SEGMENTS


def parts(stack: Stack) -> Iterator[tuple[int, int]]:
    """Token ranges that are a part of the ring each at most, and each of one node's range, as rebuild wants them."""
    cuts = {-RING // 2 + number * RING // PARTS for number in range(PARTS)}
    for node in stack.cassandra.nodes:
        with cql.connect([node.address], node.port) as client:
            [row] = client.execute("SELECT tokens FROM system.local")
            cuts |= {int(token) for token in row["tokens"]}
    yield from pairwise([*sorted(cuts), -RING // 2])
