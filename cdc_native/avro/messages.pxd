# cython: language_level=3
"""See messages.pyx."""
from cpython.buffer cimport Py_buffer
from libc.stdint cimport int64_t

from cdc_native.formats.buffers cimport Bytes, Writer


cdef struct Span:  # a message; `at` is NULL for a tombstone
    Bytes at
    int64_t size


cdef class Messages:
    cdef Span* spans
    cdef Py_ssize_t* indices  # in the batch that was read; NULL: as they come
    cdef readonly Py_ssize_t count
    cdef object _owner  # of the bytes, unless they are `data`
    cdef Writer data
    cdef Py_buffer _view
    cdef bint _has_view

    cdef int allocate(self, Py_ssize_t count) except -1
    cdef void settle(self) noexcept nogil
    cdef int inherit(self, Messages source) except -1
    cdef Py_ssize_t index_of(self, Py_ssize_t number) noexcept nogil
    cdef Messages subset(self, const Py_ssize_t* places, Py_ssize_t place, Py_ssize_t size)


cdef int64_t schema_id(Messages messages, Py_ssize_t number) except? -2
cdef int raise_at(Messages messages, Py_ssize_t number, int64_t position, str reason) except -1
