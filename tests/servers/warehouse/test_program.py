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
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.warehouse.warehouse_run import WarehouseSetup

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

MESSAGES = 300
WAIT_SECONDS = 300.0


def test_a_topic_becomes_a_table(make_setup: Callable[[str], WarehouseSetup], tmp_path: Path) -> None:
    setup = make_setup(f"duckdb:///{tmp_path}/w.duckdb")
    setup.send(0, MESSAGES)
    flags = setup.flags(spark_master="local[2]")
    environment = {**os.environ, "PYTHONPATH": str(project_root()), **spark_environment(tmp_path)}
    loader = open_loader(setup.settings().warehouse)
    loader.prepare()
    loader.connection.close()
    log = tmp_path / "log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "warehouse", *flags, "run"]
        process = subprocess.Popen(command, cwd=project_root(), env=environment, stdout=output, stderr=output)
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


def _loaded(setup: WarehouseSetup) -> int:
    """The sum of the offsets that the table is at."""
    loader = open_loader(setup.settings().warehouse)
    state = loader.read_state(table_name(setup.topic, "topics"))
    loader.connection.close()
    return 0 if state is None else sum(state.offsets.values())
