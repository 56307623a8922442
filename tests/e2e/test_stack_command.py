"""`make stack`: the demo's tables are archived, and the command that it prints queries them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.clients import cql
from dev.local_stack.demo.stack_command import EXAMPLE
from dev.local_stack.servers.addresses import Servers

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 240.0
PYTHON = ".local/venv/bin/python"


def test_the_printed_query_shows_what_was_written(tmp_path: Path) -> None:
    addresses, log = tmp_path / "servers.json", tmp_path / "output"
    with log.open("w") as output:
        stack = subprocess.Popen(
            [sys.executable, "-m", "dev.local_stack.demo.stack_command"],
            cwd=ROOT,
            env={**os.environ, "CDC_SERVERS": str(addresses), "COLUMNS": "80"},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(lambda: "Ctrl-C stops everything." in log.read_text(), stack, log)
        servers = Servers.from_json(addresses.read_text())
        with cql.connect(servers.cassandra_hosts, servers.cassandra_port) as client:
            client.execute(EXAMPLE)
            wait_for(lambda: "import duckdb" in log.read_text(), stack, log)
            [command] = [line for line in log.read_text().splitlines() if "import duckdb" in line]
            client.execute("UPDATE shop.orders SET status = 'paid' WHERE id = 1")
        assert command.startswith(PYTHON)
        command = sys.executable + command.removeprefix(PYTHON)
        wait_for(lambda: "paid" in answer(command), stack, log)
        shown = answer(command)
        assert shown.index("new") < shown.index("paid"), shown
        assert "ada" in shown
    finally:
        if stack.poll() is None:
            os.killpg(stack.pid, signal.SIGINT)
        stack.wait(SECONDS)
    assert "Traceback" not in log.read_text()


def answer(command: str) -> str:
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S602 - as a user does
    assert done.returncode == 0, done.stderr
    return done.stdout


def wait_for(is_done: Callable[[], bool], stack: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_done():
        assert stack.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(1)
