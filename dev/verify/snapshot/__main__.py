"""`make verify WHAT=snapshot`: tables that hold data before CDC is on, through all programs, compared with SELECT."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import click
from rich.console import Console

from cdc_common.program.cli import reported_errors
from dev.local_stack.clients import cql
from dev.local_stack.servers.stack import Stack
from dev.verify.model.__main__ import SETTINGS, options_of
from dev.verify.model.check import EXPIRY_SECONDS, Run, Seed, generator_of
from dev.verify.model.generator import Course, Generator
from dev.verify.model.push import BY_FILLER, pusher
from dev.verify.model.settle import SETTLE_SECONDS
from dev.verify.model.shapes import SWITCHED, schema
from dev.verify.snapshot import bulk
from dev.verify.snapshot.disturber import Disturber
from dev.verify.snapshot.progress import SNAPSHOT_SECONDS, Snapshots, pass_present_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dev.local_stack.clients.change import Change
    from dev.local_stack.servers.cassandra_options import CassandraOptions
    from dev.local_stack.servers.programs import Setting
    from dev.verify.model.statement import Item
    from dev.verify.model.tables import Table

BTI = {"sstable": {"selected_format": "bti"}}
WRITE_PIECES = 20  # of the statements beside the snapshot: the last ones come when it has ended, or later
SHOWN = 30
LEAST_ROWS_PER_SECOND = 500  # that come out, on a busy machine
CHECKED = ("row_sequence", "ts_us", "cause", "snapshot", "empty")  # of `source`
DATACENTER = "cdc"


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a run."""

    # The number of statements before CDC is on; as many are written beside the snapshot.
    statements: int
    # The number of rows of the large table.
    rows: int


class SnapshotSeed(Seed):
    """A keyspace whose tables get `cdc = true` when they hold data."""

    def __init__(self, run: Run, seed: int, keyspace: str, size: Size) -> None:
        super().__init__(run, seed, keyspace, tables_of(run, seed, size.rows))
        self._size = size

    def __enter__(self) -> Self:
        off = tuple(replace(table, is_cdc=False) for table in self.first_tables)
        for statement in schema(off, self.run.replication):
            self.run.schema_client.execute(statement.replace("$k", self.keyspace))
        return self

    def catch_up(self, quiet_after: float | None = None) -> None:
        """Wait until the seed's changes are there, and read them. A million changes fit in memory."""
        self._settle(quiet_after or time.time())
        self.history.add(map(without_unchecked, self._reader.each_change()))

    def _settle(self, quiet_after: float) -> None:
        self.settler.wait_until_settled(quiet_after, SETTLE_SECONDS + self._size.rows / LEAST_ROWS_PER_SECOND)

    def switch_on(self) -> None:
        for table in self.first_tables:
            if table.is_cdc:
                self.run.schema_client.execute(f"ALTER TABLE {self.keyspace}.{table.name} WITH cdc = true")
        self.raw.open()

    def write_before(self) -> None:
        """Write before the snapshots, without changes of the schema."""
        start = int(time.time() * 1e6)
        course = Course(self.run.version)
        early = Generator(self.seed, self.first_tables, start, has_ties=self.run.has_ties, course=course)
        writer = self.writer(retries=20)
        half = self._size.statements // 2
        writer.write_statements(early.statements(half))
        bulk.fill(writer, self.run.client, self.keyspace, self._size.rows // bulk.ROWS_PER_PARTITION, start)
        writer.write_statements(early.statements(self._size.statements - half))

    def write_beside(self, is_over: Callable[[], bool]) -> None:
        """Write, with changes of the schema, until the snapshots are over; then end as a seed of `model` does."""
        late = generator_of(self.run, self.seed + 1_000_000, self.first_tables)
        writer = self.writer(retries=20)
        deadline = time.monotonic() + SNAPSHOT_SECONDS
        items = late.statements(self._size.statements)
        piece = max(1, self._size.statements // WRITE_PIECES)
        while True:
            writer.write_statements(taken(items, piece))
            if is_over():
                break
            assert time.monotonic() < deadline, "the snapshots have not ended"
        writer.write_statements(items)
        writer.write_statements(late.end_of_changes())
        self._settle(time.time())
        writer.write_statements(late.late_statements())
        writer.write_statements(late.last_statements())


def without_unchecked(change: Change) -> Change:
    """Return the change without the fields of `source` that no check looks at, which take most of a change's memory."""
    if change.value is None:
        return change
    source = change.value["source"]
    return replace(change, value={**change.value, "source": {name: source[name] for name in CHECKED if name in source}})


def taken(items: Iterator[Item], count: int) -> Iterator[Item]:
    """The next so many; waits a second where there are none left."""
    found = False
    for _, item in zip(range(count), items, strict=False):
        found = True
        yield item
    if not found:
        time.sleep(1)


def tables_of(run: Run, seed: int, rows: int) -> tuple[Table, ...]:
    """Return the run's tables, without the one whose `cdc` goes off and on: what is written in between is nowhere."""
    return (*(table for table in run.tables(seed) if table.name != SWITCHED.name), bulk.table(rows))


def check(stack: Stack, run: Run, seed: int, size: Size, console: Console) -> bool:
    """Whether all agree."""
    started = time.monotonic()
    keyspace = f"snapshot_{seed}"
    publishers = stack.publishers
    with SnapshotSeed(run, seed, keyspace, size) as one:
        one.write_before()
        pass_present_log(run.client, keyspace, publishers, run.push)
        console.print(f"seed {seed}: written before CDC ({time.monotonic() - started:.0f} s)")
        names = [table.name for table in one.first_tables if table.is_cdc]
        snapshots = Snapshots(publishers, [f"{keyspace}.{name}" for name in names])
        beside = list(zip(stack.cassandra.cdc_nodes, publishers, strict=True))
        with Disturber(seed, keyspace, names, beside) as disturber:
            one.switch_on()
            one.write_beside(snapshots.are_over)
        states = snapshots.states()
        console.print(f"snapshots: {dict(states)}; beside them: {dict(disturber.done)}", highlight=False)
        one.read_all_rows()
        one.catch_up(time.time() + EXPIRY_SECONDS)
        problems, rows = one.problems()
        reads = sum(
            change.value is not None and change.value["op"] == "r"
            for changes in one.history.changes.values()
            for change in changes
        )
        if not reads:
            problems.append("no change has op r: nothing came through a snapshot")
        verdict = f"[red]{len(problems)} problems[/]" if problems else "[green]all agree[/]"
        raw = sum(map(len, one.raw.records.values()))
        console.print(
            f"seed {seed}: {raw} raw messages, {one.history.count} changes ({reads} r), {rows} rows compared, "
            f"{verdict} ({time.monotonic() - started:.0f} s)",
            highlight=False,
        )
        for line in problems[:SHOWN]:
            console.print(f"  {line}", style="red", highlight=False, markup=False, soft_wrap=True)
    return not problems


def replication_of(replicas: int) -> str:
    return f"{{'class': 'NetworkTopologyStrategy', '{DATACENTER}': {replicas}}}"


@click.command()
@click.option("--seed", default=1, show_default=True, help="The first seed.")
@click.option("--seeds", default=1, show_default=True, help="How many seeds.")
@click.option(
    "--statements", default=2000, show_default=True, help="Before CDC is on, and as many beside the snapshot."
)
@click.option("--rows", default=100_000, show_default=True, help="Of a large table, written before CDC is on.")
@click.option("--version", default="5.0", show_default=True, help="Cassandra's; 5.0-BTI for its SSTables with tries.")
@click.option("--nodes", default=1, show_default=True, help="Of one datacenter, each with a publisher.")
@click.option("--replication", default=1, show_default=True, help="How many nodes hold a row.")
@click.option("--rate", default=2.0, show_default=True, help="publisher.snapshot_max_mib_per_second.")
def main(
    seed: int, seeds: int, statements: int, rows: int, version: str, nodes: int, replication: int, rate: float
) -> None:
    """Compare what comes out of snapshots under load with SELECT *; exit status 1 if anything differs."""
    console = Console(soft_wrap=True)
    release = "5.0-NONE" if version == "5.0-BTI" else version
    options = options_of(release)
    if version == "5.0-BTI":
        options = replace(options, yaml={**options.yaml, **BTI})
    with reported_errors(), stack_of(release, nodes, options, rate, console) as stack:
        servers = stack.servers
        with cql.connect(servers.cassandra_hosts, servers.cassandra_port) as client:
            replicas = min(nodes, replication)
            run = Run(client, client, servers, release, replication_of(replicas), evolves=nodes == 1, replicas=replicas)
            if release == "3.11":
                run = replace(run, push=pusher(client, stack.cassandra.nodes, run.replication))
            size = Size(statements, rows)
            good = [check(stack, run, number, size, console) for number in range(seed, seed + seeds)]
    sys.exit(0 if all(good) else 1)


def stack_of(release: str, nodes: int, options: CassandraOptions, rate: float, console: Console) -> Stack:
    settings: dict[str, Setting] = {
        **SETTINGS,
        "publisher.snapshot": "initial",
        "publisher.snapshot_max_mib_per_second": rate,
        **(BY_FILLER if release == "3.11" else {}),
    }
    return Stack(
        version=release,
        datacenters={DATACENTER: nodes},
        options=options,
        settings=settings,
        report=lambda text: console.print(text, style="dim", highlight=False),
    )


if __name__ == "__main__":
    main()
