"""A program that cannot work ends at once: one error with its code and what to do, a non-zero exit, no stack trace."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import Code
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.choice import cassandra_cluster
from dev.local_stack.servers.programs import Setting, environment_of, spark_environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dev.local_stack.servers.addresses import Servers

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 150.0
NOTHING_LISTENS = "127.0.0.1:1"
COMMANDS = {
    "publisher": ("publisher", "run"),
    "filler": ("filler", "run"),
    "materializer": ("materializer", "run"),
    "schematizer": ("schematizer", "serve"),
}
QUICK = {
    "cassandra.connect_timeout_seconds": 3,
    "kafka.connect_timeout_seconds": 3,
}


@dataclass(frozen=True)
class Case:
    """`says` are words that the error must have."""

    program: str
    code: Code
    settings: dict[str, Setting] = field(default_factory=dict)
    says: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.program}-{self.code.name.lower()}"


def run(program: str, settings: Mapping[str, Setting], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CDC_")}
    own: dict[str, Setting] = {
        "publisher.state_directory": str(folder / "publisher"),
        "publisher.operations_port": 0,
        "materializer.operations_port": 0,
        "materializer.state_directory": str(folder / "state"),
        "materializer.checkpoint_location": (folder / "checkpoint").as_uri(),
        "schematizer.database_url": f"sqlite:///{folder / 'registry.db'}",
    }
    return subprocess.run(
        [sys.executable, "-m", *COMMANDS[program]],
        env={
            **environment,
            **spark_environment(folder),
            **environment_of({**own, **QUICK, **settings}),
            "PYTHONPATH": str(ROOT),
        },
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def check(case: Case, done: subprocess.CompletedProcess[str]) -> None:
    said = done.stdout + done.stderr
    assert done.returncode == case.code.exit_status, said
    assert said.count(f"{case.code.text}:") == 1, said
    assert "fix: " in done.stderr, said
    assert "Traceback" not in said, said
    for word in case.says:
        assert word in said


@pytest.mark.parametrize("program", COMMANDS)
def test_an_unknown_key(program: str, tmp_path: Path) -> None:
    (tmp_path / "cdc.toml").write_text("[kafka]\nbootstrap_serves = 'a:1'\n")
    check(Case(program, Code.CONFIG_UNKNOWN_KEY, says=("bootstrap_serves",)), run(program, {}, tmp_path))


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        case = Case("schematizer", Code.PORT_IN_USE, {"schematizer.port": port}, says=(str(port),))
        check(case, run(case.program, case.settings, tmp_path))


@pytest.mark.servers
@pytest.mark.parametrize(
    "case",
    [
        Case("publisher", Code.CASSANDRA_UNREACHABLE, {"cassandra.port": 1}, ("127.",)),
        Case("publisher", Code.KAFKA_UNREACHABLE, {"kafka.bootstrap_servers": NOTHING_LISTENS}, (NOTHING_LISTENS,)),
        Case("publisher", Code.REGISTRY_UNREACHABLE, {"registry.url": f"http://{NOTHING_LISTENS}"}, (NOTHING_LISTENS,)),
        Case(
            "publisher",
            Code.CDC_RAW_MISSING,
            {"node.cdc_raw_directory": "/nowhere/cdc_raw"},
            ("/nowhere/cdc_raw",),
        ),
        Case("filler", Code.CASSANDRA_UNREACHABLE, {"cassandra.port": 1}, ("127.",)),
        Case("materializer", Code.KAFKA_UNREACHABLE, {"kafka.bootstrap_servers": NOTHING_LISTENS}, (NOTHING_LISTENS,)),
        Case(
            "materializer", Code.REGISTRY_UNREACHABLE, {"registry.url": f"http://{NOTHING_LISTENS}"}, (NOTHING_LISTENS,)
        ),
    ],
    ids=str,
)
def test_something_out_of_reach(case: Case, servers: Servers, tmp_path: Path) -> None:
    """Everything else is there: the running stack's."""
    [node] = servers.nodes
    assert node.cdc_raw is not None
    settings: dict[str, Setting] = {**servers.settings(), "node.cdc_raw_directory": node.cdc_raw, **case.settings}
    check(case, run(case.program, settings, tmp_path))


@pytest.mark.exhaustive
@pytest.mark.servers
def test_cdc_off_in_cassandra_yaml(servers: Servers, tmp_path: Path) -> None:
    cluster = cassandra_cluster(options=CassandraOptions(yaml={"cdc_enabled": False}), folder=tmp_path / "cassandra")
    try:
        cluster.start()
        settings: dict[str, Setting] = {
            **servers.settings(),
            "cassandra.contact_points": cluster.contact_points[0],
            "cassandra.port": cluster.port,
            "node.cdc_raw_directory": str(cluster.nodes[0].cdc_raw),
        }
        case = Case("publisher", Code.CDC_DISABLED, says=("cdc_enabled",))
        check(case, run(case.program, settings, tmp_path))
    finally:
        cluster.close()
