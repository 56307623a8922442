# cython: language_level=3
"""See converts.pyx."""
from libc.stdint cimport int64_t, uint64_t

from cdc_native.avro.sha256 cimport Hmac
from cdc_native.formats.buffers cimport Bytes, Writer


# A conversion. null_at, is_single: of the union that it is lifted over, as in transformer.steps.converts.Lifted;
# `first` and `count`: of its names.
cdef struct Convert:
    int kind
    int lift
    int null_at
    bint is_single
    int unknown
    int first
    int count
    Bytes text
    size_t size
    uint64_t mask
    uint64_t every
    uint64_t refused
    Hmac* hmac


cdef struct Name:
    int64_t number
    Bytes text
    size_t size


cdef class Converts:
    cdef Convert* items
    cdef int count
    cdef Name* names
    cdef int _name_count
    cdef Hmac* _hmacs
    cdef list _kept  # the bytes of texts

    cdef int _fill(self, int at, object form, int hmac_at) except -1
    cdef bint run(self, int first, int count, Bytes value, size_t size, Writer* out, Writer* spare) noexcept nogil
