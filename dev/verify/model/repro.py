"""`make verify WHAT=repro SEED=…`: runs a seed again and prints what is needed to understand where it differs.

For the first partition that does: a shrunk script of CQL, the raw messages in readable form, and each difference.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from rich.console import Console

from cassandra_storage.formats.rows.partition_update import read_partition_update
from cdc_common.messages.tables import from_json
from cdc_common.messages.topics import tables_topic
from cdc_common.program.cli import reported_errors
from cdc_common.settings import KafkaSettings
from dev.verify.model.__main__ import REORDER_SECONDS, has_reordering, stack_for, with_reordering
from dev.verify.model.check import Seed
from dev.verify.model.mutants import NAMES, start_with
from dev.verify.model.shapes import schema
from dev.verify.model.shrink import Shrinker
from stream_runtime.kafka import TopicReader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra_storage.formats.schema.tables import TableMetadata
    from cdc_common.messages.raw import RawMessage
    from dev.verify.model.check import Run
    from dev.verify.model.place import TablePartition
    from dev.verify.model.shrink import Phases
    from dev.verify.model.tables import Table
    from materializer.records import RawRecord


@click.command()
@click.option("--seed", required=True, type=int, help="The seed that differs.")
@click.option("--statements", default=5000, show_default=True, help="Its statements.")
@click.option("--version", default="5.0", show_default=True, help="Cassandra's.")
@click.option("--cluster", is_flag=True, help="Two datacenters, as in make verify WHAT=model.")
@click.option("--defect", type=click.Choice(NAMES), help="Seed this defect first, to see it found.")
def main(seed: int, statements: int, version: str, defect: str | None, *, cluster: bool) -> None:
    """Exit status 1 if it differs, 0 if it agrees this time."""
    console = Console(soft_wrap=True, highlight=False, markup=False)
    with reported_errors(), stack_for(version, cluster=cluster, console=console) as (stack, run):
        if defect:
            start_with(stack, defect, REORDER_SECONDS if has_reordering(seed) else 0.0)
        ordered = with_reordering(stack, run, REORDER_SECONDS if has_reordering(seed) else 0.0)
        sys.exit(1 if reproduce(console, ordered, seed, statements) else 0)


def reproduce(console: Console, run: Run, seed: int, statements: int) -> bool:
    """Whether anything differs."""
    with Seed(run, seed, f"repro_{seed}") as one:
        one.write(statements)
        one.read_all_rows()
        one.catch_up()
        problems, _ = one.problems()
        where = one.places()
        places = [place for problem in problems if (place := where.of(problem))]
        console.print(f"{len(problems)} problems in {len(set(places))} partitions")
        if not places:
            for problem in problems:
                console.print(problem)
            return bool(problems)
        place = min(set(places), key=lambda candidate: sum(1 for _ in raw_of(one, candidate)))
        shrinker = Shrinker(run, seed, statements, one.first_tables, place)
        shrunk = shrinker.shrink(console.print)
        print_script(console, run, shrinker.table, place, shrunk or shrinker.phases(0))
        if shrunk is None:
            console.print("-- Run again alone, these do not differ: it takes what ran beside them.")
        console.print(f"\n-- The raw messages of partition {place.partition}, as the seed wrote it:")
        tables = schemas(run)
        for record, message in raw_of(one, place):
            console.print(raw_text(record, message, tables))
        console.print("\n-- What differs:")
        for problem in problems:
            if where.of(problem) == place:
                console.print(problem)
    return True


def raw_of(one: Seed, place: TablePartition) -> list[tuple[RawRecord, RawMessage]]:
    """The raw messages of the place. Of a recreated table, it has only those of the newest key."""
    [table] = [table for table in one.tables if table.name == place.table]
    return list(one.raw.of_key(table.name, table.partition_key(place.partition)))


def print_script(console: Console, run: Run, table: Table, place: TablePartition, phases: Phases) -> None:
    """CQL to run by hand, in a keyspace `repro`."""
    console.print(f"\n-- {sum(map(len, phases))} statements of {place.table}, partition {place.partition}:")
    for text in schema((table,), run.replication):
        console.print(text.replace("$k", "repro") + ";")
    for item in phases.first:
        console.print(item.script("repro"))
    if phases.then:
        console.print("-- When the changes of these have come out:")
    for item in phases.then:
        console.print(item.script("repro"))


def schemas(run: Run) -> dict[bytes, TableMetadata]:
    """Every table's schema by its message's key: table id and digest."""
    reader = TopicReader(KafkaSettings(bootstrap_servers=run.servers.kafka), tables_topic(run.servers.topic_prefix))
    return {key: from_json(value) for key, value in reader.read_to_end()}


def raw_text(record: RawRecord, message: RawMessage, tables: Mapping[bytes, TableMetadata]) -> str:
    """One raw message: where it stood, and what it writes."""
    head = f"offset {record.offset} at {record.timestamp_ms} ms: {message.kind} from {message.host_id.hex()[:8]}"
    table = tables[message.table_id + message.schema_digest]
    update, _ = read_partition_update(message.update, 0, message.messaging_version, {message.table_id: table})
    parts: list[object] = [*update.rows, *update.range_tombstones, *([update.static_row] if update.static_row else [])]
    if not update.deletion.is_live:
        parts.append(update.deletion)
    return "\n".join([f"{head}, {message.file} {message.position}.{message.index}", *(f"    {part}" for part in parts)])


if __name__ == "__main__":
    main()
