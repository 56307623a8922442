"""Rows between a chunk and its changelog."""

from __future__ import annotations

import pytest

from cassandra_storage.formats.rows.row import Cell, Row
from materializer.rows.keys import ROWS_SECTION, partition_prefix
from materializer.rows.overlay import Overlay, StoredRow
from materializer.rows.row_codec import RowCodec
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.raw_builder import CATALOG, TABLE, int_bytes

KEY = partition_prefix(b"k") + ROWS_SECTION + int_bytes(1)


def stored_row(text: bytes, sequence: int) -> StoredRow:
    return StoredRow(Row((int_bytes(1),), {"a": Cell(5, text)}), sequence)


def test_a_row_is_encoded_once_however_often_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    overlay = Overlay(MemoryState())
    codec, encoded = RowCodec(overlay, CATALOG, TABLE.id.bytes), []
    encode = RowCodec.encode

    def counted(self: RowCodec, stored: StoredRow, *, is_static: bool) -> bytes:
        encoded.append(stored)
        return encode(self, stored, is_static=is_static)

    monkeypatch.setattr(RowCodec, "encode", counted)
    for sequence in (1, 2, 3):
        overlay.put_row(KEY, stored_row(b"x" * sequence, sequence))
    codec.encode_rows()
    codec.encode_rows()
    assert encoded == [stored_row(b"xxx", 3)]
    value = overlay.writes[KEY]
    assert value is not None
    assert codec.decode(value, is_static=False) == stored_row(b"xxx", 3)


def test_what_is_not_encoded_is_no_write_yet() -> None:
    overlay = Overlay(MemoryState())
    overlay.put_row(KEY, stored_row(b"x", 1))
    assert overlay.get_row(KEY) == stored_row(b"x", 1)
    assert list(overlay.scan_rows(KEY, KEY + b"\x00")) == [(KEY, stored_row(b"x", 1))]
    with pytest.raises(AssertionError):
        overlay.writes  # noqa: B018 - reading it is what fails
    with pytest.raises(AssertionError):
        overlay.get(KEY)
