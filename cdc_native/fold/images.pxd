# cython: language_level=3
"""Change messages written from rows in C structs: see images.pyx."""
from libc.stdint cimport int64_t, uint64_t

from cdc_native.formats.buffers cimport Bytes, Writer
from cdc_native.fold.plan cimport Field, Plan
from cdc_native.formats.rows cimport Cell, Row
from cdc_native.fold.types cimport Type


# What SELECT shows at the second `now`: a regular row, or NULL for the row of a partition that has only statics; with
# the static row as of `static_now`, or NULL.
cdef struct Image:
    const Row* row
    int64_t now
    const Row* static_row
    int64_t static_now


# The origin of a change, as cdc_common.messages.changes.Source.
cdef struct Source:
    int64_t timestamp
    Bytes host
    Bytes file
    int64_t file_size
    int64_t position
    Bytes cause
    int64_t cause_size
    bint is_incomplete
    bint is_snapshot


# Whether two rows show the same; UNKNOWN: the Python code must say it.
cdef enum Likeness:
    SAME
    DIFFERENT
    UNKNOWN


cdef bint is_there(Plan plan, const Row* row, int64_t now) noexcept
cdef bint has_statics(Plan plan, const Row* static_row, int64_t now) noexcept
cdef bint write_key(Writer* w, Plan plan, bytes partition_key, const Row* row) noexcept


cdef class MessageWriter:
    cdef Writer key, value, empty, unreadable
    cdef int64_t empty_count, unreadable_count
    cdef readonly int64_t after_empty, after_unreadable  # of these, in `after`
    cdef Likeness compare(self, Plan plan, const Row* left, int64_t left_now, const Row* right, int64_t right_now) noexcept
    cdef Likeness _compare_columns(
        self, Plan plan, const Field* field, const Row* left, int64_t left_now, const Row* right, int64_t right_now
    ) noexcept
    cdef Likeness _compare_cells(self, Plan plan, const Type* of, const Cell* x, const Cell* y) noexcept
    cdef Likeness _compare(
        self, Plan plan, const Type* t, Bytes left, uint64_t left_size, Bytes right, uint64_t right_size
    ) noexcept
    cdef bint write(
        self,
        Plan plan,
        bytes partition_key,
        const Row* key_row,
        const Image* before,
        const Image* after,
        uint64_t row_sequence,
        const Source* source,
    ) except -1
    cdef bint _write_image(self, Plan plan, const Image* image, int which, size_t key_start) except -1
    cdef int _add_name(self, bytes name, bint is_empty) except -1
    cdef int _write_source(self, Plan plan, const Source* source, uint64_t row_sequence) except -1
    cdef bytes take_key(self)
    cdef bytes take_value(self)
