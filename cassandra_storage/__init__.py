"""Cassandra's files without Cassandra: its formats and rules, its files on disk, and two commands.

A library of its own: of this project it needs only the native core, and that only for speed. A room imports only those
below it:

- `commands`: cassandra-commitlog and cassandra-sstable, which inspect the files of a node without any server.
- `files`: finds, follows, decompresses, decrypts and verifies commit logs and SSTables.
- `formats`: decodes bytes and types, and merges rows. No I/O and no third-party imports.

The public names of `formats` are exported here, those of the others by `cassandra_storage.files`,
`cassandra_storage.commands.commitlog` and `cassandra_storage.commands.sstable`. docs/library.md has examples and the
reference of these names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.public_names import loader

if TYPE_CHECKING:
    from cassandra_storage.formats.commitlog.descriptor import CdcIndex, CommitLogDescriptor, parse_cdc_index
    from cassandra_storage.formats.commitlog.segment import (
        CommitLogEntry,
        CommitLogPosition,
        CorruptEntry,
        SegmentReader,
    )
    from cassandra_storage.formats.errors import FormatError, UnknownColumnError, UnknownTableError, UnsupportedError
    from cassandra_storage.formats.merge.purge import Purger
    from cassandra_storage.formats.merge.reconciliation import RowMerger, reconcile
    from cassandra_storage.formats.primitives.murmur3 import token
    from cassandra_storage.formats.rows.clustering import Clustering, ClusteringBound, Kind
    from cassandra_storage.formats.rows.deletion import DeletionTime, LivenessInfo, RangeTombstone, RowDeletion
    from cassandra_storage.formats.rows.mutation import read_mutation
    from cassandra_storage.formats.rows.partition import PartitionUpdate
    from cassandra_storage.formats.rows.row import Cell, ComplexColumnData, Row
    from cassandra_storage.formats.rows.unfiltered import Marker
    from cassandra_storage.formats.schema.cql_schema import parse_schema
    from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, DroppedColumn, TableMetadata
    from cassandra_storage.formats.sstable.merge import MergedPartition
    from cassandra_storage.formats.sstable.reader import Partition
    from cassandra_storage.formats.types.cql_types import parse_type, type_text
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
        decode,
    )
    from cassandra_storage.formats.types.serializers import BigDecimal, Duration

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
    "formats.rows.clustering": ("Clustering", "ClusteringBound", "Kind"),
    "formats.commitlog.descriptor": ("CdcIndex", "CommitLogDescriptor", "parse_cdc_index"),
    "formats.commitlog.segment": ("CommitLogEntry", "CommitLogPosition", "CorruptEntry", "SegmentReader"),
    "formats.schema.cql_schema": ("parse_schema",),
    "formats.types.cql_types": ("parse_type", "type_text"),
    "formats.rows.deletion": ("DeletionTime", "LivenessInfo", "RangeTombstone", "RowDeletion"),
    "formats.errors": ("FormatError", "UnknownColumnError", "UnknownTableError", "UnsupportedError"),
    "formats.types.marshal": (
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
    "formats.merge.reconciliation": ("RowMerger", "reconcile"),
    "formats.primitives.murmur3": ("token",),
    "formats.rows.mutation": ("read_mutation",),
    "formats.rows.partition": ("PartitionUpdate",),
    "formats.merge.purge": ("Purger",),
    "formats.rows.row": ("Cell", "ComplexColumnData", "Row"),
    "formats.schema.tables": ("ColumnKind", "ColumnMetadata", "DroppedColumn", "TableMetadata"),
    "formats.types.serializers": ("BigDecimal", "Duration"),
    "formats.sstable.merge": ("MergedPartition",),
    "formats.sstable.reader": ("Partition",),
    "formats.rows.unfiltered": ("Marker",),
}

__getattr__ = loader(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
