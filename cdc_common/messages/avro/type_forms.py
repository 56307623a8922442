"""The forms in which a table's change messages have its values: what `materializer.decimals` and its neighbours choose.

A form is a part of a topic's schema: a topic keeps the forms that it began with (materializer.planning.form_changes).
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

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
)
from cdc_common.messages.errors import MessageError

Decimals: TypeAlias = Literal["string", "exact", "double"]
Varints: TypeAlias = Literal["string", "bytes", "decimal"]
Durations: TypeAlias = Literal["text", "record", "nanoseconds"]
UserTypes: TypeAlias = Literal["json", "record", "columns"]
Maps: TypeAlias = Literal["json", "native"]
Collections: TypeAlias = Literal["json", "native"]
OutOfRange: TypeAlias = Literal["as_is", "null", "error"]
StaticRows: TypeAlias = Literal["leave_out", "include"]

_NOT_IN_ARRAYS = (NativeType("blob"), NativeType("timestamp"), NativeType("empty"))
_NUMBERS = (NativeType("decimal"), NativeType("varint"))
MOST_DIGITS = 38  # of a decimal that every consumer takes


class FixedDecimal(NamedTuple):
    """Avro's decimal(precision, scale), of one column."""

    # The number of digits.
    precision: int
    # The number of digits after the decimal point.
    scale: int


class TypeForms(NamedTuple):
    """The forms of one table. The settings of the same names describe them (materializer.settings)."""

    # The form of decimals.
    decimals: Decimals = "exact"
    # The form of varints.
    varints: Varints = "bytes"
    # The form of durations.
    durations: Durations = "record"
    # The form of user types and tuples.
    user_types: UserTypes = "record"
    # The form of maps.
    maps: Maps = "native"
    # The form of lists, sets and vectors of collections, blobs or timestamps.
    collections: Collections = "native"
    # The handling of dates and timestamps outside the years 1 to 9999.
    out_of_range: OutOfRange = "as_is"
    # Whether the row of a Cassandra partition with only statics has messages.
    static_rows: StaticRows = "include"
    # The columns that are Avro's decimal, each with its decimal.
    fixed: tuple[tuple[str, FixedDecimal], ...] = ()

    def fixed_of(self, column: str, cql_type: CqlType) -> FixedDecimal | None:
        """The decimal that a column is, if it is one."""
        return dict(self.fixed).get(column) if cql_type in _NUMBERS else None

    def for_keys(self) -> TypeForms:
        """The forms of key columns: two keys must never look the same, so no form that rounds or refuses values."""
        return self._replace(
            decimals="string" if self.decimals == "double" else self.decimals,
            varints="string" if self.varints == "decimal" else self.varints,
        )

    def parts_of(self, cql_type: CqlType) -> dict[str, CqlType] | None:
        """The fields that a column of the type, which is of no key, is split into; None if it is one field."""
        if self.user_types == "columns":
            match cql_type:
                case TupleType(types):
                    return {f"f{place}": of for place, of in enumerate(types)}
                case UserType():
                    return dict(zip(cql_type.field_names, cql_type.field_types, strict=True))
        return None

    def is_json(self, cql_type: CqlType) -> bool:
        """Whether a column of the type is one JSON text."""
        return any(self._is_json_part(part) for part in all_types(cql_type)) or (
            self.collections == "json" and is_hard_collection(cql_type)
        )

    def _is_json_part(self, part: CqlType) -> bool:
        match part:
            case UserType() | TupleType():
                return self.user_types != "record"
            case MapType():
                return self.maps == "json"
        return False


EXACT = TypeForms()
"""The forms that need no conversion: each value as near to Cassandra's bytes as Avro has it."""
DEFAULT_FORMS = TypeForms(
    decimals="string",
    varints="string",
    durations="text",
    user_types="json",
    maps="json",
    collections="json",
    out_of_range="as_is",
    static_rows="leave_out",
)
"""The forms of the settings' defaults: those that every consumer takes and that lose nothing (decision 0062)."""


def is_hard_collection(cql_type: CqlType) -> bool:
    """Whether it is a list, set or vector of what JDBC has no arrays of: collections, blobs, timestamps."""
    match cql_type:
        case ListType(of, _) | SetType(of, _) | VectorType(of, _):
            return isinstance(of, ListType | SetType | VectorType | MapType | CustomType) or of in _NOT_IN_ARRAYS
    return False


def check_fixed(column: str, cql_type: CqlType | None, *, is_key: bool) -> None:
    """MessageError for a column that cannot be a decimal(precision, scale). cql_type: None if the table has no such
    column.
    """
    if cql_type is None:
        raise MessageError(f"the table has no column {column}")
    if is_key:
        raise MessageError(f"key column {column} cannot be a decimal(p,s), which has 1.0 and 1.00 as one key")
    if cql_type not in _NUMBERS:
        raise MessageError(f"column {column} cannot be a decimal(p,s): its type is neither decimal nor varint")
