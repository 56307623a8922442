"""A worker that is killed, stopped, or fails at points of the protocol, on a real broker: each message once."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from archive.fault_points import ArchivePoint
from dev.verify.chaos.child import start
from stream_runtime.fault_points import Fault

if TYPE_CHECKING:
    from tests.support.archive.archive_run import ArchiveSetup

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

MESSAGES = 200
LATER = 20
KILLED = [
    pytest.param(ArchivePoint.FIRST_OFFSETS_COMMITTED, marks=pytest.mark.exhaustive),
    pytest.param(ArchivePoint.INTENT_STORED, marks=pytest.mark.exhaustive),
    ArchivePoint.FILE_STORED,
    ArchivePoint.CUT_OFFSETS_SENT,
    pytest.param(ArchivePoint.CUT_COMMITTED, marks=pytest.mark.exhaustive),
]
OVERTAKEN = [
    pytest.param(ArchivePoint.CUT_DECIDED, marks=pytest.mark.exhaustive),
    ArchivePoint.FILE_STORED,
    pytest.param(ArchivePoint.EVENT_SENT, marks=pytest.mark.exhaustive),
]


@pytest.mark.parametrize("point", KILLED, ids=lambda point: point.name.lower())
def test_a_killed_worker(setup: ArchiveSetup, point: ArchivePoint) -> None:
    setup.send(0, MESSAGES)
    killed = start(setup, Fault(point, 1, "kill"))
    assert killed.wait() == -signal.SIGKILL, killed.output()
    again = start(setup)
    assert again.wait() == 0, again.output()
    setup.check(MESSAGES)
    setup.send(MESSAGES, MESSAGES + LATER)
    last = start(setup)
    assert last.wait() == 0, last.output()
    setup.check(MESSAGES + LATER)


@pytest.mark.parametrize("point", OVERTAKEN)
def test_two_workers_that_believe_in_the_share(setup: ArchiveSetup, point: ArchivePoint) -> None:
    """The first one stops, the second one archives with other cuts, and the first one wakes up."""
    setup.send(0, MESSAGES)
    first = start(setup, Fault(point, 1, "stop"))
    first.wait_until_stopped()
    second = start(setup, settings={"cut_rows": 35})
    assert second.wait() == 0, second.output()
    os.kill(first.pid, signal.SIGCONT)
    first.wait()  # it may find that all is done, or that it is fenced
    setup.check(MESSAGES)
