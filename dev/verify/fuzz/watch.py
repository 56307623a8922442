"""Measures and limits a target: time and memory of each input, and the input that broke it."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from types import FrameType

    from dev.verify.fuzz.target import Target

FOUND = Path(os.environ.get("FUZZ_FOUND", ".run/fuzz"))
SLOW = 2.0  # s of CPU for one input: they are some KB at most
HANGS = 20  # s
MEMORY = 1 << 30  # bytes above what the process has when it starts: a length is believed nowhere
EVERY = 30  # s between lines of progress


class Hang(BaseException):
    """Raised when a target hangs. It is not an Exception, so that no reader takes it for its own."""


class Watch:
    def __init__(self, name: str, target: Target, runs: int) -> None:
        self.name = name
        self.inputs = self.readable = 0
        self.slowest = 0.0
        self._target = target
        self._runs = runs
        self._started = self._told = time.monotonic()
        self._memory = _peak_kib()
        virtual = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (virtual + MEMORY, resource.RLIM_INFINITY))
        signal.signal(signal.SIGALRM, _hang)

    def __call__(self, data: bytes) -> None:
        """Anything but a FormatError, and an input that takes too long, is kept and raised."""
        self.inputs += 1
        signal.setitimer(signal.ITIMER_REAL, HANGS)
        started = time.process_time()
        try:
            self.readable += self._target.run(data)
            self._took(time.process_time() - started)
        except BaseException as error:
            self._keep(data, error)
            raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if not self.inputs % 1000 and time.monotonic() - self._told > EVERY:
            self._told = time.monotonic()
            self.report()

    def _took(self, seconds: float) -> None:
        self.slowest = max(self.slowest, seconds)
        if seconds > SLOW:
            raise Hang(f"{seconds:.1f} s")

    def report(self, how: str = "") -> None:
        seconds = time.monotonic() - self._started
        grown = (_peak_kib() - self._memory) / 1024
        click.echo(
            f"{self.name:12} {self.inputs:9} of {self._runs} inputs, {self.inputs / seconds:7.0f}/s, "
            f"{self.readable / max(self.inputs, 1):4.0%} readable, slowest {self.slowest * 1000:6.1f} ms, "
            f"peak {_peak_kib() / 1024:4.0f} MiB (+{grown:.0f}) {how}",
            err=True,
        )

    def _keep(self, data: bytes, error: BaseException) -> None:
        FOUND.mkdir(parents=True, exist_ok=True)
        path = FOUND / f"{self.name}-{hashlib.sha256(data).hexdigest()[:12]}"
        path.write_bytes(data)
        click.echo(f"{self.name}: {error!r} on {len(data)} bytes, kept in {path}", err=True)


def _hang(_: int, __: FrameType | None) -> None:
    raise Hang(f"{HANGS} s")


def _peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
