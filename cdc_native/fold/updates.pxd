# cython: language_level=3
"""Raw messages of plain rows, decoded as far as the fold needs them before it merges their rows."""
from libc.stdint cimport int64_t, uint8_t

from cdc_native.fold.plan cimport ColumnList
from cdc_native.formats.rows cimport Header


cdef class PlainUpdate:
    cdef readonly object record    # materializer.records.RawRecord: key, value, offset, timestamp_ms
    cdef readonly int64_t arrival_ms
    cdef readonly int64_t second   # at which it is folded: set by in_write_order
    cdef readonly bytes table_id
    cdef readonly bytes partition_key
    cdef readonly bytes raw
    cdef readonly bytes key        # of the row in the state
    cdef readonly object python    # an update that the Python code must fold: materializer.records.RowUpdate
    cdef object read_message
    cdef ColumnList columns
    cdef Header header
    cdef Py_ssize_t row_start, row_end, file_start
    cdef int64_t file_size
    cdef readonly bint is_snapshot  # a snapshot's row image: after all writes of the log, at the chunk's last second
    cdef int64_t timestamp          # of its order key
    cdef int64_t largest_timestamp  # of what it writes
    cdef int64_t segment, position, index
    cdef uint8_t host[16]
    cdef int64_t first_end         # as rows.first_end


cdef bint is_same_mutation(PlainUpdate left, PlainUpdate right) noexcept
