# cython: language_level=3
"""See state.pyx."""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t

from cdc_native.formats.buffers cimport Bytes, Writer
from cdc_native.joins.rule cimport Rule
from cdc_native.joins.table cimport Table


cdef struct StoredRow:
    int32_t list         # its list
    int32_t next         # another row of its list; -1 for the last one
    size_t ident_size    # its key ends with its ident
    int64_t sequence
    size_t at            # its value in State.values, and its columns at the value's end
    size_t size
    size_t columns_at
    bint is_there
    bint is_written
    bint is_bad          # its value is none of the Python code's
    bint is_listed       # in its list's `rows`


cdef struct RowList:     # the rows of an input in a group
    int32_t first        # of all that are known, in no order; -1 if there is none
    int32_t* rows        # those that are there, by rising idents
    int32_t count
    int32_t room
    bint is_loaded       # all rows of the stored state are known
    bint is_bad


cdef struct Group:
    bint is_written
    bint is_bad


cdef struct Place:       # of a partition of an input
    bint is_half
    bint half_is_written
    bint is_marked       # all messages that it had at the start are joined
    bint frontier_is_written
    int64_t frontier


cdef class State:
    cdef Rule rule
    cdef Table group_keys, row_keys, place_keys
    cdef Group* groups
    cdef int64_t* counts   # of each input's rows, for each group
    cdef RowList* lists    # of each input, for each group
    cdef StoredRow* rows
    cdef Place* places
    cdef int32_t group_room, row_room, place_room
    cdef Writer values, scratch
    cdef bint is_bad       # there is no memory
    cdef bint has_begun    # joined rows are sent
    cdef Py_ssize_t read_rows  # of the keys that were asked for

    cdef int32_t group_of(self, Bytes key, size_t key_size, size_t size) noexcept nogil
    cdef bint _room_for_group(self) noexcept nogil
    cdef int32_t row_of(self, int32_t group, int input, Bytes ident, size_t size) noexcept nogil
    cdef int32_t place_of(self, int input, int64_t partition) noexcept nogil
    cdef void put(self, int32_t row, int64_t sequence, Bytes columns, size_t size) noexcept nogil
    cdef void delete(self, int32_t row) noexcept nogil
    cdef int32_t _add_row(self, int32_t of, size_t ident_size, Bytes key, size_t size) noexcept nogil
    cdef void _decode(self, int32_t row, Bytes value, size_t size) noexcept nogil
    cdef void _insert(self, RowList* rows, int32_t row) noexcept nogil
    cdef void _remove(self, RowList* rows, int32_t row) noexcept nogil
    cdef int32_t _place_in(self, const RowList* rows, int32_t row) noexcept nogil
    cdef int _compare(self, int32_t one, int32_t other) noexcept nogil
    cdef void _complete_lists(self) noexcept nogil
    cdef int _load_counts(self, int32_t group, value) except -1
    cdef int _load_row(self, int32_t row, value) except -1

    cdef list keys(self)
    cdef int load(self, list values) except -1
    cdef tuple range_of(self, int32_t of)
    cdef int load_rows(self, int32_t of, list pairs, Py_ssize_t most) except -1
    cdef dict writes(self)
    cdef bytes _encoded_counts(self, int32_t group)
