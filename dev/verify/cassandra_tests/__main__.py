"""`make verify WHAT=cassandra-tests`: Cassandra's own CQL tests through the whole path, compared with SELECT."""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from cdc_common.errors.codes import CdcError
from cdc_common.program.cli import reported_errors
from dev.local_stack.clients import cql
from dev.local_stack.servers.stack import Stack
from dev.verify.cassandra_tests.batch import Batch, Tools
from dev.verify.cassandra_tests.run import Outcome, Sender
from dev.verify.cassandra_tests.source import case_names, read_case, read_classes
from dev.verify.model.__main__ import SETTINGS, options_of
from dev.verify.model.check import SINGLE
from dev.verify.model.push import pusher
from dev.verify.model.topic_settler import TopicSettler

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dev.verify.cassandra_tests.cases import Case
    from dev.verify.cassandra_tests.java_tree import JavaClass

SHOWN_REASONS = 25
SHOWN_PROBLEMS = 10  # of a case
# Most tables are idle. Their heartbeats are committed soon, so that a batch is settled soon.
QUICK = {"materializer.idle_commit_seconds": 5, "publisher.heartbeat_seconds": 2.0}


@dataclass(slots=True)
class Total:
    """The outcomes of all cases so far."""

    # The outcome of each case that ran.
    outcomes: list[Outcome] = field(default_factory=list)
    empty: Counter[str] = field(default_factory=Counter)  # cases that do not run, by reason
    # The parts of tests that have no statement here, by reason.
    skipped: Counter[str] = field(default_factory=Counter)
    # The number of rows that were compared.
    rows: int = 0
    # The number of changes.
    changes: int = 0
    broken: list[str] = field(default_factory=list)  # programs that have ended, batches that do not settle

    @property
    def differing(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.problems]

    @property
    def is_good(self) -> bool:
        return not self.differing and not self.broken and any(outcome.has_run for outcome in self.outcomes)


@click.command()
@click.option("--source", type=click.Path(path_type=Path), required=True, help="A checkout, or a jar of sources.")
@click.option("--case", "chosen", default="", help="Only this one: Class.method, or a class.")
@click.option("--cases", default=0, help="At most so many; 0: all.")
@click.option("--batch", default=60, show_default=True, help="Cases that run at a time.")
@click.option("--version", default="5.0", show_default=True, help="Cassandra's.")
@click.option("--list", "is_dry", is_flag=True, help="Print the statements of the cases, and run nothing.")
def main(source: Path, chosen: str, cases: int, batch: int, version: str, *, is_dry: bool) -> None:
    """Compare what comes out of Cassandra's tests with SELECT *; exit status 1 if anything differs."""
    console = Console(soft_wrap=True, highlight=False, markup=False)
    with reported_errors():
        classes, problems = read_classes(source)
        for path, problem in problems.items():
            console.print(f"{path} is not parsed: {problem}", style="yellow")
        names = [name for name in case_names(classes) if not chosen or chosen in {name, name.partition(".")[0]}]
        total = Total()
        runnable = read_cases(classes, names, total)[: cases or None]
        if is_dry:
            show_statements(console, runnable)
            sys.exit(0)
        start = time.monotonic()
        try:
            run_cases(console, runnable, total, batch, version)
        finally:  # what was run until it was interrupted
            summary(console, total, len(names), f"Cassandra {version}", time.monotonic() - start)
    sys.exit(0 if total.is_good else 1)


def read_cases(classes: Mapping[str, JavaClass], names: Sequence[str], total: Total) -> list[tuple[Case, str]]:
    """The cases that write to a table, each with its keyspace."""
    found = []
    for number, name in enumerate(names):
        keyspace = f"cql_{number}"
        case = read_case(classes, name, keyspace)
        if not case.has_table:
            total.empty["make no table, or none that is understood"] += 1
        elif not case.writes:
            total.empty["write no row, or none that is understood"] += 1
        else:
            found.append((case, keyspace))
            continue
        total.skipped += case.skipped
    return found


def show_statements(console: Console, cases: Sequence[tuple[Case, str]]) -> None:
    for case, keyspace in cases:
        console.print(f"-- {case.name} ({keyspace})")
        for operation in case.operations:
            values = f"  -- {', '.join(map(repr, operation.values))}" if operation.values else ""
            console.print(f"{operation.with_cdc()};{values}")


def run_cases(console: Console, cases: Sequence[tuple[Case, str]], total: Total, size: int, version: str) -> None:
    """Run the cases in batches; those of a batch that cannot be compared are counted as broken."""
    with (
        Stack(
            version=version,
            options=options_of(version),
            settings={**SETTINGS, **QUICK},
            report=lambda text: console.print(text, style="dim"),
        ) as stack,
        cql.connect(stack.servers.cassandra_hosts, stack.servers.cassandra_port) as client,
    ):
        push = pusher(client, stack.cassandra.nodes, SINGLE) if version == "3.11" else (lambda: None)
        with TopicSettler(client, stack.servers, SINGLE, push) as settler:
            tools = Tools(client, stack.servers, Sender(client, SINGLE), settler, stack.check)
            for at in range(0, len(cases), size):
                if not run_batch(console, Batch(tools, cases[at : at + size]), total, f"cases from {at + 1}"):
                    return


def run_batch(console: Console, batch: Batch, total: Total, where: str) -> bool:
    """Whether the next batch can run."""
    start = time.monotonic()
    try:
        outcomes = batch.run()
    except (CdcError, AssertionError) as error:
        total.broken.append(f"{where}: {error}")
        console.print(total.broken[-1], style="red")
        return False
    total.outcomes += outcomes
    total.rows += batch.rows
    total.changes += batch.changes
    ran = sum(outcome.has_run for outcome in outcomes)
    console.print(f"{where}: {ran} run, {batch.changes} changes, {batch.rows} rows ({time.monotonic() - start:.0f} s)")
    for outcome in [failed for failed in outcomes if failed.problems]:
        console.print(f"  {outcome.case.name} differs ({outcome.keyspaces[0]})", style="red")
        for line in outcome.problems[:SHOWN_PROBLEMS]:
            console.print(f"    {line}", style="red")
    return True


def summary(console: Console, total: Total, methods: int, where: str, seconds: float) -> None:
    """Report the cases that were run, those left out and why, and the differences."""
    ran = [outcome for outcome in total.outcomes if outcome.has_run]
    accepted: Counter[str] = sum((outcome.accepted for outcome in total.outcomes), Counter())
    refused = sum(outcome.refused for outcome in total.outcomes)
    unexpected: Counter[str] = sum((outcome.unexpected for outcome in total.outcomes), Counter())
    skipped: Counter[str] = sum((outcome.case.skipped for outcome in total.outcomes), total.skipped)
    nothing = len(total.outcomes) - len(ran)
    console.print(f"{methods} test methods: {len(ran)} run; {nothing} had every write refused", style="bold")
    for reason, count in total.empty.items():
        console.print(f"  {count} {reason}")
    console.print(
        f"Statements: {accepted['write']} writes and {accepted['schema']} schema changes accepted, {refused} refused "
        f"({sum(unexpected.values())} of them unexpectedly), {sum(skipped.values())} skipped"
    )
    for title, reasons in (("Refused", unexpected), ("Skipped", skipped)):
        for reason, count in reasons.most_common(SHOWN_REASONS):
            console.print(f"  {title} {count}: {reason}", style="dim")
    for line in total.broken:
        console.print(line, style="red")
    console.print(
        f"{len(ran)} cases on {where}: {total.changes} changes, {total.rows} rows compared; cases that differ: "
        f"{[outcome.case.name for outcome in total.differing] or 'none'} ({seconds:.0f} s)",
        style="bold green" if total.is_good else "bold red",
    )


if __name__ == "__main__":
    main()
