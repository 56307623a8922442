"""One seeded run over the whole path: random load, random faults at random moments, then the design's invariants."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from cdc_common.errors.codes import CdcError, Code
from dev.verify.chaos.faults import Hurter, Strike, strikes
from dev.verify.model.check import Run, Seed
from dev.verify.model.shapes import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import TracebackType

    from dev.local_stack.servers.stack import Stack
    from dev.verify.chaos.masters import RunningSpark
    from dev.verify.model.generator import Generator
    from dev.verify.model.writer import Writer
    from stream_runtime.fault_points import FaultPoint

# Inserts, updates, deletions of rows, ranges and partitions, statics, TTLs, counters.
CHAOS_TABLES = tuple(table for table in TABLES if table.name in {"plain", "wide", "lives", "hits"})
STRIKE_SECONDS = 8.0
STRIKES = 2
SLICE = 8  # statements between two pauses
PAUSE_SECONDS = 0.2
LOOK_SECONDS = 0.25
# With these the job may give up and be started again by whoever runs it; anything else is a difference.
MAY_END_WITH = (Code.SPARK_FAILED, Code.KAFKA_UNREACHABLE, Code.REGISTRY_UNREACHABLE)


@dataclass(slots=True)
class ChaosResult:
    """The result of a run."""

    # The seed.
    seed: int
    # The faults.
    strikes: list[Strike]
    # The number of statements.
    statements: int = 0
    # The number of changes.
    changes: int = 0
    # The number of changes that no write has made.
    expiries: int = 0
    # The number of rows that were compared.
    rows: int = 0
    # How often the job ended by itself with an error that is allowed, and was started again.
    restarts: int = 0
    # The time that the run took, in s.
    seconds: float = 0.0
    # A line for each broken invariant.
    problems: list[str] = field(default_factory=list)


class Supervisor:
    """Starts the job again when it has ended by itself, as systemd or Kubernetes would; `hurting` holds it off."""

    def __init__(self, stack: Stack, hurter: Hurter) -> None:
        self.restarts = 0
        self.problems: list[str] = []
        self.hurting = threading.Lock()
        self._stack = stack
        self._hurter = hurter
        self._end = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        thread = threading.Thread(target=self._watch)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join()

    def _watch(self) -> None:
        while not self._end.wait(LOOK_SECONDS):
            with self.hurting:
                self.check_job()

    def check_job(self) -> None:
        job = self._stack.materializer
        if job.is_running:
            return
        output = job.output()
        self.restarts += 1
        if not any(code.text in output for code in MAY_END_WITH):
            told = [line for line in output.splitlines() if "error" in line.lower() and "rdkafka" not in line]
            self.problems.append(f"the job has ended with {' '.join(told[-3:])}")
        try:
            self._hurter.start_job()
        except CdcError as error:
            self.problems.append(f"the job does not start again: {error.problem}")


def chaos_run(
    stack: Stack,
    spark: RunningSpark,
    run: Run,
    seed: int,
    folder: Path,
    point: FaultPoint | None,
    say: Callable[[Strike], None],
) -> ChaosResult:
    """Raises nothing for what differs: it is in the result."""
    began = time.monotonic()
    planned = strikes(seed, STRIKE_SECONDS, STRIKES, point, has_spark_workers=bool(spark.workers))
    result = ChaosResult(seed, planned)
    hurter = Hurter(stack, spark, folder)
    hurter.disarm()
    supervisor = Supervisor(stack, hurter)
    with Seed(run, seed, f"chaos_{seed}_{int(time.time())}", CHAOS_TABLES) as one, supervisor.watching():
        try:
            result.statements = _load_and_hurt(one, planned, hurter, supervisor, say)
            one.read_all_rows()
            one.catch_up()
            result.problems, result.rows = one.problems()
        except (AssertionError, CdcError) as error:
            result.problems.append(str(error))
        result.changes, result.expiries = one.history.count, one.expiries()
    result.problems += supervisor.problems
    result.restarts = supervisor.restarts
    result.seconds = time.monotonic() - began
    return result


def _load_and_hurt(
    one: Seed,
    planned: list[Strike],
    hurter: Hurter,
    supervisor: Supervisor,
    say: Callable[[Strike], None],
) -> int:
    """Statements go on until all faults have struck; how many were sent."""
    writer, generator = one.writer(), one.generator()
    with Load(generator, writer):
        _strike_all(planned, hurter, supervisor, say)
    one.settler.wait_until_settled(time.time())
    hurter.wake_zombies()
    writer.write_statements(generator.late_statements())
    writer.write_statements(generator.last_statements())
    return writer.sent


def _strike_all(planned: list[Strike], hurter: Hurter, supervisor: Supervisor, say: Callable[[Strike], None]) -> None:
    start = time.monotonic()
    for strike in planned:
        time.sleep(max(0.0, start + strike.after - time.monotonic()))
        say(strike)
        with supervisor.hurting:
            supervisor.check_job()
            hurter.strike(strike)


class Load(threading.Thread):
    """Statements in slices with pauses; a context manager, which raises at its end what they failed with."""

    def __init__(self, generator: Generator, writer: Writer) -> None:
        super().__init__()
        self._generator = generator
        self._writer = writer
        self._end = threading.Event()
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self.join()
        if kind is None and self._error is not None:
            raise self._error

    def run(self) -> None:
        try:
            while not self._end.is_set():
                self._writer.write_statements(self._generator.statements(SLICE))
                self._end.wait(PAUSE_SECONDS)
        except BaseException as error:  # noqa: BLE001 - raised in the context's thread
            self._error = error
