"""How the service starts, refuses to start, and ends."""

from __future__ import annotations

import json
import signal
import socket
import threading
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from schematizer.cli import main
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        url = f"sqlite:///{tmp_path}/registry.db"
        result = CliRunner().invoke(main, ["serve", "--port", str(port), "--database-url", url])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error CDC-004: The address 127.0.0.1:{port}")
    assert "Traceback" not in result.stderr


def test_an_address_of_another_machine(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/registry.db"
    result = CliRunner().invoke(main, ["serve", "--host", "192.0.2.1", "--port", "0", "--database-url", url])
    assert result.exit_code == 2
    assert "error CDC-002: Cannot listen on 192.0.2.1:0" in result.stderr


def test_an_unusable_database() -> None:
    result = CliRunner().invoke(main, ["serve", "--port", "0", "--database-url", "sqlite:////dev/null/registry.db"])
    assert result.exit_code == 3
    assert result.stderr.startswith("error CDC-032: ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    registry = Registry(tmp_path / "registry.db").start()
    assert registry.register("a", "string").status == 200
    assert registry.stop(number) == 0
    assert [json.loads(line)["event"] for line in registry.log] == ["ready", "stopped on request"]


def test_an_idle_connection_does_not_keep_it_from_ending(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "registry.db").start()
    address = registry.url.removeprefix("http://").split(":")
    with socket.create_connection((address[0], int(address[1])), timeout=10):
        done = threading.Event()
        threading.Timer(30, done.set).start()
        assert registry.stop() == 0
        assert not done.is_set()


def test_a_database_that_fails_meanwhile(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "registry.db").start()
    for file in tmp_path.glob("registry.db*"):
        file.write_bytes(b"x" * 5000)
    answer = registry.call("GET", "/schemas/ids/1")
    assert (answer.status, answer.body["error_code"]) == (500, 50001)
    assert registry.stop() == 0
    assert any(json.loads(line)["event"] == "database failed" for line in registry.log)
