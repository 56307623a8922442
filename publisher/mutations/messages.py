"""Splits a mutation into raw messages. Pure: no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.deletion import NO_TIMESTAMP
from cassandra_storage.formats.rows.mutation import (
    first_table,
    only_table,
    partition_key,
    split_mutation,
)
from cassandra_storage.formats.rows.partition_update import read_partition_update
from cdc_common.messages.raw import (
    CONTROL_KINDS,
    TRUNCATION_KINDS,
    RawMessage,
    place_id,
)
from publisher.tables.published_table import PublishedTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra_storage.formats.rows.partition_update import SingleRowUpdate
    from cassandra_storage.formats.schema.tables import TableMetadata
    from cdc_common.messages.raw import Kind, TruncationKind
    from publisher.tables.node_schema import NodeSchema
    from publisher.tables.row_ends import RowsEnd


class Origin(NamedTuple):
    """The position of a mutation in a node's log."""

    # The node's host id (16 bytes).
    host_id: bytes
    # The number of the commit log segment.
    segment: int
    # The segment's file name.
    file: str
    # The version of the segment's serialization.
    messaging_version: int
    # The position in the segment, in bytes.
    position: int

    @property
    def place(self) -> str:
        """Return the file and position as commands and logs show them."""
        return f"{self.file}:{self.position}"


class OutgoingMessage(NamedTuple):
    """A message about a published table."""

    # The published table.
    table: PublishedTable
    # The key of the Cassandra partition. It is empty for a gap, a step of a snapshot or the end of all rows, which
    # concern all of them.
    partition_key: bytes
    # The raw message.
    message: RawMessage

    @property
    def is_for_all_raw_partitions(self) -> bool:
        """Return whether each raw partition must get it."""
        kind = self.message.kind
        return kind in CONTROL_KINDS or kind in TRUNCATION_KINDS or (kind == "gap" and not self.partition_key)


class DecodedMutation(NamedTuple):
    """The messages of a mutation."""

    # The messages, in the order of the mutation's tables.
    messages: list[OutgoingMessage]
    # the time at which the filler wrote it (µs), None if it is not the filler's
    filler_written_at: int | None = None
    # the number of updates skipped because the settings exclude their tables
    excluded_updates: int = 0


NO_MESSAGES = DecodedMutation([])
EXCLUDED = DecodedMutation([], excluded_updates=1)


def split_into_messages(mutation: bytes, origin: Origin, schema: NodeSchema) -> DecodedMutation:
    """The messages about published tables in a serialized mutation, numbered in its order.

    FormatError if the bytes are not a mutation, UnknownTableError or UnknownColumnError if the schema does not fit,
    AmbiguousError if it fits in two ways: no part of it may be sent.
    """
    single_table = only_table(mutation)
    if single_table in schema.ignored:
        return EXCLUDED if single_table in schema.roles.excluded else NO_MESSAGES
    messages: list[OutgoingMessage] = []
    written_at = None
    excluded = 0
    tables = schema.as_written.tables_for(mutation, origin.messaging_version)
    for table, updates in split_mutation(mutation, origin.messaging_version, tables):
        table_id = table.id.bytes
        published = schema.published_as(table)
        if published is not None and schema.switches.is_published_at(table_id, origin.segment, origin.position):
            messages += [
                OutgoingMessage(
                    published, update.partition_key, _message(update.kind, update.update, published, origin, index)
                )
                for index, update in enumerate(updates, start=len(messages))
            ]
        elif table_id in schema.roles.filler_ids:
            written_at = _written_at(updates, origin, tables)
        elif table_id in schema.roles.excluded:
            excluded += 1
    return DecodedMutation(messages, written_at, excluded)


def make_gap_messages(mutation: bytes, origin: Origin, schema: NodeSchema) -> DecodedMutation:
    """Gap messages for the tables that an undecodable mutation may contain: the tables of its keyspace, if its first
    update shows the keyspace, otherwise all. They have its partition key, or an empty one if it cannot be read.
    """
    current = schema.tables_at(origin.segment, origin.position)
    try:
        table_id, key = first_table(mutation), partition_key(mutation)
        has_single_table = only_table(mutation) is not None
    except FormatError:
        return DecodedMutation([_gap(table, b"", origin) for table in current])
    known = schema.tables.get(table_id)
    return DecodedMutation(
        [
            _gap(table, key, origin)
            for table in current
            if known is None or (table.id == table_id if has_single_table else table.table.keyspace == known.keyspace)
        ]
    )


def make_void_gap(table: PublishedTable, key: bytes, origin: Origin) -> OutgoingMessage:
    """Withdraws a gap message: the mutation at `origin` was sent after all, or was discarded."""
    gap_id = place_id(origin.host_id, origin.segment, origin.position)
    return OutgoingMessage(table, key, _message("gap", gap_id, table, origin._replace(file=""), 0))


def _gap(table: PublishedTable, key: bytes, origin: Origin) -> OutgoingMessage:
    return OutgoingMessage(table, key, _message("gap", b"", table, origin, 0))


def make_rows_end(kind: TruncationKind, table: PublishedTable, host_id: bytes, end: RowsEnd) -> OutgoingMessage:
    """The message, for every raw partition, that nothing is left of what the host's log had of the table up to a
    place.
    """
    message = RawMessage(
        kind=kind,
        update=b"",
        messaging_version=0,
        table_id=table.id,
        schema_digest=table.digest,
        truncation_epoch=end.at,
        host_id=host_id,
        segment=end.position.segment_id,
        file="",
        position=end.position.position,
        index=0,
        clock=end.noticed_at,
    )
    return OutgoingMessage(table, b"", message)


def _message(kind: Kind, update: bytes, published: PublishedTable, origin: Origin, index: int) -> RawMessage:
    return RawMessage(
        kind=kind,
        update=update,
        messaging_version=origin.messaging_version,
        table_id=published.id,
        schema_digest=published.digest,
        truncation_epoch=published.truncated_at,
        host_id=origin.host_id,
        segment=origin.segment,
        file=origin.file,
        position=origin.position,
        index=index,
    )


def _written_at(updates: list[SingleRowUpdate], origin: Origin, tables: Mapping[bytes, TableMetadata]) -> int | None:
    """The timestamp of the row that the filler wrote. None if the mutation has no row, or the row no timestamp."""
    for update in updates:
        parsed, _ = read_partition_update(update.update, 0, origin.messaging_version, tables)
        for row in parsed.rows:
            return None if row.liveness.timestamp == NO_TIMESTAMP else row.liveness.timestamp
    return None
