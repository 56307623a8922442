"""A worker that is killed, stopped or fails at points of a load, on a real broker: the table equals its topic."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from dev.verify.chaos.child import start
from stream_runtime.fault_points import Fault
from warehouse.fault_points import WarehousePoint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.warehouse.warehouse_run import WarehouseSetup

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

MESSAGES = 200
LATER = 20
KILLED = [
    pytest.param(WarehousePoint.STATE_CLAIMED, marks=pytest.mark.exhaustive),
    WarehousePoint.ROWS_MERGED,
    pytest.param(WarehousePoint.LOAD_COMMITTED, marks=pytest.mark.exhaustive),
]


@pytest.fixture(params=["duckdb", "postgresql"])
def setup(
    request: pytest.FixtureRequest, make_setup: Callable[[str], WarehouseSetup], tmp_path: Path
) -> WarehouseSetup:
    is_duckdb = request.param == "duckdb"
    return make_setup(f"duckdb:///{tmp_path}/w.duckdb" if is_duckdb else request.getfixturevalue("postgresql_url"))


@pytest.mark.parametrize("point", KILLED, ids=lambda point: point.name.lower())
def test_a_killed_worker(setup: WarehouseSetup, point: WarehousePoint) -> None:
    setup.send(0, MESSAGES)
    killed = start(setup, Fault(point, 2, "kill"))
    assert killed.wait() == -signal.SIGKILL, killed.output()
    again = start(setup)
    assert again.wait() == 0, again.output()
    setup.check(MESSAGES)
    setup.send(MESSAGES, MESSAGES + LATER)
    last = start(setup)
    assert last.wait() == 0, last.output()
    setup.check(MESSAGES + LATER)


def test_two_workers_that_believe_in_the_table(
    make_setup: Callable[[str], WarehouseSetup], postgresql_url: str
) -> None:
    """The first one stops before its load, the second one loads everything, and the first one wakes up."""
    setup = make_setup(postgresql_url)
    setup.send(0, MESSAGES)
    first = start(setup, Fault(WarehousePoint.LOAD_DECIDED, 2, "stop"))
    first.wait_until_stopped()
    second = start(setup, settings={"load_rows": 35})
    assert second.wait() == 0, second.output()
    os.kill(first.pid, signal.SIGCONT)
    assert first.wait() == 0, first.output()
    setup.check(MESSAGES)
