"""Three nodes in two datacenters, two of them with CDC, while publishers, a node and Kafka are killed and frozen.

Judged twice: the raw topics hold every mutation that Cassandra's own reader finds in the segments, which were kept
aside by hard links; and the result equals SELECT.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from rich.console import Console

from cassandra_storage.formats.commitlog.descriptor import parse_file_name
from cdc_common.messages.raw import decode
from dev.local_stack.servers.cassandra import CassandraNode
from dev.verify.chaos.whole_path import Load
from dev.verify.model import duplicates
from dev.verify.model.__main__ import stack_for
from dev.verify.model.check import Seed
from dev.verify.oracle.commitlog_oracle import CommitLogOracle
from tests.support.e2e.linked_segments import LinkedSegments
from tests.support.filler.nodes import host_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from dev.local_stack.servers.stack import Stack

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(1500)]

SEEDS = [int(seed) for seed in os.environ.get("CDC_THREE_NODES_SEEDS", "1").split(",")]
NODE_AWAY_SECONDS = 10.0
KAFKA_FROZEN_SECONDS = 15.0
QUIET_SECONDS = (2.0, 6.0)  # between two faults
LEAST_MUTATIONS = 500
RETRIES = 60  # of a statement, while a node is away
NO_DELETION = -(2**63)


class NodeWrite(NamedTuple):
    """Where a mutation is: what raw messages say of themselves."""

    host: bytes
    segment: int
    position: int


@pytest.mark.parametrize("seed", SEEDS)
def test_killed_publishers_nodes_and_brokers_lose_nothing(seed: int, tmp_path: Path) -> None:
    console = Console(soft_wrap=True)
    with stack_for("5.0", cluster=True, console=console) as (stack, run):
        nodes = stack.cassandra.cdc_nodes
        hosts = {node.name: host_id(node) for node in nodes}
        asides = {node.name: LinkedSegments(node, tmp_path / node.name) for node in nodes}
        for aside in asides.values():
            aside.start()
        with Seed(run, seed, f"three_{seed}") as one:
            write_and_hurt(stack, one, console)
            duplicates.await_hints(stack)
            one.read_all_rows()
            one.catch_up()
            problems, rows = one.problems()
            kept = {name: aside.end() for name, aside in asides.items()}
            published = Counter(published_messages(one))
            nodes[0].stop()
            assert isinstance(nodes[0], CassandraNode)  # the oracle reads its files
            with CommitLogOracle(nodes[0]) as oracle:
                logged = dict(
                    found
                    for name, paths in kept.items()
                    for found in logged_mutations(oracle, paths, hosts[name], cdc_tables(one))
                )
            nodes[0].start()
    again = sum(count - 1 for count in published.values())
    console.print(
        f"seed {seed}: {len(logged)} mutations in {sum(map(len, kept.values()))} segments, {again} sent again"
    )
    assert problems == []
    assert rows > 0
    assert len(logged) > LEAST_MUTATIONS
    sent = {place for place, _ in published}
    missing = {place: said for place, said in logged.items() if place not in sent}
    assert not missing, list(missing.items())[:20]


def write_and_hurt(stack: Stack, one: Seed, console: Console) -> None:
    """Every fault once, in the seed's order, under load."""
    pick = random.Random(one.seed)
    faults: list[Callable[[], None]] = [
        lambda: kill_publisher(stack, pick.randrange(2)),
        lambda: kill_node(stack, pick.randrange(2)),
        lambda: freeze_kafka(stack),
        lambda: kill_kafka(stack),
    ]
    pick.shuffle(faults)
    generator, writer = one.generator(), one.writer(RETRIES)
    with Load(generator, writer):
        for fault in faults:
            time.sleep(pick.uniform(*QUIET_SECONDS))
            began = time.monotonic()
            fault()
            console.print(f"a fault struck for {time.monotonic() - began:.0f} s", style="dim", highlight=False)
        time.sleep(pick.uniform(*QUIET_SECONDS))
    one.settler.wait_until_settled(time.time())
    writer.write_statements(generator.late_statements())
    writer.write_statements(generator.last_statements())


def kill_publisher(stack: Stack, number: int) -> None:
    stack.publishers[number].kill()
    stack.publishers[number].start()


def kill_node(stack: Stack, number: int) -> None:
    """Its publisher stays; what it misses comes by hints."""
    node = stack.cassandra.cdc_nodes[number]
    node.kill()
    time.sleep(NODE_AWAY_SECONDS)
    node.start()


def freeze_kafka(stack: Stack) -> None:
    stack.kafka.pause()
    time.sleep(KAFKA_FROZEN_SECONDS)
    stack.kafka.resume()


def kill_kafka(stack: Stack) -> None:
    stack.kafka.kill()
    stack.kafka.start()


def cdc_tables(one: Seed) -> set[str]:
    return {f"{one.keyspace}.{table.name}" for table in one.tables if table.is_cdc}


def published_messages(one: Seed) -> Iterator[tuple[NodeWrite, int]]:
    """A mutation's place and the message's own within it, as often as it was sent."""
    for records in one.raw.records.values():
        for record in records:
            message = decode(record.value)
            if message.kind != "heartbeat":
                yield NodeWrite(message.host_id, message.segment, message.position), message.index


def logged_mutations(
    oracle: CommitLogOracle, segments: Iterable[Path], host: bytes, tables: set[str]
) -> Iterator[tuple[NodeWrite, str]]:
    """The mutations of these tables that Cassandra's reader finds, up to the end of what a killed node has written."""
    for path in segments:
        _, segment = parse_file_name(path.name)
        for line in oracle.segment(path):
            said = json.loads(line)
            if any(update["table"] in tables and says_something(update) for update in said.get("updates", ())):
                yield NodeWrite(host, segment, said["position"]), line


def says_something(update: dict[str, Any]) -> bool:
    """Cassandra logs updates of nothing, too, where a statement finds nothing to delete in a list."""
    return bool(update["rows"] or update["ranges"] or update["static"] or update["deletion"][0] != NO_DELETION)
