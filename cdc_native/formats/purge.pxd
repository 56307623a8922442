# cython: language_level=3
"""See purge.pyx."""
from libc.stdint cimport int64_t

from cdc_native.formats.rows cimport Deletion, Row, Shape, is_no_deletion


# As Purger has them. `before`: only of timestamps below it, if `has_before`.
cdef struct Purge:
    int64_t now
    int64_t gc_before
    int64_t unrepaired
    bint has_before
    int64_t before


cdef void purge_row(const Purge* purge, const Shape* shape, Row* row) noexcept nogil


cdef inline bint should_purge(const Purge* purge, int64_t timestamp, int64_t local) noexcept nogil:
    if local >= purge.gc_before or local >= purge.unrepaired:
        return False
    return not purge.has_before or timestamp < purge.before


cdef inline bint purges(const Purge* purge, const Deletion* deletion) noexcept nogil:
    return not is_no_deletion(deletion) and should_purge(purge, deletion.marked, deletion.local)
