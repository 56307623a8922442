# cython: language_level=3
"""The types of a table's values: see types.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from cdc_native.formats.buffers cimport Bytes

cdef enum Kind:
    BYTES
    TEXT
    ASCII
    INTEGER
    FLOATING
    DATE
    BOOLEAN
    UUID
    VARINT
    DECIMAL
    INET
    DURATION
    VARINT_TEXT
    VARINT_DECIMAL
    VARINT_FIXED
    DECIMAL_TEXT
    DECIMAL_DOUBLE
    DECIMAL_FIXED
    DURATION_TEXT
    DURATION_NANOS
    JSON
    LIST
    MAP
    TUPLE
    VECTOR
    OBJECT
    CELLS_OF_LIST
    CELLS_OF_SET
    CELLS_OF_MAP
    CELLS_OF_FIELDS
    CELLS_OF_OBJECT


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
cdef bint is_of_cells(const Type* t) noexcept nogil
cdef const Type* written_type(const Type* types, const Type* t) noexcept nogil
cdef bint is_field(const Type* t, Bytes path, uint64_t size, int64_t* place) noexcept nogil


cdef inline bint is_text(const Type* t) noexcept nogil:
    return t.kind == TEXT or t.kind == ASCII
