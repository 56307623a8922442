"""`cassandra-materializer state ls`: lists the stored states, and how far each of them is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from materializer.commands.stored_partitions import describe_place, list_stored_partitions, read_positions, restored
from materializer.errors import RAW_FAULTS
from materializer.records import RawPartition
from materializer.rows.published import read_published
from stream_runtime.exactly_once.position import Position
from stream_runtime.kafka import Topics
from stream_runtime.state.checkpoint_location import object_store
from stream_runtime.state.checkpoints import CheckpointStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from materializer.settings import Settings

_COLUMNS = ("partition", "version", "offset", "lag", "changelogs", "bytes", "snapshots", "bytes")


class StoredState(NamedTuple):
    """The state of a raw partition in the checkpoint location."""

    # The raw partition.
    raw_partition: RawPartition
    # The committed position; None if the group has no offset.
    position: Position | None
    # The raw partition's next offset; None if the topic is gone.
    end: int | None
    # The number of changelogs.
    changelogs: int
    # Their size.
    changelog_bytes: int
    # The number of snapshots.
    snapshots: int
    # The size of the manifests and of their files.
    snapshot_bytes: int
    # The change topics that its changes go to; None if they were not asked for, or without a position.
    topics: list[str] | None


def list_states(settings: Settings, *, as_json: bool, with_topics: bool) -> None:
    """Print one line for each raw partition that has a state in the checkpoint location. with_topics: restore each one,
    one after the other, for the change topics that only the state itself has.
    """
    found = [_as_json(stored, with_topics=with_topics) for stored in _read_states(settings, with_topics=with_topics)]
    if as_json:
        for line in found:
            click.echo(json.dumps(line))
    if not found:
        click.echo(f"No state is stored: {describe_place(settings.materializer)}.", err=True)
    if as_json or not found:
        return
    columns = (*_COLUMNS, "topics") if with_topics else _COLUMNS
    rows = [columns, *(tuple(map(_text, line.values())) for line in found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _read_states(settings: Settings, *, with_topics: bool) -> Iterator[StoredState]:
    store, group = object_store(settings.materializer), settings.materializer.group_id
    raw_partitions = list_stored_partitions(store, group)
    positions = read_positions(settings, raw_partitions)
    topics = Topics(settings.kafka)
    counts = topics.partition_counts()
    bounds = topics.bounds(
        [
            raw_partition
            for raw_partition in raw_partitions
            if raw_partition.partition < counts.get(raw_partition.topic, 0)
        ]
    )
    for raw_partition in raw_partitions:
        changelogs, snapshots, files = CheckpointStore(store, group, raw_partition, RAW_FAULTS).entries()
        position = positions.get(raw_partition)
        yield StoredState(
            raw_partition,
            position,
            bounds[raw_partition][1] if raw_partition in bounds else None,
            len(changelogs),
            sum(changelog.size for changelog in changelogs),
            len(snapshots),
            sum(file.size for file in (*snapshots, *files)),
            _read_topics(settings, raw_partition) if with_topics else None,
        )


def _read_topics(settings: Settings, raw_partition: RawPartition) -> list[str] | None:
    """Return the change topics that the state names, sorted; None if it has no committed position. The position is read
    now: the running job deletes old versions while this command reads other states.
    """
    position = read_positions(settings, [raw_partition])[raw_partition]
    if position is None:
        return None
    with restored(settings, raw_partition, position) as state:
        return sorted(entry.topic.name for entry in read_published(state).values())


def _as_json(stored: StoredState, *, with_topics: bool) -> dict[str, Any]:
    position, end = stored.position, stored.end
    return {
        "partition": str(stored.raw_partition),
        "version": position and position.version,
        "offset": position and position.offset,
        "lag": None if position is None or end is None else end - position.offset,
        "changelogs": stored.changelogs,
        "changelog_bytes": stored.changelog_bytes,
        "snapshots": stored.snapshots,
        "snapshot_bytes": stored.snapshot_bytes,
        **({"topics": stored.topics} if with_topics else {}),
    }


def _text(value: object) -> str:
    if isinstance(value, list):
        return " ".join(value) or "-"
    return "-" if value is None else str(value)
