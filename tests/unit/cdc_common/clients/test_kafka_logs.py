"""Each Kafka client of each program logs through the program's log: nothing of librdkafka's own goes to stderr."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from dev.local_stack.process.network import free_ports
from tests.support import kafka_clients

ROOT = Path(__file__).resolve().parents[4]
PROGRAMS = (
    "cdc_common",
    "stream_runtime",
    "publisher",
    "filler",
    "joinery",
    "materializer",
    "schematizer",
    "transformer",
)
CLASSES = {"Consumer", "Producer", "AdminClient", "Client"}
SECONDS = 120


def makers() -> set[str]:
    """The modules of the programs that make a client."""
    found = set()
    for path in (file for program in PROGRAMS for file in (ROOT / program).rglob("*.py")):
        tree = ast.parse(path.read_text())
        imported = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("confluent_kafka")
            for alias in node.names
        }
        called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        bases = [base for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for base in node.bases]
        calls = {name.id for name in (*called, *bases) if isinstance(name, ast.Name)}
        if calls & imported & CLASSES:
            found.add(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return found


def test_each_module_that_makes_a_client_is_tried() -> None:
    """Other programs use by_schema, and decide what is shown of it."""
    assert {maker for maker in makers() if not maker.startswith("cdc_common.clients.by_schema.")} == set(
        kafka_clients.CLIENTS.values()
    )


@pytest.mark.parametrize("has_broker", [False, True], ids=["no broker", "a broker that ends"])
def test_only_json_goes_to_stderr(has_broker: object) -> None:
    command = [sys.executable, "-m", kafka_clients.__name__]
    servers = "mock" if has_broker else f"127.0.0.1:{free_ports(1)[0]}"
    done = subprocess.run([*command, servers], capture_output=True, text=True, check=False, timeout=SECONDS, cwd=ROOT)
    assert done.stdout.split("\n")[:-1] == sorted(kafka_clients.CLIENTS)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert {line["level"] for line in lines} <= {"info", "warning"}
    assert any("Connection refused" in line["event"] for line in lines)
    assert done.returncode == 0
