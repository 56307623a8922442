"""A table's SSTables as the native core reads and merges them (cdc_native.formats.partitions, decision 0037)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import cdc_native
from cassandra_storage.formats.rows.byte_comparable import clustering_encoder
from cassandra_storage.formats.rows.deletion import NO_TIMESTAMP
from cassandra_storage.formats.rows.dropped_columns import columns_of_rows
from cassandra_storage.formats.rows.header import table_codec
from cassandra_storage.formats.schema.tables import BINARY_NAMES, ColumnKind
from cassandra_storage.formats.types.native_order import key_form, path_form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import cdc_native.formats.sstables as core
    from cassandra_storage.files.sstables import SSTable
    from cassandra_storage.files.table_sstables import TableSSTables
    from cassandra_storage.formats.merge.purge import Purger
    from cassandra_storage.formats.primitives.token_ranges import TokenRange
    from cassandra_storage.formats.rows.header import ColumnLayout, Columns
    from cassandra_storage.formats.schema.tables import ColumnMetadata, TableMetadata
    from cassandra_storage.formats.sstable.merge import MergePosition
    from cdc_native.formats.keys import KeyForm
    from cdc_native.formats.partitions import Merge
    from cdc_native.formats.row_images import RowImages

MOST_COLUMNS = 63
MOST_CLUSTERINGS = 16
_LARGEST = 2**63 - 1


class NotNativeError(Exception):
    """An SSTable that the core does not read: its header has a column otherwise than the table."""


class NativeTable:
    """The layout that the core has of a table whose rows it reads and writes. `columns`, `statics`: all that a row may
    hold, in the order of row images; those of one kind that were dropped come last.
    """

    def __init__(self, table: TableMetadata) -> None:
        from cdc_native.formats.sstables import RowShapes  # noqa: PLC0415 - it may not be compiled

        codec = table_codec(table)
        self.table = table
        self.statics, self.columns = (
            {column.name: codec.layout(column) for column in _columns(table, is_static=is_static)}
            for is_static in (True, False)
        )
        clustering = [
            (length, (*key_form(column.type), column.is_reversed))
            for column, length in zip(table.clustering, codec.clustering_lengths, strict=True)
        ]
        self.clustering_lengths = codec.clustering_lengths
        self.shapes = RowShapes(_shape(table, is_static=False), _shape(table, is_static=True), clustering)

    def merge(
        self,
        sstables: TableSSTables,
        images: RowImages,
        purger: Purger,
        ranges: Iterable[TokenRange],
        after: MergePosition | None,
    ) -> Merge:
        """The merge that TableSSTables.merged is, into row images. What its `fill` raises, `merged` raises in its own
        words, or NotNativeError.
        """
        from cdc_native.formats.partitions import Merge  # noqa: PLC0415 - it may not be compiled

        sources: list[tuple[int, Callable[[int], core.SSTable]]] = [
            (sstable.first_token, partial(self._open, sstable.open_spans)) for sstable in sstables.inputs(ranges, after)
        ]
        limits = purger.now, purger.gc_before, min(purger.unrepaired, _LARGEST), _within(purger.before)
        place = None
        if after is not None:
            done = after.clustering
            place = after.token, after.key, None if done is None else clustering_encoder(self.table.clustering)(done)
        return Merge(images, sources, limits, place)

    def _open(self, open_spans: Callable[[], tuple[SSTable, Iterator[core.SpanData]]], index: int) -> core.SSTable:
        from cdc_native.formats.sstables import SSTable as NativeSSTable  # noqa: PLC0415 - it may not be compiled

        sstable, spans = open_spans()
        header, form = sstable.schema.header, sstable.file.descriptor.format
        if header.clustering_lengths != self.clustering_lengths:
            raise NotNativeError(sstable.file.data_path.name)
        return NativeSSTable(
            index,
            self.shapes,
            _places(header.static_columns, self.statics),
            _places(header.regular_columns, self.columns),
            header.stats,
            header.format.version,
            form.has_uint_deletion_time,
            spans,
        )


def native_table(table: TableMetadata) -> NativeTable | None:
    """None if the Python code must read all its rows, or the core is not in use."""
    is_native = (
        cdc_native.is_enabled()
        and not table.is_counter
        and BINARY_NAMES not in table.flags
        and all(len(_columns(table, is_static=is_static)) <= MOST_COLUMNS for is_static in (True, False))
        and len(table.clustering) <= MOST_CLUSTERINGS
    )
    return NativeTable(table) if is_native else None


def _columns(table: TableMetadata, *, is_static: bool) -> list[ColumnMetadata]:
    return [column for column in columns_of_rows(table) if (column.kind is ColumnKind.STATIC) is is_static]


def _shape(table: TableMetadata, *, is_static: bool) -> list[tuple[bytes, int, KeyForm | None]]:
    codec = table_codec(table)
    columns = _columns(table, is_static=is_static)
    return [
        (layout.raw, layout.length, path_form(column.type) if column.is_complex else None)
        for column, layout in zip(columns, map(codec.layout, columns), strict=True)
    ]


def _places(columns: Columns, known: dict[str, ColumnLayout]) -> Sequence[tuple[int, int | None]]:
    """The columns of a header: the place of each in the table's, and up to when its cells are dropped (µs)."""
    places = {name: place for place, name in enumerate(known)}
    found = []
    for layout in columns.layouts:
        own = known.get(layout.name)
        if own is None or (own.is_complex, own.length, layout.is_counter) != (layout.is_complex, layout.length, False):
            raise NotNativeError(layout.name)
        found.append((places[layout.name], None if layout.dropped_time < NO_TIMESTAMP else layout.dropped_time))
    return found


def _within(before: int) -> int | None:
    """None for a bound that all timestamps are below."""
    return None if before > _LARGEST else before
