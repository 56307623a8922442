"""Splits serialized mutations into encoded raw messages, as publisher.messages and cdc_messages.raw do.

The forms are those of cassandra_storage.partition_update and unfiltered. The messaging version does not matter here:
deletion times are compared, never read. The core is stricter than the Python code wherever Cassandra writes one form
only: it takes no flags without a meaning, no negative counts, no ranges that are opened twice or never closed.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset

from cdc_native.buffers cimport (
    Bytes,
    Cursor,
    Writer,
    read_byte,
    read_int,
    read_unsigned_vint,
    take,
    write_avro_long,
    write_byte,
    write_bytes,
    write_unsigned_vint,
)

cdef enum:
    # PartitionUpdate.PartitionUpdateSerializer
    IS_EMPTY = 0x01
    HAS_PARTITION_DELETION = 0x04
    HAS_STATIC_ROW = 0x08
    HAS_ROW_ESTIMATE = 0x10
    # UnfilteredSerializer
    END_OF_PARTITION = 0x01
    IS_MARKER = 0x02
    HAS_TIMESTAMP = 0x04
    HAS_TTL = 0x08
    HAS_DELETION = 0x10
    HAS_ALL_COLUMNS = 0x20
    HAS_COMPLEX_DELETION = 0x40
    EXTENSION = 0x80
    IS_STATIC = 0x01
    HAS_SHADOWABLE_DELETION = 0x02
    # Cell.Serializer
    IS_DELETED = 0x01
    IS_EXPIRING = 0x02
    HAS_EMPTY_VALUE = 0x04
    USE_ROW_TIMESTAMP = 0x08
    USE_ROW_TTL = 0x10
    CELL_FLAGS = 0x1F
    # ClusteringPrefix
    VALUES_PER_HEADER = 32
    # Columns.Serializer
    LARGE = 64
    # RawMessage.kind
    ROW = 0
    STATIC = 1
    PARTITION_DELETION = 2
    RANGE_DELETION = 3
    NO_KIND = 0xFF
    ID_SIZE = 16
    MOST_OUTPUT = 1 << 24  # bytes of the messages of one mutation: the Python code makes them one after the other
    MOST_KEPT = 1 << 20  # bytes of a buffer between two mutations

# The bound that a marker of each kind closes, and the one that it opens: unfiltered.MARKER_KINDS.
cdef uint8_t[8] CLOSES = [0, NO_KIND, 0, NO_KIND, NO_KIND, 6, 6, NO_KIND]
cdef uint8_t[8] OPENS = [NO_KIND, 1, 1, NO_KIND, NO_KIND, 7, NO_KIND, 7]


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
    Bytes stats
    size_t stats_size
    int64_t min_ttl


cdef struct Row:  # where a serialized row has what: cassandra_storage.unfiltered.RowExtent
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


cdef class _Table:
    """A prepared table; `Table` points into the bytes that this object keeps."""
    cdef Table c
    cdef bytes begin
    cdef bytes middle
    cdef int index
    cdef list names

    def __cinit__(self, int index, tuple clustering_lengths, tuple statics, tuple regulars, bytes begin, bytes middle):
        cdef Py_ssize_t i
        self.names = []
        self.index = index
        self.begin = begin
        self.middle = middle
        self.c.clustering_lengths = <int64_t*>_allocate(len(clustering_lengths), sizeof(int64_t))
        self.c.clustering_count = <uint32_t>len(clustering_lengths)
        for i in range(len(clustering_lengths)):
            self.c.clustering_lengths[i] = clustering_lengths[i]
        self._prepare(&self.c.statics, statics)
        self._prepare(&self.c.regulars, regulars)

    cdef int _prepare(self, Columns* columns, tuple prepared) except -1:
        cdef bytes name
        cdef Column* column
        cdef Py_ssize_t i
        columns.all = <Column*>_allocate(len(prepared), sizeof(Column))
        columns.listed = <uint32_t*>_allocate(len(prepared), sizeof(uint32_t))
        columns.subset = <uint32_t*>_allocate(len(prepared), sizeof(uint32_t))
        columns.count = <uint32_t>len(prepared)
        for i in range(len(prepared)):
            column = &columns.all[i]
            name, column.length, column.is_complex, column.is_counter = prepared[i]
            if not name:
                raise ValueError("a column without a name")
            self.names.append(name)
            column.name = <Bytes><const char*>name
            column.name_size = <size_t>len(name)
        return 0

    def __dealloc__(self):
        free(self.c.clustering_lengths)
        _free_columns(&self.c.statics)
        _free_columns(&self.c.regulars)


cdef void* _allocate(Py_ssize_t count, size_t size) except NULL:
    cdef void* memory
    if count > 1 << 24:
        raise ValueError(f"{count} columns")
    memory = calloc(<size_t>count or 1, size)
    if memory == NULL:
        raise MemoryError
    return memory


cdef void _free_columns(Columns* columns) noexcept:
    free(columns.all)
    free(columns.listed)
    free(columns.subset)


cdef class MutationSplitter:
    """Splits mutations of prepared tables. Not to be used by two threads at once.

    `tables`: see mutations.pyi. ValueError or TypeError for what is no prepared table.
    """
    cdef dict _tables
    cdef bytes _latest_id
    cdef _Table _latest
    cdef Writer _update
    cdef Writer _message
    cdef size_t _output
    cdef bytes _segment

    def __cinit__(self, tables not None):
        cdef int index
        self._tables = {}
        self._latest_id = b""
        self._segment = b""
        for index, (table_id, lengths, statics, regulars, begin, middle) in enumerate(tables):
            if not isinstance(table_id, bytes) or len(table_id) != ID_SIZE:
                raise ValueError(f"a table's id has {ID_SIZE} bytes")
            if not isinstance(begin, bytes) or not isinstance(middle, bytes):
                raise TypeError("what messages have in common is bytes")
            self._tables[table_id] = _Table(index, lengths, statics, regulars, begin, middle)

    def __dealloc__(self):
        free(self._update.data)
        free(self._message.data)

    def begin_segment(self, bytes segment not None):
        """`segment`: what the messages of the next mutations have between their table's part and `position`."""
        self._segment = segment

    def split(self, bytes mutation not None, int64_t position):
        """(the table's place in `tables`, the partition key, the raw message) of each part, in the mutation's order.

        None if the mutation is not taken: a table that is not prepared, damage, a form that Cassandra does not write,
        counters whose local shards are to be cleared, or messages of more than MOST_OUTPUT bytes in all.
        """
        cdef Cursor cursor
        cdef list messages = []
        cdef bint is_taken
        cursor.at = <Bytes><const char*>mutation
        cursor.end = cursor.at + len(mutation)
        cursor.is_bad = False
        self._output = 0
        try:
            is_taken = self._split(&cursor, position, messages)
        finally:
            _shrink(&self._update)
            _shrink(&self._message)
        return messages if is_taken else None

    cdef bint _split(self, Cursor* c, int64_t position, list messages) except -1:
        """Whether the whole mutation was taken."""
        cdef int64_t count = read_int(c)
        cdef int64_t i
        if count <= 0:
            return False
        for i in range(count):
            if not self._split_update(c, position, messages):
                return False
        return c.at == c.end

    cdef _Table _find(self, Bytes table_id):
        """The prepared table of this id (16 bytes); None if there is none."""
        cdef bytes key
        if self._latest is None or memcmp(<const char*>self._latest_id, table_id, ID_SIZE) != 0:
            key = PyBytes_FromStringAndSize(<const char*>table_id, ID_SIZE)
            found = self._tables.get(key)
            if found is None:
                return None
            self._latest_id = key
            self._latest = found
        return self._latest

    cdef bint _split_update(self, Cursor* c, int64_t position, list messages) except -1:
        """partition_update.split_partition_update of the next update; False if it is not taken."""
        cdef Bytes start = take(c, ID_SIZE)
        cdef _Table table
        cdef uint64_t key_size
        cdef Bytes key_start
        cdef bytes key
        cdef uint8_t flags
        cdef Lead lead
        if c.is_bad:
            return False
        table = self._find(start)
        if table is None:
            return False
        key_size = read_unsigned_vint(c)
        key_start = take(c, key_size)
        lead.id_and_key = start
        lead.id_and_key_size = <size_t>(c.at - start)
        flags = read_byte(c)
        if c.is_bad:
            return False
        if flags == IS_EMPTY:
            return True
        if flags & ~(HAS_PARTITION_DELETION | HAS_STATIC_ROW) != HAS_ROW_ESTIMATE:
            return False
        _read_stats(c, &lead)
        if flags & HAS_STATIC_ROW:
            _read_columns(c, &table.c.statics)
        _read_columns(c, &table.c.regulars)
        if c.is_bad:
            return False
        key = PyBytes_FromStringAndSize(<const char*>key_start, <Py_ssize_t>key_size)
        if flags & HAS_PARTITION_DELETION and not self._put_deletion(c, table, key, &lead, position, messages):
            return False
        if flags & HAS_STATIC_ROW and not self._put_static(c, table, key, &lead, position, messages):
            return False
        if read_int(c) < 0:
            return False
        return self._split_unfiltereds(c, table, key, &lead, position, messages)

    cdef bint _put_deletion(
        self, Cursor* c, _Table table, bytes key, Lead* lead, int64_t position, list messages
    ) except -1:
        cdef Bytes start = c.at
        _skip_deletion_time(c)
        if c.is_bad:
            return False
        self._begin(lead, HAS_PARTITION_DELETION)
        write_byte(&self._update, 0)  # no columns
        write_bytes(&self._update, start, <size_t>(c.at - start))
        write_byte(&self._update, 0)  # no rows
        return self._put(PARTITION_DELETION, table, key, position, messages)

    cdef bint _put_static(
        self, Cursor* c, _Table table, bytes key, Lead* lead, int64_t position, list messages
    ) except -1:
        cdef Row row
        _skip_row(c, &table.c, &table.c.statics, lead.min_ttl, True, &row)
        if c.is_bad:
            return False
        self._begin(lead, HAS_STATIC_ROW)
        _write_columns(&self._update, &table.c.statics, &row)
        write_byte(&self._update, 0)  # no regular columns
        _write_row(&self._update, &row)
        write_byte(&self._update, 0)  # no rows
        return self._put(STATIC, table, key, position, messages)

    cdef bint _split_unfiltereds(
        self, Cursor* c, _Table table, bytes key, Lead* lead, int64_t position, list messages
    ) except -1:
        """partition_update._split_unfiltereds: rows and ranges up to the end of the partition."""
        cdef Row row
        cdef Bound opened, close, next_opened
        memset(&opened, 0, sizeof(Bound))
        while True:
            if c.is_bad or c.at >= c.end:
                return False
            if c.at[0] & END_OF_PARTITION:
                if c.at[0] != END_OF_PARTITION or opened.is_set:
                    return False
                c.at += 1
                return True
            if c.at[0] & IS_MARKER:
                _read_marker(c, &table.c, &close, &next_opened)
                if c.is_bad or close.is_set != opened.is_set:
                    return False
                if close.is_set:
                    if (
                        close.timestamp != opened.timestamp
                        or close.local_deletion_time != opened.local_deletion_time
                    ):
                        return False
                    self._begin(lead, 0)
                    write_byte(&self._update, 0)  # no columns
                    write_byte(&self._update, 0)  # no rows
                    _write_bound(&self._update, &opened)
                    _write_bound(&self._update, &close)
                    if not self._put(RANGE_DELETION, table, key, position, messages):
                        return False
                opened = next_opened
                continue
            _skip_row(c, &table.c, &table.c.regulars, lead.min_ttl, False, &row)
            if c.is_bad:
                return False
            self._begin(lead, 0)
            _write_columns(&self._update, &table.c.regulars, &row)
            write_byte(&self._update, 1)  # one row
            _write_row(&self._update, &row)
            if not self._put(ROW, table, key, position, messages):
                return False

    cdef void _begin(self, Lead* lead, uint8_t flags) noexcept:
        """Begin an update of one part."""
        self._update.size = 0
        write_bytes(&self._update, lead.id_and_key, lead.id_and_key_size)
        write_byte(&self._update, HAS_ROW_ESTIMATE | flags)
        write_bytes(&self._update, lead.stats, lead.stats_size)

    cdef bint _put(self, uint8_t kind, _Table table, bytes key, int64_t position, list messages) except -1:
        """End the update and put out its message; False if the messages of this mutation become too large."""
        cdef Writer* w = &self._message
        w.size = 0
        write_byte(&self._update, END_OF_PARTITION)
        write_bytes(w, <Bytes><const char*>table.begin, <size_t>len(table.begin))
        write_byte(w, <uint8_t>(kind << 1))
        write_avro_long(w, <int64_t>self._update.size)
        write_bytes(w, self._update.data, self._update.size)
        write_bytes(w, <Bytes><const char*>table.middle, <size_t>len(table.middle))
        write_bytes(w, <Bytes><const char*>self._segment, <size_t>len(self._segment))
        write_avro_long(w, position)
        write_avro_long(w, <int64_t>len(messages))
        write_bytes(w, <Bytes>b"\x00\x00\x00", 3)  # published_up_to_segment, published_up_to_position, clock
        if w.is_bad or self._update.is_bad:
            raise MemoryError
        self._output += w.size
        if self._output > MOST_OUTPUT:
            return False
        messages.append((table.index, key, PyBytes_FromStringAndSize(<const char*>w.data, <Py_ssize_t>w.size)))
        return True


cdef void _shrink(Writer* w) noexcept nogil:
    """Keep no more memory than most messages need; forget that there was none."""
    if w.capacity > MOST_KEPT:
        free(w.data)
        w.data = NULL
        w.capacity = 0
    w.size = 0
    w.is_bad = False


cdef void _read_stats(Cursor* c, Lead* lead) noexcept nogil:
    """header.read_stats: the bytes, and the TTL (s) that others are deltas of."""
    lead.stats = c.at
    read_unsigned_vint(c)
    read_int(c)
    lead.min_ttl = read_int(c)
    lead.stats_size = <size_t>(c.at - lead.stats)


cdef void _read_columns(Cursor* c, Columns* columns) noexcept nogil:
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
    if count >= LARGE:
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
    """deserializeLargeSubset: indexes of the present columns if they are few, else of the missing ones."""
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


cdef inline void _skip_deletion_time(Cursor* c) noexcept nogil:
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


cdef void _skip_row(
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
        _skip_deletion_time(c)
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
            _skip_deletion_time(c)
        cells = read_int(c)
        if cells < 0:
            c.is_bad = True
        while cells > 0 and not c.is_bad:
            _skip_cell(c, column, min_ttl)
            cells -= 1
        if c.is_bad:
            return
    row.end = c.at


cdef void _read_marker(Cursor* c, const Table* table, Bound* close, Bound* opened) noexcept nogil:
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


cdef void _write_columns(Writer* w, const Columns* columns, const Row* row) noexcept nogil:
    """Columns.Serializer.serialize of the row's columns."""
    cdef uint32_t i
    cdef const Column* column
    write_unsigned_vint(w, row.column_count)
    for i in range(row.column_count):
        column = &columns.all[row.columns[i]]
        write_bytes(w, column.name, column.name_size)


cdef void _write_row(Writer* w, const Row* row) noexcept nogil:
    """unfiltered.row_pieces: the row in a header of its own columns only."""
    if row.start[0] & HAS_ALL_COLUMNS:
        write_bytes(w, row.start, <size_t>(row.end - row.start))
        return
    write_byte(w, row.start[0] | HAS_ALL_COLUMNS)
    write_bytes(w, row.start + 1, <size_t>(row.subset_start - row.start - 1))
    write_bytes(w, row.cells_start, <size_t>(row.end - row.cells_start))


cdef void _write_bound(Writer* w, const Bound* bound) noexcept nogil:
    """A whole marker."""
    write_byte(w, IS_MARKER)
    write_byte(w, bound.kind)
    write_bytes(w, bound.values, bound.values_size)
    write_bytes(w, bound.deletion, bound.deletion_size)
