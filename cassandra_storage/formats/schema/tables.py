"""Tables and their columns (org.apache.cassandra.schema: TableMetadata, ColumnMetadata, DroppedColumn)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from uuid import UUID

from cassandra_storage.formats.types.marshal import CqlType, ListType, MapType, SetType, UserType

VIEW = "view"  # among the flags of a materialized view: ours, as system_schema has views in a table of their own

BINARY_NAMES = "binary_names"  # ours, too: Thrift made columns whose names are not those that CQL shows


class ColumnKind(StrEnum):
    """ColumnMetadata.Kind, spelled as in system_schema.columns.kind."""

    PARTITION_KEY = "partition_key"
    CLUSTERING = "clustering"
    STATIC = "static"
    REGULAR = "regular"


@dataclass(frozen=True, slots=True)
class ColumnMetadata:
    """ColumnMetadata: one column of a table."""

    # The column's name.
    name: str
    # Its type.
    type: CqlType
    # Its place in the table: partition key, clustering, static or regular.
    kind: ColumnKind
    # The position among the key's columns of this kind; -1 for others, as in system_schema.
    position: int = -1
    # Whether the clustering order of the column is DESC.
    is_reversed: bool = False

    @property
    def is_complex(self) -> bool:
        """ColumnMetadata.isComplex: its elements are cells of their own."""
        return isinstance(self.type, ListType | SetType | MapType | UserType) and self.type.is_multi_cell


@dataclass(frozen=True, slots=True)
class DroppedColumn:
    """DroppedColumn: a column that the table no longer has."""

    # The column as it was.
    column: ColumnMetadata
    # A cell written at or before this time, in µs, is dropped with the column.
    dropped_time: int


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """TableMetadata: columns in Cassandra's order (ColumnMetadata.comparisonOrder; schema_rows.in_order)."""

    # The name of the keyspace.
    keyspace: str
    # The name of the table.
    name: str
    # The id of the table.
    id: UUID
    # The columns of the partition key, by position.
    partition_key: tuple[ColumnMetadata, ...]
    # The clustering columns, by position.
    clustering: tuple[ColumnMetadata, ...] = ()
    # The static columns: simple before complex, then by name.
    static_columns: tuple[ColumnMetadata, ...] = ()
    # The regular columns: simple before complex, then by name.
    regular_columns: tuple[ColumnMetadata, ...] = ()
    # The dropped columns, by name.
    dropped_columns: Mapping[str, DroppedColumn] = field(default_factory=lambda: MappingProxyType({}))
    # The flags of system_schema.tables, such as `compound` and `counter`.
    flags: frozenset[str] = frozenset({"compound"})
    # How long a tombstone is kept at least, in s.
    gc_grace_seconds: int = 864_000
    # Whether CDC is on.
    cdc: bool = False
    # The timestamp (µs) of the statement that made the table what it is, the same on every node; 0 if it is not known.
    altered_at: int = 0

    @property
    def is_counter(self) -> bool:
        return "counter" in self.flags

    @property
    def is_view(self) -> bool:
        return VIEW in self.flags

    @property
    def is_compact(self) -> bool:
        """TableMetadata.isCompactTable: made WITH COMPACT STORAGE, or by Thrift."""
        return "dense" in self.flags or "super" in self.flags or "compound" not in self.flags

    @property
    def is_static_compact(self) -> bool:
        """TableMetadata.isStaticCompactTable: its CQL rows are static rows, under a clustering that CQL hides."""
        return not {"dense", "super", "compound"} & self.flags

    @property
    def qualified_name(self) -> str:
        return f"{self.keyspace}.{self.name}"

    @property
    def columns(self) -> tuple[ColumnMetadata, ...]:
        return self.partition_key + self.clustering + self.static_columns + self.regular_columns
