"""Quiet days and a broker's wrong clock, on a real broker under libfaketime."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.errors.codes import Code
from stream_runtime.exactly_once.partition_task import PartitionTask
from tests.support.faketime import ShiftedBroker
from tests.support.materializer.raw_builder import int_bytes, raw_record
from tests.support.materializer.table_job import TableJob, job_settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.servers
DAY = 86_400
# A broker refuses CreateTime more than an hour ahead of its clock, and would delete what is seven days old.
SETTINGS = {"log.message.timestamp.after.max.ms": str(2**63 - 1), "log.retention.ms": "-1"}


@pytest.fixture
def broker() -> Iterator[ShiftedBroker]:
    made = ShiftedBroker(settings=SETTINGS, report=lambda _: None)
    try:
        yield made
    finally:
        made.close()


def write(job: TableJob, number: int, *, days_ago: int = 0) -> None:
    """A row that lives for five days."""
    written, life = int(time.time()) - days_ago * DAY, 5 * DAY
    cell = Cell(number, b"%d" % number, written + life, life)
    row = Row((int_bytes(number),), {"a": cell}, LivenessInfo(number, life, written + life))
    job.send(raw_record(int_bytes(1), "row", row, offset=number))


def heartbeat(job: TableJob) -> None:
    """Sends a heartbeat of a publisher whose clock is right."""
    job.send(raw_record(b"", "heartbeat", None, clock=int(time.time() * 1_000_000)))


def ops(job: TableJob, count: int) -> list[str | None]:
    """The `op` of each change message, once there are so many: brokers complete a commit after they answered it."""
    deadline = time.monotonic() + 30
    while len(found := job.changes()) < count and time.monotonic() < deadline:
        time.sleep(0.1)
    return [change and change["op"] for change in found]


@pytest.mark.exhaustive
def test_eight_quiet_days_stop_nothing(broker: ShiftedBroker, topic_prefix: str, tmp_path: Path) -> None:
    broker.shift = "-8d"
    broker.start()
    job = TableJob.start(job_settings(broker.bootstrap_servers, topic_prefix, tmp_path))
    write(job, 1, days_ago=8)
    assert job.run().error is None
    assert ops(job, 1) == ["c"]
    broker.stop()
    broker.shift = ""
    broker.start()
    write(job, 2)
    assert job.run().error is None
    assert ops(job, 4) == ["c", "d", None, "c"]  # the first one has expired


@pytest.mark.exhaustive
def test_a_broker_three_days_ahead_stops_until_this_hosts_clock_is_there(
    broker: ShiftedBroker, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.start()
    job = TableJob.start(job_settings(broker.bootstrap_servers, topic_prefix, tmp_path))
    write(job, 1)
    assert job.run().error is None
    broker.stop()
    broker.shift = "+3d"
    broker.start()
    heartbeat(job)
    write(job, 2)
    broker.stop()
    broker.shift = ""
    broker.start()
    for _ in range(2):
        error = job.run().error
        assert error is not None
        assert error.code is Code.CLOCK_AHEAD
        assert "72.0 h ahead" in error.problem
    assert len(job.changes()) == 1

    later = time.time() + 3 * DAY
    monkeypatch.setattr("materializer.worker.wiring.PartitionTask", partial(PartitionTask, wall_clock=lambda: later))
    assert job.run().error is None
    assert ops(job, 2) == ["c", "c"]
