"""Cassandra is upgraded node by node under load: publishers and fillers go on by themselves.

Judged as any load is (the result equals SELECT, chains hold), and each CDC node must have published from segments of
every version that it has been.
"""

from __future__ import annotations

import json
import time
from bisect import bisect
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pytest
from rich.console import Console

from cdc_common.errors.codes import Code
from cdc_common.messages.raw import decode
from dev.local_stack.clients import cql
from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.cassandra import CassandraCluster, CassandraNode
from dev.verify.chaos.whole_path import Load
from dev.verify.model import duplicates
from dev.verify.model.__main__ import stack_for
from dev.verify.model.check import Seed
from dev.verify.model.push import SEGMENT_MIB
from dev.verify.model.shapes import TABLES
from tests.support.filler.nodes import host_id, let_fillers_flush
from tests.support.http_get import get

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from dev.local_stack.servers.programs import Program, Setting

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(3000)]

SEED = 1
LOAD_SECONDS = 10.0  # before each node's turn, and after the last one's
RETRIES = 60  # of a statement, half a second apart
LEAST_MESSAGES = 20  # of each node in each of its versions
MINUTE = 120.0  # what the programs look at once a minute
FLUSH_SECONDS = 20.0
# What a filler of 3.11 needs as settings, and short times.
SETTINGS: dict[str, Setting] = {
    "publisher.processed_segments": "delete",
    "node.commitlog_segment_mib": SEGMENT_MIB,
    "filler.max_segment_age_seconds": 20,
    "filler.period_seconds": 1,
    "filler.flush_seconds": FLUSH_SECONDS,
}
# Its word that it is not compiled, and what a node that is away makes of publishers, fillers and their nodetool.
EXPECTED = {Code.NOT_COMPILED.text, Code.CASSANDRA_UNREACHABLE.text, Code.NODETOOL_FAILED.text}
# Rows, ranges and partitions, statics, collections, TTLs, counters.
ROLLING_TABLES = tuple(table for table in TABLES if table.name in {"plain", "wide", "many", "lives", "hits"})


class Step(NamedTuple):
    """A step of the upgrade, which each node takes in its turn."""

    name: str
    messaging_version: int
    act: Callable[[CassandraNode], None]


def upgrade(line: str, messaging_version: int) -> Step:
    return Step(line, messaging_version, lambda node: node.upgrade(line))


def compatibility(mode: str, messaging_version: int) -> Step:
    def act(node: CassandraNode) -> None:
        options = node.cluster.options
        node.cluster.options = replace(options, yaml={**options.yaml, "storage_compatibility_mode": mode})
        node.restart()

    return Step(mode, messaging_version, act)


PATHS = {
    "3.11": (upgrade("4.1", 12),),
    "4.1": (upgrade("5.0", 12), compatibility("UPGRADING", 13), compatibility("NONE", 13)),
}
FIRST_MESSAGING_VERSION = {"3.11": 11, "4.1": 12}


@pytest.mark.parametrize("version", PATHS)
def test_publishers_go_on_through_a_rolling_upgrade(version: str) -> None:
    console = Console(soft_wrap=True)
    with stack_for(version, cluster=True, console=console, settings=SETTINGS) as (stack, run):
        assert isinstance(stack.cassandra, CassandraCluster)  # containers have no other version
        nodes = stack.cassandra.nodes
        let_fillers_flush(stack)
        programs = (*stack.publishers, *stack.fillers)
        pids = [program.pid for program in programs]
        with (
            cql.connect([node.address for node in nodes], stack.cassandra.port) as client,
            Seed(replace(run, client=client), SEED, "rolling", ROLLING_TABLES) as one,
        ):
            writer, generator = one.writer(RETRIES), one.generator()
            with Load(generator, writer):
                begun = roll(nodes, PATHS[version], console)
                time.sleep(LOAD_SECONDS)
            duplicates.await_hints(stack)
            one.settler.wait_until_settled(time.time())
            writer.write_statements(generator.late_statements())
            writer.write_statements(generator.last_statements())
            one.read_all_rows()
            one.catch_up()
            problems, rows = one.problems()
            published = published_messages(one, begun)
        console.print(f"{writer.sent} statements, {writer.again} again, {one.history.count} changes, {rows} rows")
        for host, counts in published.items():
            console.print(f"{host.hex()} published {counts}", highlight=False)
        assert problems == []
        assert rows > 0
        stack.check()
        assert [program.pid for program in programs] == pids
        for program in programs:
            assert complaints(program) <= EXPECTED, program.log
            wait_for_release(program, nodes[0].version.release)
        assert [status(publisher)["quarantined"] for publisher in stack.publishers] == [0, 0]
        if version == "3.11":
            flushes_no_more(stack.fillers)
    expected = [FIRST_MESSAGING_VERSION[version], *(step.messaging_version for step in PATHS[version])]
    for counts in published.values():
        assert set(counts) == set(enumerate(expected))
        assert min(counts.values()) > LEAST_MESSAGES


def roll(nodes: Sequence[CassandraNode], steps: Iterable[Step], console: Console) -> dict[bytes, list[int]]:
    """Each step on each node, those with CDC first; when each of these started again, by host, in ms."""
    hosts = {node.name: host_id(node) for node in nodes if node.cdc_enabled}
    begun: dict[bytes, list[int]] = {host: [] for host in hosts.values()}
    for step in steps:
        for node in sorted(nodes, key=lambda node: not node.cdc_enabled):
            time.sleep(LOAD_SECONDS)
            began = time.time()
            if node.name in hosts:
                begun[hosts[node.name]].append(int(began * 1000))
            step.act(node)
            console.print(f"{node.name} to {step.name} in {time.time() - began:.0f} s", style="dim", highlight=False)
    return begun


def published_messages(one: Seed, begun: dict[bytes, list[int]]) -> dict[bytes, Counter[tuple[int, int]]]:
    """Return, by host, how many messages came from segments that it began as each of its versions, by number and by
    their messaging version. A segment's name is the time at which the node was started, counted up from there.
    """
    counts: dict[bytes, Counter[tuple[int, int]]] = {host: Counter() for host in begun}
    for records in one.raw.records.values():
        for message in (decode(record.value) for record in records):
            if message.kind != "heartbeat":
                number = bisect(begun[message.host_id], message.segment)
                counts[message.host_id][number, message.messaging_version] += 1
    return counts


def complaints(program: Program) -> set[str]:
    """The codes in its log."""
    lines = (json.loads(line) for line in program.output().splitlines() if line.startswith("{"))
    return {line["code"] for line in lines if "code" in line}


def wait_for_release(program: Program, release: str) -> None:
    wait_until(lambda: status(program)["cassandra"] == release, f"{program.name} to know of {release}", MINUTE)


def flushes_no_more(fillers: Sequence[Program]) -> None:
    """Check that the fillers do not flush any more, as they had to while their nodes were of 3.11."""
    before = [status(filler)["flushes"] for filler in fillers]
    assert sum(before) > 0
    time.sleep(2 * FLUSH_SECONDS)
    assert [status(filler)["flushes"] for filler in fillers] == before


def status(program: Program) -> dict[str, Any]:
    _, name, _ = program.arguments
    found: dict[str, Any] = json.loads(get(int(str(program.settings[f"{name}.operations_port"])), "/status")[1])
    return found
