"""Compares what came out of Kafka with `SELECT *`: every key both ways, every column by value.

Both sides are brought to one plain form, guided by the driver's type of each column, by code that shares nothing with
cdc_common.messages: the rules of docs/reference/data-types.md, written a second time.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from uuid import UUID

from dev.local_stack.clients.cql import EMPTY
from dev.local_stack.clients.text_forms import decimal_of, duration_of, from_json

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from dev.local_stack.clients.cql import CqlClient, TableColumns
    from dev.local_stack.clients.history import History

Plain: TypeAlias = "Hashable"
Rows: TypeAlias = "dict[Plain, dict[str, Plain]]"
Scalar: TypeAlias = "Callable[[Any], Plain]"
EMPTY_TYPE = "'org.apache.cassandra.db.marshal.EmptyType'"  # as the driver names it
_COLLECTIONS = ("list", "set", "map", "org.apache.cassandra.db.marshal.VectorType")
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(slots=True)
class Comparison:
    """The result of a comparison."""

    # The number of keys on either side.
    rows: int = 0
    # The number of rows in Cassandra, by table.
    tables: dict[str, int] = field(default_factory=dict)
    # A line for each difference.
    differences: list[str] = field(default_factory=list)


def compare(
    client: CqlClient,
    history: History,
    tables: Iterable[tuple[str, str]],
    *,
    static_rows: Literal["include", "leave_out"] = "include",
) -> Comparison:
    """The latest change of every key of these tables against every row that they hold. static_rows: as the job has it:
    left out, a partition with only static columns must have no message.
    """
    result = Comparison()
    for keyspace, table in tables:
        name = f"{keyspace}.{table}"
        columns = client.columns(keyspace, table)
        rows = (row for row in client.rows(keyspace, table) if not has_empty_key(columns, row))
        stored: Rows = {
            key_of(columns, row, from_driver): _stored_row(columns, row)
            for row in rows
            if static_rows == "include" or all(row[column] is not None for column in columns.key)
        }
        latest: Rows = {}
        for record, value in history.latest(name):
            key = key_of(columns, record, from_avro)
            if key in latest:
                result.differences.append(f"{name} {key}: two spellings of it are in Kafka")
            latest[key] = _latest_row(columns, value)
        result.tables[name] = len(stored)
        result.rows += len(stored.keys() | latest.keys())
        result.differences += [f"{name} {line}" for line in _differences(stored, latest)]
    return result


def _stored_row(columns: TableColumns, row: dict[str, Any]) -> dict[str, Plain]:
    """A column that holds an empty value, at whatever depth, is EMPTY as a whole: Avro can say no more. Values of the
    type that has only empty ones are bytes.
    """
    others = (name for name in row if name not in columns.key and columns.types[name].typename != EMPTY_TYPE)
    empty = {name: EMPTY for name in others if holds_empty(row[name])}
    return {**plain_row(columns, {**row, **dict.fromkeys(empty)}, from_driver), **empty}


def _latest_row(columns: TableColumns, value: dict[str, Any]) -> dict[str, Plain]:
    names = (name.removeprefix("after.") for name in value["source"].get("empty", ()) if name.startswith("after."))
    return {**plain_row(columns, value["after"], from_avro), **dict.fromkeys(names, EMPTY)}


def holds_empty(value: object) -> bool:
    """Whether a value is empty, or has an empty value in it."""
    if isinstance(value, Mapping):
        return any(holds_empty(part) for entry in value.items() for part in entry)
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return any(holds_empty(part) for part in value)
    return value is EMPTY


def _differences(stored: Rows, latest: Rows) -> Iterable[str]:
    for key in stored.keys() | latest.keys():
        if key not in latest:
            yield f"{key}: in Cassandra, but not in Kafka"
        elif key not in stored:
            yield f"{key}: in Kafka, but not in Cassandra"
        elif stored[key] != latest[key]:
            names = [name for name in stored[key] if stored[key][name] != latest[key].get(name)]
            names += [name for name in latest[key] if name not in stored[key]]
            told = (f"{name}: Cassandra {stored[key].get(name)!r}, Kafka {latest[key].get(name)!r}" for name in names)
            yield f"{key}: " + "; ".join(told)


def has_empty_key(columns: TableColumns, row: dict[str, Any]) -> bool:
    """Whether the row's key holds an empty value of a type for which Avro has none: such a row has no messages."""
    return any(columns.types[name].typename != EMPTY_TYPE and holds_empty(row[name]) for name in columns.key)


def key_of(columns: TableColumns, row: dict[str, Any], plain: Callable[[Any, Any], Plain]) -> tuple[Plain, ...]:
    """The identity of a row: 1.0 and 1.00 are one clustering, and each side may show either spelling; they are two
    partition keys, which Cassandra compares by their bytes.
    """
    names = ((columns.types[name], plain(columns.types[name], row[name])) for name in columns.key)
    return tuple(
        value if at < columns.partition_columns else _identity(kind, value) for at, (kind, value) in enumerate(names)
    )


def _identity(kind: Any, value: Any) -> Plain:  # noqa: ANN401 - the driver's type class, a plain value
    """A decimal, at whatever depth, without the zeros at its end; anything else as it is."""
    if value is None:
        return None
    parts = kind.subtypes
    if is_record(kind):
        return tuple(_identity(part, item) for part, item in zip(parts, value, strict=True))
    match kind.typename:
        case "list":
            same: Plain = tuple(_identity(parts[0], item) for item in value)
        case "set":
            same = frozenset(_identity(parts[0], item) for item in value)
        case "map":
            same = frozenset((_identity(parts[0], key), _identity(parts[1], item)) for key, item in value)
        case "decimal":
            sign, digits, exponent = value
            while len(digits) > 1 and digits[-1] == 0:
                digits, exponent = digits[:-1], exponent + 1
            same = (sign, digits, exponent) if any(digits) else 0
        case _:
            same = value
    return same


def plain_row(columns: TableColumns, row: dict[str, Any], plain: Callable[[Any, Any], Plain]) -> dict[str, Plain]:
    """The columns but the key's; one that the table does not have keeps its value as text, and so differs."""
    return {
        name: plain(columns.types[name], value) if name in columns.types else repr(value)
        for name, value in row.items()
        if name not in columns.key
    }


def from_driver(kind: Any, value: Any) -> Plain:  # noqa: ANN401 - the driver's type class and value
    """The plain form of a value as the driver gives it."""
    if value is not None and kind.typename == "map":
        value = value.items()
    return _plain(kind, value, from_driver, DRIVER)


def from_avro(kind: Any, value: Any) -> Plain:  # noqa: ANN401 - the driver's type class, a decoded Avro value
    """The plain form of a value as AvroDeserializer gives it."""
    if isinstance(value, str) and (is_record(kind) or kind.typename in _COLLECTIONS):
        value = from_json(kind, value)
    if isinstance(value, dict) and is_record(kind):
        value = list(value.values())
    elif isinstance(value, dict) and kind.typename == "map":
        value = value.items()
    elif isinstance(value, list) and kind.typename == "map":
        value = [tuple(entry.values()) for entry in value]
    return _plain(kind, value, from_avro, AVRO)


def is_record(kind: Any) -> bool:  # noqa: ANN401 - the driver's type class
    """Whether it is a user type or a tuple."""
    return kind.cassname in {"UserType", "TupleType"}


def _plain(kind: Any, value: Any, plain: Callable[[Any, Any], Plain], scalars: Mapping[str, Scalar]) -> Plain:  # noqa: ANN401
    """Maps come as pairs, user types and tuples as sequences."""
    if value is None:
        return None
    if is_record(kind):
        return tuple(plain(part, item) for part, item in zip(kind.subtypes, value, strict=True))
    match kind.typename:
        case "list" | "org.apache.cassandra.db.marshal.VectorType":
            [element] = kind.subtypes or [kind.subtype]
            return tuple(plain(element, item) for item in value)
        case "set":
            return frozenset(plain(kind.subtypes[0], item) for item in value)
        case "map":
            return frozenset((plain(kind.subtypes[0], key), plain(kind.subtypes[1], item)) for key, item in value)
    return scalars.get(kind.typename, _same)(value)


def _same(value: Any) -> Plain:  # noqa: ANN401
    """Integers, texts, bytes and booleans; floats as text, by which NaN equals itself and -0.0 differs from 0.0."""
    hashable: Plain = repr(value) if isinstance(value, float) else value
    return hashable


def _milliseconds(value: dt.datetime | int) -> int:
    if isinstance(value, int):  # within JSON
        return value
    aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
    return (aware - EPOCH) // dt.timedelta(milliseconds=1)


def _decimal(record: dict[str, Any] | str) -> Plain:
    if isinstance(record, str):
        return decimal_of(record).as_tuple()
    unscaled = int.from_bytes(record["value"], "big", signed=True)
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -record["scale"])).as_tuple()


DRIVER: Mapping[str, Scalar] = {
    EMPTY_TYPE: lambda _value: b"",
    "timestamp": _milliseconds,
    "date": lambda value: value.days_from_epoch,
    "time": lambda value: value.nanosecond_time,
    "duration": lambda value: (value.months, value.days, value.nanoseconds),
    "inet": ipaddress.ip_address,
    "decimal": lambda value: value.as_tuple(),
}
AVRO: Mapping[str, Scalar] = {
    "timestamp": _milliseconds,
    "date": lambda value: value if isinstance(value, int) else (value - EPOCH.date()).days,
    "duration": lambda value: (
        duration_of(value) if isinstance(value, str) else (value["months"], value["days"], value["nanos"])
    ),
    "inet": ipaddress.ip_address,
    "decimal": _decimal,
    "varint": lambda value: (
        int(decimal_of(value)) if isinstance(value, str) else int.from_bytes(value, "big", signed=True)
    ),
    "uuid": lambda value: UUID(str(value)),
    "timeuuid": lambda value: UUID(str(value)),
}
