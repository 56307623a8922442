"""`make demo`: a story, a load, and a proof that what came out of Kafka is what Cassandra answers.

Exit status 0 when every row agrees, 1 when one differs or a chain is broken, 130 after Ctrl-C.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click
from rich.console import Console

from cdc_common.errors.codes import CdcError, Code
from cdc_common.program.cli import reported_errors
from dev.local_stack.clients import cql
from dev.local_stack.clients.change_reader import ChangeReader
from dev.local_stack.clients.compare import compare
from dev.local_stack.clients.history import History, key_of, percentile
from dev.local_stack.clients.render import change_text
from dev.local_stack.demo import shop
from dev.local_stack.demo.load import Load
from dev.local_stack.demo.story import Step, steps, tables_of
from dev.local_stack.demo.summary import Summary
from dev.local_stack.servers.addresses import refuse_second
from dev.local_stack.servers.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from dev.local_stack.clients.change import Change
    from dev.local_stack.clients.compare import Comparison
    from dev.local_stack.clients.cql import CqlClient

STEP_SECONDS = 60.0
DRAIN_SECONDS = 120.0
LEAST_COMPARED = 500
SHOWN_DIFFERENCES = 20
INTERRUPTED = 130
HEARTBEAT_SECONDS = 1  # how long what has expired may wait where nothing is written


class Demo:
    """One run against a stack that is up."""

    def __init__(self, console: Console, client: CqlClient, reader: ChangeReader, markers: shop.Markers) -> None:
        self._console = console
        self._client = client
        self._reader = reader
        self._markers = markers
        self.history = History()
        self.load_latencies: list[float] = []

    def catch_up(self) -> None:
        """Read all that is there already; everything has worked once then, and is warm."""
        self._drain(lambda: None)

    def show_story(self, story: list[Step]) -> None:
        """The story; raises CdcError when a change is missing or another one than must come."""
        for number, step in enumerate(story, start=1):
            self._console.print()
            self._console.print(f"{number}. {step.caption}", style="bold", highlight=False, soft_wrap=True)
            self._console.print(f"   cql> {step.statement}", style="cyan", highlight=False, soft_wrap=True)
            self._client.execute(step.statement)
            self._show(step, self._changes_of(step))

    def _changes_of(self, step: Step) -> list[Change]:
        """Read the changes of the step: as many as it must have, or all that come before a marker."""
        found: list[Change] = []
        awaited = {} if step.changes else self._markers.write(tables_of(step))
        deadline = time.monotonic() + STEP_SECONDS
        while awaited or len(found) < len(step.changes):
            if time.monotonic() > deadline:
                raise CdcError(
                    Code.SERVER_FAILED,
                    f"After {STEP_SECONDS:.0f} s, {len(found)} of {len(step.changes)} changes have come out of: "
                    f"{step.statement}",
                    "See the logs in .run; they are kept.",
                )
            fresh = self._poll()
            found += [change for change in fresh if change.value is not None and not shop.is_marker(change.key)]
            forget_seen(awaited, fresh)
        return found

    def _show(self, step: Step, changes: list[Change]) -> None:
        for change in changes:
            self._console.print(change_text(change), soft_wrap=True)
        if not changes:
            self._console.print("no change: Cassandra's own rule, the newer write has won", style="dim")
        came = sorted((change.name, change.value["op"]) for change in changes if change.value)
        if came != sorted(step.changes):
            raise CdcError(
                Code.SERVER_FAILED,
                f"Out of {step.statement} should have come {sorted(step.changes)}, but {came} came.",
                "This is a defect; please report it.",
            )

    def load(self, rate: float, seconds: float) -> int:
        """Statements sent; returns when they are written, not yet when all is out."""
        load = Load(self._client, rate, seconds)
        first = len(self.history.latencies)
        with Summary(self._console, load, self.history, first) as summary:
            load.start()
            try:
                while load.is_running:
                    self._poll()
                    summary.refresh()
            finally:
                load.stop()
            if load.error is not None:
                raise CdcError(
                    Code.CASSANDRA_QUERY, f"The load has failed: {load.error}.", "See Cassandra's log in .run."
                )
            self._drain(summary.refresh)
        self.load_latencies = self.history.latencies[first:]
        return load.sent

    def _drain(self, refresh: Callable[[], None]) -> None:
        """Read until a marker has come out of every raw partition of every table."""
        awaited = self._markers.write()
        deadline = time.monotonic() + DRAIN_SECONDS
        while awaited:
            if time.monotonic() > deadline:
                raise CdcError(
                    Code.SERVER_FAILED,
                    f"{DRAIN_SECONDS:.0f} s after the last write, {len(awaited)} raw partitions are still behind.",
                    "See the logs in .run; they are kept.",
                )
            forget_seen(awaited, self._poll())
            refresh()

    def _poll(self) -> list[Change]:
        changes = self._reader.poll(0.1)
        self.history.add(changes)
        return changes


def forget_seen(
    awaited: dict[tuple[str, Hashable], tuple[str, object]], changes: list[Change]
) -> Mapping[tuple[str, Hashable], tuple[str, object]]:
    """Remove from `awaited` (as Markers.write returns it) what has come."""
    for change in changes:
        column, token = awaited.get(key_of(change), ("", None))
        if column and change.value and change.value["after"] and change.value["after"][column] == token:
            del awaited[key_of(change)]
    return awaited


def run_demo(console: Console, rate: float, seconds: float) -> int:
    """The exit status."""
    started = time.monotonic()
    with Stack(
        settings={"publisher.heartbeat_seconds": HEARTBEAT_SECONDS},
        static_rows="leave_out",
        report=lambda text: console.print(text, style="dim", highlight=False),
    ) as stack:
        servers = stack.servers
        with cql.connect(servers.cassandra_hosts, servers.cassandra_port) as client:
            shop.create(client)
            markers = shop.Markers(client, servers.kafka, servers.topic_prefix)
            with ChangeReader(servers.kafka, servers.registry, servers.topic_prefix, is_of_shop) as reader:
                demo = Demo(console, client, reader, markers)
                console.print(f"Everything is up after {time.monotonic() - started:.0f} s.", highlight=False)
                demo.catch_up()
                console.print(
                    f"The first changes are through after {time.monotonic() - started:.0f} s.", highlight=False
                )
                demo.show_story(steps())
                sent = demo.load(rate, seconds)
                result = compare(
                    client, demo.history, [(shop.KEYSPACE, table) for table in shop.MARKED], static_rows="leave_out"
                )
                status = report(console, demo, sent, result)
        console.print("Stopping everything.", style="dim")
    console.print(f"Done in {time.monotonic() - started:.0f} s.", style="dim", highlight=False)
    return status


def is_of_shop(keyspace: str, _table: str) -> bool:
    return keyspace == shop.KEYSPACE


def report(console: Console, demo: Demo, sent: int, result: Comparison) -> int:
    """Print what was found; 0 if all agrees."""
    history = demo.history
    broken = list(history.problems())
    console.print()
    console.print(
        f"{sent} statements of load, {history.count} changes over {len(result.tables)} tables.", highlight=False
    )
    for table, count in sorted(result.tables.items()):
        console.print(f"  {table}: {count} rows", highlight=False)
    for line in [*result.differences, *broken][:SHOWN_DIFFERENCES]:
        console.print(line, style="red", highlight=False, soft_wrap=True, markup=False)
    few = history.count < LEAST_COMPARED or min(result.tables.values(), default=0) == 0
    if few:
        console.print("Too little to compare.", style="red")
    good = not (few or broken or result.differences)
    console.print(
        f"{result.rows} rows compared, {len(result.differences)} differ", style="bold green" if good else "bold red"
    )
    console.print(f"{history.count} changes in {len(history.changes)} chains, {len(broken)} broken", highlight=False)
    p50, p99 = (percentile(demo.load_latencies, share) for share in (0.5, 0.99))
    console.print(f"write -> change: p50 {p50:.2f} s, p99 {p99:.2f} s", highlight=False)
    return 0 if good else 1


@click.command()
@click.option("--rate", default=400.0, show_default=True, help="Statements a second.")
@click.option("--seconds", default=20.0, show_default=True, help="How long the load lasts.")
def main(rate: float, seconds: float) -> None:
    """Start a real Cassandra, Kafka, registry and Spark, show changes, load them, and compare all with SELECT *."""
    console = Console(soft_wrap=False)
    with reported_errors():
        try:
            refuse_second()
            sys.exit(run_demo(console, rate, seconds))
        except KeyboardInterrupt:
            console.print("Stopped.")
            sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
