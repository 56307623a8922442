"""Where the parts of a serialized partition update begin and end; and writing them again in a header of their own.

Python oracle: cassandra_storage.formats.rows.unfiltered.RowExtent.

Nothing may be used of what a function found if the cursor is bad.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset

from cdc_native.formats.constants cimport (
    END_OF_PARTITION,
    EXCL_END_BOUND,
    EXCL_START_BOUND,
    EXTENSION,
    HAS_ALL_COLUMNS,
    HAS_COMPLEX_DELETION,
    HAS_DELETION,
    HAS_EMPTY_VALUE,
    HAS_SHADOWABLE_DELETION,
    HAS_TIMESTAMP,
    HAS_TTL,
    INCL_END_BOUND,
    INCL_START_BOUND,
    IS_DELETED,
    IS_EXPIRING,
    IS_MARKER,
    IS_STATIC,
    LARGE_SUBSET,
    USE_ROW_TIMESTAMP,
    USE_ROW_TTL,
    VALUES_PER_HEADER,
)
from cdc_native.formats.buffers cimport (
    Bytes,
    Cursor,
    Writer,
    read_byte,
    read_int,
    read_unsigned_vint,
    take,
    write_byte,
    write_bytes,
    write_unsigned_vint,
)

cdef enum:
    CELL_FLAGS = 0x1F
    NO_KIND = 0xFF

# The bound that a marker of each kind closes, and the one that it opens: unfiltered.MARKER_KINDS.
cdef uint8_t[8] CLOSES = [
    EXCL_END_BOUND, NO_KIND, EXCL_END_BOUND, NO_KIND, NO_KIND, INCL_END_BOUND, INCL_END_BOUND, NO_KIND
]
cdef uint8_t[8] OPENS = [
    NO_KIND, INCL_START_BOUND, INCL_START_BOUND, NO_KIND, NO_KIND, EXCL_START_BOUND, NO_KIND, EXCL_START_BOUND
]


cdef void read_stats(Cursor* c, Lead* lead) noexcept nogil:
    """header.read_stats: the bytes, and the TTL (s) that others are deltas of."""
    lead.stats = c.at
    read_unsigned_vint(c)
    read_int(c)
    lead.min_ttl = read_int(c)
    lead.stats_size = <size_t>(c.at - lead.stats)


cdef void read_columns(Cursor* c, Columns* columns) noexcept nogil:
    """Columns.Serializer.deserialize: sets `listed`. Names mostly come in the order of `all`."""
    cdef uint64_t count = read_unsigned_vint(c)
    cdef uint64_t i
    cdef uint32_t at = 0, place = 0, tried
    cdef Column* column = NULL
    columns.listed_count = 0
    if c.is_bad or count > columns.count:
        c.is_bad = True
        return
    columns.lists += 1
    for i in range(count):
        for tried in range(columns.count):
            column = &columns.all[at]
            place = at
            at = at + 1 if at + 1 < columns.count else 0
            if column.name_size <= <size_t>(c.end - c.at) and memcmp(column.name, c.at, column.name_size) == 0:
                break
        else:
            c.is_bad = True
            return
        if column.seen_in == columns.lists:
            c.is_bad = True
            return
        column.seen_in = columns.lists
        c.at += column.name_size
        columns.listed[i] = place
    columns.listed_count = <uint32_t>count


cdef void _read_subset(Cursor* c, Columns* columns, Row* row) noexcept nogil:
    """Columns.Serializer.deserializeSubset: a row's columns."""
    cdef uint64_t missing = read_unsigned_vint(c)
    cdef uint32_t count = columns.listed_count
    cdef uint32_t i
    if c.is_bad or not missing:
        return
    row.columns = columns.subset
    row.column_count = 0
    if count >= LARGE_SUBSET:
        _read_large_subset(c, columns, missing, row)
        return
    if missing >> count:
        c.is_bad = True
        return
    for i in range(count):
        if not missing >> i & 1:
            columns.subset[row.column_count] = columns.listed[i]
            row.column_count += 1


cdef void _read_large_subset(Cursor* c, Columns* columns, uint64_t missing, Row* row) noexcept nogil:
    """deserializeLargeSubset: indexes of the present columns if they are few, otherwise of the missing ones."""
    cdef uint32_t count = columns.listed_count
    cdef uint32_t undecided = 0, i
    cdef uint64_t present, index, n
    cdef bint lists_present
    if missing > count:
        c.is_bad = True
        return
    present = count - missing
    lists_present = present < count // 2
    for n in range(present if lists_present else missing):
        index = read_unsigned_vint(c)
        if c.is_bad or index >= count or index < undecided:
            c.is_bad = True
            return
        for i in range(<uint32_t>index if lists_present else undecided, <uint32_t>index + lists_present):
            columns.subset[row.column_count] = columns.listed[i]
            row.column_count += 1
        undecided = <uint32_t>index + 1
    if not lists_present:
        for i in range(undecided, count):
            columns.subset[row.column_count] = columns.listed[i]
            row.column_count += 1


cdef void skip_deletion_time(Cursor* c) noexcept nogil:
    read_unsigned_vint(c)
    read_int(c)


cdef inline void _skip_ttl(Cursor* c, int64_t min_ttl) noexcept nogil:
    """header.read_ttl: 32 bits that wrap, and not negative."""
    if <int32_t><uint32_t>(read_int(c) + min_ttl) < 0:
        c.is_bad = True


cdef inline void _skip_value(Cursor* c, int64_t length) noexcept nogil:
    """AbstractType.skipValue."""
    take(c, read_unsigned_vint(c) if length < 0 else <uint64_t>length)


cdef inline void _skip_counter(Cursor* c) noexcept nogil:
    """A counter's context; not one whose local shards are to be cleared, which the Python code looks into."""
    cdef uint64_t size = read_unsigned_vint(c)
    cdef Bytes start = take(c, size)
    if c.is_bad or size < 2 or start[0] >= 0x80:
        c.is_bad = True


cdef void _skip_cell(Cursor* c, const Column* column, int64_t min_ttl) noexcept nogil:
    """cells.skip_cell."""
    cdef uint8_t flags = read_byte(c)
    if flags & ~CELL_FLAGS:
        c.is_bad = True
        return
    if not flags & USE_ROW_TIMESTAMP:
        read_unsigned_vint(c)
    if flags & (IS_DELETED | IS_EXPIRING) and not flags & USE_ROW_TTL:
        read_int(c)
        if flags & IS_EXPIRING:
            _skip_ttl(c, min_ttl)
    if column.is_complex:
        _skip_value(c, -1)
    if flags & HAS_EMPTY_VALUE:
        return
    if column.is_counter and not flags & (IS_DELETED | IS_EXPIRING):
        if column.length >= 0:
            c.is_bad = True
            return
        _skip_counter(c)
        return
    _skip_value(c, column.length)


cdef void _skip_values(Cursor* c, const int64_t* lengths, uint32_t count) noexcept nogil:
    """ClusteringPrefix.Serializer.skipValuesWithoutSize; `lengths` has at least `count`."""
    cdef uint64_t header = 0
    cdef uint32_t i
    for i in range(count):
        if i % VALUES_PER_HEADER == 0:
            header = read_unsigned_vint(c)
        if not header & 3:
            _skip_value(c, lengths[i])
        header >>= 2


cdef void skip_row(
    Cursor* c, const Table* table, Columns* columns, int64_t min_ttl, bint is_static, Row* row
) noexcept nogil:
    """unfiltered.skip_row; nothing in `row` may be used if the cursor is bad."""
    cdef uint8_t flags, extended = 0
    cdef uint32_t i
    cdef const Column* column
    cdef int64_t cells
    memset(row, 0, sizeof(Row))
    row.start = c.at
    flags = read_byte(c)
    if flags & EXTENSION:
        extended = read_byte(c)
    if (
        flags & (END_OF_PARTITION | IS_MARKER)
        or extended & ~(IS_STATIC | HAS_SHADOWABLE_DELETION)
        or (extended & IS_STATIC) != is_static
    ):
        c.is_bad = True
        return
    if not is_static:
        _skip_values(c, table.clustering_lengths, table.clustering_count)
    if flags & HAS_TIMESTAMP:
        read_unsigned_vint(c)
        if flags & HAS_TTL:
            _skip_ttl(c, min_ttl)
            read_int(c)
    if flags & HAS_DELETION:
        skip_deletion_time(c)
    row.columns = columns.listed
    row.column_count = columns.listed_count
    row.subset_start = c.at
    if not flags & HAS_ALL_COLUMNS:
        _read_subset(c, columns, row)
    row.cells_start = c.at
    if c.is_bad:
        return
    for i in range(row.column_count):
        column = &columns.all[row.columns[i]]
        if not column.is_complex:
            _skip_cell(c, column, min_ttl)
            continue
        if flags & HAS_COMPLEX_DELETION:
            skip_deletion_time(c)
        cells = read_int(c)
        if cells < 0:
            c.is_bad = True
        while cells > 0 and not c.is_bad:
            _skip_cell(c, column, min_ttl)
            cells -= 1
        if c.is_bad:
            return
    row.end = c.at


cdef void read_marker(Cursor* c, const Table* table, Bound* close, Bound* opened) noexcept nogil:
    """unfiltered.parse_marker and split_marker."""
    cdef uint8_t flags = read_byte(c)
    cdef uint8_t kind = read_byte(c)
    cdef Bytes values = c.at  # with their count before them
    cdef uint32_t count = read_byte(c)
    memset(close, 0, sizeof(Bound))
    memset(opened, 0, sizeof(Bound))
    count = count << 8 | read_byte(c)
    if c.is_bad or flags != IS_MARKER or kind >= 8 or count > table.clustering_count:
        c.is_bad = True
        return
    _skip_values(c, table.clustering_lengths, count)
    close.kind = CLOSES[kind]
    opened.kind = OPENS[kind]
    close.values = opened.values = values
    close.values_size = opened.values_size = <size_t>(c.at - values)
    _read_bound_deletion(c, close)
    _read_bound_deletion(c, opened)
    if not close.is_set and not opened.is_set:
        c.is_bad = True  # a kind of clusterings


cdef void _read_bound_deletion(Cursor* c, Bound* bound) noexcept nogil:
    bound.is_set = bound.kind != NO_KIND
    if bound.is_set:
        bound.deletion = c.at
        bound.timestamp = read_unsigned_vint(c)
        bound.local_deletion_time = read_int(c)
        bound.deletion_size = <size_t>(c.at - bound.deletion)


cdef void write_columns(Writer* w, const Columns* columns, const Row* row) noexcept nogil:
    """Columns.Serializer.serialize of the row's columns."""
    cdef uint32_t i
    cdef const Column* column
    write_unsigned_vint(w, row.column_count)
    for i in range(row.column_count):
        column = &columns.all[row.columns[i]]
        write_bytes(w, column.name, column.name_size)


cdef void write_row(Writer* w, const Row* row) noexcept nogil:
    """unfiltered.row_pieces: the row in a header of its own columns only."""
    if row.start[0] & HAS_ALL_COLUMNS:
        write_bytes(w, row.start, <size_t>(row.end - row.start))
        return
    write_byte(w, row.start[0] | HAS_ALL_COLUMNS)
    write_bytes(w, row.start + 1, <size_t>(row.subset_start - row.start - 1))
    write_bytes(w, row.cells_start, <size_t>(row.end - row.cells_start))


cdef void write_bound(Writer* w, const Bound* bound) noexcept nogil:
    """A whole marker."""
    write_byte(w, IS_MARKER)
    write_byte(w, bound.kind)
    write_bytes(w, bound.values, bound.values_size)
    write_bytes(w, bound.deletion, bound.deletion_size)
