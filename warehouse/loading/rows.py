"""Rows of a batch of messages: Arrow columns, without a Python object for a value."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cdc_common.messages import wire
from cdc_native.avro.messages import AvroError
from warehouse.faults import message_refused
from warehouse.records import KEY_BYTES, Rows
from warehouse.tables.schemas import RowSchema

if TYPE_CHECKING:
    from cdc_native.avro.messages import Messages
    from stream_runtime.records import SourcePartition
    from stream_runtime.source_batch import SourceBatch
    from warehouse.tables.schemas import Schemas

_OPS = pa.array(["c", "u", "r", "d"])
_NOTHING = pa.RecordBatch.from_arrays([], names=[])


class SchemaRows(NamedTuple):
    """Rows of messages of one schema."""

    # The schema; None for messages without a value, which delete.
    schema: RowSchema | None
    # The rows.
    rows: Rows
    # The rows before them, if they are kept.
    before: Before | None = None


class Before(NamedTuple):
    """The rows before changes."""

    # Whether there is one, as an array of booleans.
    is_there: pa.Array
    # The keys and sequences of the changes, with the values of the rows before them.
    rows: Rows


class RowMaker:
    """Makes the rows of a topic. CdcError for a message that cannot become one, or of the registry."""

    def __init__(self, schemas: Schemas, *, shows_deleted: bool = False, keeps_before: bool = False) -> None:
        """shows_deleted: whether a deleted row has the values that it had before. keeps_before: whether the rows
        before changes are made, too.
        """
        self._schemas = schemas
        self._shows_deleted = shows_deleted
        self._keeps_before = keeps_before

    def make(self, partition: SourcePartition, batch: SourceBatch, *, deletes_by_tombstone: bool) -> list[SchemaRows]:
        """The rows of a batch of a partition. deletes_by_tombstone: whether messages without a value delete; they
        follow a change message that deletes, which says it, too.
        """
        offsets, keys = _longs(batch.offsets, len(batch)).to_pylist(), batch.keys.to_list()
        times = _longs(batch.timestamps, len(batch)).to_pylist()
        try:
            groups = batch.values.groups()
        except AvroError as error:
            raise message_refused(partition, offsets[error.index], error.reason) from error
        made = []
        for schema_id, values in groups:
            if schema_id is None and not deletes_by_tombstone:
                continue
            places = _longs(values.places, len(values)).to_pylist()
            at = [offsets[place] for place in places]
            hashed = _hashes(partition, [keys[place] for place in places], at)
            times_us = [times[place] * 1000 for place in places]
            rows = Rows(partition.partition, hashed, at, ["d"] * len(at), at, times_us, _NOTHING)
            if schema_id is None:
                made.append(SchemaRows(None, rows))
            else:
                schema = self._schemas.find(schema_id)
                made.append(self._with_values(partition, schema, rows, values))
        return made

    def _with_values(self, partition: SourcePartition, schema: RowSchema, rows: Rows, values: Messages) -> SchemaRows:
        try:
            found = pa.record_batch(schema.table.rows(values, wire.HEADER_SIZE))
        except AvroError as error:
            raise message_refused(partition, rows.offsets[error.index], error.reason) from error
        if not schema.is_envelope:
            return SchemaRows(schema, replace(rows, ops=["u"] * len(rows), values=found))
        ops, after = found.column("op"), found.column("after")
        is_deleted = pc.equal(ops, "d")
        wrong = pc.or_(pc.invert(pc.is_in(ops, value_set=_OPS)), pc.equal(is_deleted, pc.is_valid(after)))
        if pc.any(wrong).as_py():
            at = pc.index(wrong, pa.scalar(value=True)).as_py()
            raise message_refused(partition, rows.offsets[at], "its `op` does not fit its `after`")
        before = found.column("before")
        if self._shows_deleted and after.type == before.type:
            after = pc.if_else(is_deleted, before, after)
        rows = replace(rows, ops=ops.to_pylist(), values=_flat(after, schema))
        if schema.has_sequence:
            rows = replace(rows, sequences=_of_source(found, "row_sequence"))
        if schema.has_time:
            rows = replace(rows, times_us=_of_source(found, "ts_us"))
        if not self._keeps_before or not schema.has_sequence or after.type != before.type:
            return SchemaRows(schema, rows)
        return SchemaRows(schema, rows, Before(pc.is_valid(before), replace(rows, values=_flat(before, schema))))


def newest(found: list[Rows]) -> list[Rows]:
    """The newest version of each key. Of two with one sequence it is the later message."""
    best: dict[bytes, tuple[int, int, int]] = {}
    for number, rows in enumerate(found):
        for at, (key, sequence) in enumerate(zip(rows.keys, rows.sequences, strict=True)):
            known = best.get(key)
            if known is None or (sequence, rows.offsets[at]) >= _order(found, known):
                best[key] = sequence, number, at
    kept: list[list[int]] = [[] for _ in found]
    for _, number, at in best.values():
        kept[number].append(at)
    return [_take(rows, places) for rows, places in zip(found, kept, strict=True) if places]


def _order(found: list[Rows], known: tuple[int, int, int]) -> tuple[int, int]:
    sequence, number, at = known
    return sequence, found[number].offsets[at]


def _take(rows: Rows, places: list[int]) -> Rows:
    if len(places) == len(rows):
        return rows
    return Rows(
        rows.partition,
        [rows.keys[at] for at in places],
        [rows.sequences[at] for at in places],
        [rows.ops[at] for at in places],
        [rows.offsets[at] for at in places],
        [rows.times_us[at] for at in places],
        rows.values.take(pa.array(places, pa.int64())),
    )


def _flat(rows: pa.StructArray, schema: RowSchema) -> pa.RecordBatch:
    """A column for each field."""
    return pa.RecordBatch.from_arrays(rows.flatten(), names=[field.name for field in schema.fields])


def _of_source(found: pa.RecordBatch, name: str) -> list[int]:
    numbers: list[int] = pc.struct_field(found.column("source"), name).to_pylist()
    return numbers


def _hashes(partition: SourcePartition, keys: list[bytes | None], offsets: list[int]) -> list[bytes]:
    """The `_key` of each key: a hash of its Avro bytes, whatever the id of its schema is."""
    for key, offset in zip(keys, offsets, strict=True):
        if key is None or len(key) < wire.HEADER_SIZE or key[0] != 0:
            raise message_refused(partition, offset, "it has no key" if key is None else "its key is not Avro")
    return [blake2b(key[wire.HEADER_SIZE :], digest_size=KEY_BYTES).digest() for key in keys if key is not None]


def _longs(data: bytes, count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(data)])
