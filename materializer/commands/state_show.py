"""What `cassandra-materializer state show` prints: one Cassandra partition as the fold holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from cassandra_storage.deletion import LIVE
from cassandra_storage.marshal import NativeType
from cassandra_storage.partition import PartitionUpdate
from cdc_messages.update_json import deletion_json, update_json
from cdc_program.errors import CdcError, Code
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
from materializer.rows.row_codec import RowCodec, with_dropped_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.marshal import CqlType
    from cassandra_storage.schema import TableMetadata
    from materializer.rows.catalog import TableCatalog
    from materializer.rows.overlay import StateReader

_INTEGERS = {"tinyint": 1, "smallint": 2, "int": 4, "bigint": 8}


def partition_key(table: TableMetadata, texts: Sequence[str]) -> bytes:
    """The serialized partition key of its columns' values as text: integers, text and UUIDs as CQL has them, or of any
    type 0x and the hexadecimal bytes. CdcError(CONFIG_INVALID) for others.
    """
    columns = table.partition_key
    if len(texts) != len(columns):
        names = ", ".join(column.name for column in columns)
        raise _no_key(
            f"{table.keyspace}.{table.name} has the partition key ({names}), but {len(texts)} values are given"
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
        raise _no_key(f"{text!r} is no value of the type {name}") from error
    raise _no_key("values of this type are not read")


def _no_key(problem: str) -> CdcError:
    return CdcError(
        Code.CONFIG_INVALID,
        f"{problem[0].upper()}{problem[1:]}.",
        "Give each partition key column's value; of any type as 0x and its serialized bytes.",
    )


def partition_json(reader: StateReader, catalog: TableCatalog, key: bytes, *, with_values: bool) -> dict[str, Any]:
    """The partition in the form of docs/commitlog-tool.md; each row with its row_sequence.

    Bounds of range tombstones are given as the state has them, byte-comparable, and only with values.
    """
    table_id = list(catalog.newest)[-1]
    _, newest = catalog.newest_of(table_id)
    table = with_dropped_columns(newest)
    codec = RowCodec(Overlay(reader), catalog, table_id)
    prefix = partition_prefix(key)
    facts = decode_facts(found) if (found := reader.get(prefix + FACTS_SECTION)) is not None else None
    static = reader.get(prefix + STATIC_SECTION)
    rows = [codec.decode(value, is_static=False) for _, value in reader.scan(prefix + ROWS_SECTION, prefix + ROWS_END)]
    update = PartitionUpdate(
        table,
        key,
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
    return shown
