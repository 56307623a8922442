"""A column of each type: the warehouse gives back the values of the messages, bit by bit."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tests.support.warehouse.scene import ID, KEY_ID, KEY_SCHEMA, Shop, Warehouse, envelope, key_bytes, nullable
from warehouse.targets.statements import full_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from warehouse.tables.forms import Form
    from warehouse.targets.connection import Connection

LONG_MAX, INT_MAX = 2**63 - 1, 2**31 - 1
TYPES: dict[str, tuple[Any, list[Any]]] = {
    "boolean": ("boolean", [True, False]),
    "int": ("int", [0, -INT_MAX - 1, INT_MAX]),
    "long": ("long", [0, -LONG_MAX - 1, LONG_MAX]),
    "float": ("float", [0.1, -0.0, float("inf"), 1e-45, 3.4028235e38]),
    "double": ("double", [0.1, 1 / 3, -0.0, float("-inf"), 5e-324, 1.7976931348623157e308]),
    "string": ("string", ["", '"', "a\nb", "\\N", "\r\n", " x ", ",", "NULL", "\\.", "𝄞", "\x01\x7f"]),
    "bytes": ("bytes", [b"", b"\0\xff\\x41", b"'\""]),
    "fixed": ({"type": "fixed", "name": "Four", "size": 4}, [b"\0\1\2\xff"]),
    "enum": ({"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}, ["RED", "BLUE"]),
    "uuid": ({"type": "string", "logicalType": "uuid"}, ["6ba7b810-9dad-41d1-80b4-00c04fd430c8"]),
    "decimal": (
        {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 4},
        [Decimal("1.0000"), Decimal("-9999999999999999999999999999999999.9999")],
    ),
    "day": ({"type": "int", "logicalType": "date"}, [0, -1, 20_000, -2_440_588, 2_145_031_948, -719_163, 2_932_897]),
    "clock": ({"type": "int", "logicalType": "time-millis"}, [0, 86_399_999, 43_200_001]),
    "at": (
        {"type": "long", "logicalType": "timestamp-millis"},
        [0, -1, 1_795_000_000_123, -2_440_588 * 86_400_000, 106_751_983 * 86_400_000 - 1, 253_402_300_800_000],
    ),
    "local": ({"type": "long", "logicalType": "local-timestamp-micros"}, [0, -1, 1_795_000_000_123_456]),
    "nanos": ({"type": "long", "logicalType": "timestamp-nanos"}, [1, LONG_MAX]),
    "json": ({"type": "string", "connect.name": "io.debezium.data.Json"}, ['{"b":1,"a":"\\u0000"}', "[1,1]"]),
    "items": ({"type": "array", "items": ["null", "long"]}, [[], [1, None, LONG_MAX]]),
    "map": ({"type": "map", "values": "double"}, [{"a": 0.1}]),
    "record": (
        {"type": "record", "name": "Inner", "fields": [nullable("b", "bytes"), nullable("t", "string")]},
        [{"b": b"\0\1", "t": None}],
    ),
}


POSTGRESQL_QUERIES = {
    "day": "day - DATE '1970-01-01'",
    "clock": "(EXTRACT(EPOCH FROM clock) * 1000)::numeric",
    "at": '(EXTRACT(EPOCH FROM "at") * 1000)::numeric',
    "local": '(EXTRACT(EPOCH FROM "local") * 1000000)::numeric',
    **{name: f'"{name}"::text' for name in ("uuid", "json", "items", "map", "record")},
}
DUCKDB_QUERIES = {
    "day": "day - DATE '1970-01-01'",
    "clock": "epoch_us(clock) // 1000",
    "at": 'epoch_ms("at")',
    "local": 'epoch_us("local")',
    **{name: f'"{name}"::text' for name in ("uuid", "json", "map", "record")},
}
TEXTS: dict[str, list[Any]] = {
    "items": [[], [1, None, LONG_MAX], "[]", "[1,null,9223372036854775807]"],
    "map": ['{"a":0.1}'],
    "record": ['{"b":"0x0001","t":null}'],
}
"""Nested values as a warehouse gives them back."""


Types = Mapping[str, tuple[Any, list[Any]]]
"""Of columns: the Avro type, and values."""


def shop_of_types(types: Types = TYPES) -> Shop:
    """A table with a column of each type."""
    fields = [ID, *(nullable(name, kind) for name, (kind, _) in types.items())]
    return Shop(schemas={KEY_ID: KEY_SCHEMA, 10: envelope(fields)})


def check_types(connect: Callable[[], Connection], queries: Mapping[str, str], form: Form) -> None:
    """Load values of each type, and compare them with what the warehouse gives back."""
    shop = shop_of_types()
    check_values(shop, Warehouse(shop.topic, connect, form), queries)


def check_values(shop: Shop, warehouse: Warehouse, queries: Mapping[str, str], types: Types = TYPES) -> None:
    """As check_types. shop: of these types."""
    most = max(len(values) for _, values in types.values())
    sent = [
        {name: values[key] if key < len(values) else None for name, (_, values) in types.items()} for key in range(most)
    ]
    for key, row in enumerate(sent):
        shop.put(key, 10, **row)
    warehouse.run()
    columns = ", ".join(queries.get(name, f'"{name}"') for name in types)
    read = warehouse.loader.connection.run(f"SELECT {columns} FROM {full_name(warehouse.table)} ORDER BY id")
    for row, found in zip(sent, read, strict=True):
        for (name, wanted), value in zip(row.items(), found, strict=True):
            assert _is_same(name, wanted, value), (name, wanted, value)
    warehouse.close()


WIDENED = {
    10: [ID, nullable("a", "int"), nullable("b", "float"), nullable("c", "string"), nullable("d", "int")],
    11: [ID, nullable("a", "long"), nullable("b", "double"), nullable("c", "bytes"), nullable("d", "double")],
}


def check_widened(connect: Callable[[], Connection], form: Form) -> None:
    """Each type becomes wider by a newer schema. Values of messages with the older one are the same, before and after
    it.
    """
    shop = shop_of_widened()
    check_wider(shop, Warehouse(shop.topic, connect, form))


def shop_of_widened() -> Shop:
    """A table whose columns become wider."""
    return Shop(schemas={KEY_ID: KEY_SCHEMA, **{number: envelope(fields) for number, fields in WIDENED.items()}})


def check_wider(shop: Shop, warehouse: Warehouse) -> None:
    """As check_widened."""
    rows: dict[int, dict[str, Any]] = {
        10: {"a": -INT_MAX - 1, "b": 0.5, "c": "é", "d": INT_MAX},
        11: {"a": LONG_MAX, "b": 1 / 3, "c": b"\xff\0", "d": 0.1},
    }
    for key, schema_id in enumerate((10, 11, 10, 11, 10)):
        _send_row(shop, key, schema_id, rows[schema_id])
        warehouse.run()
    _send_row(shop, 5, 11, dict.fromkeys("abcd"))
    warehouse.run()
    found = {row.pop("id"): row for row in warehouse.rows()}
    older = {**rows[10], "c": "é".encode()}
    assert {key: {**row, "c": row["c"] and _bytes(row["c"])} for key, row in found.items()} == {
        **dict.fromkeys((0, 2, 4), older),
        **dict.fromkeys((1, 3), rows[11]),
        5: dict.fromkeys("abcd"),
    }
    warehouse.close()


def _send_row(shop: Shop, key: int, schema_id: int, row: dict[str, Any]) -> None:
    source = {"ts_us": key, "row_sequence": 1}
    change = {"op": "c", "before": None, "after": {"id": key, **row}, "source": source, "ts_ms": 0}
    shop.topic.send(0, shop.topic.encode(schema_id, change), key_bytes(key))


def _bytes(value: Any) -> bytes:  # noqa: ANN401 - of a warehouse
    """Bytes. The driver of Redshift has a text of PostgreSQL's."""
    return bytes.fromhex(value.removeprefix("\\x")) if isinstance(value, str) else bytes(value)


def _is_same(name: str, wanted: Any, value: Any) -> bool:  # noqa: ANN401 - of any type
    if wanted is None or value is None:
        return wanted is value
    if name in TEXTS:
        return value in TEXTS[name]
    if name in {"float", "double"}:
        return struct.pack(name[0], value) == struct.pack(name[0], wanted)
    return bool((_bytes(value) if isinstance(wanted, bytes) else value) == wanted)
