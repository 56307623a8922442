"""Reads commit logs and SSTables as files: it finds, follows, decompresses, decrypts and verifies them.

It uses cassandra_storage.formats, which parses the bytes without I/O. The programs use it. docs/library.md has
examples and the reference of the names exported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.public_names import loader

if TYPE_CHECKING:
    from cassandra_storage.files.codecs import SegmentCodecs
    from cassandra_storage.files.keystore import read_keys
    from cassandra_storage.files.segments import OpenSegment, SegmentFile, list_segments, read_segment
    from cassandra_storage.files.sstables import (
        SSTable,
        SSTableFile,
        find_sstables,
        list_sstables,
        read_statistics,
        verify_digest,
    )
    from cassandra_storage.files.table_sstables import DamagedTableError, TableSSTables, table_files

__all__ = [
    "DamagedTableError",
    "OpenSegment",
    "SSTable",
    "SSTableFile",
    "SegmentCodecs",
    "SegmentFile",
    "TableSSTables",
    "find_sstables",
    "list_segments",
    "list_sstables",
    "read_keys",
    "read_segment",
    "read_statistics",
    "table_files",
    "verify_digest",
]

# Loaded when they are first used: a program that needs one module loads no other.
_MODULES = {
    "codecs": ("SegmentCodecs",),
    "keystore": ("read_keys",),
    "segments": ("OpenSegment", "SegmentFile", "list_segments", "read_segment"),
    "sstables": ("SSTable", "SSTableFile", "find_sstables", "list_sstables", "read_statistics", "verify_digest"),
    "table_sstables": ("DamagedTableError", "TableSSTables", "table_files"),
}

__getattr__ = loader(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
