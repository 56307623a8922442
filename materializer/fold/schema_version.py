"""A schema as rows are shown under it, and the changes from one schema to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.schema.compact_tables import hidden_columns
from cassandra_storage.formats.schema.tables import TableMetadata
from materializer.rows.catalog import SchemaId
from materializer.rows.row_codec import RowCodec
from materializer.rows.row_columns import row_columns
from materializer.rows.row_image import RowImager

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cassandra_storage.formats.rows.row import Row
    from cdc_common.messages.changes import ColumnImage, RowImage


class SchemaVersion(NamedTuple):
    """A schema with the parts that read and show rows under it."""

    # The table's id and the schema's digest.
    id: SchemaId
    # The table as the schema describes it.
    table: TableMetadata
    # Reads stored rows.
    codec: RowCodec
    # Makes the images of rows.
    imager: RowImager
    # The name of the topic that its table's changes go to; None if no changes can be published under the schema.
    topic: str | None

    def image(self, row: Row, now: int, statics: Mapping[str, ColumnImage]) -> RowImage | None:
        """Return the columns of a row that `SELECT` shows at second `now`, with these static columns."""
        columns = self.imager.image(row, now)
        return {**statics, **columns} if columns is not None and statics else columns


def change_steps(
    before: RowImage | None, after: RowImage | None, old: SchemaVersion, new: SchemaVersion
) -> Iterator[tuple[RowImage | None, RowImage | None, bytes]]:
    """The changes from a row under the old schema to the row under the new one: (before, after, digest of the schema).

    A removed value is published under the old schema, which has its column, and a new value under the new schema.
    """
    if old.topic is None:
        before = _named(before, new)
    elif before is not None:
        left = _named(after, old)
        if left != before:
            yield before, left, old.id.digest
        before = left
    if before != after:
        yield before, after, new.id.digest


def move_steps(
    before: RowImage | None, after: RowImage | None, old: SchemaVersion, new: SchemaVersion
) -> Iterator[tuple[RowImage | None, RowImage | None, bytes]]:
    """Yield steps as change_steps does, for a row that moves from one topic to another."""
    if before is not None:
        yield (before, None, old.id.digest) if old.topic is not None else (_named(before, new), None, new.id.digest)
    if after is not None:
        yield None, after, new.id.digest


def resend_steps(
    _before: RowImage | None, after: RowImage | None, _old: SchemaVersion, new: SchemaVersion
) -> Iterator[tuple[RowImage | None, RowImage | None, bytes]]:
    """Yield the row's beginning, for a row that is sent again to a topic that has lost it."""
    if after is not None:
        yield None, after, new.id.digest


def _named(image: RowImage | None, version: SchemaVersion) -> RowImage | None:
    """Return the image with only the columns of the version."""
    return None if image is None else {name: value for name, value in image.items() if name in version.imager.names}


def shows_rows_differently(old: SchemaVersion, new: SchemaVersion) -> bool:
    """Whether a row that was published under the old schema may look different under the new one, or may hold a dropped
    column's cells that the new one cannot: of a user type that it knows as a tuple.
    """
    old_columns = row_columns(old.table)
    if old.id.table_id != new.id.table_id:
        return True
    if old.imager.names - new.imager.names:
        return True
    if new.imager.names & {column.name for column in hidden_columns(old.table)}:
        return True  # DROP COMPACT STORAGE
    columns = row_columns(new.table)
    if any(name in columns and columns[name].is_complex != column.is_complex for name, column in old_columns.items()):
        return True
    dropped, dropped_before = new.table.dropped_columns, old.table.dropped_columns
    if any(name in dropped and column != dropped[name] for name, column in dropped_before.items()):
        return True  # dropped again, perhaps unseen: rows may hold what only the later drop covers
    return any(
        name in dropped and (name not in old.imager.names or name not in dropped_before) for name in new.imager.names
    )
