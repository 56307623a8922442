"""The program in Spark, with a catalog: its tables have what the topic has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from dev.local_stack.process.paths import project_root
from dev.local_stack.servers.programs import spark_environment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.support.archive.archive_run import ArchiveSetup

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

MESSAGES = 300
WAIT_SECONDS = 300.0


def test_a_topic_becomes_a_table(setup: ArchiveSetup, tmp_path: Path) -> None:
    setup.send(0, MESSAGES)
    uri = f"sqlite:///{tmp_path}/catalog.db"
    own = setup.settings(catalog_type="sql", catalog_uri=uri, register_seconds=1, spark_master="local[2]").archive
    flags = [f"--set=kafka.bootstrap_servers={setup.bootstrap}", f"--set=registry.url={setup.registry}"]
    flags += [
        f"--set=archive.{name}={','.join(value) if isinstance(value, list) else value}"
        for name, value in own.model_dump(exclude_defaults=True).items()
    ]
    flags.append("--set=archive.operations_port=0")
    command = [sys.executable, "-m", "archive", *flags]
    environment = {**os.environ, "PYTHONPATH": str(project_root()), **spark_environment(tmp_path)}
    assert _said(command, environment, "check") == "ok: 1 topics\n"
    assert _said(command, environment, "plan").startswith(f"{setup.topic} → {setup.table} (iceberg, by ")
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen([*command, "run"], cwd=project_root(), env=environment, stdout=output, stderr=output)
    catalog = SqlCatalog("lake", uri=uri)
    wanted = [number for number in range(MESSAGES) if number % 10 != 9]
    try:
        deadline = time.monotonic() + WAIT_SECONDS
        while _numbers(catalog, setup.table) != wanted:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_SECONDS) == 0, log.read_text()
    finally:
        process.kill()
    setup.check(MESSAGES)
    assert _said(command, environment, "verify", "--rows").startswith(f"ok: {len(wanted)} rows of 1 topics")


def _said(command: list[str], environment: Mapping[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [*command, *arguments], cwd=project_root(), env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _numbers(catalog: SqlCatalog, table: str) -> list[int]:
    """The rows of the table, by PyIceberg."""
    if not catalog.namespace_exists(table.rpartition(".")[0]) or not catalog.table_exists(table):
        return []
    return sorted(catalog.load_table(table).scan().to_arrow().column("_row_sequence").to_pylist())
