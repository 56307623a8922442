"""The program in Spark, with a file of DuckDB: its table equals the topic."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.process.paths import project_root
from dev.local_stack.servers.programs import spark_environment
from tests.support.warehouse.warehouse_run import KEYS
from warehouse.names import table_name
from warehouse.targets.open import open_loader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.support.warehouse.warehouse_run import WarehouseSetup

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

MESSAGES = 300
WAIT_SECONDS = 300.0


def test_a_topic_becomes_a_table(make_setup: Callable[[str], WarehouseSetup], tmp_path: Path) -> None:
    setup = make_setup(f"duckdb:///{tmp_path}/w.duckdb")
    setup.send(0, MESSAGES)
    own = setup.settings(spark_master="local[2]").warehouse
    flags = [f"--set=kafka.bootstrap_servers={setup.bootstrap}", f"--set=registry.url={setup.registry}"]
    flags += [
        f"--set=warehouse.{name}={','.join(value) if isinstance(value, list) else value}"
        for name, value in own.model_dump(exclude_defaults=True).items()
    ]
    flags.append("--set=warehouse.operations_port=0")
    command = [sys.executable, "-m", "warehouse", *flags]
    environment = {**os.environ, "PYTHONPATH": str(project_root()), **spark_environment(tmp_path)}
    assert _said(command, environment, "check") == "ok: 1 topics\n"
    planned = _said(command, environment, "plan")
    assert planned.startswith(f"{setup.topic} → shop.orders: not loaded yet; schema ")
    assert 'CREATE TABLE "shop"."orders" (_key UUID NOT NULL, _sequence BIGINT NOT NULL, "id" INTEGER' in planned
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen([*command, "run"], cwd=project_root(), env=environment, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + WAIT_SECONDS
        while _loaded(setup) < MESSAGES + KEYS // 2:  # deletions have a tombstone, and the transaction a marker
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_SECONDS) == 0, log.read_text()
    finally:
        process.kill()
    setup.check(MESSAGES)
    assert "needs 0 statements" in _said(command, environment, "plan")
    assert _said(command, environment, "audit").endswith("messages: 0 rows differ\n")
    loader = open_loader(setup.settings().warehouse)
    loader.connection.run("UPDATE shop.orders SET name = 'planted' WHERE id = 3")
    loader.connection.close()
    audited = subprocess.run([*command, "audit"], cwd=project_root(), env=environment, capture_output=True, check=False)
    assert audited.returncode == 4, audited.stderr
    assert b" different in name\n" in audited.stdout
    assert b"CDC-137: 1 rows" in audited.stderr
    assert _said(command, environment, "audit", "--repair").endswith("messages: 1 rows repaired\n")
    setup.check(MESSAGES)


def _said(command: list[str], environment: Mapping[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [*command, *arguments], cwd=project_root(), env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _loaded(setup: WarehouseSetup) -> int:
    """The sum of the offsets that the table is at."""
    loader = open_loader(setup.settings().warehouse)
    state = loader.read_state(table_name(setup.topic, "topics"))
    loader.connection.close()
    return 0 if state is None else sum(state.offsets.values())
