"""`make verify WHAT=chaos`: faults of every kind at every fault point, then random faults over the whole path."""

from __future__ import annotations

import itertools
import sys
import tempfile
import uuid
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console

from archive.fault_points import ArchivePoint
from cdc_common.program.cli import reported_errors
from dev.local_stack.clients import cql
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.servers.choice import kafka_broker
from dev.local_stack.servers.programs import schematizer
from dev.local_stack.servers.stack import Stack
from dev.verify.chaos.archive_matrix import archive_cells, make_archive_setup, run_archive_cell
from dev.verify.chaos.masters import MASTERS, Master, running_spark
from dev.verify.chaos.matrix import Cell, Outcome, cells, make_setup, reached, run_cell
from dev.verify.chaos.move_matrix import make_move_setup, move_cells, reached_in_move, run_move_cell
from dev.verify.chaos.report import show_cell, show_matrix, show_run, show_runs, show_strike
from dev.verify.chaos.share_matrix import SCENARIOS, make_share_setup, run_share_cell, share_cells
from dev.verify.chaos.transform_matrix import make_setup_of, run_transform_cell, transform_cells
from dev.verify.chaos.whole_path import ChaosResult, chaos_run
from dev.verify.model.check import SINGLE, Run
from stream_runtime.fault_points import FaultPoint, StatelessPoint, point_named
from tests.support.stream_runtime.share_run import POINTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dev.local_stack.servers.programs import Setting
    from stream_runtime.fault_points import Point

SetupT = TypeVar("SetupT")

NAMES = [point.name.lower() for kind in (FaultPoint, StatelessPoint, ArchivePoint) for point in kind]
# Small chunks and many snapshots: more moments to be hurt at.
SETTINGS: Mapping[str, Setting] = {
    "publisher.heartbeat_seconds": 1.0,
    "kafka.raw_partitions": 1,
    "materializer.chunk_max_messages": 25,
    "materializer.snapshot_every_versions": 4,
    "materializer.changelog_retention_versions": 3,
}


@contextmanager
def fresh_setups(console: Console, make: Callable[[str, str, Path], SetupT]) -> Iterator[Iterator[SetupT]]:
    """One for each cell, on one Kafka. `make`: of its address, a name that no other has, and a folder of its own."""
    with kafka_broker(report=console.print) as kafka, tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        names = (f"chaos-{uuid.uuid4().hex[:8]}-{number}" for number in itertools.count())
        yield (make(kafka.bootstrap_servers, name, Path(folder) / name) for name in names)


def hurt(
    console: Console, chosen: Iterable[Cell], point: Point | None, run: Callable[[Cell], Outcome]
) -> list[Outcome]:
    """The outcomes of the cells of one point, or of all. A cell whose point was reached fewer times than in the counted
    run is run again, and hurt at the last time.
    """
    outcomes: list[Outcome] = []
    for cell in chosen:
        if point in (None, cell.point):
            outcome = run(cell)
            if outcome.reached:
                outcome = run(cell._replace(nth=outcome.reached))
            outcomes.append(outcome)
            show_cell(console, outcome)
    return outcomes


def matrix(console: Console, seed: int, point: FaultPoint | None) -> bool:
    """The cells of one point, or of all; whether all is well."""
    with fresh_setups(console, make_setup) as setups:
        chosen = cells(reached(lambda: next(setups)), seed)
        outcomes = hurt(console, chosen, point, lambda cell: run_cell(next(setups), cell))
    return show_matrix(console, outcomes, seed, FaultPoint, "the protocol")


def move_matrix(console: Console, seed: int, point: FaultPoint | None) -> bool:
    """Run the matrix of a move to another change topic."""
    with fresh_setups(console, make_move_setup) as setups:
        chosen = move_cells(reached_in_move(lambda: next(setups)), seed)
        outcomes = hurt(console, chosen, point, lambda cell: run_move_cell(next(setups), cell))
    return show_matrix(console, outcomes, seed, FaultPoint, "a move to another change topic")


@contextmanager
def running_registry() -> Iterator[str]:
    """The URL of a registry of its own."""
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder, ExitStack() as end:
        port = free_ports(1)[0]
        program = schematizer(Path(folder), port).start()
        end.callback(program.stop)
        yield f"http://{LOCALHOST}:{port}"


def transform_matrix(console: Console, seed: int, point: StatelessPoint | None) -> bool:
    """Run the matrix of the transformers' protocol."""
    with (
        running_registry() as registry,
        fresh_setups(console, lambda kafka, name, at: make_setup_of(kafka, registry, name, at)) as setups,
    ):
        chosen = transform_cells(next(setups), seed)
        outcomes = hurt(console, chosen, point, lambda cell: run_transform_cell(next(setups), cell))
    return show_matrix(console, outcomes, seed, StatelessPoint, "a transformer's protocol")


def archive_matrix(console: Console, seed: int, point: ArchivePoint | None) -> bool:
    """Run the matrix of the archive's protocol."""
    with (
        running_registry() as registry,
        fresh_setups(console, lambda kafka, name, at: make_archive_setup(kafka, registry, name, at)) as setups,
    ):
        chosen = archive_cells(lambda: next(setups), seed)
        outcomes = hurt(console, chosen, point, lambda cell: run_archive_cell(next(setups), cell))
    return show_matrix(console, outcomes, seed, ArchivePoint, "the archive's protocol")


def share_matrix(console: Console, seed: int, point: StatelessPoint | None) -> bool:
    """Run the matrices of a share of several partitions: its successors have the same share, or others."""
    verdicts: list[bool] = []
    with fresh_setups(console, make_share_setup) as setups:
        for scenario in SCENARIOS:
            chosen = share_cells(next(setups), scenario, seed)
            outcomes = hurt(console, chosen, point, lambda cell: run_share_cell(next(setups), cell))
            verdicts.append(show_matrix(console, outcomes, seed, POINTS, f"a share of two partitions, {scenario}"))
    return all(verdicts)


def runs(console: Console, seeds: range, point: FaultPoint | None, master: Master) -> bool:
    """Runs over the whole path on one Cassandra and one Kafka; whether all is well."""
    results: list[ChaosResult] = []
    report = partial(console.print, style="dim", highlight=False)
    with (
        running_spark(master, report) as spark,
        Stack(settings={**SETTINGS, **spark.settings}, report=report) as stack,
        cql.connect(stack.servers.cassandra_hosts, stack.servers.cassandra_port) as client,
        tempfile.TemporaryDirectory(prefix="chaos-") as folder,
    ):
        run = Run(client, client, stack.servers, "5.0", SINGLE)
        for seed in seeds:
            results.append(chaos_run(stack, spark, run, seed, Path(folder), point, partial(show_strike, console, seed)))
            show_run(console, results[-1])
    return show_runs(console, results)


MATRICES: Mapping[str, Callable[[Console, int, Any], bool]] = {
    "protocol": matrix,
    "move": move_matrix,
    "transformer": transform_matrix,
    "share": share_matrix,
    "archive": archive_matrix,
}
POINTS_OF: Mapping[str, type[Point]] = {
    "protocol": FaultPoint,
    "move": FaultPoint,
    "transformer": StatelessPoint,
    "share": StatelessPoint,
    "archive": ArchivePoint,
}
"""The points of each matrix."""


@click.command()
@click.option("--seed", default=1, show_default=True, help="The first seed, which chooses faults and moments.")
@click.option("--runs", "count", default=20, show_default=True, help="Runs over the whole path; 0 for none.")
@click.option("--point", "name", type=click.Choice(NAMES), help="Only this fault point.")
@click.option("--matrix", "chosen", type=click.Choice(["all", "none", *MATRICES]), default="all", show_default=True)
@click.option("--spark", type=click.Choice(list(MASTERS)), default="two-executors", show_default=True)
def main(seed: int, count: int, name: str | None, chosen: str, spark: str) -> None:
    """Exit status 1 if anything is missing, comes twice or differs."""
    console = Console(soft_wrap=True)
    point = point_named(name.upper()) if name else None
    with reported_errors():
        verdicts = [
            run(console, seed, point)
            for matrix_name, run in MATRICES.items()
            if chosen in ("all", matrix_name) and (point is None or isinstance(point, POINTS_OF[matrix_name]))
        ]
        if count and (point is None or isinstance(point, FaultPoint)):
            task_point = None if point is None else FaultPoint(point)
            verdicts.append(runs(console, range(seed, seed + count), task_point, MASTERS[spark]))
    sys.exit(0 if all(verdicts) else 1)


if __name__ == "__main__":
    main()
