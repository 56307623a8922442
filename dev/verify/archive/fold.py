"""A plain fold of the topic: each message by confluent-kafka and fastavro, one after the other, as Arrow columns.

It has nothing of the archive: values are decoded without logical types, and put under the names and types that the
table must have in the end.
"""

from __future__ import annotations

import io
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import fastavro
import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition

from cdc_common.messages import wire
from dev.verify.archive.load import CHANGES, RENAMED, schema_of
from tests.support.cdc_common.messages.from_avro import without_logical_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PLAIN = {
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "boolean": pa.bool_(),
}
LAST = len(CHANGES) - 1
LAST_THAT_FITS = LAST - 1
READ_SECONDS = 1.0


class Kind(NamedTuple):
    """The rows of one table in one range of offsets."""

    # The schema version of the table.
    version: int
    # The partition.
    partition: int
    # The first offset of the range.
    first: int
    # The offset after the range.
    end: int


class Folded(NamedTuple):
    """The rows that a table must have in a range of offsets."""

    # The range.
    kind: Kind
    # The rows in the order of their offsets: offset, op, row_sequence, ts_us, before, after.
    rows: pa.Table


def fold(bootstrap: str, topic: str, partitions: int, ids: list[int], size: int) -> Iterator[Folded]:
    """Yield the rows of `size` offsets at a time."""
    schemas = {schema_id: fastavro.parse_schema(_bare(place)) for place, schema_id in enumerate(ids)}
    for partition in range(partitions):
        first, rows = 0, _Rows(ids)
        for offset, value in read(bootstrap, topic, partition):
            if offset >= first + size:
                yield from rows.take(partition, first, offset)
                first = offset
            if value is not None:
                schema_id = wire.schema_id(value)
                record: Any = fastavro.schemaless_reader(
                    io.BytesIO(value[wire.HEADER_SIZE :]), schemas[schema_id], None
                )
                rows.add(schema_id, offset, record)
        yield from rows.take(partition, first, 2**62)


def read(bootstrap: str, topic: str, partition: int) -> Iterator[tuple[int, bytes | None]]:
    """Offsets and values of the committed messages of a partition."""
    own = {"group.id": "fold", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, "isolation.level": "read_committed", **own})
    consumer.assign([TopicPartition(topic, partition, 0)])
    try:
        while True:
            for message in consumer.consume(5000, READ_SECONDS):
                if message.error() is not None:
                    return
                yield message.offset() or 0, message.value()
    finally:
        consumer.close()


class _Rows:
    """Rows by the version of their table."""

    def __init__(self, ids: list[int]) -> None:
        self._ids = ids
        self._rows: dict[int, list[dict[str, Any]]] = {1: [], 2: []}
        self._types = {1: image_type(LAST_THAT_FITS), 2: image_type(LAST)}
        self._converts = [[_Convert(field) for field in _image_fields(place)] for place in range(len(ids))]

    def add(self, schema_id: int, offset: int, record: dict[str, Any]) -> None:
        place = self._ids.index(schema_id)
        converts = self._converts[place]
        row = {
            "offset": offset,
            "op": record["op"],
            "row_sequence": record["source"]["row_sequence"],
            "ts_us": record["source"]["ts_us"],
        }
        for image in ("before", "after"):
            values = record[image]
            row[image] = values and {convert.name: convert(values[convert.field]) for convert in converts}
        self._rows[2 if place == LAST else 1].append(row)

    def take(self, partition: int, first: int, end: int) -> Iterator[Folded]:
        for version, rows in self._rows.items():
            image = self._types[version]
            schema = pa.schema(
                [
                    ("offset", pa.int64()),
                    ("op", pa.string()),
                    ("row_sequence", pa.int64()),
                    ("ts_us", pa.int64()),
                    ("before", image),
                    ("after", image),
                ]
            )
            yield Folded(Kind(version, partition, first, end), pa.Table.from_pylist(rows, schema))
            self._rows[version] = []


class _Convert:
    """Makes the plain value of a field. Calls of it are the fold."""

    def __init__(self, field: dict[str, Any]) -> None:
        self.field = field["name"]
        self.name = RENAMED.get(self.field, self.field)
        self._schema = field["type"][1]
        self._is_plain = not _logical(self._schema)

    def __call__(self, value: Any) -> Any:  # noqa: ANN401 - of any type
        if value is None or self._is_plain:
            return value
        kind = _logical(self._schema)
        if kind == "timestamp-millis":
            return value * 1000
        if kind == "decimal":
            return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-self._schema["scale"], _EXACT)
        return value


_EXACT = Context(prec=60)


def _logical(schema: Any) -> str:  # noqa: ANN401 - JSON
    return str(schema.get("logicalType", "")) if isinstance(schema, dict) else ""


def _bare(place: int) -> Any:  # noqa: ANN401 - JSON
    return without_logical_types(schema_of(place))


def _image_fields(place: int) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = schema_of(place)["fields"][0]["type"][1]["fields"]
    return fields


def image_type(newest: int) -> pa.DataType:
    """The plain type of an image, once all schemas of the table were met: its columns by their last names, the last
    type of each, and those that are gone.
    """
    first = 0 if newest == LAST_THAT_FITS else newest
    found: dict[str, pa.DataType] = {}
    for place in range(first, newest + 1):
        for field in _image_fields(place):
            found[RENAMED.get(field["name"], field["name"])] = _plain(field["type"][1])
    return pa.struct(list(found.items()))


def _plain(schema: Any) -> pa.DataType:  # noqa: ANN401 - JSON
    if isinstance(schema, list):
        [schema] = [branch for branch in schema if branch != "null"]
    if isinstance(schema, str):
        return PLAIN[schema]
    if _logical(schema) == "decimal":
        return pa.decimal128(schema["precision"], schema["scale"])
    make = _NESTED.get(schema["type"])
    return _plain(schema["type"]) if make is None else make(schema)


_NESTED: dict[str, Callable[[Any], pa.DataType]] = {
    "record": lambda schema: pa.struct([(field["name"], _plain(field["type"])) for field in schema["fields"]]),
    "array": lambda schema: pa.list_(_plain(schema["items"])),
    "map": lambda schema: pa.map_(pa.string(), _plain(schema["values"])),
}
