"""Children die with their parent, waits fail at once, and errors show how the log ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.process.paths import project_root
from dev.local_stack.process.processes import ChildProcess, wait_until

if TYPE_CHECKING:
    from pathlib import Path

# Starts a child that starts a grandchild in a process group of its own, and prints both pids.
FAMILY = """
import os, subprocess, sys, time
grandchild = subprocess.Popen(["sleep", "1000"], process_group=0)
print(os.getpid(), grandchild.pid, flush=True)
time.sleep(1000)
"""
PARENT = """
import sys, time
from pathlib import Path
from dev.local_stack.process.processes import ChildProcess
command = [sys.executable, "-c", sys.argv[2]]
children = [ChildProcess("child", command, log=Path(sys.argv[1], f"{number}.log")) for number in (1, 2)]
print("started", flush=True)
time.sleep(1000)
"""


def pids_in(log: Path) -> list[int]:
    wait_until(lambda: log.exists() and log.read_text().endswith("\n"), f"pids in {log}", 20)
    return [int(word) for word in log.read_text().split()]


def gone(pids: list[int]) -> bool:
    return not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_children_die_with_their_parent(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path), FAMILY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=project_root()) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"started\n"
        pids = pids_in(tmp_path / "1.log") + pids_in(tmp_path / "2.log")
        assert len(pids) == 4
        assert not gone(pids)
        parent.send_signal(number)
    wait_until(lambda: gone(pids), "the children to die", 10)


def test_a_parent_that_dies_before_the_gate_opens_leaves_nothing(tmp_path: Path) -> None:
    child = subprocess.Popen(
        ["/bin/sh", "-c", 'read -r _ || exit 125; exec "$@" </dev/null', "sh", "touch", str(tmp_path / "ran")],
        stdin=subprocess.PIPE,
    )
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(10) == 125
    assert not (tmp_path / "ran").exists()


def test_a_wait_fails_at_once_when_the_process_has_died(tmp_path: Path) -> None:
    lines = "; ".join(f"print('line {number}')" for number in range(100))
    child = ChildProcess("short", [sys.executable, "-c", f"{lines}; raise SystemExit(3)"], log=tmp_path / "short.log")
    started = time.monotonic()
    with pytest.raises(CdcError) as caught:
        child.wait_ready(lambda: False, "it was ready", 60)
    assert time.monotonic() - started < 10
    assert caught.value.code is Code.SERVER_FAILED
    assert "short ended (exit status 3) before it was ready" in str(caught.value)
    assert "line 99" in str(caught.value)
    assert "line 10\n" not in str(caught.value)
    assert str(tmp_path / "short.log") in str(caught.value)


def test_a_failure_shows_the_last_error_before_the_lines_of_the_shutdown(tmp_path: Path) -> None:
    script = (
        "print('ERROR earlier'); print('INFO starts'); print('ERROR [main] no disk\\njava.io.IOException')\n"
        "for number in range(99): print('INFO closes', number)"
    )
    child = ChildProcess("talks", [sys.executable, "-c", f"{script}"], log=tmp_path / "talks.log")
    child.wait(20)
    shown = str(child.failure("ended"))
    assert "Its log:\nERROR [main] no disk\njava.io.IOException\nINFO closes 0\n" in shown
    assert "earlier" not in shown
    assert len(shown.splitlines()) < 40


def test_a_wait_says_that_the_process_still_runs(tmp_path: Path) -> None:
    child = ChildProcess("slow", ["sleep", "1000"], log=tmp_path / "slow.log")
    with pytest.raises(CdcError, match="slow runs, but after 0 s not yet: it was ready"):
        child.wait_ready(lambda: False, "it was ready", 0.2)
    child.kill()
    assert child.exit_status == -signal.SIGKILL


def test_stop_is_gentle_first(tmp_path: Path) -> None:
    script = "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.05; done"
    child = ChildProcess("gentle", ["/bin/sh", "-c", script], log=tmp_path / "gentle.log")
    child.wait_ready(lambda: "up" in child.output(), "it was up", 20)
    child.stop()
    assert child.exit_status == 7
    assert "bye" in child.output()


def test_stop_kills_what_does_not_listen(tmp_path: Path) -> None:
    child = ChildProcess("deaf", ["/bin/sh", "-c", "trap '' TERM; echo up; sleep 1000"], log=tmp_path / "deaf.log")
    child.wait_ready(lambda: "up" in child.output(), "it was up", 20)
    child.stop(grace_seconds=0.2)
    assert not child.is_running
    assert child.members() == []


def test_kill_takes_grandchildren_too(tmp_path: Path) -> None:
    child = ChildProcess("family", [sys.executable, "-c", FAMILY], log=tmp_path / "family.log")
    pids = pids_in(child.log)
    child.kill()
    assert gone(pids)


def test_kill_leader_leaves_the_rest_for_kill(tmp_path: Path) -> None:
    child = ChildProcess("family", [sys.executable, "-c", FAMILY], log=tmp_path / "family.log")
    pids = pids_in(child.log)
    child.kill_leader()
    assert gone(pids[:1])
    assert not gone(pids[1:])
    child.kill()
    assert gone(pids)


def test_pause_and_resume(tmp_path: Path) -> None:
    child = ChildProcess("still", ["sleep", "1000"], log=tmp_path / "still.log")
    process = psutil.Process(child.pid)
    child.pause()
    wait_until(lambda: process.status() == psutil.STATUS_STOPPED, "it to stand still", 5)
    child.resume()
    wait_until(lambda: process.status() != psutil.STATUS_STOPPED, "it to go on", 5)
    child.kill()


def test_output_is_of_the_last_start_only(tmp_path: Path) -> None:
    log = tmp_path / "echo.log"
    ChildProcess("echo", ["echo", "first"], log=log).wait(10)
    second = ChildProcess("echo", ["echo", "second"], log=log)
    second.wait(10)
    assert second.output() == "second\n"
    assert log.read_text() == "first\nsecond\n"
