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
    """ColumnMetadata: `position` counts within the key's kind and is -1 for others, as in system_schema."""

    name: str
    type: CqlType
    kind: ColumnKind
    position: int = -1
    is_reversed: bool = False

    @property
    def is_complex(self) -> bool:
        """ColumnMetadata.isComplex: its elements are cells of their own."""
        return isinstance(self.type, ListType | SetType | MapType | UserType) and self.type.is_multi_cell


@dataclass(frozen=True, slots=True)
class DroppedColumn:
    """DroppedColumn: a cell of it written at or before `dropped_time` (µs) is not there any more."""

    column: ColumnMetadata
    dropped_time: int


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """TableMetadata: columns in Cassandra's order (ColumnMetadata.comparisonOrder; schema_rows.in_order)."""

    keyspace: str
    name: str
    id: UUID
    # by position
    partition_key: tuple[ColumnMetadata, ...]
    clustering: tuple[ColumnMetadata, ...] = ()
    # simple before complex, then by name
    static_columns: tuple[ColumnMetadata, ...] = ()
    # simple before complex, then by name
    regular_columns: tuple[ColumnMetadata, ...] = ()
    dropped_columns: Mapping[str, DroppedColumn] = field(default_factory=lambda: MappingProxyType({}))
    flags: frozenset[str] = frozenset({"compound"})
    gc_grace_seconds: int = 864_000
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
