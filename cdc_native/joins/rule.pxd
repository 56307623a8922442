# cython: language_level=3
"""See rule.pyx."""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t

from cdc_native.formats.buffers cimport Bytes, Writer

cdef enum:
    MOST_INPUTS = 250


cdef struct Text:
    Bytes at
    size_t size


cdef struct Input:
    bint is_optional
    bint is_unique   # it has at most one row in a group: its ident is empty
    Text ident       # where it has no row
    Text columns     # where it has no row
    Text name        # as a string in Avro


cdef class Rule:
    cdef Input* inputs
    cdef int count
    cdef int64_t most_rows
    cdef int64_t definition  # whose messages it takes; 0 for any
    cdef Text key_header, value_header, source
    cdef list _kept  # the bytes that the texts point to

    cdef bint has_rows(self, const int64_t* counts, int number, int64_t count) noexcept nogil
    cdef int _keep(self, Text* text, value) except -1
