"""From a mutation to the raw messages of it. Pure: no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.errors import FormatError
from cassandra_storage.mutation import first_table, only_table, partition_key, split_mutation
from cassandra_storage.partition_update import read_partition_update
from cdc_messages.raw import RawMessage, place_id
from publisher.schema import PublishedTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra_storage.partition_update import SingleRowUpdate
    from cassandra_storage.schema import TableMetadata
    from cdc_messages.raw import Kind
    from publisher.schema import KnownTables, Schema

TRUNCATION_EPOCH = 0  # truncations are not followed yet: every update is of the first epoch


class Origin(NamedTuple):
    """Where a mutation stands in a node's log."""

    host_id: bytes
    segment: int
    file: str
    messaging_version: int
    position: int


class Outgoing(NamedTuple):
    """A message of a published table, its key being the partition key."""

    table: PublishedTable
    key: bytes
    message: RawMessage


class Outcome(NamedTuple):
    """What a mutation gives: messages, when the filler wrote it (µs) if it did, and how many updates were passed over
    because the settings leave their tables out.
    """

    messages: list[Outgoing]
    filler_written_at: int | None = None
    excluded: int = 0


NOTHING = Outcome([])
EXCLUDED = Outcome([], excluded=1)


def raw_messages(mutation: bytes, origin: Origin, schema: Schema | KnownTables) -> Outcome:
    """The messages of the published tables in a serialized mutation, numbered in its order.

    FormatError if it is not one, UnknownTableError or UnknownColumnError if the schema at hand does not fit: then none
    of it may be sent.
    """
    alone = only_table(mutation)
    if alone in schema.ignored:
        return EXCLUDED if alone in schema.excluded else NOTHING
    messages: list[Outgoing] = []
    written_at = None
    excluded = 0
    for table, updates in split_mutation(mutation, origin.messaging_version, schema.tables):
        table_id = table.id.bytes
        published = schema.published.get(table_id)
        if published is not None:
            messages += [
                Outgoing(published, each.partition_key, _message(each.kind, each.update, published, origin, index))
                for index, each in enumerate(updates, start=len(messages))
            ]
        elif table_id in schema.filler_ids:
            written_at = _written_at(updates, origin, schema.tables)
        elif table_id in schema.excluded:
            excluded += 1
    return Outcome(messages, written_at, excluded)


def gap_messages(mutation: bytes, origin: Origin, schema: Schema) -> Outcome:
    """What tells the tables that a mutation may be of that it is missing: those of its keyspace, as far as its first
    update tells that, under its partition key, or under an empty one for every partition.
    """
    try:
        table_id, key = first_table(mutation), partition_key(mutation)
        alone = only_table(mutation) is not None
    except FormatError:
        return Outcome([_gap(table, b"", origin) for table in schema.current()])
    known = schema.tables.get(table_id)
    return Outcome(
        [
            _gap(table, key, origin)
            for table in schema.current()
            if known is None or (table.id == table_id if alone else table.table.keyspace == known.keyspace)
        ]
    )


def void_gap(table: PublishedTable, key: bytes, origin: Origin) -> Outgoing:
    """Nothing is missing from this place after all, or nobody waits for it."""
    mark = place_id(origin.host_id, origin.segment, origin.position)
    return Outgoing(table, key, _message("gap", mark, table, origin._replace(file=""), 0))


def _gap(table: PublishedTable, key: bytes, origin: Origin) -> Outgoing:
    return Outgoing(table, key, _message("gap", b"", table, origin, 0))


def heartbeat(table: PublishedTable, origin: Origin, clock: int) -> RawMessage:
    """Nothing about rows: all of the log before `origin` is acknowledged, and all that was durable in it at `clock`
    (µs).
    """
    return RawMessage(
        kind="heartbeat",
        update=b"",
        messaging_version=origin.messaging_version,
        table_id=table.id,
        schema_digest=table.digest,
        truncation_epoch=TRUNCATION_EPOCH,
        host_id=origin.host_id,
        segment=origin.segment,
        file=origin.file,
        position=origin.position,
        index=0,
        published_up_to_segment=origin.segment,
        published_up_to_position=origin.position,
        clock=clock,
    )


def _message(kind: Kind, update: bytes, published: PublishedTable, origin: Origin, index: int) -> RawMessage:
    return RawMessage(
        kind=kind,
        update=update,
        messaging_version=origin.messaging_version,
        table_id=published.id,
        schema_digest=published.digest,
        truncation_epoch=TRUNCATION_EPOCH,
        host_id=origin.host_id,
        segment=origin.segment,
        file=origin.file,
        position=origin.position,
        index=index,
    )


def _written_at(updates: list[SingleRowUpdate], origin: Origin, tables: Mapping[bytes, TableMetadata]) -> int | None:
    """The timestamp of the row that the filler wrote."""
    for update in updates:
        parsed, _ = read_partition_update(update.update, 0, origin.messaging_version, tables)
        for row in parsed.rows:
            return row.liveness.timestamp
    return None
