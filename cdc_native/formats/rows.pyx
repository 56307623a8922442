# cython: language_level=3
"""Serialized rows (org.apache.cassandra.db.rows.UnfilteredSerializer, Cell.Serializer) read into structs, and written.

Python oracle: cassandra_storage.formats.rows.unfiltered, cassandra_storage.formats.rows.cells, cassandra_storage.formats.rows.header.

Readers refuse whatever they do not take; the Python code then reads the row, or finds what is wrong with it.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc

from cdc_native.formats.constants cimport (
    CELL_BYTES,
    DELETION_TIME_EPOCH,
    END_OF_PARTITION,
    EXTENSION,
    HAS_ALL_COLUMNS,
    HAS_COMPLEX_DELETION,
    HAS_DELETION,
    HAS_EMPTY_VALUE,
    HAS_TIMESTAMP,
    HAS_TTL,
    INVALID_DELETION_TIME,
    IS_DELETED,
    IS_EXPIRING,
    IS_MARKER,
    IS_STATIC,
    NO_DELETION_TIME,
    NO_TIMESTAMP,
    TIMESTAMP_EPOCH,
    UNSIGNED_INT_MAX,
    USE_ROW_TIMESTAMP,
    USE_ROW_TTL,
)
from cdc_native.formats.buffers cimport (
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
from cdc_native.formats.keys cimport compare_paths, is_path


cdef void clear_row(Row* row) noexcept nogil:
    row.liveness.timestamp, row.liveness.ttl, row.liveness.expires = NO_TIMESTAMP, 0, NO_DELETION_TIME
    row.deletion.marked, row.deletion.local = NO_TIMESTAMP, NO_DELETION_TIME
    row.present = 0
    row.used = 0
    row.has_any_path = False


cdef void free_row(Row* row) noexcept nogil:
    free(row.cells)
    row.cells = NULL
    row.used = row.capacity = 0


cdef Cell* add_cell(Row* row) noexcept nogil:
    """One more cell, uninitialized; NULL without memory. Moves the row's cells."""
    cdef size_t capacity
    cdef void* data
    if row.used == row.capacity:
        capacity = 2 * row.capacity if row.capacity else 64
        if capacity > (<size_t>-1) // sizeof(Cell):
            return NULL
        data = realloc(row.cells, capacity * sizeof(Cell))
        if data == NULL:
            return NULL
        row.cells = <Cell*>data
        row.capacity = capacity
    row.used += 1
    return &row.cells[row.used - 1]


cdef bint read_stats(Cursor* c, Header* header) noexcept nogil:
    """EncodingStats.Serializer.deserialize."""
    header.min_timestamp = <int64_t>(read_unsigned_vint(c) + <uint64_t>TIMESTAMP_EPOCH)
    if header.min_timestamp == NO_TIMESTAMP:
        header.min_timestamp = TIMESTAMP_EPOCH
    header.min_local = <int32_t>(read_int(c) + DELETION_TIME_EPOCH)
    header.min_ttl = read_int(c)
    return not c.is_bad


cdef void set_stored_stats(Header* header) noexcept nogil:
    """Those of rows in the state: of version 5.0, without statistics."""
    header.min_timestamp, header.min_local, header.min_ttl = TIMESTAMP_EPOCH, DELETION_TIME_EPOCH, 0
    set_version(header, 13)


cdef bint set_version(Header* header, int64_t version) noexcept nogil:
    """A messaging version; False if it is not a known one."""
    header.is_unsigned = version == 13
    header.no_deletion_time = UNSIGNED_INT_MAX if header.is_unsigned else 0x7FFFFFFF
    return 11 <= version <= 13


cdef inline int64_t _read_timestamp(Cursor* c, const Header* header) noexcept nogil:
    return <int64_t>(read_unsigned_vint(c) + <uint64_t>header.min_timestamp)


cdef inline int64_t _read_ttl(Cursor* c, const Header* header) noexcept nogil:
    cdef int64_t ttl = <int32_t>(read_int(c) + header.min_ttl)
    if ttl < 0:
        c.is_bad = True
    return ttl


cdef inline int64_t _read_local(Cursor* c, const Header* header) noexcept nogil:
    """header.read_deletion_delta."""
    cdef int64_t value = read_int(c) + header.min_local
    return value if header.is_unsigned else <int32_t><uint32_t>value


cdef inline int64_t _decode_local(int64_t value, int64_t ttl, const Header* header) noexcept nogil:
    """Cell.decodeLocalDeletionTime."""
    if value < 0:
        if not header.is_unsigned:
            return INVALID_DELETION_TIME
        value &= UNSIGNED_INT_MAX
        return NO_DELETION_TIME if value == header.no_deletion_time else value
    return value if value >= ttl or ttl == 0x7FFFFFFF else INVALID_DELETION_TIME


cdef void read_deletion(Cursor* c, const Header* header, Deletion* deletion) noexcept nogil:
    cdef int64_t marked = _read_timestamp(c, header), local = _read_local(c, header)
    if marked == NO_TIMESTAMP and (local < 0 or local == 0x7FFFFFFF or local == UNSIGNED_INT_MAX):
        local = NO_DELETION_TIME
    elif local == header.no_deletion_time:
        local = NO_DELETION_TIME
    elif local < 0:
        local = INVALID_DELETION_TIME
    deletion.marked, deletion.local = marked, local


cdef void _read_value(Cursor* c, int64_t length, Value* value) noexcept nogil:
    value.size = read_unsigned_vint(c) if length < 0 else <uint64_t>length
    value.at = take(c, value.size)
    value.is_null = False


cdef void read_values(Cursor* c, const Shape* shape, int count, Value* values) noexcept nogil:
    """The first `count` values of a clustering. Fewer than 32 columns share one header of two bits each: bit 0 empty,
    bit 1 null.
    """
    cdef uint64_t header = read_unsigned_vint(c) if count else 0
    cdef int i
    for i in range(count):
        if header & 3:
            values[i].at, values[i].size, values[i].is_null = c.at, 0, header & 2
        else:
            _read_value(c, shape.clustering_lengths[i], &values[i])
        header >>= 2


cdef void _read_cell(
    Cursor* c, const Header* header, const Liveness* liveness, int64_t length, bint is_complex, Cell* cell
) noexcept nogil:
    cdef uint8_t flags = read_byte(c)
    cdef Value value
    cell.timestamp = liveness.timestamp if flags & USE_ROW_TIMESTAMP else _read_timestamp(c, header)
    cell.local, cell.ttl = NO_DELETION_TIME, 0
    if flags & USE_ROW_TTL:
        cell.local, cell.ttl = liveness.expires, liveness.ttl
    elif flags & (IS_DELETED | IS_EXPIRING):
        cell.local = _read_local(c, header)
        if flags & IS_EXPIRING:
            cell.ttl = _read_ttl(c, header)
        cell.local = _decode_local(cell.local, cell.ttl, header)
    value.at, value.size = NULL, 0
    if is_complex:
        _read_value(c, -1, &value)
    cell.path, cell.path_size = value.at, value.size
    value.at, value.size = c.at, 0
    if not flags & HAS_EMPTY_VALUE:
        _read_value(c, length, &value)
    cell.value, cell.value_size = value.at, value.size


cdef bint _read_complex(
    Cursor* c, const Shape* shape, const Header* header, int place, bint has_deletion, Row* row
) noexcept nogil:
    """False if this is the Python code's: paths that are not in their order, or whose order is not known here, of a shape
    that does not take them.
    """
    cdef int at = header.columns.places[place]
    cdef Column* column = &row.columns[at]
    cdef bint has_drop = header.columns.drops >> place & 1
    cdef int64_t dropped = header.columns.dropped[place], count, i
    cdef Cell* cell
    column.deletion.marked, column.deletion.local = NO_TIMESTAMP, NO_DELETION_TIME
    if has_deletion:
        read_deletion(c, header, &column.deletion)
        if has_drop and column.deletion.marked <= dropped:
            column.deletion.marked, column.deletion.local = NO_TIMESTAMP, NO_DELETION_TIME
    count = read_int(c)
    if c.is_bad or count < 0 or count > c.end - c.at:  # a cell has one byte at least
        return False
    column.first = row.used
    for i in range(count):
        cell = add_cell(row)
        if cell == NULL:
            return False
        _read_cell(c, header, &row.liveness, shape.lengths[at], True, cell)
        if c.is_bad:
            return False
        if not is_path(&shape.paths[at], cell.path, cell.path_size):
            row.has_any_path = True
        if has_drop and cell.timestamp <= dropped:
            row.used -= 1
        elif row.used > column.first + 1 and compare_paths(
            &shape.paths[at], (cell - 1).path, (cell - 1).path_size, cell.path, cell.path_size
        ) >= 0:
            row.has_any_path = True
    if row.has_any_path and not shape.takes_any_path:
        return False
    column.count = row.used - column.first
    if column.count or not is_no_deletion(&column.deletion):
        row.present |= <uint64_t>1 << at
    return True


cdef bint read_row(Cursor* c, const Shape* shape, const Header* header, Row* row) noexcept nogil:
    """One row of a message, up to the cursor's new place; False if it is the Python code's, or damaged."""
    cdef uint8_t flags
    return read_row_head(c, shape, row, &flags) and read_row_body(c, shape, header, flags, row)


cdef bint read_row_head(Cursor* c, const Shape* shape, Row* row, uint8_t* flags) noexcept nogil:
    """A row's flags and clustering. In an SSTable two sizes follow, before its body."""
    flags[0] = read_byte(c)
    clear_row(row)
    if shape.is_static:
        return flags[0] & (END_OF_PARTITION | IS_MARKER | EXTENSION) == EXTENSION and read_byte(c) == IS_STATIC
    if flags[0] & (END_OF_PARTITION | IS_MARKER | EXTENSION):
        return False
    read_values(c, shape, shape.clusterings, row.values)
    return not c.is_bad


cdef bint read_row_body(Cursor* c, const Shape* shape, const Header* header, uint8_t flags, Row* row) noexcept nogil:
    """UnfilteredSerializer.deserializeRowBody of a row whose head was read."""
    cdef uint64_t missing = 0
    cdef int place, at
    cdef Cell* cell
    cdef const Columns* columns = header.columns
    if flags & HAS_TIMESTAMP:
        row.liveness.timestamp = _read_timestamp(c, header)
        if flags & HAS_TTL:
            row.liveness.ttl = _read_ttl(c, header)
            row.liveness.expires = _decode_local(_read_local(c, header), row.liveness.ttl, header)
            if row.liveness.ttl == 0:
                row.liveness.expires = NO_DELETION_TIME
        if row.liveness.timestamp == NO_TIMESTAMP:
            return False
    if flags & HAS_DELETION:
        read_deletion(c, header, &row.deletion)
    if not flags & HAS_ALL_COLUMNS:
        missing = read_unsigned_vint(c)
        if missing >> columns.count:
            return False
    for place in range(columns.count):
        if missing >> place & 1:
            continue
        at = columns.places[place]
        if shape.is_complex[at]:
            if not _read_complex(c, shape, header, place, flags & HAS_COMPLEX_DELETION, row):
                return False
            continue
        cell = &row.columns[at].cell
        _read_cell(c, header, &row.liveness, shape.lengths[at], False, cell)
        if not (columns.drops >> place & 1 and cell.timestamp <= columns.dropped[place]):
            row.present |= <uint64_t>1 << at
    return not c.is_bad


cdef inline void _write_timestamp(Writer* w, const Header* header, int64_t timestamp) noexcept nogil:
    write_unsigned_vint(w, <uint64_t>timestamp - <uint64_t>header.min_timestamp)


cdef inline void _write_int(Writer* w, int64_t value) noexcept nogil:
    """VIntCoding.writeUnsignedVInt32: the lower 32 bits, sign-extended."""
    write_unsigned_vint(w, <uint64_t><int64_t><int32_t>value)


cdef inline void _write_local(Writer* w, const Header* header, int64_t local) noexcept nogil:
    cdef int64_t written = UNSIGNED_INT_MAX if local == NO_DELETION_TIME else local
    _write_int(w, <int64_t>(<uint64_t>written - <uint64_t>header.min_local))  # damaged facts may have any number


cdef void write_deletion(Writer* w, const Header* header, const Deletion* deletion) noexcept nogil:
    """SerializationHeader.writeDeletionTime."""
    _write_timestamp(w, header, deletion.marked)
    _write_local(w, header, deletion.local)


cdef void write_stats(Writer* w, const Header* header) noexcept nogil:
    """EncodingStats.Serializer.serialize."""
    write_unsigned_vint(w, <uint64_t>header.min_timestamp - <uint64_t>TIMESTAMP_EPOCH)
    _write_int(w, <int64_t>(<uint64_t>header.min_local - <uint64_t>DELETION_TIME_EPOCH))
    _write_int(w, header.min_ttl)


cdef void _write_cell(
    Writer* w, const Header* header, const Cell* cell, const Liveness* liveness, int64_t length, bint is_complex
) noexcept nogil:
    cdef uint8_t flags = 0 if cell.value_size else HAS_EMPTY_VALUE
    if cell.ttl != 0:
        flags |= IS_EXPIRING
        if cell.ttl == liveness.ttl and cell.local == liveness.expires:
            flags |= USE_ROW_TTL
    elif cell.local != NO_DELETION_TIME:
        flags |= IS_DELETED
    if liveness.timestamp != NO_TIMESTAMP and cell.timestamp == liveness.timestamp:
        flags |= USE_ROW_TIMESTAMP
    write_byte(w, flags)
    if not flags & USE_ROW_TIMESTAMP:
        _write_timestamp(w, header, cell.timestamp)
    if flags & (IS_DELETED | IS_EXPIRING) and not flags & USE_ROW_TTL:
        _write_local(w, header, cell.local)
        if cell.ttl != 0:
            _write_int(w, cell.ttl - header.min_ttl)
    if is_complex:
        write_unsigned_vint(w, cell.path_size)
        write_bytes(w, cell.path, cell.path_size)
    if cell.value_size:
        if length < 0:
            write_unsigned_vint(w, cell.value_size)
        write_bytes(w, cell.value, cell.value_size)


cdef void write_values(Writer* w, const Shape* shape, int count, const Value* values) noexcept nogil:
    """The first `count` values of a clustering."""
    cdef uint64_t header = 0
    cdef int i
    if not count:
        return
    for i in range(count):
        if values[i].is_null:
            header |= <uint64_t>2 << 2 * i
        elif values[i].size == 0:
            header |= <uint64_t>1 << 2 * i
    write_unsigned_vint(w, header)
    for i in range(count):
        if values[i].size and not values[i].is_null:
            if shape.clustering_lengths[i] < 0:
                write_unsigned_vint(w, values[i].size)
            write_bytes(w, values[i].at, values[i].size)


cdef void write_row(Writer* w, const Shape* shape, const Row* row) noexcept nogil:
    """A regular row as the state stores it: under a header of all the shape's columns, without statistics."""
    cdef Header header
    set_stored_stats(&header)
    write_row_under(w, shape, &header, (<uint64_t>1 << shape.count) - 1, row)


cdef void write_row_under(
    Writer* w, const Shape* shape, const Header* header, uint64_t listed, const Row* row
) noexcept nogil:
    """UnfilteredSerializer.serialize under a header of version 5.0 that lists these columns of the shape, a bit for each:
    all of them or the row's own.
    """
    cdef uint8_t flags = 0
    cdef const Column* column
    cdef int at
    cdef size_t i
    if row.liveness.timestamp != NO_TIMESTAMP:
        flags |= HAS_TIMESTAMP
        if row.liveness.ttl:
            flags |= HAS_TTL
    if not is_no_deletion(&row.deletion):
        flags |= HAS_DELETION
    for at in range(shape.count):
        if is_present(row, at) and shape.is_complex[at] and not is_no_deletion(&row.columns[at].deletion):
            flags |= HAS_COMPLEX_DELETION
    if row.present == listed:
        flags |= HAS_ALL_COLUMNS
    if shape.is_static:
        write_byte(w, flags | EXTENSION)
        write_byte(w, IS_STATIC)
    else:
        write_byte(w, flags)
        write_values(w, shape, shape.clusterings, row.values)
    if flags & HAS_TIMESTAMP:
        _write_timestamp(w, header, row.liveness.timestamp)
    if flags & HAS_TTL:
        _write_int(w, row.liveness.ttl - header.min_ttl)
        _write_local(w, header, row.liveness.expires)
    if flags & HAS_DELETION:
        write_deletion(w, header, &row.deletion)
    if not flags & HAS_ALL_COLUMNS:
        write_unsigned_vint(w, listed & ~row.present)
    for at in range(shape.count):
        if not is_present(row, at):
            continue
        column = &row.columns[at]
        if not shape.is_complex[at]:
            _write_cell(w, header, &column.cell, &row.liveness, shape.lengths[at], False)
            continue
        if flags & HAS_COMPLEX_DELETION:
            write_deletion(w, header, &column.deletion)
        write_unsigned_vint(w, column.count)
        for i in range(column.first, column.first + column.count):
            _write_cell(w, header, &row.cells[i], &row.liveness, shape.lengths[at], True)


cdef int64_t row_size(const Shape* shape, const Row* row) noexcept nogil:
    """Estimate the bytes of a row as materializer.rows.budget.row_size does."""
    cdef uint64_t size = 0
    cdef const Column* column
    cdef int at
    cdef size_t i
    for at in range(shape.count):
        if not is_present(row, at):
            continue
        column = &row.columns[at]
        if not shape.is_complex[at]:
            size += CELL_BYTES + column.cell.value_size
            continue
        for i in range(column.first, column.first + column.count):
            size += CELL_BYTES + row.cells[i].value_size + row.cells[i].path_size
    return <int64_t>size
