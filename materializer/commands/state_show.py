"""`cassandra-materializer state show`: prints one Cassandra partition as its state holds it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from cassandra_storage.formats.json_forms.updates import deletion_json, update_json
from cassandra_storage.formats.rows.deletion import LIVE
from cassandra_storage.formats.rows.partition import PartitionUpdate
from cassandra_storage.formats.types.marshal import NativeType
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.topics import partition_for, raw_topic
from materializer.commands.stored_partitions import read_positions, restored
from materializer.errors import no_raw_topic
from materializer.fold.repairs import Repair, read_repairs
from materializer.fold.schema_change import read_shown, shown_schema
from materializer.fold.snapshots import SnapshotProgress, read_snapshots
from materializer.fold.truncations import TruncationState, read_truncations
from materializer.planning.table_schemas import read_table_schemas
from materializer.processing.processor import table_catalog
from materializer.records import RawPartition
from materializer.rows.keys import (
    FACTS_SECTION,
    RANGES_SECTION,
    ROWS_END,
    ROWS_SECTION,
    STATIC_SECTION,
    partition_prefix,
)
from materializer.rows.overlay import Overlay
from materializer.rows.partition_state import decode_facts
from materializer.rows.range_tombstones import decode_range
from materializer.rows.row_codec import RowCodec
from materializer.rows.row_columns import with_dropped_columns
from stream_runtime.kafka import Topics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.formats.schema.tables import TableMetadata
    from cassandra_storage.formats.types.marshal import CqlType
    from materializer.rows.catalog import TableCatalog
    from materializer.settings import Settings
    from stream_runtime.state.reader import StateReader

_INTEGERS = {"tinyint": 1, "smallint": 2, "int": 4, "bigint": 8}


def show_cassandra_partition(settings: Settings, table: str, key: Sequence[str], *, with_values: bool) -> None:
    """Print the Cassandra partition. CdcError if the table or its state is unknown."""
    keyspace, _, name = table.partition(".")
    schemas = read_table_schemas(settings.kafka).for_table((keyspace, name))
    topic = raw_topic(settings.kafka.topic_prefix, keyspace, name)
    counts = Topics(settings.kafka).partition_counts()
    count = counts.get(topic)
    if not schemas or not count:
        raise no_raw_topic(topic, counts)
    catalog = table_catalog(schemas)
    partition_key = serialize_key(catalog.newest_of(list(catalog.newest)[-1])[1], key)
    raw_partition = RawPartition(topic, partition_for(partition_key, count))
    position = read_positions(settings, [raw_partition])[raw_partition]
    if position is None:
        raise CdcError(
            Code.STATE_MISMATCH, f"The group has no offset for {raw_partition}.", "Set group_id to the job's group."
        )
    with restored(settings, raw_partition, position) as state:
        shown = cassandra_partition_json(state, catalog, partition_key, with_values=with_values)
    click.echo(json.dumps(shown, indent=2))


def serialize_key(table: TableMetadata, texts: Sequence[str]) -> bytes:
    """The serialized partition key. `texts` are the values of its columns.

    Integers, text and UUIDs are written as in CQL. A value of any type may be 0x and its hexadecimal bytes.
    CdcError(CONFIG_INVALID) for others.
    """
    columns = table.partition_key
    if len(texts) != len(columns):
        names = ", ".join(column.name for column in columns)
        raise _invalid_key(
            f"the table {table.keyspace}.{table.name} has the partition key ({names}), not {len(texts)} values"
        )
    values = [_value(column.type, text) for column, text in zip(columns, texts, strict=True)]
    if len(values) == 1:
        return values[0]
    return b"".join(len(value).to_bytes(2, "big") + value + b"\x00" for value in values)


def _value(type_: CqlType, text: str) -> bytes:
    name = type_.name if isinstance(type_, NativeType) else ""
    try:
        if text.startswith("0x"):
            return bytes.fromhex(text[2:])
        if name in _INTEGERS:
            return int(text).to_bytes(_INTEGERS[name], "big", signed=True)
        if name in {"text", "varchar", "ascii"}:
            return text.encode()
        if name in {"uuid", "timeuuid"}:
            return UUID(text).bytes
    except (ValueError, OverflowError) as error:
        raise _invalid_key(f"{text!r} is not a value of the type {name}") from error
    raise _invalid_key("values of this type can only be given as bytes")


def _invalid_key(problem: str) -> CdcError:
    return CdcError(
        Code.CONFIG_INVALID,
        f"{problem[0].upper()}{problem[1:]}.",
        "Give the value of each partition key column. Any value can be written as 0x and its serialized bytes.",
    )


def cassandra_partition_json(
    reader: StateReader, catalog: TableCatalog, partition_key: bytes, *, with_values: bool
) -> dict[str, Any]:
    """The Cassandra partition in the form of docs/guides/inspect-commit-logs.md, with the row_sequence of each row.

    Bounds of range tombstones are shown only with values, in the state's byte-comparable encoding. `snapshots` is
    what the whole raw partition has heard of. If the table was recreated, rows may still be of the table before.
    """
    prefix = partition_prefix(partition_key)
    schema = shown_schema(reader, read_shown(reader), prefix)
    table_id = list(catalog.newest)[-1] if schema is None else schema.table_id
    _, newest = catalog.newest_of(table_id)
    table = with_dropped_columns(newest)
    codec = RowCodec(Overlay(reader), catalog, table_id)
    facts = decode_facts(found) if (found := reader.get(prefix + FACTS_SECTION)) is not None else None
    static = reader.get(prefix + STATIC_SECTION)
    rows = [codec.decode(value, is_static=False) for _, value in reader.scan(prefix + ROWS_SECTION, prefix + ROWS_END)]
    update = PartitionUpdate(
        table,
        partition_key,
        LIVE if facts is None else facts.deletion,
        static_row=None if static is None else codec.decode(static, is_static=True).row,
        rows=tuple(stored.row for stored in rows),
    )
    shown: dict[str, Any] = update_json(update, with_values=with_values)
    for row, stored in zip(shown.get("rows", ()), rows, strict=True):
        row["row_sequence"] = stored.row_sequence
    ranges = list(reader.scan(prefix + RANGES_SECTION, prefix + STATIC_SECTION))
    if ranges:
        start = len(prefix) + 1
        pieces = (decode_range(name[start:], value) for name, value in ranges)
        shown["range_tombstones"] = [
            {
                **({"first": piece.first.hex(), "last": piece.last.hex()} if with_values else {}),
                **deletion_json(piece.deletion),
            }
            for piece in pieces
        ]
    if facts is not None and facts.visible_rows:
        shown["visible_rows"] = facts.visible_rows
    snapshots = [_snapshot_json(snapshot, progress) for snapshot, progress in read_snapshots(reader)]
    if snapshots:
        shown["snapshots"] = snapshots
    repairs = [_repair_json(repair) for repair in read_repairs(reader) if repair.partition_key == partition_key]
    if repairs:
        shown["repairs"] = repairs
    truncations = read_truncations(reader)
    if truncations is not None:
        shown["truncations"] = _truncations_json(truncations)
    return shown


def _truncations_json(state: TruncationState) -> dict[str, Any]:
    """Return the part of each host's log that is gone, the hosts that are waited for, and those whose rows may be
    missing.
    """
    return {
        "at_ms": state.at,
        "hosts": {
            str(UUID(bytes=host)): {"segment": boundary.segment, "position": boundary.position, "at_ms": boundary.at}
            for host, boundary in sorted(state.boundaries.items())
        },
        "waits": sorted(str(UUID(bytes=host)) for host in state.waits),
        "lost": sorted(str(UUID(bytes=host)) for host in state.lost),
    }


def _repair_json(repair: Repair) -> dict[str, Any]:
    """hosts: how far each is; of one that has ended, the place in its log that its images have."""
    return {
        "repair": str(repair.id),
        "state": repair.state,
        "until_ms": repair.until_ms,
        "hosts": {str(UUID(bytes=host)): part for host, part in sorted(repair.hosts.items())},
    }


def _snapshot_json(snapshot: UUID, progress: SnapshotProgress) -> dict[str, Any]:
    return {
        "snapshot": str(snapshot),
        "begun_ms": progress.begun_ms,
        "changed_ms": progress.changed_ms,
        "hosts": {str(UUID(bytes=host)): state for host, state in sorted(progress.hosts.items())},
    }
