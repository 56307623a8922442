"""Ctrl-C, at any time, leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from dev.local_stack.demo.demo import INTERRUPTED

pytestmark = pytest.mark.servers

ROOT = Path(__file__).resolve().parents[2]
MARK = "STACK_TEST_MARK"
SECONDS = 120.0


def java_of(demo: subprocess.Popen[bytes]) -> int:
    """How many of its descendants are Java, without asking every process of the machine."""
    found = 0
    with suppress(psutil.Error):
        for process in psutil.Process(demo.pid).children(recursive=True):
            with suppress(psutil.Error):
                found += process.name() == "java"
    return found


def marked(mark: str) -> list[psutil.Process]:
    """Every process that has inherited the mark."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARK) == mark:
                found.append(process)
    return found


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "servers",
    [
        pytest.param(1, id="while the first server starts", marks=pytest.mark.exhaustive),
        pytest.param(2, id="while the second starts"),
    ],
)
def test_ctrl_c_during_the_start_leaves_no_process_behind(servers: int, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    with (tmp_path / "output").open("w+") as output:
        demo = subprocess.Popen(
            [sys.executable, "-m", "dev.local_stack.demo.demo"],
            cwd=ROOT,
            env={**os.environ, MARK: mark, "CDC_SERVERS": str(tmp_path / "servers.json")},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a terminal of its own, so to say: the signal goes to all in it
        )
        deadline = time.monotonic() + SECONDS
        while java_of(demo) < servers:
            assert time.monotonic() < deadline
            assert demo.poll() is None, (output.seek(0), output.read())
            time.sleep(0.25)
        os.killpg(demo.pid, signal.SIGINT)
        demo.wait(SECONDS)
        output.seek(0)
        said = output.read()
    while left := marked(mark):
        assert time.monotonic() < deadline, [process.cmdline()[:3] for process in left]
        time.sleep(1)
    assert demo.returncode in {INTERRUPTED, -signal.SIGINT}, said
    assert "Traceback" not in said
