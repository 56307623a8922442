"""A table that is published, in one state of its schema."""

from __future__ import annotations

from typing import NamedTuple

from cassandra_storage.formats.schema.tables import TableMetadata
from cdc_common.messages import tables as table_messages


class PublishedTable(NamedTuple):
    """A table with `cdc = true`."""

    # The table's schema.
    table: TableMetadata
    # the bytes of its id
    id: bytes
    # of its schema
    digest: bytes
    # Rows are missing, for example because `cdc` was off. A snapshot that is asked for after this time (µs, of this
    # machine) brings them. 0 if the table needs none.
    needs_snapshot_since: int = 0
    # see RowEnds.sent_at
    truncated_at: int = 0


def make_published(table: TableMetadata, needs_snapshot_since: int = 0, truncated_at: int = 0) -> PublishedTable:
    """Return the table as a published one."""
    return PublishedTable(table, table.id.bytes, digest_of(table), needs_snapshot_since, truncated_at)


def digest_of(table: TableMetadata) -> bytes:
    """Return the digest of the table's schema."""
    return table_messages.digest(table_messages.canonical(table))
