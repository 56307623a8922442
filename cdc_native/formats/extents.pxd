# cython: language_level=3
"""See extents.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from cdc_native.formats.buffers cimport Bytes, Cursor, Writer


cdef struct Column:
    Bytes name  # as serialized, with its length
    size_t name_size
    int64_t length  # of its values, negative if it varies
    bint is_complex
    bint is_counter
    uint64_t seen_in  # the number of the last list of columns that had it


cdef struct Columns:
    uint32_t count
    Column* all
    uint32_t* listed  # places in `all` of the columns that an update names; room for `count`
    uint32_t listed_count
    uint32_t* subset  # those of them that a row has; room for `count`
    uint64_t lists  # number of lists read


cdef struct Table:
    uint32_t clustering_count
    int64_t* clustering_lengths
    Columns statics
    Columns regulars


cdef struct Lead:  # what every part of an update begins with
    Bytes id_and_key
    size_t id_and_key_size
    Bytes key
    size_t key_size
    Bytes stats
    size_t stats_size
    int64_t min_ttl


cdef struct Row:  # where a serialized row has what: cassandra_storage.formats.rows.unfiltered.RowExtent
    Bytes start
    Bytes subset_start
    Bytes cells_start
    Bytes end
    const uint32_t* columns
    uint32_t column_count


cdef struct Bound:  # one end of a range, or none
    bint is_set
    uint8_t kind
    Bytes values
    size_t values_size
    Bytes deletion
    size_t deletion_size
    uint64_t timestamp
    int64_t local_deletion_time


cdef void read_stats(Cursor* c, Lead* lead) noexcept nogil
cdef void read_columns(Cursor* c, Columns* columns) noexcept nogil
cdef void skip_row(
    Cursor* c, const Table* table, Columns* columns, int64_t min_ttl, bint is_static, Row* row
) noexcept nogil
cdef void read_marker(Cursor* c, const Table* table, Bound* close, Bound* opened) noexcept nogil
cdef void write_columns(Writer* w, const Columns* columns, const Row* row) noexcept nogil
cdef void write_row(Writer* w, const Row* row) noexcept nogil
cdef void write_bound(Writer* w, const Bound* bound) noexcept nogil
cdef void skip_deletion_time(Cursor* c) noexcept nogil
