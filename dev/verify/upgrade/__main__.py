"""`make verify WHAT=upgrade`: a rolling upgrade and a rollback of our programs under load, compared with SELECT *."""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from cdc_common.program.cli import reported_errors
from dev.local_stack.clients import cql
from dev.local_stack.servers.programs import CHECKOUT
from dev.local_stack.servers.stack import Stack
from dev.verify.chaos.whole_path import Load
from dev.verify.model.__main__ import SETTINGS, options_of
from dev.verify.model.check import Run, Seed
from dev.verify.upgrade import workload
from dev.verify.upgrade.releases import default_source, install, version_of
from dev.verify.upgrade.rolling import LOAD_SECONDS, Roller
from dev.verify.upgrade.workload import LEGS, Workload, features_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.local_stack.servers.programs import Release
    from dev.verify.upgrade.rolling import Step

DATACENTER = "cdc"
RETRIES = 20
SHOWN = 30


@dataclass(slots=True)
class Outcome:
    """The result of the whole run."""

    # The number of statements.
    statements: int = 0
    # The number of rows that were compared.
    rows: int = 0
    # A line for each broken invariant.
    problems: list[str] = field(default_factory=list)


class Upgrade:
    """One keyspace under load, through legs that each end with a comparison."""

    def __init__(self, stack: Stack, one: Workload, console: Console) -> None:
        self._stack = stack
        self._one = one
        self._console = console
        self._writer, self._generator = one.writer(RETRIES), one.generator()
        self.outcome = Outcome()

    def run_leg(self, name: str, move: Callable[[], list[Step]], *, may_refuse: bool = False) -> None:
        """Move the programs under load, then compare what came out with what Cassandra shows.

        may_refuse: a program that refuses what a newer release has written is no problem.
        """
        began = time.monotonic()
        self._console.print(f"[bold]{name}[/]")
        self._one.begin_snapshot(name, self._generator)
        with Load(self._generator, self._writer):
            steps = move()
        self._writer.write_statements(self._generator.end_of_changes())
        self._one.follow_new_tables()
        self._one.await_snapshots()
        self._one.settler.wait_until_settled(time.time())
        problems = self._compare()
        if not may_refuse:
            problems += [f"{step.program} refused with {step.refused}" for step in steps if step.refused]
        self._stack.check()
        self._show(name, problems, began)
        self.outcome.problems += [f"{name}: {problem}" for problem in problems]

    def end(self) -> None:
        """End a seed as `model` does: late and last statements, everything read once more."""
        began = time.monotonic()
        self._writer.write_statements(self._generator.late_statements())
        self._writer.write_statements(self._generator.last_statements())
        problems = self._compare()
        self._show("end", problems, began)
        self.outcome.problems += problems

    def _compare(self) -> list[str]:
        self._one.read_all_rows()
        self._one.read_again()
        self._one.catch_up()
        problems, self.outcome.rows = self._one.problems()
        self.outcome.statements = self._writer.sent
        return problems

    def _show(self, name: str, problems: list[str], began: float) -> None:
        statements, changes = self._writer.sent, self._one.history.count
        self._console.print(
            f"{name}: {statements} statements and {changes} changes so far, {self.outcome.rows} rows compared, "
            f"{len(problems)} differ ({time.monotonic() - began:.0f} s)",
            highlight=False,
        )
        for line in problems[:SHOWN]:
            self._console.print(f"  {line}", style="red", highlight=False, markup=False, soft_wrap=True)


def changes_by_version(one: Seed) -> Counter[str]:
    """Return how many changes each release's materializer has made."""
    return Counter(
        change.value["source"]["version"]
        for changes in one.history.changes.values()
        for change in changes
        if change.value is not None
    )


def check(stack: Stack, old: Release, version: str, seed: int, console: Console) -> bool:
    """Whether all agree, and both releases have made changes."""
    servers = stack.servers
    replication = f"{{'class': 'NetworkTopologyStrategy', '{DATACENTER}': {len(servers.cassandra_hosts)}}}"
    with cql.connect(servers.cassandra_hosts, servers.cassandra_port) as client:
        run = Run(client, client, servers, version, replication)
        features = features_of(old)
        console.print(f"statements with {features}", highlight=False)
        with Workload(run, seed, stack.publishers, features) as one:
            upgrade = Upgrade(stack, one, console)
            roller = Roller(stack, lambda text: console.print(text, style="dim", highlight=False))
            there, back, again = LEGS
            upgrade.run_leg(there, lambda: roller.upgrade(CHECKOUT))
            upgrade.run_leg(back, lambda: roller.roll_back(old), may_refuse=True)
            upgrade.run_leg(again, lambda: roller.upgrade(CHECKOUT))
            upgrade.end()
            versions = changes_by_version(one)
    outcome = upgrade.outcome
    problems = list(outcome.problems)
    wanted = {version_of(old), version_of(CHECKOUT)}
    problems += [f"no change was made by version {version}" for version in sorted(wanted - set(versions))]
    good = not problems and outcome.rows > 0
    console.print(
        f"{outcome.statements} statements, changes by version {dict(versions)}, {outcome.rows} rows compared, "
        f"{len(problems)} problems",
        style="bold green" if good else "bold red",
        highlight=False,
    )
    return good


@click.command()
@click.option("--from", "source", default="", help="The older release: a git ref, a wheel or an sdist.")
@click.option("--seed", default=1, show_default=True, help="Of the statements.")
@click.option("--nodes", default=2, show_default=True, help="Each with a publisher and a filler, and all rows.")
@click.option(
    "--version", default="5.0", type=click.Choice(["4.0", "4.1", "5.0"]), show_default=True, help="Cassandra's."
)
def main(source: str, seed: int, nodes: int, version: str) -> None:
    """Upgrade from a release to the checkout, go back, and upgrade again; exit status 1 if anything differs."""
    console = Console(soft_wrap=True)
    began = time.monotonic()
    with reported_errors(), tempfile.TemporaryDirectory() as folder:
        chosen = source or default_source()
        old = install(chosen, Path(folder))
        console.print(f"from {chosen} ({version_of(old)}) to {version_of(CHECKOUT)}", highlight=False)
        with Stack(
            version=version,
            datacenters={DATACENTER: nodes},
            options=options_of(version),
            settings={**SETTINGS, **workload.SETTINGS},
            release=old,
            report=lambda text: console.print(text, style="dim", highlight=False),
        ) as stack:
            time.sleep(LOAD_SECONDS)
            good = check(stack, old, version, seed, console)
    console.print(f"{time.monotonic() - began:.0f} s", style="dim", highlight=False)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
