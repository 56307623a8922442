"""Compares the rows of the fold with those that a judge has read, bit by bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator

_FLOATS = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}


def differences(judge: str, wanted: pa.Table, found: pa.Table, *, forgets_null_lists: bool = False) -> Iterator[str]:
    """Yield what is different. Both are in the order of their offsets.

    forgets_null_lists: whether the judge reads a list of records that is null as an empty one.
    """
    if len(wanted) != len(found):
        yield f"{judge} has {len(found):,} rows, the fold {len(wanted):,}"
        return
    for name in wanted.column_names:
        yield from _differences(f"{judge}: {name}", *prepared(wanted, found, name, is_lenient=forgets_null_lists))


def prepared(wanted: pa.Table, found: pa.Table, name: str, *, is_lenient: bool) -> tuple[pa.Array, pa.Array]:
    """A column of both tables."""
    one, other = whole(wanted.column(name)), whole(found.column(name))
    return (with_empty_lists(one), with_empty_lists(other)) if is_lenient else (one, other)


def with_empty_lists(values: pa.Array) -> pa.Array:
    """The values with an empty list of records where one is null in a record that is there."""
    if not pa.types.is_struct(values.type):
        return values
    parts = {field.name: pc.struct_field(values, field.name) for field in values.type}
    for name, part in parts.items():
        if pa.types.is_list(part.type) and pa.types.is_struct(part.type.value_type):
            empty = pa.ListArray.from_arrays(_offsets(pc.list_value_length(part).fill_null(0)), part.flatten())
            parts[name] = empty.cast(part.type)
    return pa.StructArray.from_arrays(list(parts.values()), list(parts), mask=values.is_null())


def whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def _differences(name: str, wanted: pa.Array, found: pa.Array) -> Iterator[str]:
    """A struct is compared field by field, so that a difference has the name of its field."""
    if pa.types.is_struct(wanted.type):
        if not pa.types.is_struct(found.type) or _names(wanted.type) != _names(found.type):
            yield f"{name} is {found.type}, and should be {wanted.type}"
            return
        if not wanted.is_valid().equals(found.is_valid()):
            yield f"{name} is null in other rows"
            return
        for field in sorted(_names(wanted.type)):
            yield from _differences(f"{name}.{field}", pc.struct_field(wanted, field), pc.struct_field(found, field))
        return
    one, other = plain(wanted), plain(found)
    if one.type != other.type:
        yield f"{name} is {other.type}, and should be {one.type}"
    elif not one.equals(other):
        place = next(place for place in range(len(one)) if not one[place].equals(other[place]))
        yield f"{name} is {str(other[place])[:100]}, and should be {str(one[place])[:100]} (row {place})"


def _names(kind: pa.StructType) -> set[str]:
    return {field.name for field in kind}


def plain(values: pa.Array) -> pa.Array:
    """The values as the numbers, texts and bytes that are stored; floats as their bits."""
    kind = values.type
    if kind in _FLOATS:
        return values.view(_FLOATS[kind])
    for is_of, make in _NESTED:
        if is_of(kind):
            return make(values)
    for is_of, types in _CASTS:
        if is_of(kind):
            for wanted in types:
                values = values.cast(wanted)
    return values


def _plain_struct(values: pa.StructArray) -> pa.Array:
    fields = sorted(_names(values.type))
    parts = [plain(pc.struct_field(values, field)) for field in fields]
    return pa.StructArray.from_arrays(parts, fields, mask=values.is_null())


def _plain_list(values: pa.Array) -> pa.Array:
    counts = pc.fill_null(pc.list_value_length(values), 0).cast(pa.int32())
    made = pa.ListArray.from_arrays(_offsets(counts), plain(values.flatten()))
    return pc.if_else(values.is_valid(), made, pa.scalar(None, made.type))


def _plain_map(values: pa.Array) -> pa.Array:
    """A list of its entries."""
    kind = pa.list_(pa.struct([("key", values.type.key_type), ("value", values.type.item_type)]))
    return plain(
        pa.array([item if item is None else [_entry(*one) for one in item] for item in values.to_pylist()], kind)
    )


def _entry(key: object, value: object) -> dict[str, object]:
    return {"key": key, "value": value}


def _offsets(counts: pa.Array) -> pa.Array:
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(counts).cast(pa.int32())])


_CASTS = (
    (pa.types.is_timestamp, (pa.timestamp("us"), pa.int64())),
    (pa.types.is_date32, (pa.int32(),)),
    (pa.types.is_large_string, (pa.string(),)),
    (pa.types.is_string_view, (pa.string(),)),
    (pa.types.is_large_binary, (pa.binary(),)),
    (pa.types.is_binary_view, (pa.binary(),)),
)
_NESTED = (
    (pa.types.is_list, _plain_list),
    (pa.types.is_large_list, _plain_list),
    (pa.types.is_map, _plain_map),
    (pa.types.is_struct, _plain_struct),
)
