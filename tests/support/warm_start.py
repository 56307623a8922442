"""Starts `python -m NAME …` as a child whose modules are imported already: a process of its own in a tenth of the time.

A warm process for each program imports its modules once, and forks for each start. The fork has its own arguments,
environment, folder, standard error and output, and runs the program's `__main__` as Python would. tests/e2e and the
tests of installed programs start them without this.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from typing import IO, TYPE_CHECKING, Any

from dev.local_stack.process.paths import project_root
from tests.support import warm_process

if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping, Sequence
    from pathlib import Path

CORE = "CDC_NATIVE"  # read when modules are imported


class WarmChild(subprocess.Popen[Any]):
    """A fork of a warm process, which says how it has ended."""

    def __init__(self, pid: int, args: Sequence[str], stderr: IO[Any] | None) -> None:
        self.pid = pid
        self.args = list(args)
        self.stdin, self.stdout, self.stderr = None, None, stderr
        self.returncode: int | None = None
        self.has_ended = threading.Event()

    def __del__(self) -> None:
        """It is no child of this process: nothing is left to collect."""

    def end(self, returncode: int) -> None:
        self.returncode = returncode
        self.has_ended.set()

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if not self.has_ended.wait(timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, sig: signal.Signals | int) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, sig)


class _WarmProcess:
    """The process of one program, and those that it has started."""

    def __init__(self, name: str, core: str | None) -> None:
        self._ours, theirs = socket.socketpair()
        environment = {key: value for key, value in os.environ.items() if not key.startswith("CDC_")}
        environment |= {CORE: core} if core is not None else {}
        command = [sys.executable, "-m", warm_process.__name__, name, str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(
                command, env=environment, cwd=project_root(), pass_fds=[theirs.fileno()]
            )  # a test may have gone to another folder
        self._children: dict[int, WarmChild] = {}
        self._lock = threading.Lock()
        self._started: list[int] = []
        self._has_started = threading.Condition()
        self._answers = self._ours.makefile("r")
        threading.Thread(target=self._follow, daemon=True).start()

    def start(self, request: dict[str, object], args: Sequence[str], files: Sequence[int]) -> int:
        """The pid."""
        with self._lock:
            data = json.dumps(request).encode()
            socket.send_fds(self._ours, [len(data).to_bytes(4, "big")], list(files))
            self._ours.sendall(data)
            with self._has_started:
                assert self._has_started.wait_for(lambda: self._started, 60), f"no fork for {args}"
                return self._started.pop()

    def add(self, child: WarmChild) -> None:
        self._children[child.pid] = child

    def _follow(self) -> None:
        for line in self._answers:
            kind, pid, value = line.split()
            if kind == "started":
                with self._has_started:
                    self._started.append(int(pid))
                    self._has_started.notify()
                continue
            deadline = time.monotonic() + 10
            while int(pid) not in self._children:  # it has ended before the answer was read
                assert time.monotonic() < deadline
                time.sleep(0.005)
            self._children.pop(int(pid)).end(int(value))


_warm: dict[tuple[str, str | None, int], _WarmProcess] = {}
_making = threading.Lock()


def start(
    name: str, arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path, stdout: int, stderr: int
) -> subprocess.Popen[Any]:
    """Start it. stdout: a descriptor. stderr: another one, or subprocess.PIPE, whose end is the child's `stderr`."""
    core = env.get(CORE)
    with _making:
        key = name, core, os.getpid()
        process = _warm.get(key) or _warm.setdefault(key, _WarmProcess(name, core))
    reading = None
    writing = stderr
    if stderr == subprocess.PIPE:
        read_end, writing = os.pipe()
        reading = os.fdopen(read_end, "r")
    args = [sys.executable, "-m", name, *arguments]
    request: dict[str, object] = {"arguments": [*arguments], "env": {**env}, "cwd": str(cwd)}
    try:
        child = WarmChild(process.start(request, args, (stdout, writing)), args, reading)
    finally:
        if reading is not None:
            os.close(writing)
    process.add(child)
    return child
