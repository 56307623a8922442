# cython: language_level=3
"""See row_times.pyx."""
from libc.stdint cimport int64_t

from cdc_native.formats.rows cimport Row, Shape


# Seconds; -1 for none. As materializer.rows.expiry.RowTimers.
cdef struct RowTimers:
    int64_t expires
    int64_t dead_since


cdef int64_t largest_timestamp(const Shape* shape, const Row* row) noexcept nogil
cdef int64_t first_end(const Shape* shape, const Row* row) noexcept nogil
cdef RowTimers row_timers(const Shape* shape, const Row* row, int64_t now) noexcept nogil
