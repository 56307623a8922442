# cython: language_level=3
"""A writer schema as a flat program, and finding the end of a value by it."""
from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint64_t

from cdc_native.formats.buffers cimport Bytes, Cursor, read_avro_long, read_byte, take

cdef enum Kind:
    NULL_VALUE
    BOOLEAN
    INT
    LONG
    FLOAT
    DOUBLE
    BYTES
    STRING
    FIXED
    ENUM
    RECORD
    ARRAY
    MAP
    OPTIONAL
    UNION


# A type; the types within it are `count` neighbours in the same array, from `first` on. Of an enum, these are symbols.
# size: bytes of a fixed; null_at: the branch of an optional that is null; is_empty: whether values take no bytes. tag,
# units: of a key's field of the type, units in a second; precision, scale: of a decimal, otherwise 0.
cdef struct Node:
    int kind
    int first
    int count
    int null_at
    bint is_empty
    int64_t size
    uint8_t tag
    int64_t units
    int precision
    int scale


cdef struct Symbol:
    Bytes text
    int64_t size


cdef class Program:
    cdef Node* nodes
    cdef int count
    cdef int _capacity
    cdef Symbol* symbols
    cdef int _symbol_count
    cdef list _kept
    cdef readonly object form

    cdef int _room(self, Py_ssize_t count) except -1
    cdef int _fill(self, int at, object form, dict made) except -1
    cdef int _add_symbols(self, names) except -1
    cdef bint _takes_nothing(self, int at) noexcept


cdef inline int64_t read_count(Cursor* c, int64_t* size) noexcept nogil:
    """The items of a block of an array or a map, 0 at its end; `size`: its bytes, or -1 if it does not say."""
    cdef int64_t count = read_avro_long(c)
    size[0] = -1
    if count >= 0:
        return count
    size[0] = read_avro_long(c)
    if size[0] < 0 or count == INT64_MIN or size[0] > c.end - c.at:
        c.is_bad = True
        return 0
    return -count


cdef inline void skip_sized(Cursor* c) noexcept nogil:
    cdef int64_t size = read_avro_long(c)
    if size < 0:
        c.is_bad = True
    take(c, <uint64_t>size)


cdef inline void skip(const Node* nodes, const Node* n, Cursor* c) noexcept nogil:
    """Step over a value. A schema does not contain itself, so its depth is bounded."""
    cdef int kind = n.kind
    cdef int64_t branch
    if kind == STRING or kind == BYTES:
        skip_sized(c)
    elif kind == INT or kind == LONG or kind == ENUM:
        read_avro_long(c)
    elif kind == OPTIONAL:
        branch = read_avro_long(c)
        if branch != n.null_at and not c.is_bad:
            if branch != 1 - n.null_at:
                c.is_bad = True
                return
            skip_more(nodes, &nodes[n.first + branch], c)
    elif kind == DOUBLE:
        take(c, 8)
    elif kind == BOOLEAN:
        take(c, 1)
    elif kind == FLOAT:
        take(c, 4)
    else:
        skip_more(nodes, n, c)


cdef void skip_more(const Node* nodes, const Node* n, Cursor* c) noexcept nogil
