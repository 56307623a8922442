"""Encode and decode stored rows: Cassandra's own serialization, with a header made from a table schema.

A stored row refers to its schema by a number, which the state maps to the schema's digest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.vint import read_unsigned_vint, write_unsigned_vint
from cassandra_storage.formats.rows.header import SerializationHeader
from cassandra_storage.formats.rows.unfiltered import read_row, write_row
from cdc_common.errors.codes import CdcError, Code
from materializer.rows.format_version import VERSION_BYTE, check_version
from materializer.rows.keys import schema_key
from materializer.rows.overlay import StoredRow
from materializer.rows.row_columns import with_dropped_columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra_storage.formats.rows.header import Columns
    from materializer.rows.catalog import TableCatalog
    from materializer.rows.overlay import Overlay, RowValue


class RowCodec:
    """Encodes and decodes the rows of one table in one chunk of one raw partition."""

    __slots__ = ("_catalog", "_headers", "_is_number_stored", "_newest", "_number", "_overlay", "_table_id")

    def __init__(self, overlay: Overlay, catalog: TableCatalog, table_id: bytes) -> None:
        self._overlay = overlay
        self._catalog = catalog
        self._table_id = table_id
        self._headers: dict[int, SerializationHeader] = {}
        self._newest, _ = catalog.newest_of(table_id)
        self._number: int | None = None
        self._is_number_stored = False

    def encode(self, stored: StoredRow, *, is_static: bool) -> bytes:
        """Encode a row. CdcError(SCHEMA_UNKNOWN) if it does not fit the newest schema, which then is not the newest."""
        self.store_newest_number()
        return self.encode_unstored(stored, is_static=is_static)

    def encode_unstored(self, stored: StoredRow, *, is_static: bool = False) -> bytes:
        """Encode a row as `encode` does, before `store_newest_number` is called."""
        number = self.newest_number()
        try:
            row = write_row(stored.row, self._header(number), is_static=is_static)
        except FormatError as error:
            raise CdcError(
                Code.SCHEMA_UNKNOWN,
                f"A row of table id {self._table_id.hex()} does not fit the table's newest schema, with digest "
                f"{self._newest.hex()}: {error}.",
                "Start the publisher that wrote the last raw messages again: it sends the schemas it knows.",
            ) from error
        return VERSION_BYTE + write_unsigned_vint(stored.row_sequence) + write_unsigned_vint(number) + row

    def encode_rows(self) -> None:
        """Encode the regular rows that the chunk has changed, each once."""
        for key, stored in self._overlay.changed_rows():
            self._overlay.put_row(key, self.encode(stored, is_static=False))

    def decode(self, value: RowValue, *, is_static: bool) -> StoredRow:
        if isinstance(value, StoredRow):
            return value
        check_version(value)
        try:
            row_sequence, position = read_unsigned_vint(value, 1)
            number, position = read_unsigned_vint(value, position)
            row, _ = read_row(value, position, self._header(number), is_static=is_static)
        except FormatError as error:
            raise CdcError(
                Code.STATE_DAMAGED,
                f"A stored row of table id {self._table_id.hex()} can't be read: {error}.",
                "Delete the local state of this raw partition: it is restored from the checkpoint location.",
            ) from error
        return StoredRow(row, row_sequence)

    def _header(self, number: int) -> SerializationHeader:
        header = self._headers.get(number)
        if header is None:
            digest = self._newest if number == self.newest_number() else self._stored_digest(number)
            assert digest is not None, f"state refers to schema {number}, which it does not hold"
            header = SerializationHeader.of_table(with_dropped_columns(self._catalog.schema(self._table_id, digest)))
            self._headers[number] = header
        return header

    def _stored_digest(self, number: int) -> bytes | None:
        stored = self._overlay.get(schema_key(number))
        return None if stored is None else stored[1:]

    def columns(self, number: int, *, is_static: bool) -> Columns | None:
        """The columns of the rows that refer to their schema by a number; None if the state does not hold it."""
        if number != self.newest_number() and self._stored_digest(number) is None:
            return None
        header = self._header(number)
        return header.static_columns if is_static else header.regular_columns

    def newest_number(self) -> int:
        """The number of the newest schema; it is assigned with `store_newest_number`."""
        if self._number is None:
            number = 0
            while (stored := self._overlay.get(schema_key(number))) is not None and stored[1:] != self._newest:
                number += 1
            self._is_number_stored = stored is not None
            self._number = number
        return self._number

    def store_newest_number(self) -> None:
        number = self.newest_number()
        if not self._is_number_stored:
            self._overlay.put(schema_key(number), VERSION_BYTE + self._newest)
            self._is_number_stored = True


def renumbered(value: bytes, numbers: Mapping[int, int]) -> bytes:
    """The value of a row or a static row that refers to its schema by another number: that of another state."""
    check_version(value)
    _, start = read_unsigned_vint(value, 1)
    number, end = read_unsigned_vint(value, start)
    return value[:start] + write_unsigned_vint(numbers[number]) + value[end:]
