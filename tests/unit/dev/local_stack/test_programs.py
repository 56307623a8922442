"""Programs take their settings from the environment that they are given, and from nothing else."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings.load import load_settings
from dev.local_stack.install import preflight
from dev.local_stack.process.network import free_ports, is_free, loopback_addresses
from dev.local_stack.process.paths import project_root
from dev.local_stack.servers import programs
from dev.local_stack.servers.addresses import (
    NodeAddress,
    Servers,
    read_servers,
    refuse_second,
    remove_servers,
    write_servers,
)
from dev.local_stack.servers.programs import Program, Release
from dev.local_stack.servers.stack_settings import remove_settings, settings_file, write_settings

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.servers.programs import Setting


SHOW = """
import os, time
print({name: value for name, value in os.environ.items() if name.startswith("CDC_")}, flush=True)
print('{"event": "ready"}', flush=True)
time.sleep(1000)
"""
SERVERS = Servers(
    cassandra="5.0.8",
    cassandra_hosts=("127.0.2.1",),
    cassandra_port=9042,
    nodes=(NodeAddress("127.0.2.1", 9042, "cdc", "/raw"), NodeAddress("127.0.2.2", 9042, "main", None)),
    kafka="127.0.0.1:9092",
    registry="http://127.0.0.1:8081",
    topic_prefix="cdc",
    pid=os.getpid(),
)


def test_a_program_gets_its_settings_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_KAFKA__TOPIC_PREFIX", "stray")
    monkeypatch.setenv("CDC_CONFIG", "/stray.toml")
    program = Program(
        "show",
        ("-c", SHOW),
        folder=tmp_path,
        settings={"publisher.poll_interval_ms": 5, "materializer.tombstones": False},
    )
    program.start()
    assert "'CDC_PUBLISHER__POLL_INTERVAL_MS': '5'" in program.output()
    assert "'CDC_MATERIALIZER__TOMBSTONES': 'false'" in program.output()
    assert "stray" not in program.output()
    first = program.pid
    program.kill()
    with pytest.raises(CdcError, match="show has ended with status -9"):
        program.check()
    program.start()
    assert program.pid != first
    program.stop()


def test_a_program_of_another_release_gets_the_settings_that_it_knows(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.symlink_to(sys.executable)
    settings: dict[str, Setting] = {"publisher.poll_interval_ms": 5, "publisher.later": 1}
    program = Program("show", ("-c", SHOW), folder=tmp_path, settings=settings)
    program.environment = {"PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": "./environment/bin/python"}
    program.release = Release(str(python), None, frozenset({"publisher.poll_interval_ms"}))
    program.start()
    assert "'CDC_PUBLISHER__POLL_INTERVAL_MS': '5'" in program.output()
    assert "LATER" not in program.output()
    assert program.command()[0] == program._environment()["PYSPARK_DRIVER_PYTHON"] == str(python)
    assert program._environment()["PYSPARK_PYTHON"] == "./environment/bin/python"  # of an archive
    assert str(project_root()) not in program._environment()["PYTHONPATH"].split(os.pathsep)
    program.stop()


def test_a_program_that_ends_early_fails_the_start(tmp_path: Path) -> None:
    program = Program("early", ("-c", "raise SystemExit('CDC-020 nothing there')"), folder=tmp_path, settings={})
    with pytest.raises(CdcError, match="CDC-020 nothing there"):
        program.start()


def test_the_registry_starts(tmp_path: Path) -> None:
    registry = programs.schematizer(tmp_path, free_ports(1)[0])
    registry.start()
    registry.stop()
    assert not registry.is_running


def test_addresses_go_through_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_SERVERS", str(tmp_path / "servers.json"))
    with pytest.raises(CdcError, match="No stack is running") as caught:
        read_servers()
    assert caught.value.code is Code.STACK_MISSING
    write_servers(SERVERS)
    assert read_servers() == SERVERS
    assert read_servers().settings()["cassandra.contact_points"] == "127.0.2.1"
    remove_servers()
    with pytest.raises(CdcError, match="No stack is running"):
        read_servers()


def test_a_second_stack_does_not_take_the_addresses_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDC_SERVERS", str(tmp_path / "servers.json"))
    refuse_second()
    path = write_servers(SERVERS)
    refuse_second()
    path.write_text(path.read_text().replace(f'"pid": {os.getpid()}', f'"pid": {os.getppid()}'))
    with pytest.raises(CdcError, match=f"running already .process {os.getppid()}"):
        refuse_second()


def test_addresses_of_a_dead_stack_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_SERVERS", str(tmp_path / "servers.json"))
    path = write_servers(SERVERS)
    path.write_text(path.read_text().replace(f'"pid": {os.getpid()}', '"pid": 999999999'))
    with pytest.raises(CdcError, match="No stack is running"):
        read_servers()


def test_ports_and_addresses_are_free() -> None:
    addresses = loopback_addresses(3)
    ports = free_ports(4, *addresses)
    assert len(set(ports)) == 4
    assert all(is_free(address, port) for address in addresses for port in ports)


def test_the_preflight_finds_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    status = preflight.main([])
    lines = capsys.readouterr().out.splitlines()
    assert status == (1 if any(line.startswith("MISSING") for line in lines) else 0)
    assert any("Java" in line for line in lines)
    assert any("to download" in line for line in lines)


def test_the_preflight_refuses_an_old_python(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.version_info", (3, 9, 1))
    assert preflight.main([]) == 1
    assert "is too old" in capsys.readouterr().out


def test_the_preflight_refuses_a_full_disk(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "RUN_MB", 10**9)
    assert preflight.main([]) == 1
    assert "of disk are free" in capsys.readouterr().out


def test_settings_go_through_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values as flags take them come back as what the programs read from a file."""
    monkeypatch.setenv("CDC_SERVERS", str(tmp_path / "servers.json"))
    given: dict[str, Setting] = {
        "cassandra.port": "9043",
        "cassandra.contact_points": "127.0.0.1,127.0.0.2",
        "kafka.topic_prefix": "cdc",
        "materializer.state_directory": tmp_path / 'a "folder"',
        "publisher.nodetool": "nodetool,-p,7199",
        "publisher.heartbeat_seconds": 2,
    }
    (tmp_path / "empty.toml").touch()
    settings = load_settings(write_settings(given), {}).settings
    assert settings == load_settings(tmp_path / "empty.toml", given).settings
    assert settings.cassandra.contact_points == ["127.0.0.1", "127.0.0.2"]
    remove_settings()
    assert not settings_file().exists()
