"""What is done to the running programs and servers: the faults of the whole path."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from contextlib import suppress
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import psutil

from materializer.fault_points import FaultPoint
from verify.chaos.processes import process_state, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from local_stack.process.processes import ChildProcess
    from local_stack.servers.programs import Program
    from local_stack.servers.stack import Stack

EXECUTOR = "CoarseGrainedExecutorBackend"
DRIVER_JVM = "SparkSubmit"
DAEMON = "pyspark.daemon"
PAUSE_SECONDS = 3.0
ZOMBIE_END_SECONDS = 30.0
RESTORING = {FaultPoint.IN_FETCH, FaultPoint.BEFORE_RESTORE_SWAP, FaultPoint.IN_RESTORE_SWAP, FaultPoint.IN_RESTORE}
POINT_NTH = 3  # a point is met the first to third time that a worker comes there


class StackFault(Enum):
    """A fault of the whole path; the value tells what happens."""

    WORKER = "kill -9 of a Python worker of Spark's"
    POINT = "kill -9 of the job, and of the next one's worker at one of the points above"
    EXECUTOR = "kill -9 of an executor's JVM"
    DRIVER = "kill -9 of the driver's Python alone, then the job starts again"
    JOB = "kill -9 of the whole job, which starts again"
    LOST_STATE = "kill -9 of the whole job, which starts again without the local states"
    ZOMBIES = "SIGSTOP of the executors and workers, kill -9 of the driver; they come back when the next job is done"
    PAUSE = "SIGSTOP of the whole job for some seconds"
    BROKER = "kill -9 of the broker, which starts again"
    BROKER_STOP = "a controlled restart of the broker"
    PUBLISHER = "kill -9 of the node's publisher, which starts again"


class Strike(NamedTuple):
    """A fault at a moment: `after` seconds of load; `point` only where the fault is POINT."""

    after: float
    fault: StackFault
    point: FaultPoint | None = None
    nth: int = 1

    def __str__(self) -> str:
        where = f" at {self.point.name.lower()}:{self.nth}" if self.point else ""
        return f"{self.fault.name.lower()}{where} after {self.after:.1f} s"


def strikes(seed: int, seconds: float, count: int, point: FaultPoint | None = None) -> list[Strike]:
    """So many faults within so many seconds, in order: one of them by turns, so that consecutive seeds go through all
    kinds, the others by chance; `point` is in place of any other.
    """
    chance = random.Random(f"{seed}/faults")
    kinds = list(StackFault)
    faults = [kinds[seed % len(kinds)], *(chance.choice([*kinds, *[StackFault.POINT] * 6]) for _ in range(count - 1))]
    chance.shuffle(faults)
    found = []
    for after, chosen in zip(sorted(chance.uniform(0.5, seconds) for _ in faults), faults, strict=True):
        fault = StackFault.POINT if point else chosen
        where = (point or chance.choice(list(FaultPoint))) if fault is StackFault.POINT else None
        found.append(Strike(after, fault, where, chance.randint(1, POINT_NTH)))
    return found


class Hurter:
    """Strikes a stack; `zombies` are the pids that stand still until `wake_zombies`."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.zombies: list[int] = []
        self._stack = stack
        self._once = folder / "fault-has-struck"

    def strike(self, strike: Strike) -> None:
        _STRIKES[strike.fault](self, strike)

    def wake_zombies(self) -> None:
        """They go on, and find that they are fenced; returns when they have ended."""
        zombies, self.zombies = self.zombies, []
        for pid in zombies:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        deadline = time.monotonic() + ZOMBIE_END_SECONDS
        while any(process_state(pid) != "gone" for pid in zombies) and time.monotonic() < deadline:
            time.sleep(0.05)
        _kill(*zombies)

    def start_job(self, fault: str | None = None) -> None:
        """The job, and what it fails with; the fault strikes once in all its workers."""
        job = self._stack.materializer
        for name in ("CDC_FAULT", "CDC_FAULT_ONCE"):
            job.environment.pop(name, None)
        if fault is not None:
            self._once.unlink(missing_ok=True)
            job.environment |= {"CDC_FAULT": fault, "CDC_FAULT_ONCE": str(self._once)}
        job.start()

    def disarm(self) -> None:
        """What an earlier run's workers were to do at a point and have not done is not done any more."""
        self._once.touch()

    def _worker(self, _strike: Strike) -> None:
        _kill(*_workers(self._job)[:1])

    def _point(self, strike: Strike) -> None:
        assert strike.point is not None
        job = self._stack.materializer
        job.kill()
        if strike.point in RESTORING:
            shutil.rmtree(str(job.settings["materializer.state_directory"]), ignore_errors=True)
        self.start_job(f"{strike.point.name}:{strike.nth}")

    def _executor(self, _strike: Strike) -> None:
        _kill(*_named(self._job, EXECUTOR)[:1])

    def _driver(self, _strike: Strike) -> None:
        self._job.kill_leader()
        self.start_job()

    def _whole_job(self, _strike: Strike) -> None:
        self._stack.materializer.kill()
        self.start_job()

    def _lost_state(self, _strike: Strike) -> None:
        job = self._stack.materializer
        job.kill()
        shutil.rmtree(str(job.settings["materializer.state_directory"]), ignore_errors=True)
        self.start_job()

    def _stop_workers(self, _strike: Strike) -> None:
        job = self._job
        left = [*_named(job, EXECUTOR), *_named(job, DAEMON)]
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        self.zombies += left
        _kill(*_named(job, DRIVER_JVM))
        job.kill_leader()
        self.start_job()

    def _pause(self, _strike: Strike) -> None:
        self._stack.materializer.pause()
        time.sleep(PAUSE_SECONDS)
        self._stack.materializer.resume()

    def _broker(self, _strike: Strike) -> None:
        self._stack.kafka.kill()
        self._stack.kafka.start()

    def _broker_stop(self, _strike: Strike) -> None:
        self._stack.kafka.restart()

    def _publisher(self, _strike: Strike) -> None:
        publisher: Program = self._stack.publishers[0]
        publisher.kill()
        publisher.start()

    @property
    def _job(self) -> ChildProcess:
        process = self._stack.materializer.process
        assert process is not None
        return process


_STRIKES: Mapping[StackFault, Callable[[Hurter, Strike], None]] = {
    StackFault.WORKER: Hurter._worker,
    StackFault.POINT: Hurter._point,
    StackFault.EXECUTOR: Hurter._executor,
    StackFault.DRIVER: Hurter._driver,
    StackFault.JOB: Hurter._whole_job,
    StackFault.LOST_STATE: Hurter._lost_state,
    StackFault.ZOMBIES: Hurter._stop_workers,
    StackFault.PAUSE: Hurter._pause,
    StackFault.BROKER: Hurter._broker,
    StackFault.BROKER_STOP: Hurter._broker_stop,
    StackFault.PUBLISHER: Hurter._publisher,
}


def _named(job: ChildProcess, word: str) -> list[int]:
    """The pids of the job's processes whose command line has the word."""
    return [pid for pid in job.members() if word in " ".join(_command(pid))]


def _workers(job: ChildProcess) -> list[int]:
    """The pids of the Python workers: PySpark's daemons fork them."""
    daemons = _named(job, DAEMON)
    return [pid for pid in daemons if _parent(pid) in daemons]


def _command(pid: int) -> list[str]:
    try:
        return psutil.Process(pid).cmdline()
    except psutil.Error:
        return []


def _parent(pid: int) -> int | None:
    try:
        return psutil.Process(pid).ppid()
    except psutil.Error:
        return None


def _kill(*pids: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for pid in pids:
        wait_until(partial(_is_gone, pid), f"{pid} has ended")


def _is_gone(pid: int) -> bool:
    return process_state(pid) == "gone"
