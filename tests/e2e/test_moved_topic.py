"""The registry assigns a table another topic while it is written to, and a worker dies in the middle of the move."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from dev.local_stack.clients import cql
from dev.local_stack.clients.compare import compare
from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.programs import environment_of
from dev.local_stack.servers.spark_cluster import python_workers
from dev.local_stack.servers.stack import SYNC_PERIOD_MS, Stack
from tests.support.e2e.kafka_topics import read_all
from tests.support.e2e.moved_table import END, KEYSPACE, PARTITIONS, ROWS, TABLE, Topics, Writer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.programs import Setting

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900), pytest.mark.exhaustive]

FIRST, SECOND, THIRD = (
    f"{name}.{KEYSPACE}.{TABLE}{version}" for name, version in (("cdc", ""), ("pii-cdc", "-v2"), ("pii-cdc", "-v3"))
)
SECONDS = 180.0
DOCUMENTATION = f"""
namespace = "cdc.{KEYSPACE}"
source = "{TABLE}"
owner = "team"
doc = "who"

[fields.name]
doc = "a name"
pii = true
"""


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    settings: dict[str, Setting] = {
        "materializer.topics": "registry",
        "materializer.topics_seconds": 1,
        "materializer.chunk_max_changes": 20,
        "publisher.heartbeat_seconds": 1,
    }
    options = CassandraOptions(commitlog_sync_period_ms=SYNC_PERIOD_MS)
    with Stack(options=options, settings=settings) as running:
        yield running


@pytest.fixture
def client(stack: Stack) -> Iterator[CqlClient]:
    with cql.connect(stack.servers.cassandra_hosts, stack.servers.cassandra_port) as client:
        yield client


@pytest.fixture
def topics(stack: Stack) -> Iterator[Topics]:
    reader = Topics(stack.servers)
    yield reader
    reader.close()


def mark(client: CqlClient, number: int, clustering: str = "c") -> None:
    for p in PARTITIONS:
        client.execute(f"INSERT INTO {KEYSPACE}.{TABLE} (p, {clustering}) VALUES ({p}, {END + number})")


def flag(stack: Stack, folder: Path) -> None:
    """The file says that a field is personal."""
    (folder / "people.toml").write_text(DOCUMENTATION)
    command = [sys.executable, "-m", "schematizer", "docs", "apply", str(folder), "--url", stack.servers.registry]
    subprocess.run(command, check=True)


def check(client: CqlClient, topics: Topics, topic: str, *left: str) -> None:
    """The topic shows what SELECT does, the others nothing, and every key has one unbroken chain."""
    assert topics.problems() == []
    for former in left:
        assert not list(topics.history(former).latest(f"{KEYSPACE}.{TABLE}")), former
    result = compare(client, topics.history(topic), [(KEYSPACE, TABLE)])
    assert result.differences == []
    assert result.tables[f"{KEYSPACE}.{TABLE}"] > len(PARTITIONS) * ROWS / 2


def states(stack: Stack) -> list[dict[str, Any]]:
    """Return the lines of `state ls --topics` for the raw partitions of the table."""
    command = [sys.executable, "-m", "materializer", "state", "ls", "--json", "--topics"]
    environment = {**os.environ, **environment_of(stack.materializer.settings)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found = map(json.loads, done.stdout.splitlines())
    return [state for state in found if f"{KEYSPACE}.{TABLE}-" in state["partition"]]


def test_a_field_becomes_personal_under_load(stack: Stack, client: CqlClient, topics: Topics, tmp_path: Path) -> None:
    client.execute(
        f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    columns = "p int, c int, n int, name text, st text static, PRIMARY KEY (p, c)"
    client.execute(f"CREATE TABLE {KEYSPACE}.{TABLE} ({columns}) WITH cdc = true")
    rows = [(p, c) for p in PARTITIONS for c in range(ROWS)]
    for p, c in rows:
        client.execute(f"INSERT INTO {KEYSPACE}.{TABLE} (p, c, n, name) VALUES ({p}, {c}, 0, 'first')")
    mark(client, 0)
    topics.wait_for_marks(FIRST, 0, SECONDS)
    writer = Writer(stack.servers)
    writer.start()
    flag(stack, tmp_path)
    deadline = time.monotonic() + SECONDS
    while not topics.of(SECOND):
        assert time.monotonic() < deadline
        topics.poll()
    for pid in python_workers(stack.materializer):
        os.kill(pid, signal.SIGKILL)
    moved = len(topics.of(SECOND))
    assert moved < len(rows), "nothing was left to move"
    time.sleep(3.0)
    writer.end()
    mark(client, 1)
    topics.wait_for_marks(SECOND, 1, SECONDS)
    assert writer.count > 100
    check(client, topics, SECOND, FIRST)
    ends, begun = topics.moved(FIRST), topics.moved(SECOND)
    assert {end["source"]["file"] for end in ends} == {SECOND}
    assert {beginning["op"] for beginning in begun} == {"r"}
    assert len(ends) == len(begun) >= len(rows) / 2

    # The registry is down, and the job starts again.
    stack.schematizer.stop()
    stack.materializer.stop()
    stack.materializer.start()
    before = len(read_all(stack.servers.kafka, SECOND))
    mark(client, 2)
    wait_until(lambda: len(read_all(stack.servers.kafka, SECOND)) > before, "a change", SECONDS)
    assert "stored topics are used" in stack.materializer.output()
    stack.schematizer.start()
    topics.wait_for_marks(SECOND, 2, SECONDS)

    # Another key is another topic. The prefix stays.
    client.execute(f"ALTER TABLE {KEYSPACE}.{TABLE} RENAME c TO k")
    mark(client, 3, "k")
    topics.wait_for_marks(THIRD, 3, SECONDS)
    check(client, topics, THIRD, FIRST, SECOND)
    assert {tuple(state["topics"]) for state in states(stack)} == {(THIRD,)}
