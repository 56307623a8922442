"""`make bench NAME=materializer`: the whole Spark job beside Spark's own passthrough from Kafka to Kafka.

The job first does a few raw messages, so that all its processes are up. What is measured runs from there, while the
rest is sent at once, until its changes are committed: CPU of all processes of the job (JVMs and Python), by their kind.
"""

from __future__ import annotations

import json
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.request import urlopen

import click
import psutil
from confluent_kafka.admin import NewTopic

from cdc_common.settings import KafkaSettings
from dev.bench import worker_steps
from dev.bench.processes import MB, ProcessTree, wait_until_idle
from dev.bench.raw_load import LOADS, PREFIX, Load, make_messages, make_topics, send
from dev.bench.results import Figures, medians, report
from dev.bench.threads import by_thread
from dev.bench.topics import create_topics, message_counter
from dev.local_stack.java.jars import install
from dev.local_stack.java.peer_jars import SPARK_KAFKA
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.process.processes import ChildProcess
from dev.local_stack.servers import programs
from dev.local_stack.servers.kafka import KafkaBroker
from dev.local_stack.servers.spark_cluster import spark_home
from materializer.records import RawPartition
from stream_runtime.kafka import GroupPositions

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.local_stack.servers.programs import Program

MASTER = "local-cluster[2,1,1024]"
PARTITIONS = 4
POLL_SECONDS = 0.5
MOST_SECONDS = 3600.0
WARM_UP = 500
WARM_UP_SECONDS = 4.0
LEAST_SECONDS = 0.05  # of CPU, that threads must have used to be shown


class Run(NamedTuple):
    """One load of the benchmark, and the servers for it."""

    # The broker that the raw messages are sent to.
    kafka: KafkaBroker
    # The folder for the files of the job.
    folder: Path
    # The load.
    load: Load
    # The keys and values of the raw messages.
    messages: list[tuple[bytes, bytes]]
    # The Spark master's URL.
    master: str = MASTER
    # The number of raw partitions.
    partitions: int = PARTITIONS


@click.command()
@click.option("--updates", default=1_000_000, show_default=True, help="Raw messages of each load.")
@click.option("--rounds", default=3, show_default=True, help="The figures are medians.")
@click.option("--load", "loads", multiple=True, type=click.Choice(list(LOADS)), help="Only these.")
@click.option("--passthrough/--no-passthrough", default=True, show_default=True)
def main(updates: int, rounds: int, loads: tuple[str, ...], passthrough: bool) -> None:  # noqa: FBT001 - a flag
    """Measure CPU, rate and memory of the materializer's job."""
    figures: dict[str, list[Figures]] = {}
    for number in range(rounds):
        for name in loads or LOADS:
            with (
                tempfile.TemporaryDirectory(prefix="bench-materializer-") as folder,
                KafkaBroker(is_optimized=True) as kafka,
            ):
                run = Run(kafka, Path(folder), LOADS[name], make_messages(LOADS[name], updates))
                make_topics(kafka.bootstrap_servers, run.load, run.partitions)
                _note(figures, name, number, measure_job(run))
                if passthrough and name == next(iter(loads or LOADS)):
                    _note(figures, "passthrough", number, measure_passthrough(run))
    rows = {name: medians(figure) for name, figure in figures.items()}
    facts = {"updates": updates, "rounds": rounds, "spark_master": MASTER, "all_rounds": figures}
    report("materializer", f"{updates:,} raw messages, medians of {rounds}", rows, facts)


def _note(figures: dict[str, list[Figures]], name: str, number: int, found: Figures) -> None:
    figures.setdefault(name, []).append(found)
    click.echo(f"round {number + 1}, {name}: " + ", ".join(f"{key} {value:,.1f}" for key, value in found.items()))


def measure_job(run: Run) -> Figures:
    registry = programs.schematizer(run.folder / "registry", free_ports(1)[0])
    registry.start()
    settings: dict[str, programs.Setting] = {
        "kafka.bootstrap_servers": run.kafka.bootstrap_servers,
        "kafka.topic_prefix": PREFIX,
        "registry.url": f"http://{LOCALHOST}:{registry.settings['schematizer.port']}",
        "materializer.spark_master": run.master,
    }
    job = programs.materializer(run.folder, settings)
    job.environment |= worker_steps.environment(run.folder / "steps")
    wait_until_idle()
    try:
        job.start()
        return _watch(job, run, run.load.raw_topic, _committed(run), partial(_batches, job))
    finally:
        job.stop()
        registry.stop()


def measure_passthrough(run: Run) -> Figures:
    source, target = "passthrough-in", "passthrough-out"
    create_topics(run.kafka.bootstrap_servers, *(NewTopic(name, run.partitions, 1) for name in (source, target)))
    program = _passthrough(run, source, target)
    wait_until_idle()
    try:
        program.start()
        return _watch(program, run, source, message_counter(run.kafka.bootstrap_servers, target, run.partitions))
    finally:
        program.kill()


def _passthrough(run: Run, source: str, target: str) -> Program:
    jars = ",".join(str(jar) for jar in sorted(install(SPARK_KAFKA).glob("*.jar")))
    submit = [str(spark_home() / "bin" / "spark-submit"), "--master", run.master, "--jars", jars]
    submit += ["--conf", "spark.ui.enabled=false", "--conf", f"spark.driver.host={LOCALHOST}"]
    script = Path(__file__).with_name("passthrough.py")
    arguments = (str(script), run.kafka.bootstrap_servers, source, target, str(run.folder / "passthrough"))
    return _Submitted(submit, arguments, run.folder)


class _Submitted(programs.Program):
    """A Python file run by spark-submit."""

    def __init__(self, submit: list[str], arguments: tuple[str, ...], folder: Path) -> None:
        super().__init__(
            "passthrough",
            arguments,
            folder=folder,
            settings={},
            environment=programs.spark_environment(folder),
            start_seconds=programs.SPARK_START_SECONDS,
            is_ready=lambda program: "ready" in program.output().splitlines(),
        )
        self._submit = submit

    def command(self) -> list[str]:
        return [*self._submit, *self.arguments]


def _watch(
    job: Program, run: Run, topic: str, done: Callable[[], int], batches: Callable[[], int] = lambda: 0
) -> Figures:
    """The figures of a job for all messages but the first ones, which warm it up, in two halves: Spark may start a
    worker only for the second. `batches`: how many the job has run.
    """
    bootstrap, updates = run.kafka.bootstrap_servers, len(run.messages) - 2 * WARM_UP
    for half in (1, 2):
        send(bootstrap, topic, run.messages[(half - 1) * WARM_UP : half * WARM_UP])
        _wait(job, done, half * WARM_UP)
        time.sleep(WARM_UP_SECONDS)
    with ProcessTree(job.pid, kind_of) as tree:
        before, parts_before, batches_before = tree.usage(), _parts(tree, run), batches()
        kafka_before = _kafka_seconds(run)
        started = time.monotonic()
        send(bootstrap, topic, run.messages[2 * WARM_UP :])
        _wait(job, done, len(run.messages))
        seconds = time.monotonic() - started
        usage, batch_count, kafka_seconds = tree.usage(), batches() - batches_before, _kafka_seconds(run) - kafka_before
        time.sleep(worker_steps.SETTLE_SECONDS)
        parts = _parts(tree, run)
    millions = updates / 1e6
    return {
        "cpu_s_per_million": (usage.cpu_seconds - before.cpu_seconds) / millions,
        "rows_per_second": updates / seconds,
        "peak_rss_mb": usage.peak_bytes / MB,
        "cpu_s_before": before.cpu_seconds,
        "kafka_cpu_s_per_million": kafka_seconds / millions,
        "batches_per_second": batch_count / seconds,
        **{f"rss_mb {kind}": size / MB for kind, size in sorted(tree.peak_by_kind.items())},
        **{part: used / millions for part, used in sorted(_difference(parts, parts_before).items()) if used > 0},
    }


def _batches(job: Program) -> int:
    url = f"http://{LOCALHOST}:{job.settings['materializer.operations_port']}/status"
    with urlopen(url, timeout=30) as answer:
        return int(json.load(answer)["batches"])


def _kafka_seconds(run: Run) -> float:
    """Return what the broker has used."""
    assert isinstance(run.kafka.process, ChildProcess)
    times = psutil.Process(run.kafka.process.pid).cpu_times()
    return float(times.user + times.system)


def _difference(after: Figures, before: Figures) -> Figures:
    return {part: used - before.get(part, 0.0) for part, used in after.items()}


def _parts(tree: ProcessTree, run: Run) -> Figures:
    """CPU seconds by kind of process; of the workers also by threads and, of Python's thread, by steps."""
    kinds = {f"cpu {kind}": used for kind, used in tree.by_kind().items()}
    threads = by_thread(tree.of_kind("workers"))
    threads = {f"workers: {name}": used for name, used in threads.items() if used >= LEAST_SECONDS}
    steps = {f"workers: step {step}": used for step, used in worker_steps.read(run.folder / "steps").items()}
    return {**kinds, **threads, **steps}


def _wait(job: Program, done: Callable[[], int], wanted: int) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    while (count := done()) < wanted:
        job.check()
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


def _committed(run: Run) -> Callable[[], int]:
    """A function that counts the raw messages before the job's committed positions."""
    positions = GroupPositions(
        KafkaSettings(bootstrap_servers=run.kafka.bootstrap_servers), "cassandra-materializer", stable=False
    )
    partitions = [RawPartition(run.load.raw_topic, number) for number in range(run.partitions)]
    return lambda: sum(at.offset if at else 0 for at in positions.read(partitions).values())


if __name__ == "__main__":
    main()
