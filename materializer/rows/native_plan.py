"""The native core's plan of a table: what it must know to fold the table's plain rows (decision 0027).

The core is used if it is compiled and not turned off by CDC_NATIVE=0.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from cassandra_storage.formats.rows.deletion import NO_TIMESTAMP
from cassandra_storage.formats.rows.header import SerializationHeader, table_codec
from cassandra_storage.formats.types.marshal import (
    CqlType,
    CustomType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
    all_types,
    fixed_length,
)
from cassandra_storage.formats.types.native_order import UNKNOWN, key_form, path_form
from cdc_common.messages.avro.distinct_keys import distinct_check
from cdc_common.messages.avro.encoding import encode_string
from cdc_common.messages.avro.form_values import RANGES, native_form
from cdc_common.messages.avro.json_values import quoted
from cdc_common.messages.avro.type_forms import EXACT, TypeForms
from materializer.rows.row_columns import with_dropped_columns

try:
    from cdc_native.fold.plan import Plan

    IS_NATIVE = os.environ.get("CDC_NATIVE") != "0"
except ImportError:
    IS_NATIVE = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.formats.rows.header import Columns
    from cassandra_storage.formats.schema.tables import ColumnMetadata, TableMetadata
    from cdc_common.messages.envelope import ChangeEncoder
    from cdc_native.fold.plan import TypeForm
    from cdc_native.formats.keys import KeyForm

MOST_COLUMNS = 63
MOST_KEY_COLUMNS = 16
_MOST_TYPES = 900  # of all columns and what is in them

_VALUES: dict[str, tuple[str, int]] = {
    "ascii": ("ascii", 0),
    "bigint": ("integer", 8),
    "blob": ("bytes", 0),
    "boolean": ("boolean", 1),
    "date": ("date", 4),
    "decimal": ("decimal", 0),
    "double": ("floating", 8),
    "duration": ("duration", 0),
    "empty": ("bytes", 0),
    "float": ("floating", 4),
    "inet": ("inet", 0),
    "int": ("integer", 4),
    "smallint": ("integer", 2),
    "text": ("text", 0),
    "time": ("integer", 8),
    "timestamp": ("integer", 8),
    "timeuuid": ("uuid", 16),
    "tinyint": ("integer", 1),
    "uuid": ("uuid", 16),
    "varint": ("varint", 0),
}
_FORMS = {
    ("decimal", "string"): "decimal_text",
    ("decimal", "double"): "decimal_double",
    ("varint", "string"): "varint_text",
    ("varint", "decimal"): "varint_decimal",
    ("duration", "text"): "duration_text",
    ("duration", "nanoseconds"): "duration_nanos",
}
_OUT_OF_RANGE = {"as_is": 0, "null": 1, "error": 2}


def build_plan(table_id: bytes, digest: bytes, table: TableMetadata, encoder: ChangeEncoder | None) -> Plan | None:
    """The plan of a table under its newest schema; None if the Python code must fold all its rows.

    digest: of its schema. encoder: of its change messages; without one the core makes no messages.
    """
    stored = with_dropped_columns(table)
    if not IS_NATIVE or not _is_plain(stored):
        return None
    header = SerializationHeader.of_table(stored)
    forms = EXACT if encoder is None else encoder.forms
    clustering = [
        (length, (*key_form(column.type), column.is_reversed), shown_form(column, forms, is_key=True))
        for column, length in zip(table.clustering, table_codec(table).clustering_lengths, strict=True)
    ]
    layout = None if encoder is None else encoder.layout
    return Plan(
        table_id,
        digest,
        _columns(stored.regular_columns, header.regular_columns),
        _columns(stored.static_columns, header.static_columns),
        clustering,
        [shown_form(column, forms, is_key=True) for column in table.partition_key],
        _fields(table, stored, {} if layout is None else layout.names, forms),
        None if layout is None else layout[:-1],
    )


def _is_plain(table: TableMetadata) -> bool:
    columns = table.partition_key + table.clustering + 2 * table.static_columns + 2 * table.regular_columns
    return (
        not table.is_counter
        and not table.is_compact
        and not table.is_static_compact
        and max(len(table.regular_columns), len(table.static_columns)) <= MOST_COLUMNS
        and max(len(table.partition_key), len(table.clustering)) <= MOST_KEY_COLUMNS
        and all(key_form(column.type) != UNKNOWN[:2] for column in table.clustering)
        and not any(distinct_check(column.type, EXACT) for column in table.partition_key)
        and sum(1 for column in columns for _ in all_types(column.type)) <= _MOST_TYPES
    )


def column_entries(columns: Columns, places: dict[str, ColumnMetadata]) -> list[tuple[int, int | None]] | None:
    """The columns of a stored row's header as places in the plan, with the time up to which cells of them are dropped;
    None if the plan has one of them differently. places: the plan's columns of the kind, by name and in order.
    """
    order = list(places)
    entries = []
    for layout in columns.layouts:
        column = places.get(layout.name)
        length = None if column is None else fixed_length(column.type)
        if column is None or column.is_complex != layout.is_complex or layout.is_counter:
            return None
        if layout.length != (-1 if length is None else length):
            return None
        entries.append((order.index(layout.name), _dropped(layout.dropped_time)))
    return entries


def _dropped(time: int) -> int | None:
    return None if time < NO_TIMESTAMP else time


def _columns(columns: Sequence[ColumnMetadata], header: Columns) -> list[tuple[bytes, int, KeyForm | None, int | None]]:
    return [
        (
            layout.raw,
            layout.length,
            path_form(column.type) if column.is_complex else None,
            _dropped(layout.dropped_time),
        )
        for column, layout in zip(columns, header.layouts, strict=True)
    ]


def _fields(
    table: TableMetadata, stored: TableMetadata, names: dict[str, str], forms: TypeForms
) -> list[tuple[bool, int, TypeForm, TypeForm, int | None, bytes, bytes]]:
    """Return the fields of messages: the columns that the table has, static ones first."""
    fields = []
    for is_static, shown, places in (
        (True, table.static_columns, stored.static_columns),
        (False, table.regular_columns, stored.regular_columns),
    ):
        order = [column.name for column in places]
        for column in shown:
            dropped = table.dropped_columns.get(column.name)
            name = names.get(column.name, "")
            fields.append(
                (
                    is_static,
                    order.index(column.name),
                    type_form(column.type, EXACT),
                    shown_form(column, forms),
                    None if dropped is None else dropped.dropped_time,
                    encode_string(f"before.{name}"),
                    encode_string(f"after.{name}"),
                )
            )
    return fields


def shown_form(column: ColumnMetadata, forms: TypeForms, *, is_key: bool = False) -> TypeForm:
    """Return how the core writes a column's values (cdc_common.messages.avro.cql_types, AvroTypes.column)."""
    forms = forms.for_keys() if is_key else forms
    fixed = None if is_key else forms.fixed_of(column.name, column.type)
    if fixed is not None and isinstance(column.type, NativeType):
        return (f"{column.type.name}_fixed", fixed.precision, fixed.scale, ())
    if forms.is_json(column.type):
        return ("json", 0, 0, (type_form(column.type, forms, is_key=is_key, is_json=True),))
    return type_form(column.type, forms, is_key=is_key)


def type_form(  # noqa: PLR0911  one for each kind of type
    type_: CqlType, forms: TypeForms, *, is_key: bool = False, is_json: bool = False
) -> TypeForm:
    """Return how the core writes the type's values (cdc_common.messages.avro.cql_values, form_values), in the one form
    of values that are shown alike (materializer.rows.shown_forms). is_key: a key column's are written as they are, or
    not at all where their text has no place for that. is_json: within a JSON text (json_values).
    """
    form = partial(type_form, forms=forms, is_key=is_key, is_json=is_json)
    match type_:
        case NativeType(name):
            return _native_form(name, forms, is_key=is_key, is_json=is_json)
        case ListType(of, is_multi_cell):
            return ("list_cells", 1, 0, (form(of),)) if is_multi_cell else ("list", 0, 0, (form(of),))
        case SetType(of, is_multi_cell):
            return ("set_cells", 2, 0, (form(of),)) if is_multi_cell else ("list", 0, 0, (form(of),))
        case MapType(keys, values, is_multi_cell):
            pair = (form(keys), form(values))
            return ("map_cells", 3, 0, pair) if is_multi_cell else ("map", 0, 0, pair)
        case TupleType(types):
            return ("tuple", 0, 0, tuple(map(form, types)))
        case UserType():
            inner = tuple(map(form, type_.field_types))
            if is_json:
                labels = tuple(f"{quoted(name)}:".encode() for name in type_.field_names)
                kind, size = ("object_cells", len(inner)) if type_.is_multi_cell else ("object", 0)
                return (kind, size, int(type_.is_multi_cell), inner, labels)
            return ("field_cells", len(inner), 1, inner) if type_.is_multi_cell else ("tuple", 0, 0, inner)
        case VectorType(of, dimension):
            length = fixed_length(of)
            return ("vector", dimension, -1 if length is None else length, (form(of),))
        case CustomType():
            return ("bytes", 0, 0, ())


def _native_form(name: str, forms: TypeForms, *, is_key: bool, is_json: bool) -> TypeForm:
    kind, size = _VALUES[name]
    fixed = int(is_key and name in {"varint", "decimal"})
    if name in RANGES:
        fixed = _OUT_OF_RANGE[forms.out_of_range]
    if not is_json:
        kind = _FORMS.get((name, native_form(name, forms)), kind)
    return (kind, size, fixed, ())
