# cython: language_level=3
"""See changes.pyx."""
from libc.stdint cimport int64_t, uint64_t

from cdc_native.fold.updates cimport PlainUpdate


cdef class EncodedChange:
    cdef readonly bytes partition_key, schema, key, value
    cdef readonly int64_t empty, unreadable
    cdef readonly str op
    cdef readonly uint64_t row_sequence
    cdef readonly bint is_alone, is_of_fan_out
    cdef bint is_incomplete
    cdef readonly object before, after, static, static_after
    cdef readonly int64_t before_second, after_second
    cdef PlainUpdate update
    cdef object convert, event_source
