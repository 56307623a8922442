"""Rows of a batch of messages: Arrow columns, without a Python object for a value.

Messages that no schema describes, and those that are not of their schema, become rows of bytes, if the definition says
so. Those alone pass through Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from archive.faults import intent_differs, message_refused
from archive.records import BUCKET_US, FileForm
from archive.writer.columns import UTC_US
from archive.writer.event_time import ENVELOPE_TIMES, MOST_KAFKA_MS, find_times, kafka_micros
from cdc_common.clients.registry.errors import RegistryRequestError
from cdc_common.messages import wire
from cdc_native.avro.messages import AvroError
from stream_runtime.records import SourcePartition
from stream_runtime.source_batch import SourceBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from archive.records import Definition, SchemaPlan
    from archive.writer.schema_plans import Layout, SchemaPlans
    from cdc_native.avro.messages import Messages


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


class RowBatch(NamedTuple):
    """Rows of one file, in the order of their offsets."""

    # The key of the file.
    key: FileKey
    # The rows.
    rows: pa.RecordBatch


class MadeRows(NamedTuple):
    """The rows of a batch."""

    # The rows of each file.
    batches: list[RowBatch]
    # The number of tombstones that were ignored.
    tombstones: int
    # The number of rows that have Kafka's time because no field has one.
    by_kafka_time: int
    # The number of rows that are kept as bytes.
    as_bytes: int


class _Batch(NamedTuple):
    """A batch that is worked on."""

    partition: SourcePartition
    offsets: pa.Array
    kafka_ms: pa.Array
    batch: SourceBatch

    def at(self, places: pa.Array) -> tuple[pa.Array, pa.Array]:
        return self.offsets.take(places), self.kafka_ms.take(places)


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

    def make(self, partition: SourcePartition, batch: SourceBatch) -> MadeRows:
        """The rows of a batch of a partition."""
        count = len(batch)
        work = _Batch(partition, _longs(batch.offsets, count), _longs(batch.timestamps, count), batch)
        made: list[RowBatch] = []
        tombstones, self._counts = 0, [0, 0]
        for schema_id, messages, places in self._groups(work):
            if messages is None:
                made += self._bytes_rows(work, None, places)
            elif schema_id is None and self._definition.tombstones == "ignore":
                tombstones += len(messages)
            elif schema_id is None:
                made += self._bytes_rows(work, None, places)
            else:
                made += self._schema_rows(work, schema_id, messages, places)
        return MadeRows(made, tombstones, *self._counts)

    def _groups(self, work: _Batch) -> Iterator[tuple[int | None, Messages | None, pa.Array]]:
        """(schema id, messages, their places in the batch); messages None for those without a header."""
        try:
            for schema_id, messages in work.batch.values.groups():
                yield schema_id, messages, _longs(messages.places, len(messages))
        except AvroError as error:
            self._refuse(work, error.index, error.reason)
            yield from _groups_beside(work.batch.values)

    def _schema_rows(self, work: _Batch, schema_id: int, messages: Messages, places: pa.Array) -> Iterator[RowBatch]:
        layout = self._layout(work, schema_id, places[0].as_py())
        if layout.table is None:
            yield from self._bytes_rows(work, schema_id, places)
            return
        for converted, at in self._convert(work, layout, messages, places):
            if converted is None:
                yield from self._bytes_rows(work, schema_id, at)
            else:
                yield from self._payload_rows(work, layout, converted, at)

    def _layout(self, work: _Batch, schema_id: int, place: int) -> Layout:
        """The layout of a schema, which the message at a place has."""
        pinned = None
        if self._pinned is not None:
            pinned = self._pinned.get(schema_id)
            if pinned is None:
                raise intent_differs(
                    self._definition.table, f"a message has the schema {schema_id}, which it does not name"
                )
        try:
            layout = self._plans.layout(schema_id, pinned)
        except RegistryRequestError as error:
            if not error.lacks_schema:
                raise
            self._refuse(work, place, f"the registry has no schema {schema_id}")
            layout = self._plans.bytes_layout(schema_id)
        self.used[schema_id] = layout.plan
        return layout

    def _convert(
        self, work: _Batch, layout: Layout, messages: Messages, places: pa.Array
    ) -> Iterator[tuple[pa.RecordBatch | None, pa.Array]]:
        """The columns of the messages, in parts between those that are not of their schema, which have None. Halves
        find them, so that what a row becomes never depends on its neighbours.
        """
        assert layout.table is not None
        try:
            rows = pa.record_batch(layout.table.rows(messages, wire.HEADER_SIZE))
            yield _stored(rows, layout), places
        except (AvroError, ValueError) as error:  # ArrowInvalid is a ValueError
            if len(messages) == 1:
                self._refuse(work, places[0].as_py(), getattr(error, "reason", "a value that the table cannot have"))
                yield None, places
                return
            middle = len(messages) // 2
            yield from self._convert(work, layout, messages.part(0, middle), places.slice(0, middle))
            yield from self._convert(work, layout, messages.part(middle, len(messages)), places.slice(middle))

    def _refuse(self, work: _Batch, place: int, reason: str) -> None:
        """CdcError unless such messages are kept as bytes."""
        if self._definition.on_error == "stop":
            raise message_refused(work.partition, work.batch[place].offset, reason)

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
        else:
            columns["_kafka_key"] = _binary(work.batch.keys).take(places)
        rows = pa.RecordBatch.from_arrays([columns[name] for name in layout.schema.names], schema=layout.schema)
        yield from self._by_bucket(rows, "avro", layout.plan.schema_id, layout.plan.version)

    def _bytes_rows(self, work: _Batch, schema_id: int | None, places: pa.Array) -> Iterator[RowBatch]:
        offsets, kafka_ms = work.at(places)
        self._counts[0] += len(places)
        self._counts[1] += len(places)
        times = kafka_micros(kafka_ms).cast(UTC_US)
        columns = _kafka_columns(work.partition, offsets, kafka_ms, times, schema_id)
        columns["_kafka_key"] = _binary(work.batch.keys).take(places)
        columns["_kafka_value"] = _binary(work.batch.values).take(places)
        schema = self._plans.bytes_layout().schema
        rows = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
        yield from self._by_bucket(rows, "bytes", schema_id, 1)

    def _by_bucket(
        self, rows: pa.RecordBatch, form: FileForm, schema_id: int | None, version: int
    ) -> Iterator[RowBatch]:
        """The rows in parts, one for each hour or day."""
        micros = rows.column("_event_time").cast(pa.int64())
        buckets = _floor(micros, BUCKET_US[self._definition.bucket])
        found = pc.unique(buckets)
        for bucket in found.to_pylist():
            part = rows if len(found) == 1 else rows.filter(pc.equal(buckets, bucket))
            yield RowBatch(FileKey(form, schema_id, version, bucket), part)


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


def _binary(messages: Messages) -> pa.Array:
    """The bytes of messages as an array."""
    offsets, data, present = messages.binary()
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    values = pa.Array.from_buffers(pa.large_binary(), len(messages), buffers).cast(pa.binary())
    is_there = pa.Array.from_buffers(pa.uint8(), len(messages), [None, pa.py_buffer(present)]).cast(pa.bool_())
    return pc.if_else(is_there, values, None)
