# cython: language_level=3
"""Serialized CQL values as Avro's binary encoding: see values.pyx."""
from libc.stdint cimport int64_t, uint64_t

from cdc_native.fold.types cimport Type
from cdc_native.formats.buffers cimport Bytes, Writer

cdef enum Fit:
    FITS
    IS_EMPTY        # EmptyValueError: Avro's type has no empty value
    IS_UNREADABLE   # FormatError: not a value of its type
    NOT_MINE        # the Python code's


cdef Fit write_value(Writer* w, const Type* types, const Type* t, Bytes value, uint64_t size) noexcept nogil
cdef Fit write_key_text(Writer* w, const Type* types, const Type* t, Bytes value, uint64_t size) noexcept nogil


cdef inline int64_t read_signed(Bytes at, int size) noexcept nogil:
    """A big-endian number of `size` bytes, at most 8, which the caller has checked to be there."""
    cdef uint64_t value = 0
    cdef int i
    for i in range(size):
        value = value << 8 | at[i]
    return <int64_t>(value << (64 - 8 * size)) >> (64 - 8 * size)
