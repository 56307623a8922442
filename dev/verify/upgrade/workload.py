"""Writes while programs move: only what the older release has messages for."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Self

from cdc_common.messages.avro.type_forms import EXACT
from dev.verify.model.check import Run, Seed
from dev.verify.model.generator import Course, Generator
from dev.verify.model.shapes import COLUMNS, RECREATED, SWITCHED, TABLES, TYPED
from dev.verify.model.statement import SchemaChange
from dev.verify.snapshot import bulk
from dev.verify.snapshot.progress import Snapshots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dev.local_stack.servers.programs import Program, Release, Setting
    from dev.verify.model.tables import Table

LEGS = ("upgrade", "rollback", "upgrade again")
# Rows, ranges and partitions, statics, collections, TTLs, counters.
STEADY = tuple(table for table in TABLES if table.name in {"plain", "wide", "many", "lives", "hits"})
CHANGING = (COLUMNS, TYPED, SWITCHED)
CHANGES = 0.005  # of the statements change a schema: one in about 5 s
TRUNCATIONS = 0.2  # of these
EARLIER_ROWS = 10_000  # of each table that holds data before CDC
SWITCH_AFTER = 200  # statements of a leg, then the snapshot of such a table begins
SNAPSHOT_SECONDS = 600.0
SETTINGS: dict[str, Setting] = {
    "materializer.truncate_seconds": 10.0,  # a busy machine: both nodes must be that fast
    "publisher.snapshot": "initial",
    "publisher.snapshot_max_mib_per_second": 0.05,  # slow enough that programs move in the middle
    # A topic keeps its forms. A release that does not have these settings makes exact ones.
    **{f"materializer.{name}": form for name, form in EXACT._asdict().items() if name != "fixed"},
}


class Features(NamedTuple):
    """The kinds that the older release knows, beside rows and `ALTER`."""

    # Whether it knows TRUNCATE and DROP.
    truncate_and_drop: bool
    # Whether it knows snapshots.
    snapshots: bool

    def __str__(self) -> str:
        known = [name.replace("_", " ") for name, has in self._asdict().items() if has]
        return ", ".join(["ALTER TABLE", "ALTER TYPE", "cdc off and on", *known])


def features_of(release: Release) -> Features:
    """Return the release's features, judged by its settings, which came with the features."""
    known = release.settings
    return Features(
        truncate_and_drop=known is None or {"materializer.truncate_seconds", "publisher.drop_seconds"} <= known,
        snapshots=known is None or "publisher.snapshot" in known,
    )


def tables_of(features: Features) -> tuple[Table, ...]:
    recreated = (RECREATED,) if features.truncate_and_drop else ()
    earlier = map(earlier_table, LEGS) if features.snapshots else ()
    return (*STEADY, *CHANGING, *recreated, *earlier)


def earlier_table(leg: str) -> Table:
    """One that gets `cdc = true` in this leg."""
    return replace(bulk.table(EARLIER_ROWS, f"earlier{LEGS.index(leg)}"), is_cdc=False)


class Workload(Seed):
    """A keyspace; in each leg `cdc = true` for a table that holds data, whose snapshots the publishers then take."""

    def __init__(self, run: Run, seed: int, publishers: Sequence[Program], features: Features) -> None:
        self.features = features
        self._publishers = publishers
        self._switched: list[str] = []  # tables with data whose `cdc` is on
        super().__init__(run, seed, f"upgrade_{seed}", tables_of(features))

    def __enter__(self) -> Self:
        super().__enter__()
        if self.features.snapshots:
            for leg in LEGS:
                table = earlier_table(leg)
                bulk.fill(
                    self.writer(), self.run.client, self.keyspace, table.partitions, int(time.time() * 1e6), table.name
                )
        return self

    def generator(self, start_us: int | None = None) -> Generator:
        start = int(time.time() * 1e6) if start_us is None else start_us
        truncations = TRUNCATIONS if self.features.truncate_and_drop else 0.0
        course = Course(self.run.version, evolves=True, changes=CHANGES, truncations=truncations)
        return Generator(self.seed, self.first_tables, start, has_ties=self.run.has_ties, course=course)

    def begin_snapshot(self, leg: str, generator: Generator) -> None:
        """Soon, while statements go on."""
        if not self.features.snapshots:
            return
        table = replace(earlier_table(leg), is_cdc=True)
        self._switched.append(table.name)
        text = f"ALTER TABLE $k.{table.name} WITH cdc = true"
        generator.schedule(SchemaChange((text,), (table,)), SWITCH_AFTER)

    def await_snapshots(self) -> None:
        """Waits until every publisher has taken the snapshots of all tables with data whose `cdc` was switched on."""
        names = [f"{self.keyspace}.{name}" for name in self._switched]
        snapshots = Snapshots(self._publishers, names)
        deadline = time.monotonic() + SNAPSHOT_SECONDS
        while not snapshots.are_over():
            assert time.monotonic() < deadline, f"the snapshots have not ended: {dict(snapshots.states())}"
            time.sleep(1)

    def problems(self) -> tuple[list[str], int]:
        found, rows = super().problems()
        given_up = Snapshots(self._publishers, []).states()["given_up"]
        if given_up:
            found.append(f"{given_up} snapshots were given up")
        found += [f"{name}: no change has op r" for name in self._switched if not self._reads(name)]
        return found, rows

    def _reads(self, table: str) -> int:
        """Return how many of the table's rows came by a snapshot."""
        return sum(
            change.value is not None and change.value["op"] == "r"
            for changes in self.history.changes.values()
            for change in changes
            if change.table == table
        )
