"""Rows of a batch of messages: Arrow columns, without a Python object for a value.

Messages that no schema describes become rows of bytes. The definition says what becomes of those that are not of their
schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from archive.faults import intent_differs, message_refused
from archive.records import BUCKET_US, FileForm
from archive.writer.columns import UTC_US
from archive.writer.event_time import ENVELOPE_TIMES, MOST_KAFKA_MS, find_times, kafka_micros
from cdc_common.messages import wire
from cdc_native.avro.messages import AvroError, Messages
from stream_runtime.records import SourcePartition
from stream_runtime.source_batch import SourceBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from archive.records import Definition, SchemaPlan
    from archive.writer.schema_plans import Layout, SchemaPlans


REFUSED = pa.schema(
    [
        pa.field("offset", pa.int64()),
        pa.field("timestamp_ms", pa.int64()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("reason", pa.string()),
    ]
)
"""The columns of messages that become no rows."""


class RowKey(NamedTuple):
    """Rows with the same key have the same columns."""

    # The form of the rows.
    form: FileForm
    # The id of the schema; None for messages without a schema.
    schema_id: int | None
    # The schema version of the table.
    version: int


class FileKey(NamedTuple):
    """Rows with the same key, of all partitions of a share, are in one file of a cut."""

    # The form of the rows.
    form: FileForm
    # The id of the schema; None for messages without a schema.
    schema_id: int | None
    # The schema version of the table.
    version: int
    # The number of the hour, or day, since 1970 (UTC).
    bucket: int

    @property
    def rows(self) -> RowKey:
        """The key of its rows."""
        return RowKey(self.form, self.schema_id, self.version)


class RowBatch(NamedTuple):
    """Rows of the same columns, in the order of their offsets."""

    # Their key.
    key: RowKey
    # The number of each row's hour, or day, since 1970 (UTC).
    buckets: pa.Array
    # The rows.
    rows: pa.RecordBatch


class MadeRows(NamedTuple):
    """The rows of a batch."""

    # The rows.
    batches: list[RowBatch]
    # The number of tombstones that were ignored.
    tombstones: int
    # The number of tombstones that are rows of erasures.
    erasures: int
    # The number of rows that have Kafka's time because no field has one.
    by_kafka_time: int
    # The number of rows that are kept as bytes.
    as_bytes: int
    # The messages that are not of their schema, and become no rows: rows of REFUSED, each with the reason.
    refused: list[pa.RecordBatch]


@dataclass(frozen=True)
class _Batch:
    """A batch that is worked on."""

    partition: SourcePartition
    offsets: pa.Array
    kafka_ms: pa.Array
    batch: SourceBatch

    def at(self, places: pa.Array) -> tuple[pa.Array, pa.Array]:
        return self.offsets.take(places), self.kafka_ms.take(places)

    @cached_property
    def keys(self) -> pa.Array:
        return _binary(self.batch.keys)

    @cached_property
    def values(self) -> pa.Array:
        return _binary(self.batch.values)


class RowMaker:
    """Makes the rows of a topic. CdcError for a message that the definition does not allow, or of the registry."""

    def __init__(
        self, plans: SchemaPlans, definition: Definition, pinned: Mapping[int, SchemaPlan] | None = None
    ) -> None:
        """pinned: the plans that an intent keeps; any other schema is then an error."""
        self.used: dict[int, SchemaPlan] = {}
        """The plans of the schemas that were met."""
        self._plans = plans
        self._definition = definition
        self._pinned = pinned
        self._counts = [0, 0]  # rows with Kafka's time, rows of bytes
        self._refused: list[pa.RecordBatch] = []
        self._layouts: dict[int, Layout] = {}
        self._json: Layout | None = None

    def make(self, partition: SourcePartition, batch: SourceBatch) -> MadeRows:
        """The rows of a batch of a partition."""
        count = len(batch)
        work = _Batch(partition, _longs(batch.offsets, count), _longs(batch.timestamps, count), batch)
        made: list[RowBatch] = []
        tombstones, erasures, self._counts, self._refused = 0, 0, [0, 0], []
        for schema_id, messages, places in self._groups(work):
            if messages is None:
                made += self._without_header(work, places)
            elif schema_id is not None:
                made += self._schema_rows(work, schema_id, messages, places)
            elif self._definition.tombstones == "ignore":
                tombstones += len(messages)
            elif self._definition.tombstones == "erasures":
                erasures += len(messages)
                made.append(self._base_rows(work, RowKey("erasures", None, 1), places))
            else:
                made += self._bytes_rows(work, None, places)
        return MadeRows(made, tombstones, erasures, self._counts[0], self._counts[1], self._refused)

    def _groups(self, work: _Batch) -> Iterator[tuple[int | None, Messages | None, pa.Array]]:
        """(schema id, messages, their places in the batch); messages None for those that name no schema."""
        if self._definition.format != "avro":
            yield from self._plain_groups(work)
            return
        try:
            for schema_id, messages in work.batch.values.groups():
                yield schema_id, messages, _longs(messages.places, len(messages))
        except AvroError:
            yield from _groups_beside(work.batch.values)

    def _plain_groups(self, work: _Batch) -> Iterator[tuple[int | None, Messages | None, pa.Array]]:
        """Tombstones, and the others: of the schema of JSON, or of none."""
        values = work.values
        empty = pc.indices_nonzero(values.is_null()).cast(pa.int64())
        if len(empty):
            yield None, messages_of(values.take(empty)), empty
        there = pc.indices_nonzero(values.is_valid()).cast(pa.int64())
        if len(there) and self._definition.format == "bytes":
            yield None, None, there
        elif len(there):
            yield self._json_schema(), messages_of(values.take(there)), there

    def _json_schema(self) -> int:
        """The id of the schema that all JSON of the cut has: the newest one, or the intent's."""
        if self._json is None:
            self._json = self._json_layout()
            self.used[self._json.plan.schema_id] = self._json.plan
        return self._json.plan.schema_id

    def _json_layout(self) -> Layout:
        if self._pinned is None:
            return self._plans.json_layout(self._definition.subject)
        plan = next(iter(self._pinned.values()), None)
        if plan is None:
            raise intent_differs(self._definition.table, "a message is not empty, and it names no schema")
        return self._plans.layout(plan.schema_id, plan)

    def _without_header(self, work: _Batch, places: pa.Array) -> Iterator[RowBatch]:
        """Messages that name no schema."""
        if self._definition.format == "bytes":
            return self._bytes_rows(work, None, places)
        return self._refuse(work, None, places, ["it has no header with the id of a schema"] * len(places))

    def _schema_rows(self, work: _Batch, schema_id: int, messages: Messages, places: pa.Array) -> Iterator[RowBatch]:
        layout = self._layout(schema_id)
        if layout.plan.form == "unknown":
            reason = f"the registry has no schema {schema_id}"
            yield from self._refuse(work, schema_id, places, [reason] * len(places))
            return
        if layout.table is None:
            yield from self._bytes_rows(work, schema_id, places)
            return
        bad: list[tuple[pa.Array, str]] = []
        for converted, at in self._convert(layout, messages, places):
            if isinstance(converted, str):
                bad.append((at, converted))
            else:
                yield from self._payload_rows(work, layout, converted, at)
        if bad:
            at = pa.concat_arrays([at for at, _ in bad])
            yield from self._refuse(work, schema_id, at, [reason for _, reason in bad])

    def _layout(self, schema_id: int) -> Layout:
        """The layout of a schema, which is the same for the whole cut."""
        if self._json is not None:
            return self._json
        if schema_id not in self._layouts:
            pinned = None if self._pinned is None else self._pinned.get(schema_id)
            if self._pinned is not None and pinned is None:
                raise intent_differs(
                    self._definition.table, f"a message has the schema {schema_id}, which it does not name"
                )
            layout = self._layouts[schema_id] = self._plans.layout(schema_id, pinned)
            self.used[schema_id] = layout.plan
        return self._layouts[schema_id]

    def _convert(
        self, layout: Layout, messages: Messages, places: pa.Array
    ) -> Iterator[tuple[pa.RecordBatch | str, pa.Array]]:
        """The columns of the messages, in parts between those that are not of their schema, which have the reason.
        Halves find them, so that what a row becomes never depends on its neighbours.
        """
        assert layout.table is not None
        try:
            rows = pa.record_batch(layout.table.rows(messages, wire.HEADER_SIZE))
            yield _stored(rows, layout), places
        except (AvroError, ValueError) as error:  # ArrowInvalid is a ValueError
            if len(messages) == 1:
                yield getattr(error, "reason", "a value that the table cannot have"), places
                return
            middle = len(messages) // 2
            yield from self._convert(layout, messages.part(0, middle), places.slice(0, middle))
            yield from self._convert(layout, messages.part(middle, len(messages)), places.slice(middle))

    def _refuse(
        self, work: _Batch, schema_id: int | None, places: pa.Array, reasons: Sequence[str]
    ) -> Iterator[RowBatch]:
        """Messages that are not of their schema: rows of bytes, or refused. CdcError if they stop the share."""
        how = self._definition.on_error
        if how == "stop":
            raise message_refused(work.partition, work.offsets[places[0].as_py()].as_py(), reasons[0])
        if how == "bytes":
            yield from self._bytes_rows(work, schema_id, places)
            return
        columns = [*work.at(places), work.keys.take(places), work.values.take(places), pa.array(reasons)]
        self._refused.append(pa.RecordBatch.from_arrays(columns, schema=REFUSED))

    def _payload_rows(
        self, work: _Batch, layout: Layout, payload: pa.RecordBatch, places: pa.Array
    ) -> Iterator[RowBatch]:
        offsets, kafka_ms = work.at(places)
        paths = (*ENVELOPE_TIMES, *self._definition.event_time) if layout.is_envelope else self._definition.event_time
        times = find_times(payload, paths, kafka_ms)
        self._counts[0] += times.by_kafka
        columns = {
            **_kafka_columns(work.partition, offsets, kafka_ms, times.values, layout.plan.schema_id),
            **dict(zip(payload.schema.names, payload.columns, strict=True)),
        }
        if layout.is_envelope:
            columns |= {
                "_op": payload.column("op"),
                "_row_sequence": pc.struct_field(payload.column("source"), "row_sequence"),
                "_ts_us": pc.struct_field(payload.column("source"), "ts_us"),
            }
        schema = self._with_key(layout)
        if "_kafka_key" in schema.names:
            columns["_kafka_key"] = work.keys.take(places)
        rows = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
        form: FileForm = "json" if layout.plan.form == "json" else "avro"
        yield self._row_batch(rows, RowKey(form, layout.plan.schema_id, layout.plan.version))

    def _with_key(self, layout: Layout) -> pa.Schema:
        """The columns of the rows. Changes have the columns of their key, but an erasure names the key of a message."""
        schema = layout.schema
        if not layout.is_envelope or self._definition.tombstones != "erasures":
            return schema
        key = self._plans.bytes_layout().schema.field("_kafka_key")
        return schema.insert(schema.get_field_index("_schema_id") + 1, key)

    def _bytes_rows(self, work: _Batch, schema_id: int | None, places: pa.Array) -> Iterator[RowBatch]:
        self._counts[0] += len(places)
        self._counts[1] += len(places)
        yield self._base_rows(work, RowKey("bytes", schema_id, 1), places)

    def _base_rows(self, work: _Batch, key: RowKey, places: pa.Array) -> RowBatch:
        """Rows of the columns that every table has."""
        offsets, kafka_ms = work.at(places)
        times = kafka_micros(kafka_ms).cast(UTC_US)
        columns = _kafka_columns(work.partition, offsets, kafka_ms, times, key.schema_id)
        columns["_kafka_key"] = work.keys.take(places)
        columns["_kafka_value"] = work.values.take(places)
        schema = self._plans.bytes_layout().schema
        rows = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
        return self._row_batch(rows, key)

    def _row_batch(self, rows: pa.RecordBatch, key: RowKey) -> RowBatch:
        micros = rows.column("_event_time").cast(pa.int64())
        return RowBatch(key, _floor(micros, BUCKET_US[self._definition.bucket]), rows)


def _groups_beside(values: Messages) -> Iterator[tuple[int | None, Messages | None, pa.Array]]:
    """As RowMaker._groups, where some messages have no header."""
    first = 0
    while first < len(values):
        is_bad, end = _has_no_header(values[first]), first + 1
        while end < len(values) and _has_no_header(values[end]) == is_bad:
            end += 1
        if is_bad:
            yield None, None, pa.array(range(first, end), pa.int64())
        else:
            for schema_id, messages in values.part(first, end).groups():
                yield schema_id, messages, pc.add(_longs(messages.places, len(messages)), first)
        first = end


def _has_no_header(value: bytes | None) -> bool:
    return value is not None and (len(value) < wire.HEADER_SIZE or value[0] != 0)


def _kafka_columns(
    partition: SourcePartition, offsets: pa.Array, kafka_ms: pa.Array, times: pa.Array, schema_id: int | None
) -> dict[str, pa.Array]:
    count = len(offsets)
    is_known = pc.and_(pc.greater_equal(kafka_ms, 0), pc.less_equal(kafka_ms, MOST_KAFKA_MS))
    return {
        "_kafka_topic": pa.repeat(partition.topic, count),
        "_kafka_partition": pa.repeat(pa.scalar(partition.partition, pa.int32()), count),
        "_kafka_offset": offsets,
        "_kafka_timestamp": pc.if_else(is_known, kafka_micros(kafka_ms), None).cast(UTC_US),
        "_event_time": times,
        "_schema_id": pa.nulls(count, pa.int64())
        if schema_id is None
        else pa.repeat(pa.scalar(schema_id, pa.int64()), count),
    }


def _stored(rows: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
    """The columns with the types that they are stored with. ArrowInvalid for a value that has no place there."""
    columns = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        wanted = layout.schema.field(name).type
        columns.append(column if column.type == wanted else column.cast(wanted))
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def _floor(numbers: pa.Array, size: int) -> pa.Array:
    quotients = pc.divide(numbers, size)  # towards 0
    return pc.subtract(quotients, pc.less(numbers, pc.multiply(quotients, size)).cast(pa.int64()))


def _longs(data: bytes, count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(data)])


def messages_of(values: pa.Array) -> Messages:
    """Messages of an array of bytes; null is a message without bytes."""
    _, offsets, data = values.cast(pa.large_binary()).buffers()
    return Messages(data or b"", offsets.slice(0, 8 * (len(values) + 1)))


def _binary(messages: Messages) -> pa.Array:
    """The bytes of messages as an array."""
    offsets, data, present = messages.binary()
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    values = pa.Array.from_buffers(pa.large_binary(), len(messages), buffers).cast(pa.binary())
    is_there = pa.Array.from_buffers(pa.uint8(), len(messages), [None, pa.py_buffer(present)]).cast(pa.bool_())
    return pc.if_else(is_there, values, None)
