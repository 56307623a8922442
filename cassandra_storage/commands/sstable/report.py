"""Shows an SSTable's metadata for `info`, without reading the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cassandra_storage.commands.json_lines import iso_time
from cassandra_storage.formats.rows.deletion import NO_DELETION_TIME
from cassandra_storage.formats.types.cql_types import type_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cassandra_storage.files.sstables import SSTable
    from cassandra_storage.formats.schema.tables import ColumnMetadata

_LABEL = 14


def info_json(sstable: SSTable) -> dict[str, Any]:
    """The output of `info --json` for an SSTable; docs/guides/inspect-sstables.md has the fields."""
    form, stats = sstable.file.descriptor.format, sstable.statistics.stats
    keyspace, name, table_id = sstable.file.table_name
    compression = sstable.data.compression
    return {
        "sstable": sstable.file.data_path.name,
        "path": str(sstable.file.data_path),
        "keyspace": keyspace,
        "table": name,
        "is_index": sstable.is_index,
        "index": sstable.file.index_name,
        "table_id": None if table_id is None else str(table_id),
        "version": form.version,
        "format": form.format,
        "written_by": form.written_by,
        "id": sstable.file.descriptor.id,
        "components": sstable.file.components(),
        "size": sstable.data.size,
        "data_length": sstable.data.length,
        "compression": None if compression is None else compression.compressor,
        "chunk_length": None if compression is None else compression.chunk_length,
        "has_checksums": sstable.data.has_checksums,
        "partitioner": sstable.statistics.partitioner,
        "partitions": stats.partitions,
        "rows": stats.rows,
        "cells": stats.cells,
        "min_timestamp": stats.min_timestamp,
        "max_timestamp": stats.max_timestamp,
        "min_local_deletion_time": _seconds(stats.min_local_deletion_time),
        "max_local_deletion_time": _seconds(stats.max_local_deletion_time),
        "min_ttl": stats.min_ttl,
        "max_ttl": stats.max_ttl,
        "level": stats.level,
        "repaired_at": stats.repaired_at or None,
        "pending_repair": None if stats.pending_repair is None else str(stats.pending_repair),
        "is_transient": stats.is_transient,
        "has_legacy_counter_shards": stats.has_legacy_counter_shards,
        "originating_host_id": None if stats.originating_host_id is None else str(stats.originating_host_id),
        "commit_log_upper_bound": list(stats.commit_log_upper_bound),
        "columns": [_column(column) for column in _columns(sstable)],
    }


def _seconds(time: int) -> int | None:
    return None if time == NO_DELETION_TIME else time


def _columns(sstable: SSTable) -> Iterator[ColumnMetadata]:
    """The key's, and those that the SSTable's header has."""
    table, header = sstable.schema.table, sstable.schema.header
    yield from table.partition_key + table.clustering
    known = {name: dropped.column for name, dropped in table.dropped_columns.items()}
    known.update((column.name, column) for column in table.static_columns + table.regular_columns)
    for layout in header.static_columns.layouts + header.regular_columns.layouts:
        yield known[layout.name]


def _column(column: ColumnMetadata) -> dict[str, str]:
    return {"name": column.name, "type": type_text(column.type), "kind": column.kind.value}


def info_text(shown: Mapping[str, Any]) -> str:
    """The lines of one SSTable, from info_json."""
    return "\n".join([shown["path"], *_lines(shown), *_column_lines(shown["columns"])])


def _lines(shown: Mapping[str, Any]) -> Iterator[str]:
    yield _line("table", ".".join(filter(None, (shown["keyspace"], shown["table"]))))
    if shown["is_index"]:
        yield _line("index", shown["index"] or "yes, its folder does not name it")
    yield _line("version", f"{shown['version']} ({shown['format']}), written by Cassandra {shown['written_by']}")
    yield _line("size", f"{shown['size']:,} bytes, {shown['data_length']:,} of data")
    chunks = f", chunks of {shown['chunk_length']:,} bytes" if shown["compression"] else ""
    yield _line("compression", (shown["compression"] or "none") + chunks)
    yield _line("checksums", "yes" if shown["has_checksums"] else "none")
    yield _line("partitions", f"about {shown['partitions']:,}")
    yield _line("rows", f"{shown['rows']:,}, {shown['cells']:,} cells")
    yield _line("written", f"{_moment(shown['min_timestamp'])} to {_moment(shown['max_timestamp'])}")
    yield _line("TTL", f"{shown['min_ttl']:,} to {shown['max_ttl']:,} s")
    yield _line("level", str(shown["level"]))
    yield _line("repaired", "no" if shown["repaired_at"] is None else _moment(shown["repaired_at"] * 1000))
    yield _line("pending repair", shown["pending_repair"] or "no")
    yield _line("transient", "yes" if shown["is_transient"] else "no")
    if shown["originating_host_id"]:
        yield _line("host", shown["originating_host_id"])


def _column_lines(columns: list[Mapping[str, str]]) -> Iterator[str]:
    width = max(len(column["name"]) for column in columns)
    for column in columns:
        yield f"  {column['name']:<{width}}  {column['kind']:<13}  {column['type']}"


def _moment(microseconds: int) -> str:
    return iso_time(microseconds) or f"{microseconds} µs"


def _line(label: str, text: str) -> str:
    return f"  {label:<{_LABEL}}  {text}".rstrip()
