# cython: language_level=3
"""Purges merged data as a compaction does.

Python oracle: cassandra_storage.formats.merge.purge.Purger.
"""
from libc.stdint cimport uint64_t
from libc.stddef cimport size_t

from cdc_native.formats.constants cimport NO_DELETION_TIME, NO_TIMESTAMP
from cdc_native.formats.rows cimport Cell, Column, is_live, is_no_deletion, is_present, is_row_live


cdef bint _keep_cell(const Purge* purge, Cell* cell) noexcept nogil:
    """Purger._cell; False if it is purged. An expired cell becomes a tombstone."""
    cdef int64_t deleted_at
    if is_live(cell, purge.now):
        return True
    if should_purge(purge, cell.timestamp, cell.local):
        return False
    if cell.ttl == 0:
        return True
    deleted_at = cell.local - cell.ttl
    if cell.local < purge.unrepaired and should_purge(purge, cell.timestamp, deleted_at):
        return False
    cell.value_size, cell.local, cell.ttl = 0, deleted_at, 0
    return True


cdef void _purge_complex(const Purge* purge, int at, Row* row) noexcept nogil:
    cdef Column* column = &row.columns[at]
    cdef size_t i, kept = 0
    if purges(purge, &column.deletion):
        column.deletion.marked, column.deletion.local = NO_TIMESTAMP, NO_DELETION_TIME
    for i in range(column.first, column.first + column.count):
        if _keep_cell(purge, &row.cells[i]):
            if column.first + kept != i:
                row.cells[column.first + kept] = row.cells[i]
            kept += 1
    column.count = kept
    if not kept and is_no_deletion(&column.deletion):
        row.present &= ~(<uint64_t>1 << at)


cdef void purge_row(const Purge* purge, const Shape* shape, Row* row) noexcept nogil:
    """Purger.row; it may be empty after it."""
    cdef int at
    if (
        row.liveness.ttl != 0
        and not is_row_live(&row.liveness, purge.now)
        and should_purge(purge, row.liveness.timestamp, row.liveness.expires)
    ):
        row.liveness.timestamp, row.liveness.ttl, row.liveness.expires = NO_TIMESTAMP, 0, NO_DELETION_TIME
    if purges(purge, &row.deletion):
        row.deletion.marked, row.deletion.local = NO_TIMESTAMP, NO_DELETION_TIME
    for at in range(shape.count):
        if not is_present(row, at):
            continue
        if shape.is_complex[at]:
            _purge_complex(purge, at, row)
        elif not _keep_cell(purge, &row.columns[at].cell):
            row.present &= ~(<uint64_t>1 << at)
