"""kill -9 in mid-load: nothing lost, nothing twice, chains unbroken, and in the end what SELECT * says."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.clients.compare import compare
from dev.local_stack.clients.history import History
from dev.local_stack.demo import shop
from dev.local_stack.demo.load import Load
from tests.support.e2e.drained import read_all_changes

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.local_stack.clients.change_reader import ChangeReader
    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.stack import Stack

pytestmark = pytest.mark.servers

RATE = 200.0
LOAD_SECONDS = 12.0


def kill_publisher(stack: Stack) -> None:
    stack.publishers[0].kill()
    stack.publishers[0].start()


def kill_spark_job(stack: Stack) -> None:
    stack.materializer.kill()
    stack.materializer.start()


def kill_spark_driver_alone(stack: Stack) -> None:
    """Its JVM and workers find out by themselves, and may still be writing when the next job starts."""
    process = stack.materializer.process
    assert process is not None
    process.kill_leader()
    stack.materializer.start()


@pytest.mark.parametrize(
    ("crash", "after_seconds"),
    [
        (kill_publisher, (2.0, 5.0, 8.0)),
        pytest.param(kill_spark_job, (4.0,), marks=pytest.mark.exhaustive),  # test_spark kills a job in every run
        (kill_spark_driver_alone, (4.0,)),
    ],
    ids=["publisher", "spark job", "spark driver alone"],
)
def test_a_crash_in_mid_load_loses_and_doubles_nothing(
    crash: Callable[[Stack], None],
    after_seconds: tuple[float, ...],
    stack: Stack,
    client: CqlClient,
    markers: shop.Markers,
    open_reader: Callable[[str], ChangeReader],
) -> None:
    reader = open_reader(shop.KEYSPACE)
    history = History()
    load = Load(client, RATE, LOAD_SECONDS, seed=time.time_ns())
    load.start()
    start = time.monotonic()
    for after in after_seconds:
        time.sleep(max(0.0, start + after - time.monotonic()))
        history.add(reader.poll(0.1))
        crash(stack)
    load.wait()
    assert load.error is None
    assert load.sent > RATE * LOAD_SECONDS / 2
    read_all_changes(reader, markers, history)
    assert list(history.problems()) == []
    result = compare(client, history, [(shop.KEYSPACE, table) for table in shop.MARKED])
    assert result.differences == []
    assert min(result.tables.values()) > 0
