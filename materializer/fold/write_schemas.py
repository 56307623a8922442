"""Finds the schema that a message was written under, by the columns, the values and the time of its write.

A publisher reads old mutations with the newest schema. So a message that names a newer schema may have been written
under an older one (decision 0049).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.row import Cell
from cassandra_storage.formats.types.compatible_types import is_extension
from cassandra_storage.formats.types.marshal import ListType, MapType, NativeType, SetType, UserType, decode
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.raw import IMAGE_KINDS, TRUNCATION_KINDS
from materializer.fold.row_updates import row_update
from materializer.records import UnreadableError
from materializer.rows.catalog import SchemaId
from materializer.rows.native_plan import type_form

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cassandra_storage.formats.rows.row import ColumnData
    from cassandra_storage.formats.schema.tables import TableMetadata
    from cassandra_storage.formats.types.marshal import CqlType
    from cdc_common.messages.raw import RawMessage
    from materializer.records import RawRecord, RowUpdate
    from materializer.rows.catalog import TableCatalog


class WriteSchemas:
    """The schemas that one message can have been written under."""

    def __init__(self, record: RawRecord, message: RawMessage, catalog: TableCatalog) -> None:
        self._record = record
        self._message = message
        self._catalog = catalog
        self._time = 0  # µs

    def under(self, digests: Sequence[bytes]) -> bytes:
        """The one of some schemas, in their order: of those that it can have been written under, the newest that is
        not newer than the write. If all of these are newer, it is the first of them where the write is not older than
        the first schema, and otherwise the last.
        """
        tables = {digest: self._catalog.schema(self._message.table_id, digest) for digest in digests}
        found = [digest for digest in digests if self._may_be_under(digest, tables[digest])] or [digests[-1]]
        nearest = found[0] if tables[digests[0]].altered_at <= self._time else found[-1]
        return next((digest for digest in reversed(found) if tables[digest].altered_at <= self._time), nearest)

    def _may_be_under(self, digest: bytes, table: TableMetadata) -> bool:
        kind = self._message.kind
        if kind in IMAGE_KINDS:  # they are not written now
            return digest == self._message.schema_digest
        if kind == "heartbeat":
            self._time = self._message.clock
            return True
        if kind in TRUNCATION_KINDS:
            self._time = self._message.truncation_epoch * 1000
            return True
        update = self._read(digest)
        if update is None:
            return False
        self._time = update.source.ts_us
        named = _types(self._catalog.schema(self._message.table_id, self._message.schema_digest))
        present = _types(table)
        return all(
            name in present and (name not in named or _holds(present[name], named[name], data))
            for row in (update.row, update.static)
            if row is not None
            for name, data in row.columns.items()
        )

    def _read(self, digest: bytes) -> RowUpdate | None:
        """The update read under a schema; None if it cannot be."""
        message = replace(self._message, schema_digest=digest)
        try:
            return row_update(message, self._record, self._catalog.as_of(SchemaId(message.table_id, digest)), 0)
        except UnreadableError:
            return None


def _types(table: TableMetadata) -> dict[str, CqlType]:
    return {column.name: column.type for column in table.static_columns + table.regular_columns}


def _holds(type_: CqlType, named: CqlType, data: ColumnData) -> bool:
    """Whether a column of a type can hold what was read as another type. Both types serialize values alike (a user
    type's fields may have other names), or the other one has more fields, and the values have none of these.
    """
    if type_ == named:
        return True
    if isinstance(type_, NativeType):
        return False
    is_alike = type_form(type_, EXACT) == type_form(named, EXACT)
    return is_alike or (is_extension(named, type_) and _can_be_decoded(type_, data))


def _can_be_decoded(type_: CqlType, data: ColumnData) -> bool:
    try:
        for part_type, value in _values(type_, data):
            decode(part_type, value)
    except (FormatError, IndexError):
        return False
    return True


def _values(type_: CqlType, data: ColumnData) -> Iterator[tuple[CqlType, bytes]]:
    """The serialized values in a column's data, each with its type. IndexError for a field that the type has not."""
    for cell in [data] if isinstance(data, Cell) else data.cells:
        path, has_value = cell.path, not cell.is_tombstone
        match type_:
            case UserType() if path is not None:
                field_type = type_.field_types[int.from_bytes(path, "big")]
                parts = [(field_type, cell.value)] if has_value else []
            case ListType(elements, True):
                parts = [(elements, cell.value)] if has_value else []
            case SetType(elements, True):
                parts = [(elements, path or b"")]
            case MapType(keys, values, True):
                parts = [(keys, path or b""), *([(values, cell.value)] if has_value else [])]
            case _:
                parts = [(type_, cell.value)] if has_value else []
        yield from parts
