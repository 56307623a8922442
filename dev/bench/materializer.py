"""`make bench NAME=materializer`: the whole Spark job beside Spark's own passthrough from Kafka to Kafka.

The job first does a few raw messages, so that all its processes are up. What is measured runs from there, while the
rest is sent at once, until its changes are committed: CPU of all processes of the job (JVMs and Python), by their kind.
"""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.request import urlopen

import click
from confluent_kafka.admin import NewTopic

from cdc_common.settings import KafkaSettings
from dev.bench import worker_steps
from dev.bench.jobs import MASTER, Submitted, Work, watch
from dev.bench.processes import wait_until_idle
from dev.bench.raw_load import LOADS, PREFIX, Load, make_messages, make_topics
from dev.bench.results import Figures, medians, note_round, report
from dev.bench.topics import create_topics, message_counter
from dev.local_stack.java.peer_jars import SPARK_KAFKA
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.servers import programs
from dev.local_stack.servers.kafka import KafkaBroker
from materializer.records import RawPartition
from stream_runtime.kafka import GroupPositions

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.local_stack.servers.programs import Program

PARTITIONS = 4
PASSTHROUGH = Path(__file__).with_name("passthrough.py")


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
                note_round(figures, name, number, measure_job(run))
                if passthrough and name == next(iter(loads or LOADS)):
                    note_round(figures, "passthrough", number, measure_passthrough(run))
    rows = {name: medians(figure) for name, figure in figures.items()}
    facts = {"updates": updates, "rounds": rounds, "spark_master": MASTER, "all_rounds": figures}
    report("materializer", f"{updates:,} raw messages, medians of {rounds}", rows, facts)


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
        work = Work(
            run.kafka, run.load.raw_topic, run.messages, _committed(run), partial(_batches, job), run.folder / "steps"
        )
        return watch(job, work)
    finally:
        job.stop()
        registry.stop()


def measure_passthrough(run: Run) -> Figures:
    source, target = "passthrough-in", "passthrough-out"
    create_topics(run.kafka.bootstrap_servers, *(NewTopic(name, run.partitions, 1) for name in (source, target)))
    arguments = (run.kafka.bootstrap_servers, source, target, str(run.folder / "passthrough"))
    program = Submitted(PASSTHROUGH, arguments, [SPARK_KAFKA], run.folder, run.master)
    wait_until_idle()
    try:
        program.start()
        done = message_counter(run.kafka.bootstrap_servers, target, run.partitions)
        return watch(program, Work(run.kafka, source, run.messages, done))
    finally:
        program.kill()


def _batches(job: Program) -> int:
    url = f"http://{LOCALHOST}:{job.settings['materializer.operations_port']}/status"
    with urlopen(url, timeout=30) as answer:
        return int(json.load(answer)["batches"])


def _committed(run: Run) -> Callable[[], int]:
    """A function that counts the raw messages before the job's committed positions."""
    positions = GroupPositions(
        KafkaSettings(bootstrap_servers=run.kafka.bootstrap_servers), "cassandra-materializer", stable=False
    )
    partitions = [RawPartition(run.load.raw_topic, number) for number in range(run.partitions)]
    return lambda: sum(at.offset if at else 0 for at in positions.read(partitions).values())


if __name__ == "__main__":
    main()
