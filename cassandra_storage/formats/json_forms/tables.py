"""Tables as JSON, and their descriptions: a table with its gc_grace_seconds and the time of its last change.

A description with `"format_version"` is a message of the topic `<prefix>.tables`, and what `--schema` takes.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from uuid import UUID

from cassandra_storage.formats.json_forms.types import type_from_json, type_to_json
from cassandra_storage.formats.schema.schema_rows import in_order
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, DroppedColumn, TableMetadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FORMAT_VERSION = 1
READABLE_VERSIONS = range(1, FORMAT_VERSION + 1)  # there is no version before 1


def table_to_json(table: TableMetadata) -> dict[str, Any]:
    """The table as JSON: what decoding and the Avro schemas need, equal for every version of Cassandra."""
    return {
        "id": str(table.id),
        "keyspace": table.keyspace,
        "name": table.name,
        "partition_key": [_column_to_json(column) for column in table.partition_key],
        "clustering": [_column_to_json(column) for column in table.clustering],
        "static": [_column_to_json(column) for column in in_order(table.static_columns)],
        "regular": [_column_to_json(column) for column in in_order(table.regular_columns)],
        "dropped": {
            name: {**_column_to_json(dropped.column), "kind": dropped.column.kind, "time_us": dropped.dropped_time}
            for name, dropped in table.dropped_columns.items()
        },
        "flags": sorted(table.flags),
    }


def described_table(description: Mapping[str, Any]) -> TableMetadata:
    """The table of a description: `{"altered_at_us", "gc_grace_seconds", "table"}`. The first may be missing.

    ValueError, KeyError, TypeError, IndexError or AttributeError if it is damaged.
    """
    table = _table_from_json(description["table"], int(description["gc_grace_seconds"]))
    return replace(table, altered_at=int(description.get("altered_at_us", 0)))


def _table_from_json(value: Mapping[str, Any], gc_grace_seconds: int) -> TableMetadata:
    return TableMetadata(
        keyspace=value["keyspace"],
        name=value["name"],
        id=UUID(value["id"]),
        partition_key=_columns_from_json(value["partition_key"], ColumnKind.PARTITION_KEY),
        clustering=_columns_from_json(value["clustering"], ColumnKind.CLUSTERING),
        static_columns=_columns_from_json(value["static"], ColumnKind.STATIC),
        regular_columns=_columns_from_json(value["regular"], ColumnKind.REGULAR),
        dropped_columns=MappingProxyType(
            {name: _dropped_from_json(dropped) for name, dropped in value["dropped"].items()}
        ),
        flags=frozenset(value["flags"]),
        gc_grace_seconds=gc_grace_seconds,
    )


def _column_to_json(column: ColumnMetadata) -> dict[str, Any]:
    value: dict[str, Any] = {"name": column.name, "type": type_to_json(column.type)}
    if column.is_reversed:
        value["reversed"] = True
    return value


def _columns_from_json(values: Iterable[Mapping[str, Any]], kind: ColumnKind) -> tuple[ColumnMetadata, ...]:
    has_position = kind in (ColumnKind.PARTITION_KEY, ColumnKind.CLUSTERING)
    return tuple(_column_from_json(value, kind, index if has_position else -1) for index, value in enumerate(values))


def _column_from_json(value: Mapping[str, Any], kind: ColumnKind, position: int) -> ColumnMetadata:
    return ColumnMetadata(value["name"], type_from_json(value["type"]), kind, position, value.get("reversed", False))


def _dropped_from_json(value: Mapping[str, Any]) -> DroppedColumn:
    return DroppedColumn(_column_from_json(value, ColumnKind(value["kind"]), -1), int(value["time_us"]))
