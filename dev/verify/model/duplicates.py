"""Writes that come again, in a two-datacenter cluster: no change, no message.

While a seed is written one node with CDC is down, so that hints bring it what it missed. Then everything is sent again
three times: by a publisher that starts from an old position file, by a full repair, and by a rebuild.
"""

from __future__ import annotations

import random
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from cdc_common.messages import wire
from cdc_common.messages.raw import decode, encode
from dev.verify.model.check import Result, Seed

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.local_stack.servers.stack import Stack
    from dev.verify.model.check import Run

HINT_SECONDS = 300.0
HINTS_FLUSH_SECONDS = 1
POSITIONS = "position.json"


def check_duplicates(stack: Stack, run: Run, seed: int, statements: int, report: Callable[[str], None]) -> Result:
    """Needs a stack that keeps its segments (`publisher.processed_segments = "keep"`)."""
    start = time.monotonic()
    result = Result(seed)
    old = positions_of(stack).read_bytes()
    with Seed(run, seed, f"again_{seed}") as one:
        result.statements = write_with_a_node_down(stack, one, statements)
        await_hints(stack)
        one.read_all_rows()
        one.catch_up()
        result.problems, result.rows = one.problems()
        for name, again in {
            "an old position": lambda: publish_again(stack, old),
            "a repair": lambda: node_does(stack, "repair", "--full", one.keyspace),
            "a rebuild": lambda: node_does(stack, "rebuild", "--keyspace", one.keyspace, "--", "main"),
        }.items():
            before = sum(map(len, one.raw.records.values()))
            told = unexpected(one, again)
            came = sum(map(len, one.raw.records.values())) - before
            report(f"{name}: {came} raw messages, {len(told)} changes but the markers'")
            result.problems += [f"{name} gave {line}" for line in told]
        result.problems += one.problems()[0]
        result.changes, result.expiries = one.history.count, one.expiries()
        result.raw = sum(map(len, one.raw.records.values()))
    result.seconds = time.monotonic() - start
    return result


def write_with_a_node_down(stack: Stack, one: Seed, statements: int) -> int:
    """The first half with all nodes, the second without one of them."""
    node = stack.cassandra.cdc_nodes[1]
    generator, writer = one.generator(), one.writer()
    writer.write_statements(generator.statements(statements // 2))
    node.stop()
    writer.write_statements(generator.statements(statements - statements // 2))
    node.start()
    writer.write_statements(generator.last_statements())
    return writer.sent


def await_hints(stack: Stack) -> None:
    """Wait until no node has hints for another. A node writes them to files within the period of its settings."""
    time.sleep(HINTS_FLUSH_SECONDS * 2)
    deadline = time.monotonic() + HINT_SECONDS
    while left := [path for node in stack.cassandra.nodes for path in hints_of(node.cdc_raw.parent)]:
        assert time.monotonic() < deadline, f"hints are left: {left}"
        time.sleep(0.5)


def hints_of(folder: Path) -> list[Path]:
    return list((folder / "hints").glob("*.hints"))


def unexpected(one: Seed, again: Callable[[], object]) -> list[str]:
    """The resulting changes, except those of the rows that mark its end."""
    known = {key: len(changes) for key, changes in one.history.changes.items()}
    again()
    one.catch_up(time.time())
    return [
        f"{name} {changes[-1].key}"
        for (name, key), changes in one.history.changes.items()
        if len(changes) != known.get((name, key), 0) and not one.is_marker(changes[-1])
    ]


def positions_of(stack: Stack, publisher: int = 0) -> Path:
    return Path(str(stack.publishers[publisher].settings["publisher.state_directory"])) / POSITIONS


def publish_again(stack: Stack, positions: bytes) -> None:
    """One publisher goes back to where it stood before the seed."""
    publisher = stack.publishers[0]
    publisher.stop()
    positions_of(stack).write_bytes(positions)
    publisher.start()


def publish_anew(stack: Stack, number: int = 0) -> None:
    """One publisher loses all that it has stored: it sends its node's whole log, as that of a node that was rebuilt."""
    publisher = stack.publishers[number]
    publisher.stop()
    state = positions_of(stack, number).parent
    shutil.rmtree(state)
    state.mkdir(mode=0o700)
    publisher.start()


def copy_as_another_replica(one: Seed, servers: str) -> None:
    """Send all raw messages once more, shuffled, as those of another node, in whose log they are elsewhere."""
    pick = random.Random(one.seed)
    host = pick.randbytes(16)
    producer = Producer({"bootstrap.servers": servers})
    for (topic, partition), records in one.raw.records.items():
        for record in pick.sample(records, len(records)):
            message = decode(record.value)
            if message.kind != "heartbeat":
                copy = replace(message, host_id=host, segment=1, position=message.position ^ 0xFFFF)
                value = encode(copy, wire.schema_id(record.value))
                producer.produce(topic, value, record.key, partition)
                producer.poll(0)
    assert not producer.flush(HINT_SECONDS)


def node_does(stack: Stack, *arguments: str) -> None:
    stack.cassandra.cdc_nodes[0].nodetool(*arguments)
