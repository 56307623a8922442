"""`make bench NAME=scale`: rows per second with 1, 2 and 4 workers, and by simulation with more than this machine has.

The simulation takes the costs that were measured with the fewest workers. Each worker has a core, and uses the measured
share of it: it also waits for Kafka and for the driver between batches. The driver's CPU grows by the
worker, and Kafka has cores of its own.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import psutil

from dev.bench.materializer import Run, measure_job
from dev.bench.raw_load import LOADS, make_messages, make_topics
from dev.bench.results import Figures, medians, report
from dev.local_stack.servers.kafka import KafkaBroker

if TYPE_CHECKING:
    from collections.abc import Mapping

LOAD = "new"
MEASURED_PARTITIONS = 8
DRIVER_CORES = 1.0  # what the driver does between batches runs on one thread


class Costs(NamedTuple):
    """The resources that a job needs."""

    # The CPU seconds that a worker with its executor needs for a row.
    worker: float
    # The CPU seconds that Kafka needs for a row.
    kafka: float
    # The share of its core that a worker uses under a backlog.
    busy: float
    # The cores that the driver's process and its JVM need without workers.
    driver: float
    # The cores that they need for each worker.
    driver_per_worker: float


@click.command()
@click.option("--updates", default=1_000_000, show_default=True, help="Raw messages for each number of workers.")
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
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as folder, KafkaBroker(is_optimized=True) as kafka:
        master = f"local-cluster[{workers},1,1024]"
        run = Run(kafka, Path(folder), LOADS[LOAD], messages, master, MEASURED_PARTITIONS)
        make_topics(kafka.bootstrap_servers, run.load, run.partitions)
        figures = measure_job(run)
    click.echo(f"round {number + 1}, {workers} workers: {figures['rows_per_second']:,.0f} rows/s")
    return figures


def costs_of(measured: Mapping[int, Figures]) -> Costs:
    """The costs that the measurements show: a worker's and Kafka's with the fewest workers, where nothing waits for a
    core, and the driver's by all of them.
    """
    fewest = min(measured)
    one = measured[fewest]
    worker = (one["cpu workers"] + one["cpu executors"]) / 1e6
    busy = min(1.0, worker * one["rows_per_second"] / fewest)
    drivers = [driver_cores(figures) for figures in measured.values()]
    if len(measured) > 1:
        per_worker, driver = statistics.linear_regression(list(measured), drivers)
    else:
        per_worker, driver = drivers[0] / fewest, 0.0
    return Costs(worker, one["kafka_cpu_s_per_million"] / 1e6, busy, max(driver, 0.0), max(per_worker, 0.0))


def driver_cores(figures: Figures) -> float:
    """The cores that the driver and its JVM use."""
    return (figures["cpu driver"] + figures["cpu driver's JVM"]) / 1e6 * figures["rows_per_second"]


def simulate(costs: Costs, workers: int, raw_partitions: int, kafka_cores: int) -> tuple[float, str]:
    """Rows per second under a backlog in all raw partitions, and what sets the limit.

    Rows come evenly over the raw partitions. The worker with the most of them sets the pace of the table.
    """
    folding_workers = min(workers, raw_partitions)
    most, mean = -(-raw_partitions // folding_workers), raw_partitions / folding_workers
    folding = folding_workers * costs.busy / costs.worker * mean / most
    driver = (costs.driver + costs.driver_per_worker * workers) / DRIVER_CORES
    limits = {
        "Kafka's cores": kafka_cores / costs.kafka,
        "the driver": folding / driver,
        "the number of raw partitions" if workers > raw_partitions else "the workers' cores": folding,
    }
    limit = min(limits, key=lambda name: limits[name])
    return limits[limit], limit


if __name__ == "__main__":
    main()
