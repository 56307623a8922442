# cython: language_level=3
"""The core's view of one table under its newest schema."""
from libc.stdint cimport int64_t, uint8_t

from cdc_native.formats.keys cimport KeyType
from cdc_native.formats.rows cimport MOST_CLUSTERINGS, MOST_COLUMNS, Columns, Shape
from cdc_native.fold.types cimport Type, Types

cdef enum:
    MOST_KEYS = 16


# A field of a change message's row. `place` in its shape, `type` in the plan's types: by it rows are compared; by
# `shown` it is written.
cdef struct Field:
    bint is_static
    int place
    int type
    int shown
    bint has_drop
    int64_t dropped


cdef class ColumnList:
    cdef Columns columns


cdef class Plan:
    cdef readonly bytes table_id, digest
    cdef Types types
    cdef Shape rows, statics
    cdef KeyType clustering_keys[MOST_CLUSTERINGS]
    cdef int clustering_types[MOST_CLUSTERINGS]
    cdef int partition_columns
    cdef int partition_types[MOST_KEYS]
    cdef Field fields[2 * MOST_COLUMNS]
    cdef int field_count
    cdef list field_names  # (before.<name>, after.<name>) as Avro strings
    cdef readonly bint has_messages
    cdef bint is_clustering_nullable
    cdef bytes key_header, value_header, source_start, source_table, snapshot_source_table
    cdef dict places  # of regular columns, by their names as headers have them
    cdef Columns newest  # the regular columns by place: `drops` and `dropped`
    cdef dict lists  # ColumnList by a header's bytes
    cdef bytes latest
    cdef ColumnList latest_list
    cdef int _add_fields(self, tuple fields) except -1
    cdef const Type* _written(self, int at) noexcept
    cdef ColumnList columns_of(self, bytes names)
