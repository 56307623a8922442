"""The native core's order of values: the kinds of its keys (cdc_native.formats.keys)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.types.marshal import CqlType, ListType, MapType, NativeType, SetType, UserType

if TYPE_CHECKING:
    from cdc_native.formats.keys import KeyForm

# Of native types: the kind of their keys, and the bytes of a value.
KEY_TYPES: dict[str, tuple[str, int]] = {
    "ascii": ("escaped", 0),
    "bigint": ("bigint", 8),
    "blob": ("escaped", 0),
    "boolean": ("boolean", 1),
    "date": ("fixed", 4),
    "double": ("floating", 8),
    "duration": ("escaped", 0),
    "float": ("floating", 4),
    "inet": ("escaped", 0),
    "int": ("signed", 4),
    "smallint": ("signed", 2),
    "text": ("escaped", 0),
    "time": ("fixed", 8),
    "timestamp": ("signed", 8),
    "timeuuid": ("timeuuid", 16),
    "tinyint": ("signed", 1),
    "uuid": ("uuid", 16),
}
UNKNOWN: KeyForm = ("unknown", 0, False)
"""The form of types whose order the core does not know."""


def key_form(type_: CqlType) -> tuple[str, int]:
    """(kind, bytes of a value) of a type's keys."""
    return KEY_TYPES.get(type_.name, UNKNOWN[:2]) if isinstance(type_, NativeType) else UNKNOWN[:2]


def path_form(type_: CqlType) -> KeyForm:
    """Return how the core orders the paths of a multi-cell column's cells (byte_comparable.path_encoder)."""
    match type_:
        case MapType(keys, _, _):
            return (*key_form(keys), False)
        case SetType(of, _):
            return (*key_form(of), False)
        case ListType():
            return ("timeuuid", 16, False)
        case UserType():
            return ("field", len(type_.field_names), False)
    return UNKNOWN
