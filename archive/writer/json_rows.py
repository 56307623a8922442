"""Columns of JSON texts that have a schema, without a Python object for a value.

Each text is wrapped in an object on a line of its own, and pyarrow reads all lines at once. Whatever a text holds, the
next line begins an object: so there are as many objects as texts only if each text is one value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from archive.writer.columns import NotInTableError, stored_type

if TYPE_CHECKING:
    from cdc_native.avro.messages import Messages

_ROOM = 1024


class NotJsonError(ValueError):
    """A text that is not of the schema. `reason` has no values."""

    reason = "it is no JSON object of its schema"


class JsonTable:
    """The columns of JSON objects, like cdc_native.avro.columns.Table. A field that a text does not have is null.

    NotJsonError if a text is no object of the schema: it has a field that the schema does not have, or another type.
    """

    def __init__(self, schema: pa.Schema) -> None:
        """schema: of Avro's columns. NotInTableError for types that JSON is not read as."""
        self.schema = pa.schema([pa.field(field.name, _column_type(stored_type(field.type))) for field in schema])
        """The columns, as they are stored."""
        read = pa.schema([pa.field("v", _read_type(pa.struct(list(self.schema))))])
        self._options = pj.ParseOptions(
            explicit_schema=read, newlines_in_values=True, unexpected_field_behavior="error"
        )

    def rows(self, messages: Messages, skipped: int = 0) -> pa.RecordBatch:  # noqa: ARG002 - JSON has no header
        """The rows of texts. None of them is None."""
        offsets, data, _ = messages.binary()
        texts = pa.Array.from_buffers(
            pa.large_binary(), len(messages), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        )
        lines = pc.binary_join_element_wise(_bytes(b'{"v":'), texts, _bytes(b"}\n"), _bytes(b""))
        text = lines.buffers()[2]
        options = pj.ReadOptions(use_threads=False, block_size=text.size + _ROOM)
        try:
            found = pj.read_json(pa.BufferReader(text), options, self._options)
            values = found.column("v").combine_chunks()
            if len(values) != len(messages) or values.null_count:
                raise NotJsonError
            columns = [values.field(number).cast(field.type) for number, field in enumerate(self.schema)]
            rows = pa.RecordBatch.from_arrays(columns, schema=self.schema)
            rows.validate(full=True)  # pyarrow takes texts that are no UTF-8
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise NotJsonError from error  # Arrow's own message has values
        return rows


def _bytes(data: bytes) -> pa.Scalar:
    return pa.scalar(data, pa.large_binary())


def _column_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column, with fields that may be null at each level. Times of day stay texts."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _column_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_column_type(kind.value_type))
    return pa.string() if pa.types.is_time(kind) else kind


def _read_type(kind: pa.DataType) -> pa.DataType:
    """The type as which JSON is read, which is then cast. Dates are texts."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _read_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_read_type(kind.value_type))
    if pa.types.is_map(kind):
        raise NotInTableError("JSON objects are not read as maps")
    if pa.types.is_date(kind):
        return pa.string()
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return kind
