"""Watermarks as messages."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_common.messages import raw, watermarks
from cdc_common.messages.errors import MessageError, NextVersionError
from cdc_common.messages.watermarks import TableWatermark, Watermark

IDS = st.binary(min_size=16, max_size=16)
CLOCKS = st.integers(0, 2**62)
WATERMARKS = st.builds(
    Watermark,
    IDS,
    CLOCKS,
    st.integers(0, 2**62),
    st.integers(0, 2**31),
    st.dictionaries(IDS, st.builds(TableWatermark, IDS, CLOCKS), max_size=6),
)


@given(WATERMARKS)
def test_what_is_encoded_is_decoded(watermark: Watermark) -> None:
    [(key, value)] = watermarks.encode(watermark)
    assert key == watermark.host_id + b"\x00\x00"
    assert watermarks.decode(value) == watermark


@given(WATERMARKS, st.integers(1, 3))
def test_many_tables_are_split_into_complete_parts(watermark: Watermark, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watermarks, "MOST_TABLES", most)
        encoded = list(watermarks.encode(watermark))
    parts = [watermarks.decode(value) for _, value in encoded]
    assert len({key for key, _ in encoded}) == len(parts) == max(1, -(-len(watermark.tables) // most))
    assert {*map(_without_tables, parts)} == {_without_tables(watermark)}
    assert {table: at for part in parts for table, at in part.tables.items()} == watermark.tables


def _without_tables(watermark: Watermark) -> Watermark:
    return watermark._replace(tables=())  # type: ignore[arg-type]


@given(WATERMARKS.filter(lambda watermark: watermark.tables))
def test_it_is_a_heartbeat_of_each_of_its_tables(watermark: Watermark) -> None:
    for table_id, table in watermark.tables.items():
        value = watermarks.heartbeat(watermark, table_id)
        message = raw.decode(value)
        assert raw.is_heartbeat(value)
        assert (message.kind, message.table_id, message.host_id) == ("heartbeat", table_id, watermark.host_id)
        assert (message.schema_digest, message.clock) == (table.digest, table.clock)


@given(
    st.binary() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(lambda at: json.dumps(at).encode())
)
def test_damaged_bytes_give_a_message_error(value: bytes) -> None:
    with pytest.raises(MessageError):
        watermarks.decode(value)


@pytest.mark.parametrize("field", ["clock_us", "earlier_clocks_us", "host_id", "position", "segment", "tables"])
def test_each_field_is_checked(field: str) -> None:
    [(_, value)] = watermarks.encode(Watermark(bytes(16), 1, 2, 3, {bytes(16): TableWatermark(bytes(16), 1)}))
    content = json.loads(value)
    for wrong in (None, "x", ["x"]):
        with pytest.raises(MessageError):
            watermarks.decode(json.dumps({**content, field: wrong}).encode())


def test_a_later_format_is_named() -> None:
    with pytest.raises(NextVersionError, match="watermark has format version 2"):
        watermarks.decode(b'{"format_version":2}')
