"""A topic of changes of all CQL types, whose schema changes several times while it is written.

Messages are put together from encoded values, so that a million of them is no work. A few messages of each schema come
late, after those of the next one.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Producer

from cdc_common.messages import wire
from tests.support.archive.cql_columns import CQL_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPIC = "cdc.shop.wide"
HOURS = 5
LATE = 0.03  # of the messages, which have the schema before
NULL = 0.1  # of the values
LARGE = 0.001  # of the values, which are the largest ones
SMALL_BYTES = 1000
MOST_MS = 2**63 // 1000  # a time that has no place in Iceberg is not of its schema
_RING = 1000  # of the values of a column that are drawn once


def number(value: int) -> bytes:
    """An int or long in Avro."""
    rest, out = (value << 1) ^ (value >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def string(value: str) -> bytes:
    data = value.encode()
    return number(len(data)) + data


class Field(NamedTuple):
    """A field of a row. It may be null."""

    # The name.
    name: str
    # The Avro type.
    schema: Any
    # Encodes a value that depends on the row's number.
    encode: Callable[[int], bytes]
    # The former name; empty for none.
    alias: str = ""

    def as_avro(self) -> dict[str, Any]:
        made = {"name": self.name, "type": ["null", self.schema], "default": None}
        return {**made, "aliases": [self.alias]} if self.alias else made


def _record(name: str, *fields: str) -> dict[str, Any]:
    nullable = [{"name": field, "type": ["null", "string"], "default": None} for field in fields]
    return {"type": "record", "name": name, "fields": nullable}


_COUNT = Field("count", "int", lambda row: number(row % 1000 - 500))
_RATIO = Field("ratio", "float", lambda row: struct.pack("<f", row / 7))
_OLD = Field("old_name", "string", lambda row: string(f"name {row}"))
_NEW = _OLD._replace(name="new_name", alias="old_name")
_HOME = Field("home", _record("home", "city"), lambda row: b"\x02" + string(f"city {row}"))
_WIDER_HOME = Field("home", _record("home", "city", "zip"), lambda row: _HOME.encode(row) + b"\x02" + string(f"{row}"))
_GONE = Field("gone", "string", lambda row: string(f"gone {row}"))
_ADDED = Field("added", "string", lambda row: string(f"added {row}"))
_LONG = Field("count", "long", lambda row: number(row - 2**40))
_DOUBLE = Field("ratio", "double", lambda row: struct.pack("<d", row / 7))
_TEXT = Field("count", "string", lambda row: string(f"count {row}"))
CHANGES = (
    (_COUNT, _RATIO, _OLD, _HOME, _GONE),
    (_COUNT, _RATIO, _OLD, _HOME, _GONE, _ADDED),
    (_LONG, _DOUBLE, _OLD, _HOME, _GONE, _ADDED),
    (_LONG, _DOUBLE, _NEW, _WIDER_HOME, _GONE, _ADDED),
    (_LONG, _DOUBLE, _NEW, _WIDER_HOME, _ADDED),
    (_TEXT, _DOUBLE, _NEW, _WIDER_HOME, _ADDED),
)
"""The fields of each schema, beside those of the CQL types. The last one does not fit the others."""
RENAMED = {"old_name": "new_name"}


@cache
def cql_fields() -> list[Field]:
    """A field for each CQL type, and for each of its forms."""
    return [_cql_field(f"c{place}", place) for place in range(len(CQL_COLUMNS))]


def _cql_field(name: str, place: int) -> Field:
    column = CQL_COLUMNS[place]
    avro_type = column.avro_type(f"{TOPIC}.{name}")
    values = column.values()
    if column.name == "timestamp":
        values = [value for value in values if abs(int.from_bytes(value, "big", signed=True)) < MOST_MS]
    encoded = [avro_type.encode(value) for value in values]
    small = [value for value in encoded if len(value) <= SMALL_BYTES]
    rng = random.Random(name)
    ring = [rng.choice(encoded if rng.random() < LARGE else small) for _ in range(_RING)]
    return Field(name, avro_type.schema, lambda row: ring[(row * 7919 + place) % _RING])


def fields_of(version: int) -> list[Field]:
    return [Field("id", "long", number), *cql_fields(), *CHANGES[version]]


def schema_of(version: int) -> dict[str, Any]:
    """The envelope of the schema with this number."""
    row = {"type": "record", "name": "Value", "fields": [field.as_avro() for field in fields_of(version)]}
    source = {
        "type": "record",
        "name": "Source",
        "fields": [{"name": "ts_us", "type": "long"}, {"name": "row_sequence", "type": "long"}],
    }
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": TOPIC,
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "source", "type": source},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"], "default": None},
        ],
    }


def messages(ids: list[int], count: int, seed: int, now_ms: int) -> Iterator[tuple[bytes, bytes | None]]:
    """Keys and values. ids: of the registered schemas."""
    rng = random.Random(seed)
    for place in range(count):
        newest = place * len(ids) // count
        version = newest - 1 if newest and rng.random() < LATE else newest
        key = number(rng.randrange(max(count // 5, 1)))
        kind = rng.random()
        if kind > 0.98:
            yield key, None
            continue
        op = "c" if kind < 0.4 else "d" if kind > 0.9 else "u"
        before = b"\x00" if op == "c" else b"\x02" + _row(rng, version, place - 1)
        after = b"\x00" if op == "d" else b"\x02" + _row(rng, version, place)
        time_us = now_ms * 1000 - rng.randrange(HOURS * 3_600_000_000)
        rest = number(time_us) + number(place) + string(op) + b"\x02" + number(now_ms)
        yield key, wire.header(ids[version]) + before + after + rest


def _row(rng: random.Random, version: int, row: int) -> bytes:
    return b"".join(b"\x00" if rng.random() < NULL else b"\x02" + field.encode(row) for field in _fields(version))


@cache
def _fields(version: int) -> list[Field]:
    return fields_of(version)


def send(bootstrap: str, topic: str, values: Iterator[tuple[bytes, bytes | None]]) -> None:
    """Send all in transactions of some thousands, one of them in ten aborted and sent again."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-load", "linger.ms": 20})
    producer.init_transactions()
    batch: list[tuple[bytes, bytes | None]] = []
    number_of_batch = 0

    def produce() -> None:
        producer.begin_transaction()
        for key, value in batch:
            producer.produce(topic, value, key)
            producer.poll(0)
        producer.flush()

    def commit() -> None:
        nonlocal number_of_batch
        number_of_batch += 1
        if number_of_batch % 10 == 0:
            produce()
            producer.abort_transaction()
        produce()
        producer.commit_transaction()
        batch.clear()

    for message in values:
        batch.append(message)
        if len(batch) == 5000:
            commit()
    if batch:
        commit()
