# cython: language_level=3
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t

from cdc_native.formats.buffers cimport Bytes


cdef struct Span:
    Bytes at
    size_t size


cdef struct Range:  # of integers, or of bytes; the last bytes are no end if their place is NULL
    int64_t low
    int64_t high
    Span first
    Span after


cdef struct Filter:
    int slot
    int null_at
    int kind
    bint passes_null
    size_t count
    Range* ranges


cdef class Filters:
    cdef Filter* _filters
    cdef size_t _count
    cdef list _kept
    cdef int _read_ranges(self, Filter* found, ranges) except -1
    cdef bint passes(self, Bytes at, const int32_t* extents) noexcept nogil
