# cython: language_level=3
"""A row in C structs whose cells point into its serialized bytes: see rows.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from cdc_native.formats.constants cimport EXPIRED_LIVENESS_TTL, NO_DELETION_TIME, NO_TIMESTAMP
from cdc_native.formats.buffers cimport Bytes, Cursor, Writer
from cdc_native.formats.keys cimport KeyType

cdef enum:
    MOST_COLUMNS = 63  # of one kind: the columns that a row lacks are the bits of one number
    MOST_CLUSTERINGS = 16


cdef struct Deletion:
    int64_t marked
    int64_t local


cdef struct Cell:
    int64_t timestamp
    int64_t local
    int64_t ttl
    Bytes value
    uint64_t value_size
    Bytes path       # of cells of complex columns
    uint64_t path_size


# `cell` of a simple column; `first`: the first of `count` neighbours in the row's cells.
cdef struct Column:
    Cell cell
    Deletion deletion
    size_t first
    size_t count


cdef struct Value:
    Bytes at
    uint64_t size
    bint is_null


cdef struct Liveness:
    int64_t timestamp
    int64_t ttl
    int64_t expires


# `present`: a bit for each column. `values`: the clustering. `has_any_path`: it cannot be merged, as paths of its cells are
# not in order, or their order is not known here.
cdef struct Row:
    Value values[MOST_CLUSTERINGS]
    Liveness liveness
    Deletion deletion
    uint64_t present
    Column columns[MOST_COLUMNS]
    Cell* cells
    size_t used
    size_t capacity
    bint has_any_path


# The columns that a row of one kind may hold, in the table's order. `lengths`: -1 for values with their own length. `takes_any_path`: rows
# may have any paths.
cdef struct Shape:
    bint is_static
    bint takes_any_path
    int clusterings
    int64_t clustering_lengths[MOST_CLUSTERINGS]
    int count
    int64_t lengths[MOST_COLUMNS]
    bint is_complex[MOST_COLUMNS]
    KeyType paths[MOST_COLUMNS]


# The columns that a header names: their places in the shape. `drops`: a bit for each column that has a `dropped` time:
# cells up to it are not there.
cdef struct Columns:
    int count
    uint8_t places[MOST_COLUMNS]
    uint64_t drops
    int64_t dropped[MOST_COLUMNS]


# The numbers that rows' are deltas of, and how the version writes local deletion times.
cdef struct Header:
    const Columns* columns
    int64_t min_timestamp
    int64_t min_local
    int64_t min_ttl
    bint is_unsigned
    int64_t no_deletion_time


cdef void clear_row(Row* row) noexcept nogil
cdef void free_row(Row* row) noexcept nogil
cdef Cell* add_cell(Row* row) noexcept nogil
cdef bint read_stats(Cursor* c, Header* header) noexcept nogil
cdef void set_stored_stats(Header* header) noexcept nogil
cdef bint set_version(Header* header, int64_t version) noexcept nogil
cdef bint read_row(Cursor* c, const Shape* shape, const Header* header, Row* row) noexcept nogil
cdef bint read_row_head(Cursor* c, const Shape* shape, Row* row, uint8_t* flags) noexcept nogil
cdef bint read_row_body(Cursor* c, const Shape* shape, const Header* header, uint8_t flags, Row* row) noexcept nogil
cdef void read_values(Cursor* c, const Shape* shape, int count, Value* values) noexcept nogil
cdef void read_deletion(Cursor* c, const Header* header, Deletion* deletion) noexcept nogil
cdef void write_row(Writer* w, const Shape* shape, const Row* row) noexcept nogil
cdef void write_row_under(
    Writer* w, const Shape* shape, const Header* header, uint64_t listed, const Row* row
) noexcept nogil
cdef void write_values(Writer* w, const Shape* shape, int count, const Value* values) noexcept nogil
cdef void write_deletion(Writer* w, const Header* header, const Deletion* deletion) noexcept nogil
cdef void write_stats(Writer* w, const Header* header) noexcept nogil
cdef int64_t row_size(const Shape* shape, const Row* row) noexcept nogil


cdef inline bint is_live(const Cell* cell, int64_t now) noexcept nogil:
    """AbstractCell.isLive."""
    return cell.local == NO_DELETION_TIME or (cell.ttl != 0 and now < cell.local)


cdef inline bint is_row_live(const Liveness* liveness, int64_t now) noexcept nogil:
    """LivenessInfo.isLive."""
    if liveness.timestamp == NO_TIMESTAMP or liveness.ttl == EXPIRED_LIVENESS_TTL:
        return False
    return liveness.ttl == 0 or now < liveness.expires


cdef inline bint is_no_deletion(const Deletion* deletion) noexcept nogil:
    """DeletionTime.isLive."""
    return deletion.marked == NO_TIMESTAMP and deletion.local == NO_DELETION_TIME


cdef inline bint is_present(const Row* row, int column) noexcept nogil:
    return row.present >> column & 1


cdef inline bint is_empty(const Row* row) noexcept nogil:
    """Row.isEmpty."""
    return row.liveness.timestamp == NO_TIMESTAMP and is_no_deletion(&row.deletion) and row.present == 0
