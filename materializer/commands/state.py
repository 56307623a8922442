"""The commands of `cassandra-materializer state`: they look at the stored states beside a running job or without, and
one deals them out anew.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cdc_messages.topics import partition_for, raw_topic, tables_topic
from cdc_program.errors import CdcError, Code
from cdc_program.registry import RegistryClient
from materializer.commands.reshard.reshard import Reshard
from materializer.commands.reshard.survey import survey, topic_now
from materializer.commands.state_list import list_states, positions_of, stored_partitions
from materializer.commands.state_show import partition_json, partition_key
from materializer.commands.state_verify import verify
from materializer.job.planner import Planner, Tables
from materializer.job.processor import table_catalog
from materializer.job.wiring import object_store
from materializer.kafka import TopicReader, Topics, command_errors
from materializer.records import RawPartition
from materializer.store.checkpoints import CheckpointStore
from materializer.store.restore import restore
from materializer.store.rocksdb import open_local_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdc_program.settings import Settings
    from materializer.commands.state_list import StoredPartition

_COLUMNS = ("partition", "version", "offset", "lag", "changelogs", "bytes", "snapshots", "bytes")


def ls(settings: Settings, *, as_json: bool) -> None:
    """One line for each raw partition that the checkpoint location has a state of."""
    found = list(list_states(settings, object_store(settings.materializer)))
    if as_json:
        for each in found:
            click.echo(json.dumps(_as_json(each)))
        return
    rows = [_COLUMNS, *(tuple(map(_text, _as_json(each).values())) for each in found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _as_json(stored: StoredPartition) -> dict[str, Any]:
    position, end = stored.position, stored.end
    return {
        "partition": str(stored.partition),
        "version": position and position.version,
        "offset": position and position.offset,
        "lag": None if position is None or end is None else end - position.offset,
        "changelogs": stored.changelogs,
        "changelog_bytes": stored.sizes[0],
        "snapshots": stored.snapshots,
        "snapshot_bytes": stored.sizes[1],
    }


def _text(value: object) -> str:
    return "-" if value is None else str(value)


def verify_all(settings: Settings, names: Sequence[str]) -> None:
    """Read every file; CdcError(STATE_DAMAGED) at the end if any is missing or damaged, each with a line before."""
    store = object_store(settings.materializer)
    group = settings.materializer.group_id
    partitions = [each for each in stored_partitions(store, group) if not names or str(each) in names]
    unknown = set(names) - {str(each) for each in partitions}
    if unknown:
        raise CdcError(
            Code.CONFIG_INVALID,
            f"No state is stored of {', '.join(sorted(unknown))}.",
            "Name raw partitions as `state ls` does.",
        )
    positions = positions_of(settings, partitions)
    damaged = 0
    for partition in partitions:
        position = positions[partition]
        verdict = verify(CheckpointStore(store, group, partition), position and position.version)
        damaged += bool(verdict.problems)
        state = "damaged" if verdict.problems else "ok"
        unnamed = f", {verdict.unnamed} to be cleaned up" if verdict.unnamed else ""
        click.echo(f"{state}  {partition}  {verdict.files} files, {verdict.bytes} bytes{unnamed}")
        for problem in verdict.problems:
            click.echo(f"    {problem}")
    if damaged:
        raise CdcError(
            Code.STATE_DAMAGED,
            f"{damaged} of {len(partitions)} partitions hold files that cannot be used.",
            "See above for each, and the runbook for what to do.",
        )


def deal_out(settings: Settings, table: str, *, dry_run: bool) -> None:
    """Deal the state of a table's raw topic out to the partitions that it has now, or say what that would be."""
    topic = f"{settings.kafka.topic_prefix}.raw.{table}"
    if dry_run:
        now = topic_now(settings.kafka, topic)
        partitions = [now.partition(number) for number in now.bounds]
        for line in survey(settings.kafka, now, positions_of(settings, partitions)).lines():
            click.echo(line)
        return
    now = topic_now(settings.kafka, topic)  # before anything is made
    with RegistryClient(settings.registry) as registry:
        plan = Planner(settings, registry).plan()
    if now.name not in plan.topics:
        raise CdcError(
            Code.SCHEMA_UNKNOWN,
            f"The tables topic holds no schema of {table}.",
            "Start a publisher: it sends the schemas it knows.",
        )
    with command_errors(f"reshard {topic}"):
        Reshard(plan, topic, click.echo).run()


def show(settings: Settings, table: str, key: Sequence[str], *, with_values: bool) -> None:
    """Print the Cassandra partition; CdcError where the table or its state is not known."""
    keyspace, _, name = table.partition(".")
    tables = Tables(settings.kafka.topic_prefix)
    tables.add(TopicReader(settings.kafka, tables_topic(settings.kafka.topic_prefix)).read_to_end())
    schemas = tables.schemas((keyspace, name))
    topic = raw_topic(settings.kafka.topic_prefix, keyspace, name)
    count = Topics(settings.kafka).partition_counts().get(topic)
    if not schemas or not count:
        raise CdcError(
            Code.CONFIG_INVALID, f"There is no raw topic of the table {table}.", "Name it as keyspace.table."
        )
    catalog = table_catalog(schemas, {})
    serialized = partition_key(catalog.newest_of(list(catalog.newest)[-1])[1], key)
    partition = RawPartition(topic, partition_for(serialized, count))
    position = positions_of(settings, [partition])[partition]
    if position is None:
        raise CdcError(Code.STATE_MISMATCH, f"The group has no offset of {partition}.", "Name the group of the job.")
    store = object_store(settings.materializer)
    history = CheckpointStore(store, settings.materializer.group_id, partition)
    temporary = tempfile.TemporaryDirectory(prefix="cassandra-materializer-")
    with temporary as folder, closing(open_local_store(Path(folder))) as state:
        restore(state, history, position.version)
        shown = partition_json(state, catalog, serialized, with_values=with_values)
    click.echo(json.dumps(shown, indent=2))
