# cython: language_level=3
"""See row_images.pyx."""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint64_t

from cdc_native.formats.batches cimport Batch
from cdc_native.formats.buffers cimport Writer
from cdc_native.formats.rows cimport Deletion, Row, Shape, Value
from cdc_native.formats.sstables cimport RowShapes


cdef class RowImages:
    cdef readonly RowShapes shapes
    cdef public int64_t units
    cdef bytes _table_id
    cdef bytes _begin
    cdef bytes _middle
    cdef bytes _segment
    cdef Writer _update
    cdef Writer _names
    cdef uint64_t _named
    cdef bint _is_named_static
    cdef int64_t _index
    cdef Batch batch
    cdef size_t row_at  # of the last row's clustering, in the batch

    cdef bint is_in_unit(self) noexcept
    cdef void drop_unit(self) noexcept
    cdef void end_unit(self) noexcept
    cdef int put_row(self, const Writer* key, const Row* row, bint is_static) except -1
    cdef int put_deletion(self, const Writer* key, const Deletion* deletion) except -1
    cdef int put_range(
        self, const Writer* key, const Writer* start, uint8_t kind, int count, const Value* values, const Deletion* deletion
    ) except -1
    cdef tuple clustering_at(self, size_t at)
    cdef void _start(self, const Writer* key, uint8_t flags) noexcept
    cdef void _write_names(self, uint64_t present, bint is_static) noexcept
    cdef int _put(self, uint8_t kind, const Writer* key, size_t row_at) except -1


cdef void write_bound(Writer* w, const Shape* shape, uint8_t kind, int count, const Value* values) noexcept nogil
