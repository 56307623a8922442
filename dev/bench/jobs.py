"""Spark jobs of benchmarks: how they are submitted, and the CPU, rate and memory of all their processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import psutil

from dev.bench import worker_steps
from dev.bench.processes import MB, ProcessTree
from dev.bench.raw_load import send
from dev.bench.threads import by_thread
from dev.local_stack.java.jars import install
from dev.local_stack.process.network import LOCALHOST
from dev.local_stack.process.processes import ChildProcess
from dev.local_stack.servers import programs
from dev.local_stack.servers.kafka import KafkaBroker
from dev.local_stack.servers.spark_cluster import spark_home

if TYPE_CHECKING:
    from dev.bench.results import Figures
    from dev.local_stack.java.jars import JarSet
    from dev.local_stack.servers.programs import Program

MASTER = "local-cluster[2,1,1024]"
POLL_SECONDS = 0.5
MOST_SECONDS = 3600.0
STOPPED = '"event": "partition stopped"'  # in a log
MOST_OUTPUT = 2000  # characters of the log that are shown
WARM_UP = 500
WARM_UP_SECONDS = 4.0
LEAST_SECONDS = 0.05  # of CPU, that threads must have used to be shown


class Submitted(programs.Program):
    """A Python file of this folder that spark-submit runs. It prints `ready`."""

    def __init__(self, file: Path, arguments: Sequence[str], jars: Sequence[JarSet], folder: Path, master: str) -> None:
        super().__init__(
            file.stem,
            (str(file), *arguments),
            folder=folder,
            settings={},
            environment=programs.spark_environment(folder),
            start_seconds=programs.SPARK_START_SECONDS,
            is_ready=lambda program: "ready" in program.output().splitlines(),
        )
        self._jars = ",".join(str(jar) for jar_set in jars for jar in sorted(install(jar_set).glob("*.jar")))
        self._master = master

    def command(self) -> list[str]:
        submit = [str(spark_home() / "bin" / "spark-submit"), "--master", self._master, "--jars", self._jars]
        submit += ["--conf", "spark.ui.enabled=false", "--conf", f"spark.driver.host={LOCALHOST}"]
        return [*submit, *self.arguments]


class Work(NamedTuple):
    """The messages of a job, and how to see which of them it has done."""

    # The broker.
    kafka: KafkaBroker
    # The topic that the job reads.
    topic: str
    # Keys and values for the topic.
    messages: Sequence[tuple[bytes, bytes]]
    # Counts the messages that the job has done.
    done: Callable[[], int]
    # Counts Spark's batches.
    batches: Callable[[], int] = lambda: 0
    # The folder of worker_steps.
    steps: Path | None = None


def watch(job: Program, work: Work) -> Figures:
    """The figures of a job for all messages but the first ones, which warm it up, in two halves: Spark may start a
    worker only for the second.
    """
    bootstrap, count = work.kafka.bootstrap_servers, len(work.messages) - 2 * WARM_UP
    for half in (1, 2):
        send(bootstrap, work.topic, work.messages[(half - 1) * WARM_UP : half * WARM_UP])
        wait(job, work.done, half * WARM_UP)
        time.sleep(WARM_UP_SECONDS)
    with ProcessTree(job.pid, kind_of) as tree:
        before, parts_before, batches_before = tree.usage(), _parts(tree, work), work.batches()
        kafka_before = _kafka_seconds(work)
        started = time.monotonic()
        send(bootstrap, work.topic, work.messages[2 * WARM_UP :])
        wait(job, work.done, len(work.messages))
        seconds = time.monotonic() - started
        usage, batch_count = tree.usage(), work.batches() - batches_before
        kafka_seconds = _kafka_seconds(work) - kafka_before
        time.sleep(worker_steps.SETTLE_SECONDS)
        parts = _parts(tree, work)
    millions = count / 1e6
    return {
        "cpu_s_per_million": (usage.cpu_seconds - before.cpu_seconds) / millions,
        "rows_per_second": count / seconds,
        "peak_rss_mb": usage.peak_bytes / MB,
        "cpu_s_before": before.cpu_seconds,
        "kafka_cpu_s_per_million": kafka_seconds / millions,
        "batches_per_second": batch_count / seconds,
        **{f"rss_mb {kind}": size / MB for kind, size in sorted(tree.peak_by_kind.items())},
        **{part: used / millions for part, used in sorted(_difference(parts, parts_before).items()) if used > 0},
    }


def wait(job: Program, done: Callable[[], int], wanted: int) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    while (count := done()) < wanted:
        job.check()
        if STOPPED in job.output():
            raise click.ClickException(f"the job has stopped a partition: {job.output()[-MOST_OUTPUT:]}")
        if time.monotonic() > deadline:
            raise click.ClickException(f"{count:,} of {wanted:,} messages after {MOST_SECONDS:.0f} s")
        time.sleep(POLL_SECONDS)


def kind_of(process: psutil.Process) -> str:
    """Return which part of a Spark job a process is."""
    line = " ".join(process.cmdline())
    if "CoarseGrainedExecutorBackend" in line:
        return "executors"
    if "pyspark.daemon" in line:
        return "workers"
    return "driver's JVM" if "java" in process.name() else "driver"


def _kafka_seconds(work: Work) -> float:
    """Return what the broker has used."""
    assert isinstance(work.kafka.process, ChildProcess)
    times = psutil.Process(work.kafka.process.pid).cpu_times()
    return float(times.user + times.system)


def _difference(after: Figures, before: Figures) -> Figures:
    return {part: used - before.get(part, 0.0) for part, used in after.items()}


def _parts(tree: ProcessTree, work: Work) -> Figures:
    """CPU seconds by kind of process; of the workers also by threads and, of Python's thread, by steps."""
    kinds = {f"cpu {kind}": used for kind, used in tree.by_kind().items()}
    threads = by_thread(tree.of_kind("workers"))
    threads = {f"workers: {name}": used for name, used in threads.items() if used >= LEAST_SECONDS}
    steps = worker_steps.read(work.steps) if work.steps else {}
    return {**kinds, **threads, **{f"workers: step {step}": used for step, used in steps.items()}}
