"""The faults of the whole path: strikes on the running programs and servers."""

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

from dev.local_stack.servers.spark_cluster import executors, python_workers
from dev.verify.chaos.processes import process_state, wait_until
from stream_runtime.fault_points import FaultPoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from dev.local_stack.process.processes import ChildProcess
    from dev.local_stack.servers.programs import Program
    from dev.local_stack.servers.stack import Stack
    from dev.verify.chaos.masters import RunningSpark

EXECUTOR = "CoarseGrainedExecutorBackend"
DRIVER_JVM = "SparkSubmit"
DAEMON = "pyspark.daemon"
PAUSE_SECONDS = 3.0
ZOMBIE_END_SECONDS = 30.0
RESTORING = {FaultPoint.IN_FETCH, FaultPoint.BEFORE_RESTORE_SWAP, FaultPoint.IN_RESTORE_SWAP, FaultPoint.IN_RESTORE}
POINT_NTH = 3  # a point is met the first to third time that a worker comes there


class StackFault(Enum):
    """A fault of the whole path; the value tells what happens."""

    WORKER = "kill -9 of one of Spark's Python workers"
    POINT = "kill -9 of the job, and of the next one's worker at one of the points above"
    EXECUTOR = "kill -9 of an executor's JVM"
    DRIVER = "kill -9 of the driver's Python alone, then the job starts again"
    JOB = "kill -9 of the whole job, which starts again"
    LOST_STATE = "kill -9 of the whole job, which starts again without the local states"
    ZOMBIES = "SIGSTOP of the executors and workers, kill -9 of the driver; they resume when the next job is done"
    PAUSE = "SIGSTOP of the whole job for some seconds"
    BROKER = "kill -9 of the broker, which starts again"
    BROKER_STOP = "a controlled restart of the broker"
    PUBLISHER = "kill -9 of the node's publisher, which starts again"
    SPARK_WORKER = "kill -9 of one of a standalone cluster's workers; it starts again when its executor has exited"


class Strike(NamedTuple):
    """A fault at a moment."""

    # The seconds of load before it.
    after: float
    # The fault.
    fault: StackFault
    # The fault point, only where the fault is POINT.
    point: FaultPoint | None = None
    # The time at which the point is reached that counts: 1 is the first.
    nth: int = 1

    def __str__(self) -> str:
        where = f" at {self.point.name.lower()}:{self.nth}" if self.point else ""
        return f"{self.fault.name.lower()}{where} after {self.after:.1f} s"


def strikes(
    seed: int, seconds: float, count: int, point: FaultPoint | None = None, *, has_spark_workers: bool = False
) -> list[Strike]:
    """Return `count` faults within `seconds`, in order: one of them by turns, so that consecutive seeds go through all
    kinds, the others by chance; `point` is in place of any other.
    """
    chance = random.Random(f"{seed}/faults")
    kinds = [fault for fault in StackFault if has_spark_workers or fault is not StackFault.SPARK_WORKER]
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

    def __init__(self, stack: Stack, spark: RunningSpark, folder: Path) -> None:
        self.zombies: list[int] = []
        self._stack = stack
        self._spark = spark
        self._once = folder / "fault-has-struck"

    def strike(self, strike: Strike) -> None:
        _STRIKES[strike.fault](self, strike)

    def wake_zombies(self) -> None:
        """They go on, and find that they are fenced; returns when they have ended."""
        zombies, self.zombies = self.zombies, []
        _signal(zombies, signal.SIGCONT)
        deadline = time.monotonic() + ZOMBIE_END_SECONDS
        while any(process_state(pid) != "gone" for pid in zombies) and time.monotonic() < deadline:
            time.sleep(0.05)
        _kill(*zombies)

    def start_job(self, fault: str | None = None) -> None:
        """The job, and what it fails with; the fault strikes once in all its workers."""
        job = self._stack.materializer
        given = {} if fault is None else {"CDC_FAULT": fault, "CDC_FAULT_ONCE": str(self._once)}
        for name in ("CDC_FAULT", "CDC_FAULT_ONCE"):
            job.environment.pop(name, None)
        if fault is not None:
            self._once.unlink(missing_ok=True)
        job.environment |= given
        self._spark.set_environment(given)
        job.start()

    def disarm(self) -> None:
        """Cancel strikes that an earlier run's workers were to make at a point and have not made."""
        self._once.touch()

    def _worker(self, _strike: Strike) -> None:
        _kill(*self._python_workers()[:1])

    def _point(self, strike: Strike) -> None:
        assert strike.point is not None
        self._kill_job()
        if strike.point in RESTORING:
            self._delete_states()
        self.start_job(f"{strike.point.name}:{strike.nth}")

    def _executor(self, _strike: Strike) -> None:
        _kill(*self._named(EXECUTOR)[:1])

    def _driver(self, _strike: Strike) -> None:
        self._job.kill_leader()
        self.start_job()

    def _whole_job(self, _strike: Strike) -> None:
        self._kill_job()
        self.start_job()

    def _lost_state(self, _strike: Strike) -> None:
        self._kill_job()
        self._delete_states()
        self.start_job()

    def _stop_workers(self, _strike: Strike) -> None:
        left = [*self._named(EXECUTOR), *self._named(DAEMON)]
        _signal(left, signal.SIGSTOP)
        self.zombies += left
        _kill(*self._named(DRIVER_JVM))
        self._job.kill_leader()
        self.start_job()

    def _pause(self, _strike: Strike) -> None:
        paused = self._members()
        _signal(paused, signal.SIGSTOP)
        time.sleep(PAUSE_SECONDS)
        _signal(paused, signal.SIGCONT)

    def _spark_worker(self, strike: Strike) -> None:
        workers = self._spark.workers
        worker = workers[strike.nth % len(workers)]
        assert worker.process is not None
        worker.process.kill_leader()
        wait_until(lambda: not python_workers(worker) and not executors(worker), "its executors have ended")
        worker.start()

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

    def _kill_job(self) -> None:
        """Kill the job and its executors, wherever they are."""
        self._stack.materializer.kill()
        _kill(*self._spark.executor_pids())

    def _delete_states(self) -> None:
        """The local ones; those of a standalone cluster lie in folders that no other job has."""
        if not self._spark.workers:
            shutil.rmtree(str(self._stack.materializer.settings["materializer.state_directory"]), ignore_errors=True)

    def _members(self) -> list[int]:
        """The pids of the job's processes, its executors among them."""
        return [*self._job.members(), *self._spark.executor_pids()]

    def _named(self, word: str) -> list[int]:
        """Those whose command line has the word."""
        return [pid for pid in self._members() if word in " ".join(_command(pid))]

    def _python_workers(self) -> list[int]:
        """The Python workers: PySpark's daemons fork them."""
        daemons = self._named(DAEMON)
        return [pid for pid in daemons if _parent(pid) in daemons]


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
    StackFault.SPARK_WORKER: Hurter._spark_worker,
}


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


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _kill(*pids: int) -> None:
    _signal(pids, signal.SIGKILL)
    for pid in pids:
        wait_until(partial(_is_gone, pid), f"{pid} has ended")


def _is_gone(pid: int) -> bool:
    return process_state(pid) == "gone"
