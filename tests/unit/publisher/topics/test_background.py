"""Calls to servers that do not answer: they keep neither the loop nor the end of the program waiting."""

from __future__ import annotations

import subprocess
import sys
import threading
from time import monotonic

import pytest

from publisher.progress import SILENCE_SECONDS, Progress
from publisher.topics.background import begin_call
from publisher.topics.server_calls import ServerCalls
from tests.support.publisher.finish import finish

HANGS = """
import sys, time
from publisher.topics.background import begin_call
begin_call(lambda: time.sleep(60), "server-call")
sys.exit(7)
"""


def test_a_call_gives_its_result_or_its_error() -> None:
    assert begin_call(lambda: 5, "five").result(10) == 5
    with pytest.raises(ZeroDivisionError):
        begin_call(lambda: 1 // 0, "none").result(10)


def test_the_end_of_the_program_does_not_wait_for_a_call() -> None:
    """Stopped with Kafka away, it would take the connection timeout more than it says."""
    began = monotonic()
    ended = subprocess.run([sys.executable, "-c", HANGS], check=False, timeout=55)
    assert ended.returncode == 7
    assert monotonic() - began < 50


def test_who_is_interrupted_does_not_wait_for_the_call() -> None:
    answered = threading.Event()
    waits = ServerCalls(Progress(0.0)).run_in_background(lambda: answered.wait(60))
    next(waits)
    began = monotonic()
    with pytest.raises(KeyboardInterrupt):
        waits.throw(KeyboardInterrupt())
    assert monotonic() - began < 30
    assert not answered.is_set()
    answered.set()


def test_while_it_waits_the_status_says_so() -> None:
    progress, answered = Progress(monotonic()), threading.Event()
    waits = ServerCalls(progress).run_in_background(lambda: answered.wait(60))
    deadline = monotonic() + SILENCE_SECONDS + 30
    while not (problem := progress.current_problem(monotonic())):
        assert monotonic() < deadline
        answered.wait(next(waits))
    assert problem.startswith("Kafka has not answered for ")
    answered.set()
    assert finish(waits) is True
