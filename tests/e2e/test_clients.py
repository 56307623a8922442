"""Clients without this project's code read keys and values; the follower prints them; the demo's story comes true."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from cdc_common.messages.topics import change_topic
from dev.local_stack.demo import shop
from dev.local_stack.demo.demo import Demo
from dev.local_stack.demo.story import steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.local_stack.clients.change_reader import ChangeReader
    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.addresses import Servers

pytestmark = pytest.mark.servers

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120.0


def first_lines(command: list[str], count: int, cwd: Path) -> list[str]:
    """The first lines that an endless program prints."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=cwd) as process:
        try:
            assert process.stdout is not None
            return [process.stdout.readline() for _ in range(count)]
        finally:
            process.kill()


def test_the_story_of_the_demo_comes_true(
    client: CqlClient, markers: shop.Markers, open_reader: Callable[[str], ChangeReader]
) -> None:
    printed = io.StringIO()
    demo = Demo(Console(file=printed, width=200), client, open_reader(shop.KEYSPACE), markers)
    demo.catch_up()
    demo.show_story(steps(order=8, name="grace", ttl=20))
    lines = printed.getvalue().splitlines()
    assert sum(line.startswith(("c insert", "u update", "d delete")) for line in lines) == sum(
        len(step.changes) for step in steps()
    )
    assert "no change: Cassandra's own rule, the newer write has won" in lines
    assert list(demo.history.problems()) == []


@pytest.mark.timeout(240)
def test_confluents_deserializer_alone_reads_keys_and_values(
    client: CqlClient, servers: Servers, tmp_path: Path
) -> None:
    """docs/examples/consumer.py in Python's isolated mode, away from the project: the project cannot be imported."""
    client.execute(
        "CREATE KEYSPACE IF NOT EXISTS alone WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    client.execute("CREATE TABLE alone.t (p int, c text, v map<text, decimal>, PRIMARY KEY (p, c)) WITH cdc = true")
    client.execute("INSERT INTO alone.t (p, c, v) VALUES (1, 'one', {'half': 0.5})")
    client.execute("UPDATE alone.t SET v = v + {'third': 0.33} WHERE p = 1 AND c = 'one'")
    client.execute("DELETE FROM alone.t WHERE p = 1 AND c = 'one'")
    topic = change_topic(servers.topic_prefix, "alone", "t")
    command = [
        sys.executable,
        "-I",
        str(ROOT / "docs" / "examples" / "consumer.py"),
        servers.kafka,
        servers.registry,
        topic,
    ]
    wait_for_topic(servers, topic)
    lines = first_lines(command, 4, tmp_path)
    assert all(line.startswith("{'p': 1, 'c': 'one'} ") for line in lines)
    assert [f"'op': '{op}'" in line for op, line in zip("cud", lines, strict=False)] == [True] * 3
    assert """'v': '{"half":"0.5"}'""" in lines[0]
    assert lines[3] == "{'p': 1, 'c': 'one'} None\n"
    assert "'cluster': ''" not in lines[0]


def wait_for_topic(servers: Servers, topic: str) -> None:
    from dev.local_stack.clients.change_reader import partition_count  # noqa: PLC0415

    deadline = time.monotonic() + SECONDS
    while not partition_count(servers.kafka, topic):
        assert time.monotonic() < deadline, f"no topic {topic}"
        time.sleep(0.2)


@pytest.mark.timeout(240)
def test_the_follower_prints_one_json_object_a_line(client: CqlClient, servers: Servers) -> None:
    assert servers.pid
    client.execute(
        "CREATE KEYSPACE IF NOT EXISTS followed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    client.execute("CREATE TABLE followed.t (p int PRIMARY KEY, v text) WITH cdc = true")
    client.execute("INSERT INTO followed.t (p, v) VALUES (1, 'a')")
    follow = [sys.executable, "-m", "dev.local_stack.clients.follow", "--table"]
    with subprocess.Popen([*follow, "followed.t2"], stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("There is no table followed.t2 yet")
        process.kill()
    shell = [sys.executable, "-m", "dev.local_stack.clients.cqlsh", "-e", "UPDATE followed.t SET v = 'b' WHERE p = 1"]
    subprocess.run(shell, cwd=ROOT, check=True, timeout=60)
    said = [json.loads(line) for line in first_lines([*follow, "followed.t", "--json"], 2, ROOT)]
    assert [(one["op"], one["key"], one["before"], one["after"]) for one in said] == [
        ("c", {"p": 1}, None, {"p": 1, "v": "a"}),
        ("u", {"p": 1}, {"p": 1, "v": "a"}, {"p": 1, "v": "b"}),
    ]
