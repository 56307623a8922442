# cython: language_level=3
"""See sstables.pyx."""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint64_t

from cdc_native.formats.buffers cimport Cursor, Writer
from cdc_native.formats.keys cimport KeyType
from cdc_native.formats.rows cimport MOST_CLUSTERINGS, Columns, Deletion, Header, Row, Shape, Value

cdef enum Unfiltered:
    END
    ROW
    MARKER


# RangeTombstoneMarker: what it closes and opens. `is_before`: its bound lies before the rows of its values.
cdef struct Marker:
    bint closes
    bint opens
    Deletion close
    Deletion open
    bint is_before
    int count
    Value values[MOST_CLUSTERINGS]


# How the rows of a table's SSTables are read.
cdef class RowShapes:
    cdef Shape rows
    cdef Shape statics
    cdef KeyType clustering_keys[MOST_CLUSTERINGS]
    cdef list names  # as headers have them; the shapes' columns point into them


cdef class SSTable:
    cdef readonly int index  # its place in the order of the sources
    cdef RowShapes _shapes
    cdef object _spans
    cdef object _chunks
    cdef Columns _statics
    cdef Columns _regulars
    cdef Header _static_header
    cdef Header _header
    cdef bint _has_static
    cdef bint _has_uint_deletion
    cdef Writer _window
    cdef size_t _at  # in the window
    cdef int64_t _after  # bytes of data after the window
    cdef bytes _expected  # the key that the span must begin with, None if any
    cdef bint _is_before
    cdef int64_t _first
    cdef int64_t _last
    cdef bint is_done
    # The partition that was read last.
    cdef bint _is_inside
    cdef int64_t token
    cdef Writer key
    cdef Deletion deletion
    cdef bint has_static
    cdef Row static
    # What was read last in it.
    cdef Unfiltered kind
    cdef Row row
    cdef Marker marker
    cdef Writer place  # its byte-comparable key
    cdef bint is_open
    cdef Deletion opened

    cdef bint next_partition(self) except -1
    cdef bint next_unfiltered(self, bint with_place) except -1
    cdef bint make_place(self) noexcept
    cdef Cursor _cursor(self) noexcept
    cdef bint _fill(self, uint64_t size) except -1
    cdef bint _next_span(self) except -1
    cdef bint _read_partition(self) except -1
    cdef bint _parse_partition(self, Cursor* c) noexcept
    cdef bint _read_row(self, const Shape* shape, const Header* header, Row* row) except -1
    cdef bint _read_marker(self) except -1
    cdef bint _parse_marker(self, Cursor* c) noexcept
    cdef bint _pass_rows(self) except -1
