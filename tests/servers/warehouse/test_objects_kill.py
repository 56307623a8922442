"""Writers and loaders that are killed, on a real broker and a real store: the table equals its topic."""

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
from dev.local_stack.servers.s3 import ENVIRONMENT, S3Server
from dev.verify.chaos.child import start
from stream_runtime import fault_points
from stream_runtime.fault_points import Fault, InjectedFaultError
from tests.support.warehouse.object_run import ObjectSetup
from tests.support.warehouse.redshift_stand_in import RedshiftStandIn, prepare_database
from warehouse.fault_points import WarehousePoint, WriterPoint
from warehouse.files import open_store
from warehouse.targets.open import open_loader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from stream_runtime.fault_points import Point
    from tests.support.schematizer.postgresql import PostgreSQL
    from tests.support.warehouse.warehouse_run import WarehouseSetup

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]
MESSAGES, LATER = 200, 20
WAIT_SECONDS = 300.0


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    before = dict(os.environ)
    os.environ.update(ENVIRONMENT)
    with S3Server(has_conditions=True) as running:
        yield running
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def setup(
    make_setup: Callable[[str], WarehouseSetup], postgresql: PostgreSQL, server: S3Server, topic_prefix: str
) -> Iterator[ObjectSetup]:
    database = postgresql.new_database().replace("+psycopg", "")
    prepare_database(database)
    location = server.location(f"objects-{topic_prefix}")
    with RedshiftStandIn(f"{postgresql.folder}/.s.PGSQL.5432", open_store(location)) as stand_in:
        yield ObjectSetup(make_setup(stand_in.url(f"test{postgresql.databases}")), location)


def test_a_topic_becomes_objects_and_a_table(setup: ObjectSetup) -> None:
    """It fails when an object is stored, before a signal is committed, and before a load is, and goes on each time."""
    setup.setup.send(0, MESSAGES)
    # The check of the store, and the first offsets of three partitions, come before.
    faults = ((WriterPoint.OBJECT_IN_STORE, 4), (WriterPoint.SIGNAL_OFFSET_SENT, 4), (WarehousePoint.ROWS_MERGED, 1))
    for point, nth in faults:
        fault_points.reached.clear()
        fault_points.armed = Fault(point, nth, "raise")
        try:
            with pytest.raises(InjectedFaultError):
                setup.run()
        finally:
            fault_points.armed = None
    setup.run()
    setup.check(MESSAGES)


@pytest.mark.exhaustive
def test_the_programs_in_spark(setup: ObjectSetup, tmp_path: Path) -> None:
    """A writer and a loader side by side: the table equals the topic."""
    setup.setup.send(0, MESSAGES)
    flags = setup.setup.flags(location=setup.location, spark_master="local[2]", load_signal_seconds=0.2)
    environment = {**os.environ, "PYTHONPATH": str(project_root()), **spark_environment(tmp_path)}
    loader = open_loader(setup.settings().warehouse)
    loader.prepare()
    loader.connection.close()
    log = tmp_path / "log"
    with log.open("wb") as output:
        commands = [[sys.executable, "-m", "warehouse", *flags, command] for command in ("write", "run")]
        started = [
            subprocess.Popen(command, cwd=project_root(), env=environment, stdout=output, stderr=output)
            for command in commands
        ]
    try:
        deadline, ends = time.monotonic() + WAIT_SECONDS, setup.setup._ends()
        while not setup._is_loaded(ends):
            assert all(process.poll() is None for process in started), log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(1)
        for process in started:
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_SECONDS) == 0, log.read_text()
    finally:
        for process in started:
            process.kill()
    setup.check(MESSAGES)


@pytest.mark.exhaustive
@pytest.mark.parametrize("point", [*WriterPoint, *WarehousePoint], ids=lambda point: point.name.lower())
def test_a_killed_worker(setup: ObjectSetup, point: Point) -> None:
    setup.setup.send(0, MESSAGES)
    if point is WriterPoint.BATCH_INTENT_READ:
        assert start(setup, Fault(WriterPoint.OBJECT_STORED, 1, "kill")).wait() == -signal.SIGKILL
    killed = start(setup, Fault(point, 1, "kill"))
    assert killed.wait() == -signal.SIGKILL, killed.output()
    again = start(setup)
    assert again.wait() == 0, again.output()
    setup.check(MESSAGES)
    setup.setup.send(MESSAGES, MESSAGES + LATER)
    last = start(setup)
    assert last.wait() == 0, last.output()
    setup.check(MESSAGES + LATER)


@pytest.mark.exhaustive
def test_two_writers_that_believe_in_the_topic(setup: ObjectSetup) -> None:
    """The first one stops before its signal is committed, the second one writes everything, and the first wakes up."""
    setup.setup.send(0, MESSAGES)
    first = start(setup, Fault(WriterPoint.SIGNAL_SENT, 1, "stop"))
    first.wait_until_stopped()
    second = start(setup)
    assert second.wait() == 0, second.output()
    os.kill(first.pid, signal.SIGCONT)
    first.wait()
    setup.check(MESSAGES)
