# cython: language_level=3
"""See batches.pyx."""
from libc.stdint cimport int64_t, uint32_t

from cdc_native.formats.buffers cimport Writer


cdef struct Message:  # offsets in a batch's `data`
    uint32_t table
    size_t value_at
    size_t value_size
    size_t key_at
    size_t key_size


cdef class Batch:
    cdef Writer data
    cdef Message* messages
    cdef size_t capacity
    cdef size_t count
    cdef readonly Py_ssize_t mutations
    cdef readonly Py_ssize_t excluded_updates

    cdef void clear(self) noexcept
    cdef void cut(self, size_t count, size_t size) noexcept
    cdef int add(self, const Message* message) except -1
