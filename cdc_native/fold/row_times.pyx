# cython: language_level=3
"""When a row was written, and when something of it expires or can be purged.

Python oracle: materializer.rows.expiry.
"""
from libc.stdint cimport int64_t

from cdc_native.formats.constants cimport NO_DELETION_TIME
from cdc_native.formats.rows cimport (
    Cell,
    Column,
    Deletion,
    Row,
    Shape,
    is_live,
    is_no_deletion,
    is_present,
    is_row_live,
)


cdef int64_t largest_timestamp(const Shape* shape, const Row* row) noexcept nogil:
    cdef int64_t largest = max(row.liveness.timestamp, row.deletion.marked)
    cdef const Column* column
    cdef int at
    cdef size_t i
    for at in range(shape.count):
        if not is_present(row, at):
            continue
        column = &row.columns[at]
        if not shape.is_complex[at]:
            largest = max(largest, column.cell.timestamp)
            continue
        largest = max(largest, column.deletion.marked)
        for i in range(column.first, column.first + column.count):
            largest = max(largest, row.cells[i].timestamp)
    return largest


cdef int64_t first_end(const Shape* shape, const Row* row) noexcept nogil:
    """The first second at which something of the row expires or has expired; NO_DELETION_TIME for none."""
    cdef int64_t first = NO_DELETION_TIME
    cdef const Column* column
    cdef int at
    cdef size_t i
    if row.liveness.ttl:
        first = row.liveness.expires
    for at in range(shape.count):
        if not is_present(row, at):
            continue
        column = &row.columns[at]
        if not shape.is_complex[at]:
            if column.cell.ttl:
                first = min(first, column.cell.local)
            continue
        for i in range(column.first, column.first + column.count):
            if row.cells[i].ttl:
                first = min(first, row.cells[i].local)
    return first


cdef inline int64_t _purge_second(int64_t timestamp, int64_t local) noexcept nogil:
    """materializer.rows.expiry.purge_second: the timestamp's second, rounded up, or the local one if later."""
    cdef int64_t second = 0
    if timestamp > 0:
        second = timestamp // 1_000_000 + (timestamp % 1_000_000 != 0)
    return max(second, local, 0)


cdef inline void _add(int64_t* least, int64_t second) noexcept nogil:
    if least[0] < 0 or second < least[0]:
        least[0] = second


cdef inline void _add_deletion(RowTimers* timers, const Deletion* deletion) noexcept nogil:
    if not is_no_deletion(deletion):
        _add(&timers.dead_since, _purge_second(deletion.marked, deletion.local))


cdef inline void _add_cell_timer(RowTimers* timers, const Cell* cell, int64_t now) noexcept nogil:
    if cell.local == NO_DELETION_TIME:
        return
    if is_live(cell, now):
        _add(&timers.expires, cell.local)
    else:
        _add(&timers.dead_since, _purge_second(cell.timestamp, cell.local))


cdef RowTimers row_timers(const Shape* shape, const Row* row, int64_t now) noexcept nogil:
    """materializer.rows.expiry.row_timers."""
    cdef RowTimers timers
    cdef const Column* column
    cdef int at
    cdef size_t i
    timers.expires = timers.dead_since = -1
    _add_deletion(&timers, &row.deletion)
    if row.liveness.ttl:
        if is_row_live(&row.liveness, now):
            _add(&timers.expires, row.liveness.expires)
        else:
            _add(&timers.dead_since, _purge_second(row.liveness.timestamp, row.liveness.expires))
    for at in range(shape.count):
        if not is_present(row, at):
            continue
        column = &row.columns[at]
        if not shape.is_complex[at]:
            _add_cell_timer(&timers, &column.cell, now)
            continue
        _add_deletion(&timers, &column.deletion)
        for i in range(column.first, column.first + column.count):
            _add_cell_timer(&timers, &row.cells[i], now)
    return timers
