# cython: language_level=3
"""See state.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from cdc_native.formats.buffers cimport Writer
from cdc_native.fold.plan cimport ColumnList, Plan
from cdc_native.formats.rows cimport Deletion, Header, Row



# materializer.rows.partition_state.PartitionFacts.
cdef struct Facts:
    Deletion deletion
    uint64_t visible_rows
    uint64_t static_sequence
    bint has_ranges


# A row as the state has it; `has_row`: there is one.
cdef struct Stored:
    bint has_row
    uint64_t row_sequence
    int64_t number


cdef class State:
    cdef Plan plan
    cdef dict writes, fetched, expiring, columns
    cdef list new_keys, written
    cdef object read, push, read_columns, encode
    cdef int64_t loaded_until
    cdef uint64_t floor, number
    cdef Writer value

    cdef bytes get(self, bytes key)
    cdef int put(self, bytes key, bytes value) except -1
    cdef bytes encoded(self, value)
    cdef bint read_facts(self, bytes partition_key, Facts* facts) except -1
    cdef bint put_facts(self, bytes partition_key, const Facts* before, const Facts* facts) except -1
    cdef bint read_row(self, bytes value, bint is_static, Header* header, Row* row, Stored* stored) except -1
    cdef bytes encode_row(self, uint64_t row_sequence, const Row* row)
    cdef int put_row(
        self, bytes key, bytes written, const Row* old, int64_t before, const Row* new, int64_t after
    ) except -1
    cdef ColumnList _columns_of(self, int64_t number, bint is_static)
    cdef int _update_timers(self, bytes key, const Row* old, int64_t before, const Row* new, int64_t after) except -1
    cdef int _replace_timer(self, uint8_t kind, bytes key, int64_t before, int64_t after) except -1


cdef bytes data_key(bytes partition_key, uint8_t section)
