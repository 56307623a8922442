"""`make verify WHAT=model`: random statements through Cassandra, publisher, Kafka and Spark, compared with SELECT."""

from __future__ import annotations

import itertools
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click
from rich.console import Console

from cdc_common.program.cli import reported_errors
from dev.local_stack.clients import cql
from dev.local_stack.clients.change_reader import ChangeReader
from dev.local_stack.servers.cassandra import CDC_DATACENTER
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.stack import SYNC_PERIOD_MS, Stack
from dev.verify.model.backlog import TRUNCATE_SECONDS
from dev.verify.model.backlog_check import Stopped, check_backlogs
from dev.verify.model.check import REPLICATED, SINGLE, Result, Run, check, programs_of
from dev.verify.model.duplicates import HINTS_FLUSH_SECONDS, check_duplicates
from dev.verify.model.names_check import check_names
from dev.verify.model.push import SEGMENT_MIB, pusher
from tests.support.e2e.every_event import event_problems

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from dev.local_stack.servers.programs import Setting

# Each raw partition is a task of each batch: one a table is enough here. Purging is soon where gc_grace_seconds is too.
SETTINGS = {
    "publisher.heartbeat_seconds": 2.0,
    "publisher.drop_seconds": 2.0,
    "materializer.truncate_seconds": TRUNCATE_SECONDS,
    "kafka.raw_partitions": 1,
    "materializer.purge_margin_seconds": 1,
}
RING_DELAY_MS = 20_000  # a node that starts gives up if its peers have not answered by then, on a busy machine too
CLUSTER = {"main": 1, CDC_DATACENTER: 2}
SHOWN = 30
KINDS = ("rows", "events", "backlogs", "late-publisher", "names")
TABLES = 30
BACKLOGS_SHARE = 3  # of the statements, so many fewer go to schema changes within backlogs
EVENTS_SHARE = 5  # of the statements, so many fewer go to the check of every event
REORDER_EVERY = 3  # one seed in so many has the reorder buffer on
REORDER_SECONDS = 3.0
REORDER = "materializer.reorder_seconds"
PAUSE_SECONDS = 8.0  # longer than the short TTLs
VIEWS = {"3.11": "enable_materialized_views", "4.0": "enable_materialized_views"}
# ms; a busy machine answers later than the default 2 s, and a write that is sent again may be applied twice.
PATIENCE = {f"{name}_timeout_in_ms": 15_000 for name in ("write_request", "counter_write_request", "cas_contention")}
NO_SNAPSHOTS = {"auto_snapshot": False}  # of each table that is dropped: they make DROP KEYSPACE take half a minute
TTL_IS_CAPPED = "-Dcassandra.expiration_date_overflow_policy=CAP_NOWARN"  # where 2038 is the end, by default refused
UNFLUSHED = "-Dcassandra.test.flush_local_schema_changes=false"  # otherwise each of a thousand schema changes flushes


@contextmanager
def stack_for(
    version: str, *, cluster: bool, console: Console, settings: Mapping[str, Setting] | None = None
) -> Iterator[tuple[Stack, Run]]:
    """A stack that is up, and what a seed's run needs of it; clients speak to a node without CDC if there is one."""
    options = options_of(version)
    if cluster:
        options = replace(
            options,
            yaml={**options.yaml, "hints_flush_period_in_ms": HINTS_FLUSH_SECONDS * 1000},
            jvm_options=[*options.jvm_options, f"-Dcassandra.ring_delay_ms={RING_DELAY_MS}"],
        )
    with Stack(
        version=version,
        datacenters=CLUSTER if cluster else None,
        options=options,
        settings={**SETTINGS, "publisher.processed_segments": "keep" if cluster else "delete", **(settings or {})},
        report=lambda text: console.print(text, style="dim", highlight=False),
    ) as stack:
        servers = stack.servers
        others = [node.address for node in servers.nodes if node.cdc_raw is None]
        with (
            cql.connect(others or servers.cassandra_hosts, servers.cassandra_port) as client,
            cql.connect(servers.cassandra_hosts, servers.cassandra_port) as schema_client,
        ):
            run = Run(client, schema_client, servers, version, REPLICATED if cluster else SINGLE)
            if not cluster:
                run = replace(run, evolves=True, pause_seconds=PAUSE_SECONDS, programs=programs_of(stack))
            if version == "3.11":
                run = replace(run, push=pusher(client, stack.cassandra.nodes, run.replication))
            yield stack, run


def options_of(version: str) -> CassandraOptions:
    options = CassandraOptions(
        commitlog_sync_period_ms=SYNC_PERIOD_MS,
        yaml={VIEWS.get(version, "materialized_views_enabled"): True, **NO_SNAPSHOTS, **PATIENCE},
        jvm_options=[TTL_IS_CAPPED, UNFLUSHED],
    )
    return replace(options, commitlog_segment_mib=SEGMENT_MIB) if version == "3.11" else options


def show(console: Console, result: Result) -> None:
    verdict = f"[red]{len(result.problems)} problems[/]" if result.problems else "[green]all agree[/]"
    console.print(
        f"seed {result.seed}: {result.statements} statements, {result.raw} raw messages, {result.changes} changes "
        f"({result.expiries} expiries), {result.rows} rows compared, {verdict} ({result.seconds:.0f} s)",
        highlight=False,
    )
    for line in result.problems[:SHOWN]:
        console.print(f"  {line}", style="red", highlight=False, markup=False, soft_wrap=True)


def run_seeds(
    console: Console, stack: Stack, run: Run, seeds: range, statements: int, kinds: Collection[str] = KINDS
) -> list[Result]:
    """Those with the reorder buffer last: the job is started again with it once."""
    results: list[Result] = []
    for reorders, group in itertools.groupby(sorted(seeds, key=has_reordering), has_reordering):
        run = with_reordering(stack, run, REORDER_SECONDS if reorders else 0.0)
        found = {seed: run_seed(run, seed, statements, kinds) for seed in group}
        for stopped in stopped_programs(stack, kinds) if run.programs else ():
            for one in check_backlogs(run, stopped, list(found), statements // BACKLOGS_SHARE, stack.check):
                console.print(one.line, highlight=False)
                result = found[one.seed]
                result.problems += one.problems
                result.statements += one.statements
                result.changes += one.events
        for result in found.values():
            show(console, result)
        results += found.values()
    return results


def run_seed(run: Run, seed: int, statements: int, kinds: Collection[str]) -> Result:
    """Run a seed's parts besides backlogs."""
    result = check(run, seed, statements) if "rows" in kinds else Result(seed)
    if "events" in kinds and len(run.servers.cassandra_hosts) == 1 and run.version != "3.11":
        result.problems += every_event(run, seed, statements // EVENTS_SHARE)
    return result


def stopped_programs(stack: Stack, kinds: Collection[str]) -> Iterator[Stopped]:
    """The programs that are stopped during backlogs."""
    if "backlogs" in kinds:
        yield Stopped(stack.materializer)
    if "late-publisher" in kinds:
        yield Stopped(stack.publishers[0], is_publisher=True)


def has_reordering(seed: int) -> bool:
    return seed % REORDER_EVERY == 0


def with_reordering(stack: Stack, run: Run, seconds: float) -> Run:
    """The run on a job with so long a reorder buffer."""
    if run.reorder_seconds != seconds:
        stack.materializer.settings[REORDER] = seconds
        stack.materializer.restart()
    return replace(run, reorder_seconds=seconds)


def every_event(run: Run, seed: int, count: int) -> list[str]:
    """Run `count` statements with rising timestamps: on one node each of them comes out, in their order. Return the
    problems.
    """
    keyspace = f"events_{seed}"
    with ChangeReader.of_keyspace(run.servers, keyspace) as reader:
        late_seconds = run.reorder_seconds / 2
        problems = event_problems(run.client, reader, keyspace, seed, count, late_seconds=late_seconds)
    run.client.execute(f"DROP KEYSPACE {keyspace}")
    return problems


@click.command()
@click.option("--seed", default=1, show_default=True, help="The first seed.")
@click.option("--seeds", default=20, show_default=True, help="How many seeds.")
@click.option("--statements", default=5000, show_default=True, help="Statements of each.")
@click.option("--version", default="5.0", show_default=True, help="Cassandra's.")
@click.option("--cluster", is_flag=True, help="Two datacenters, the one with CDC of two nodes that hold all twice.")
@click.option("--pause", default=PAUSE_SECONDS, show_default=True, help="Seconds for which programs stand still.")
@click.option("--tables", default=TABLES, show_default=True, help="How many plain tables the check of names has.")
@click.option("--kinds", default=",".join(KINDS), show_default=True, help="What each seed consists of.")
def main(
    seed: int, seeds: int, statements: int, version: str, pause: float, tables: int, kinds: str, *, cluster: bool
) -> None:
    """Compare what comes out of random statements with SELECT *; exit status 1 if anything differs."""
    console = Console(soft_wrap=True)
    chosen = kinds.split(",")
    start = time.monotonic()
    with reported_errors(), stack_for(version, cluster=cluster, console=console) as (stack, run):
        paused = replace(run, pause_seconds=pause if run.programs else 0.0)
        results = run_seeds(console, stack, paused, range(seed, seed + seeds), statements, chosen)
        if "names" in chosen and not cluster:
            names = check_names(run, stack, seed, tables)
            console.print(names.line, highlight=False)
            results.append(Result(seed, names.statements, names.rows, names.changes, problems=names.problems))
            show(console, results[-1])
        if cluster:
            results.append(check_duplicates(stack, run, seed + seeds, statements, console.print))
            show(console, results[-1])
    sys.exit(
        0 if summary(console, results, f"Cassandra {version}{', two datacenters' if cluster else ''}", start) else 1
    )


def summary(console: Console, results: list[Result], where: str, start: float) -> bool:
    """The last line; whether all is well."""
    red = [result.seed for result in results if result.problems]
    statements, changes, expiries, rows = (
        sum(getattr(result, name) for result in results) for name in ("statements", "changes", "expiries", "rows")
    )
    good = not red and bool(changes)
    console.print(
        f"{len(results)} seeds on {where}: {statements} statements, {changes} changes ({expiries} expiries), {rows} "
        f"rows compared; seeds that differ: {red or 'none'} ({time.monotonic() - start:.0f} s)",
        style="bold green" if good else "bold red",
        highlight=False,
    )
    return good


if __name__ == "__main__":
    main()
