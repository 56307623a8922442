"""kill -9 of the broker while a task is in a transaction: what became of the commit is asked, never assumed."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.servers.choice import kafka_broker
from dev.verify.chaos.child import start
from dev.verify.chaos.matrix import check_stored, finish, make_setup
from stream_runtime.fault_points import Fault, FaultPoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker

pytestmark = pytest.mark.servers
NTH = 7
POINTS = [
    FaultPoint.AFTER_SEND_OFFSETS,
    pytest.param(FaultPoint.AFTER_PRODUCE, marks=pytest.mark.exhaustive),
    pytest.param(FaultPoint.AFTER_COMMIT, marks=pytest.mark.exhaustive),
]


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    """A broker of this module's own: it is killed."""
    with kafka_broker() as running:
        yield running


@pytest.mark.parametrize("point", POINTS, ids=lambda one: one.name.lower())
@pytest.mark.parametrize("action", ["kill", pytest.param("stop", marks=pytest.mark.exhaustive)])
def test_a_broker_that_dies_in_a_transaction(
    broker: KafkaBroker, topic_prefix: str, tmp_path: Path, point: FaultPoint, action: str
) -> None:
    """The broker dies with its task, or under a task that goes on: its next call finds another broker process."""
    setup = make_setup(broker.bootstrap_servers, topic_prefix, tmp_path)
    child = start(setup, Fault(point, NTH, action))
    if action == "stop":
        child.wait_until_stopped()
    else:
        assert child.wait() == -signal.SIGKILL, child.output()
    broker.kill()
    if action == "stop":
        os.kill(child.pid, signal.SIGCONT)
    broker.start()
    if action == "stop":
        child.wait()  # whether it could go on is the client's matter
    finish(setup)
    setup.check()
    check_stored(setup)
