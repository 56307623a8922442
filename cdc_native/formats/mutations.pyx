"""Splits the mutations of a part of a commit log segment into encoded raw messages.

Python oracle: cassandra_storage.formats.commitlog.segment.SegmentReader, publisher.mutations.messages.split_into_messages, cdc_common.messages.raw.

The forms are those of cassandra_storage.formats.rows.partition_update and unfiltered. The messaging version does not
matter here: deletion times are compared, never read. The core is stricter than the Python code wherever Cassandra writes
one form only: it takes no flags without a meaning, no negative counts, no ranges that are opened twice or never closed.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset

from cdc_native.formats.constants cimport (
    END_OF_PARTITION,
    ENTRY_HEAD,
    ENTRY_OVERHEAD,
    HAS_PARTITION_DELETION,
    HAS_ROW_ESTIMATE,
    HAS_STATIC_ROW,
    ID_SIZE,
    IS_EMPTY_UPDATE,
    IS_MARKER,
    KIND_PARTITION_DELETION,
    KIND_RANGE_DELETION,
    KIND_ROW,
    KIND_STATIC,
    MIN_MUTATION,
)
from cdc_native.formats.batches cimport Batch, Message
from cdc_native.formats.buffers cimport (
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
)
from cdc_native.formats.checksums cimport crc32, prepare_crc32
from cdc_native.formats.extents cimport (
    Bound,
    Column,
    Columns,
    Lead,
    Row,
    Table,
    read_columns,
    read_marker,
    read_stats,
    skip_deletion_time,
    skip_row,
    write_bound,
    write_columns,
    write_row,
)

cdef enum:
    MOST_OUTPUT = 1 << 22  # bytes of the messages of one mutation: the Python code makes them one after the other
    MOST_BATCH = 1 << 20  # bytes of messages after which a batch takes no more mutations
    MOST_KEPT = 1 << 20  # bytes of a buffer between two batches

cdef int64_t MOST_START = <int64_t>1 << 62

prepare_crc32()


cdef class _Table:
    """A prepared table; `Table` points into the bytes that this object keeps."""
    cdef Table c
    cdef bytes begin
    cdef bytes middle
    cdef uint32_t index
    cdef bint is_sent
    cdef bint is_excluded
    cdef list names

    def __cinit__(self, uint32_t index, bint is_sent, tuple prepared):
        cdef tuple lengths, statics, regulars
        cdef Py_ssize_t i
        _, lengths, statics, regulars, self.begin, self.middle = prepared
        if lengths is None or statics is None or regulars is None or self.begin is None or self.middle is None:
            raise TypeError("a part of a prepared table is missing")
        self.names = []
        self.index = index
        self.is_sent = is_sent
        self.c.clustering_lengths = <int64_t*>_allocate(len(lengths), sizeof(int64_t))
        self.c.clustering_count = <uint32_t>len(lengths)
        for i in range(len(lengths)):
            self.c.clustering_lengths[i] = lengths[i]
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

    `tables`: those whose updates are sent, see mutations.pyi. `silent`: as them, of tables whose updates are not sent,
    but may be in one mutation with others. `ignored`: the ids of all tables whose updates are not sent: a mutation of
    such a table alone is passed over unread. `excluded`: those of them whose updates are counted. ValueError or
    TypeError for what is no prepared table.
    """
    cdef dict _tables
    cdef frozenset _ignored
    cdef frozenset _excluded
    cdef bytes _latest_id
    cdef _Table _latest
    cdef bytes _latest_ignored
    cdef bint _latest_is_excluded
    cdef Writer _update
    cdef bytes _segment
    cdef Batch _batch
    cdef int64_t _position
    cdef size_t _first
    cdef size_t _output

    def __cinit__(self, tables not None, silent=(), ignored=(), excluded=()):
        cdef uint32_t index
        self._tables = {}
        self._ignored = frozenset(ignored)
        self._excluded = frozenset(excluded)
        self._latest_id = self._latest_ignored = b""
        self._segment = b""
        for index, table in enumerate(tables):
            self._tables[_id_of(table)] = _Table(index, True, table)
        for table in silent:
            self._tables[_id_of(table)] = found = _Table(0, False, table)
            (<_Table>found).is_excluded = _id_of(table) in self._excluded

    def __dealloc__(self):
        free(self._update.data)

    def begin_segment(self, bytes segment not None):
        """`segment`: what the messages of the next mutations have between their table's part and `position`."""
        self._segment = segment

    def walk(self, Batch batch not None, bytes data not None, int64_t at, int64_t until, int64_t most, int64_t start):
        """Fill `batch` with the messages of the entries of `data` from the offset `at` on, in their order; the offset
        after the last one that was taken. An entry's end, counted from `start` on, is the position of its messages.

        It stops before `until`, where the section ends; before an entry that is not whole and sound, or of more than
        `most` bytes; before a mutation that it does not take; and when the batch is large. It does not take: a table
        that is not prepared, damage, a form that Cassandra does not write, counters whose local shards are to be
        cleared, and messages of more than MOST_OUTPUT bytes in all.
        """
        cdef Bytes bytes_ = <Bytes><const char*>data
        cdef int64_t available = len(data)
        cdef int64_t size
        cdef uint32_t crc
        cdef size_t count, output
        batch.clear()
        self._batch = batch
        if at < 0 or not -MOST_START <= start <= MOST_START:
            raise ValueError(f"an offset {at} before the data, or no position {start}")
        until = max(0, min(until, available))
        while until - at >= ENTRY_OVERHEAD and batch.data.size < MOST_BATCH:
            size = _read_uint32(bytes_ + at)
            crc = crc32(0, bytes_ + at, 4)
            if (
                crc != _read_uint32(bytes_ + at + 4)
                or not MIN_MUTATION <= size <= most
                or size > until - at - ENTRY_OVERHEAD
                or crc32(crc, bytes_ + at + ENTRY_HEAD, <size_t>size) != _read_uint32(bytes_ + at + ENTRY_HEAD + size)
            ):
                break
            count, output = batch.count, batch.data.size
            excluded = batch.excluded_updates
            self._position = start + at + ENTRY_OVERHEAD + size
            if not self._take(bytes_ + at + ENTRY_HEAD, <size_t>size):
                batch.cut(count, output)
                batch.excluded_updates = excluded
                break
            batch.mutations += 1
            at += ENTRY_OVERHEAD + size
        if self._update.capacity > MOST_KEPT:
            free(self._update.data)
            memset(&self._update, 0, sizeof(Writer))
        return at

    cdef bint _take(self, Bytes mutation, size_t size) except -1:
        """Whether the whole mutation was taken; its messages are in the batch then."""
        cdef Cursor c
        cdef int64_t count, i
        c.at = mutation
        c.end = mutation + size
        c.is_bad = False
        self._first = self._batch.count
        self._output = self._batch.data.size
        count = read_int(&c)
        if c.is_bad or count <= 0:
            return False
        if count == 1 and self._is_ignored(&c):
            return True
        for i in range(count):
            if not self._split_update(&c):
                return False
        return c.at == c.end

    cdef bint _is_ignored(self, Cursor* c) except -1:
        """Whether the mutation's only table is ignored."""
        cdef bytes key
        if c.end - c.at < ID_SIZE:
            return False
        if self._latest is not None and memcmp(<const char*>self._latest_id, c.at, ID_SIZE) == 0:
            if self._latest.is_sent:
                return False
        if not self._latest_ignored or memcmp(<const char*>self._latest_ignored, c.at, ID_SIZE) != 0:
            key = PyBytes_FromStringAndSize(<const char*>c.at, ID_SIZE)
            if key not in self._ignored:
                return False
            self._latest_ignored = key
            self._latest_is_excluded = key in self._excluded
        self._batch.excluded_updates += self._latest_is_excluded
        return True

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

    cdef bint _split_update(self, Cursor* c) except -1:
        """partition_update.split_partition_update of the next update; False if it is not taken."""
        cdef Bytes start = take(c, ID_SIZE)
        cdef _Table table
        cdef uint8_t flags
        cdef Lead lead
        if c.is_bad:
            return False
        table = self._find(start)
        if table is None:
            return False
        lead.key_size = <size_t>read_unsigned_vint(c)
        lead.key = take(c, lead.key_size)
        lead.id_and_key = start
        lead.id_and_key_size = <size_t>(c.at - start)
        flags = read_byte(c)
        if c.is_bad:
            return False
        self._batch.excluded_updates += table.is_excluded
        if flags == IS_EMPTY_UPDATE:
            return True
        if flags & ~(HAS_PARTITION_DELETION | HAS_STATIC_ROW) != HAS_ROW_ESTIMATE:
            return False
        read_stats(c, &lead)
        if flags & HAS_STATIC_ROW:
            read_columns(c, &table.c.statics)
        read_columns(c, &table.c.regulars)
        if c.is_bad:
            return False
        if flags & HAS_PARTITION_DELETION and not self._put_deletion(c, table, &lead):
            return False
        if flags & HAS_STATIC_ROW and not self._put_static(c, table, &lead):
            return False
        if read_int(c) < 0:
            return False
        return self._split_unfiltereds(c, table, &lead)

    cdef bint _put_deletion(self, Cursor* c, _Table table, Lead* lead) except -1:
        cdef Bytes start = c.at
        skip_deletion_time(c)
        if c.is_bad:
            return False
        if not table.is_sent:
            return True
        self._begin(lead, HAS_PARTITION_DELETION)
        write_byte(&self._update, 0)  # no columns
        write_bytes(&self._update, start, <size_t>(c.at - start))
        write_byte(&self._update, 0)  # no rows
        return self._put(KIND_PARTITION_DELETION, table, lead)

    cdef bint _put_static(self, Cursor* c, _Table table, Lead* lead) except -1:
        cdef Row row
        skip_row(c, &table.c, &table.c.statics, lead.min_ttl, True, &row)
        if c.is_bad:
            return False
        if not table.is_sent:
            return True
        self._begin(lead, HAS_STATIC_ROW)
        write_columns(&self._update, &table.c.statics, &row)
        write_byte(&self._update, 0)  # no regular columns
        write_row(&self._update, &row)
        write_byte(&self._update, 0)  # no rows
        return self._put(KIND_STATIC, table, lead)

    cdef bint _split_unfiltereds(self, Cursor* c, _Table table, Lead* lead) except -1:
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
                read_marker(c, &table.c, &close, &next_opened)
                if c.is_bad or close.is_set != opened.is_set:
                    return False
                if close.is_set:
                    if (
                        close.timestamp != opened.timestamp
                        or close.local_deletion_time != opened.local_deletion_time
                    ):
                        return False
                    if table.is_sent and not self._put_range(table, lead, &opened, &close):
                        return False
                opened = next_opened
                continue
            skip_row(c, &table.c, &table.c.regulars, lead.min_ttl, False, &row)
            if c.is_bad:
                return False
            if table.is_sent and not self._put_row(table, lead, &row):
                return False

    cdef bint _put_range(self, _Table table, Lead* lead, const Bound* opened, const Bound* close) except -1:
        self._begin(lead, 0)
        write_byte(&self._update, 0)  # no columns
        write_byte(&self._update, 0)  # no rows
        write_bound(&self._update, opened)
        write_bound(&self._update, close)
        return self._put(KIND_RANGE_DELETION, table, lead)

    cdef bint _put_row(self, _Table table, Lead* lead, const Row* row) except -1:
        self._begin(lead, 0)
        write_columns(&self._update, &table.c.regulars, row)
        write_byte(&self._update, 1)  # one row
        write_row(&self._update, row)
        return self._put(KIND_ROW, table, lead)

    cdef void _begin(self, Lead* lead, uint8_t flags) noexcept:
        """Begin an update of one part. Not of a table that is not sent: a mutation may have very many parts, each with
        the whole key, and what MOST_OUTPUT bounds is only what is put out.
        """
        self._update.size = 0
        write_bytes(&self._update, lead.id_and_key, lead.id_and_key_size)
        write_byte(&self._update, HAS_ROW_ESTIMATE | flags)
        write_bytes(&self._update, lead.stats, lead.stats_size)

    cdef bint _put(self, uint8_t kind, _Table table, Lead* lead) except -1:
        """End the update and put out its message; False if the messages of this mutation become too large."""
        cdef Writer* w = &self._batch.data
        cdef Message message
        message.table = table.index
        message.value_at = w.size
        write_byte(&self._update, END_OF_PARTITION)
        write_bytes(w, <Bytes><const char*>table.begin, <size_t>len(table.begin))
        write_byte(w, <uint8_t>(kind << 1))
        write_avro_long(w, <int64_t>self._update.size)
        message.key_at = w.size + <size_t>(lead.key - lead.id_and_key)
        message.key_size = lead.key_size
        write_bytes(w, self._update.data, self._update.size)
        write_bytes(w, <Bytes><const char*>table.middle, <size_t>len(table.middle))
        write_bytes(w, <Bytes><const char*>self._segment, <size_t>len(self._segment))
        write_avro_long(w, self._position)
        write_avro_long(w, <int64_t>(self._batch.count - self._first))
        write_bytes(w, <Bytes>b"\x00\x00\x00", 3)  # published_up_to_segment, published_up_to_position, clock
        if self._update.is_bad:
            self._update.is_bad = False
            raise MemoryError
        message.value_size = w.size - message.value_at
        self._batch.add(&message)
        return w.size - self._output <= MOST_OUTPUT


cdef bytes _id_of(table):
    """A prepared table's id."""
    if not isinstance(table, tuple) or len(table) != 6:
        raise TypeError("no prepared table")
    table_id = table[0]
    if not isinstance(table_id, bytes) or len(table_id) != ID_SIZE:
        raise ValueError(f"a table's id has {ID_SIZE} bytes")
    return table_id


cdef inline uint32_t _read_uint32(Bytes at) noexcept nogil:
    return <uint32_t>at[0] << 24 | <uint32_t>at[1] << 16 | <uint32_t>at[2] << 8 | at[3]
