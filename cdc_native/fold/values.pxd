# cython: language_level=3
"""Serialized CQL values as Avro's binary encoding: see values.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from cdc_native.formats.buffers cimport Bytes, Writer

cdef enum Fit:
    FITS
    IS_EMPTY        # EmptyValueError: Avro's type has no empty value
    IS_UNREADABLE   # FormatError: not a value of its type
    NOT_MINE        # the Python code's


# A type; the types within it are `count` neighbours in the same array, from `first` on. `size`: bytes of a number,
# fields of a user type, elements of a vector, digits of a decimal(p,s); `fixed`: bytes of a vector's element, -1 if it
# has its own length; of a varint or decimal, whether it is written as it is, or what its text needs to be of; the scale
# of a decimal(p,s); of a date or timestamp, what is done with one outside the years 1 to 9999: 0 nothing, 1 it is
# unreadable, 2 the Python code's. `has_forms`: different bytes may be shown alike. `is_json`: it is written as JSON;
# `label` is then a field's name, as JSON and with a colon.
cdef struct Type:
    int kind
    int64_t size
    int64_t fixed
    int first
    int count
    bint has_forms
    bint is_json
    uint8_t* label
    size_t label_size


cdef struct Types:
    Type* types
    int count
    int capacity


cdef int add_type(Types* types, object form) except -1
cdef void free_types(Types* types) noexcept
cdef Fit write_value(Writer* w, const Type* types, const Type* t, Bytes value, uint64_t size) noexcept nogil
cdef bint is_of_cells(const Type* t) noexcept nogil
cdef const Type* written_type(const Type* types, const Type* t) noexcept nogil
cdef Fit write_key_text(Writer* w, const Type* types, const Type* t, Bytes value, uint64_t size) noexcept nogil
cdef bint is_field(const Type* t, Bytes path, uint64_t size, int64_t* place) noexcept nogil


cdef inline int64_t read_signed(Bytes at, int size) noexcept nogil:
    """A big-endian number of `size` bytes, at most 8, which the caller has checked to be there."""
    cdef uint64_t value = 0
    cdef int i
    for i in range(size):
        value = value << 8 | at[i]
    return <int64_t>(value << (64 - 8 * size)) >> (64 - 8 * size)
