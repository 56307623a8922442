"""`make bench NAME=scale`: rows per second with 1, 2 and 4 workers, and by simulation with more than this machine has.

The simulation takes the costs that were measured with one worker. Each worker has a core, folds its raw partitions, and
waits at the end of each batch for the slowest one and for the driver. Kafka has cores of its own.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import psutil

from bench.materializer import Run, measure_job
from bench.raw_load import LOADS, make_messages, make_topics
from bench.results import Figures, medians, report
from local_stack.servers.kafka import KafkaBroker

if TYPE_CHECKING:
    from collections.abc import Mapping

LOAD = "new"
MEASURED_PARTITIONS = 8
BATCH_SECONDS = 1.0  # materializer.job.driver


class Costs(NamedTuple):
    """CPU seconds: of a worker and its executor for a row, of Kafka for a row, of the driver for a batch and for each
    worker in it.
    """

    worker: float
    kafka: float
    batch: float
    task: float


@click.command()
@click.option("--updates", default=500_000, show_default=True, help="Raw messages for each number of workers.")
@click.option("--rounds", default=3, show_default=True, help="The figures are medians.")
@click.option("--workers", multiple=True, type=int, default=(1, 2, 4), show_default=True)
@click.option("--raw-partitions", default=64, show_default=True, help="Of the simulated table.")
@click.option("--kafka-cores", default=8, show_default=True, help="Of the simulated brokers, all together.")
def main(updates: int, rounds: int, workers: tuple[int, ...], raw_partitions: int, kafka_cores: int) -> None:
    """Measure how the rate grows with workers, and simulate what a larger cluster does."""
    messages = make_messages(LOADS[LOAD], updates)
    measured = {
        count: medians([measure(messages, count, number) for number in range(rounds)]) for count in sorted(workers)
    }
    costs = costs_of(measured)
    rows: dict[str, Figures] = {}
    for count in sorted({*measured, *(2**power for power in range(9))}):
        rate, limit = simulate(costs, count, raw_partitions, kafka_cores)
        rows[str(count)] = {"simulated": rate}
        if count in measured:
            rows[str(count)] |= {"measured": measured[count]["rows_per_second"]}
        click.echo(f"{count:4} workers: {rate:11,.0f} rows/s simulated, limited by {limit}")
    facts = {
        "updates": updates,
        "rounds": rounds,
        "raw_partitions": {"measured": MEASURED_PARTITIONS, "simulated": raw_partitions},
        "kafka_cores": kafka_cores,
        "costs": costs._asdict(),
        "measured": {str(count): figures for count, figures in measured.items()},
        "cores": psutil.cpu_count(),
    }
    report("scale", f"rows per second by workers; measured on {psutil.cpu_count()} cores", rows, facts)


def measure(messages: list[tuple[bytes, bytes]], workers: int, number: int) -> Figures:
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as folder, KafkaBroker() as kafka:
        master = f"local-cluster[{workers},1,1024]"
        run = Run(kafka, Path(folder), LOADS[LOAD], messages, master, MEASURED_PARTITIONS)
        make_topics(kafka.bootstrap_servers, run.load, run.partitions)
        figures = measure_job(run)
    click.echo(f"round {number + 1}, {workers} workers: {figures['rows_per_second']:,.0f} rows/s")
    return figures


def costs_of(measured: Mapping[int, Figures]) -> Costs:
    """The costs that the measurements with as many workers as there are cores, or fewer, show.

    A worker's and Kafka's are those with the fewest workers, where nothing waits for a core.
    """
    one = measured[min(measured)]
    counts = [count for count in measured if count <= (psutil.cpu_count() or 1)] or [min(measured)]
    drivers = [driver_of(measured[count]) for count in counts]
    if len(counts) > 1:
        task, batch = statistics.linear_regression(counts, drivers)
    else:
        task, batch = drivers[0] / counts[0], 0.0
    return Costs(
        (one["cpu workers"] + one["cpu executors"]) / 1e6, one["kafka_cpu_s_per_million"] / 1e6, batch, max(task, 0.0)
    )


def driver_of(figures: Figures) -> float:
    """The CPU seconds of the driver and its JVM for a batch."""
    per_row = (figures["cpu driver"] + figures["cpu driver's JVM"]) / 1e6
    return per_row * figures["rows_per_second"] / figures["batches_per_second"]


def simulate(costs: Costs, workers: int, raw_partitions: int, kafka_cores: int) -> tuple[float, str]:
    """Rows per second under a backlog in all raw partitions, and what sets the limit.

    In each batch a worker folds its raw partitions for a second; then the driver works, while all wait.
    """
    busy = min(workers, raw_partitions)
    driver_seconds = costs.batch + costs.task * workers
    share = BATCH_SECONDS / (BATCH_SECONDS + driver_seconds)
    folding = busy * share / costs.worker
    # Rows come evenly over the raw partitions. The worker with the most of them sets the pace of the table.
    most, least = -(-raw_partitions // busy), raw_partitions / busy
    folding *= least / most
    limits = {"Kafka's cores": kafka_cores / costs.kafka, "the workers' cores": folding}
    if workers > raw_partitions:
        limits["the number of raw partitions"] = limits.pop("the workers' cores")
    elif share < 0.5:
        limits["the driver"] = limits.pop("the workers' cores")
    limit = min(limits, key=lambda name: limits[name])
    return limits[limit], limit


if __name__ == "__main__":
    main()
