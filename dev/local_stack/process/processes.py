"""Child processes that die with their parent, even when that is killed with SIGKILL.

Each child leads a session of its own. One guard process per parent (see `guard.py`) holds the end of a pipe and reads
of each session from it; when the parent is gone, the pipe closes and the guard kills them all. Linux's PR_SET_PDEATHSIG
is not used: it fires when the starting *thread* ends, and servers are started from threads.

A child waits at a gate until the guard knows it: no moment is left in which a parent's death would leave it behind.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from typing import IO, TYPE_CHECKING

import psutil

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.process import guard

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

POLL_SECONDS = 0.05
KILL_SECONDS = 10.0
SHOWN_LOG_LINES = 25
ERROR = re.compile(r"(\[[^]]*\] )?(ERROR|FATAL)\b|Exception ")  # Cassandra's, Kafka's
# Reads a line before it becomes the program; at the end of input (its parent died first) it ends.
GATE = 'read -r _ || exit 125; exec "$@" </dev/null'


class _Guard:
    """The guard of this process, started with its first child, and again in a process that was forked off."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pipe: IO[str] | None = None
        self._owner = 0

    def send_line(self, line: str) -> None:
        with self._lock:
            if self._pipe is None or self._owner != os.getpid():
                self._start()
            assert self._pipe is not None
            self._pipe.write(line + "\n")
            self._pipe.flush()

    def _start(self) -> None:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self._pipe, self._owner = process.stdin, os.getpid()


_guard = _Guard()


class ServerProcess(ABC):
    """Something that runs and logs to a file: a child process or a container. `name` stands in errors."""

    name: str
    log: Path

    @property
    @abstractmethod
    def exit_status(self) -> int | None:
        """None while it runs; the negative number of a signal that ended it."""

    @abstractmethod
    def output(self) -> str:
        """Return what it has logged since it was started."""

    @abstractmethod
    def stop(self, grace_seconds: float = 10.0) -> None:
        """SIGTERM, then SIGKILL to whatever is left after the grace."""

    @abstractmethod
    def kill(self) -> None:
        """SIGKILL to all of it; returns when it has ended."""

    @abstractmethod
    def pause(self) -> None:
        """SIGSTOP to all of it."""

    @abstractmethod
    def resume(self) -> None: ...

    def remove(self) -> None:  # noqa: B027 - a child process needs nothing
        """Remove what the system keeps of it after its end; its log stays."""

    @property
    def is_running(self) -> bool:
        return self.exit_status is None

    def log_excerpt(self, count: int = SHOWN_LOG_LINES) -> str:
        """The last error in the log and what follows it, `count` lines; without an error the end. A server that fails
        says why, and then logs how it shuts down.
        """
        lines = self.output().splitlines()
        first = len(lines) - count
        errors = [index for index, line in enumerate(lines[: max(first, 0)]) if ERROR.match(line)]
        return "\n".join(lines[errors[-1] :][:count] if errors else lines[-count:])

    def wait_ready(self, check: Callable[[], bool], what: str, timeout_seconds: float) -> None:
        """Wait until `check` holds. Raises CdcError(SERVER_FAILED) with a part of the log at the timeout, and at once
        when the child has ended.
        """
        deadline = time.monotonic() + timeout_seconds
        while not check():
            status = self.exit_status
            if status is not None:
                raise self.failure(f"ended ({_how(status)}) before {what}")
            if time.monotonic() > deadline:
                raise self.failure(f"runs, but after {timeout_seconds:.0f} s not yet: {what}")
            time.sleep(POLL_SECONDS)

    def failure(self, what: str) -> CdcError:
        """An error that shows where the log is and what it says."""
        return CdcError(
            Code.SERVER_FAILED,
            f"{self.name} {what}. Its log:\n{self.log_excerpt()}\n",
            f"The whole log is in {self.log}.",
        )


class ChildProcess(ServerProcess):
    """One child with its own session and a log file that takes its output.

    All methods may be called when the child has ended.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        """Start `command`; `env` is its whole environment (None: this process's); output is appended to `log`."""
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self.log_start = output.tell()
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", GATE, "sh", *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=cwd,
                start_new_session=True,
            )
        self._is_guarded = True
        _guard.send_line(f"+{self._process.pid}")
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError), self._process.stdin as gate:
            gate.write(b"go\n")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        status = self._process.poll()
        if status is not None:
            self._forget()
        return status

    def members(self) -> list[int]:
        """Pids of this child and of all that it started and that live."""
        if not self._is_guarded:
            return []  # all have ended, and the number may be another's by now
        return [pid for pid in guard.session_members(self.pid) if _lives(pid)]

    def stop(self, grace_seconds: float = 10.0) -> None:
        if self.is_running:
            self.resume()
            self.send(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_seconds)
        self.kill()

    def kill(self) -> None:
        if not self._is_guarded:
            return
        guard.kill_session(self.pid)
        self._process.wait()
        wait_until(lambda: not self.members(), f"{self.name} to die", KILL_SECONDS)
        self._forget()

    def kill_leader(self) -> None:
        """SIGKILL to the child alone, not to what it started; returns when it has ended."""
        self.send(signal.SIGKILL)
        self._process.wait()

    def pause(self) -> None:
        self._send_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._send_all(signal.SIGCONT)

    def send(self, number: signal.Signals) -> None:
        """A signal to the child alone."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def wait(self, timeout_seconds: float) -> int:
        """Its exit status. Raises CdcError(SERVER_FAILED) when it still runs after the timeout."""
        wait_until(lambda: not self.is_running, f"{self.name} to end", timeout_seconds)
        assert self.exit_status is not None
        return self.exit_status

    def output(self, start: int | None = None) -> str:
        """Return the log from byte `start` on; by default since this child started."""
        with self.log.open("rb") as file:
            file.seek(self.log_start if start is None else start)
            return file.read().decode(errors="replace")

    def _send_all(self, number: signal.Signals) -> None:
        for pid in self.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _forget(self) -> None:
        """Tell the guard, once nothing of the session is left."""
        if self._is_guarded and not self.members():
            self._is_guarded = False
            _guard.send_line(f"-{self.pid}")


def wait_until(
    check: Callable[[], bool], what: str, timeout_seconds: float, poll_seconds: float = POLL_SECONDS
) -> None:
    """Wait until `check` holds. Raises CdcError(SERVER_FAILED) at the timeout."""
    deadline = time.monotonic() + timeout_seconds
    while not check():
        if time.monotonic() > deadline:
            raise CdcError(
                Code.SERVER_FAILED, f"Waited {timeout_seconds:.0f} s in vain for {what}.", "Look at the logs."
            )
        time.sleep(poll_seconds)


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _how(status: int) -> str:
    return f"by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
