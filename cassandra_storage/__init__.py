"""Cassandra's formats and rules: it decodes bytes and types, and merges rows.

No I/O and no third-party imports. Module names follow Cassandra's classes, so that a reader can hold the Java file
beside them. docs/library.md has examples and the reference of the names exported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.public_names import loader

if TYPE_CHECKING:
    from cassandra_storage.clustering import Clustering, ClusteringBound, Kind
    from cassandra_storage.commitlog import (
        CdcIndex,
        CommitLogDescriptor,
        CommitLogEntry,
        CommitLogPosition,
        CorruptEntry,
        SegmentReader,
        parse_cdc_index,
    )
    from cassandra_storage.cql_schema import parse_schema
    from cassandra_storage.cql_types import parse_type, type_text
    from cassandra_storage.deletion import DeletionTime, LivenessInfo, RangeTombstone, RowDeletion
    from cassandra_storage.errors import FormatError, UnknownColumnError, UnknownTableError, UnsupportedError
    from cassandra_storage.marshal import (
        CqlType,
        CustomType,
        ListType,
        MapType,
        NativeType,
        SetType,
        TupleType,
        UserType,
        VectorType,
        decode,
    )
    from cassandra_storage.merge import RowMerger, reconcile
    from cassandra_storage.murmur3 import token
    from cassandra_storage.mutation import read_mutation
    from cassandra_storage.partition import PartitionUpdate
    from cassandra_storage.purge import Purger
    from cassandra_storage.rows import Cell, ComplexColumnData, Row
    from cassandra_storage.schema import ColumnKind, ColumnMetadata, DroppedColumn, TableMetadata
    from cassandra_storage.serializers import BigDecimal, Duration
    from cassandra_storage.sstable_merge import MergedPartition
    from cassandra_storage.sstable_reader import Partition
    from cassandra_storage.unfiltered import Marker

__all__ = [
    "BigDecimal",
    "CdcIndex",
    "Cell",
    "Clustering",
    "ClusteringBound",
    "ColumnKind",
    "ColumnMetadata",
    "CommitLogDescriptor",
    "CommitLogEntry",
    "CommitLogPosition",
    "ComplexColumnData",
    "CorruptEntry",
    "CqlType",
    "CustomType",
    "DeletionTime",
    "DroppedColumn",
    "Duration",
    "FormatError",
    "Kind",
    "ListType",
    "LivenessInfo",
    "MapType",
    "Marker",
    "MergedPartition",
    "NativeType",
    "Partition",
    "PartitionUpdate",
    "Purger",
    "RangeTombstone",
    "Row",
    "RowDeletion",
    "RowMerger",
    "SegmentReader",
    "SetType",
    "TableMetadata",
    "TupleType",
    "UnknownColumnError",
    "UnknownTableError",
    "UnsupportedError",
    "UserType",
    "VectorType",
    "decode",
    "parse_cdc_index",
    "parse_schema",
    "parse_type",
    "read_mutation",
    "reconcile",
    "token",
    "type_text",
]

# Loaded when they are first used: a program that needs one module loads no other.
_MODULES = {
    "clustering": ("Clustering", "ClusteringBound", "Kind"),
    "commitlog": (
        "CdcIndex",
        "CommitLogDescriptor",
        "CommitLogEntry",
        "CommitLogPosition",
        "CorruptEntry",
        "SegmentReader",
        "parse_cdc_index",
    ),
    "cql_schema": ("parse_schema",),
    "cql_types": ("parse_type", "type_text"),
    "deletion": ("DeletionTime", "LivenessInfo", "RangeTombstone", "RowDeletion"),
    "errors": ("FormatError", "UnknownColumnError", "UnknownTableError", "UnsupportedError"),
    "marshal": (
        "CqlType",
        "CustomType",
        "ListType",
        "MapType",
        "NativeType",
        "SetType",
        "TupleType",
        "UserType",
        "VectorType",
        "decode",
    ),
    "merge": ("RowMerger", "reconcile"),
    "murmur3": ("token",),
    "mutation": ("read_mutation",),
    "partition": ("PartitionUpdate",),
    "purge": ("Purger",),
    "rows": ("Cell", "ComplexColumnData", "Row"),
    "schema": ("ColumnKind", "ColumnMetadata", "DroppedColumn", "TableMetadata"),
    "serializers": ("BigDecimal", "Duration"),
    "sstable_merge": ("MergedPartition",),
    "sstable_reader": ("Partition",),
    "unfiltered": ("Marker",),
}

__getattr__ = loader(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
