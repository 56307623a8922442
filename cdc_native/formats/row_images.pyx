# cython: language_level=3
"""Row images as encoded raw messages.

Python oracle: publisher.snapshot.rows.messages.RowImages, cdc_common.messages.raw.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE, PyBytes_FromStringAndSize
from libc.stdlib cimport free

from cdc_native.formats.constants cimport (
    END_OF_PARTITION,
    HAS_PARTITION_DELETION,
    HAS_ROW_ESTIMATE,
    HAS_STATIC_ROW,
    ID_SIZE,
    IS_MARKER,
    KIND_SNAPSHOT_PARTITION_DELETION,
    KIND_SNAPSHOT_RANGE_DELETION,
    KIND_SNAPSHOT_ROW,
    KIND_SNAPSHOT_STATIC,
    NO_DELETION_TIME,
    NO_TIMESTAMP,
)
from cdc_native.formats.batches cimport Message
from cdc_native.formats.buffers cimport Bytes, Cursor, write_avro_long, write_byte, write_bytes, write_unsigned_vint
from cdc_native.formats.rows cimport (
    MOST_CLUSTERINGS,
    Cell,
    Column,
    Header,
    is_present,
    read_values,
    set_stored_stats,
    write_deletion,
    write_row_under,
    write_stats,
    write_values,
)


cdef class RowImages:
    """Writes into `batch`. `units`: how many are made so far.

    table_id: 16 bytes. begin, middle: what all messages of the table have before their kind, and between their update
    and `segment` (cdc_common.messages.raw.table_parts). segment: the encoded fields `segment` and `file`.
    """

    def __cinit__(
        self, RowShapes shapes not None, bytes table_id not None, bytes begin not None, bytes middle not None, bytes segment not None
    ):
        if len(table_id) != ID_SIZE:
            raise ValueError("an id that has not 16 bytes")
        self.shapes = shapes
        self._table_id, self._begin, self._middle, self._segment = table_id, begin, middle, segment
        self._named = <uint64_t>-1  # no row has 64 columns

    def __dealloc__(self):
        free(self._update.data)
        free(self._names.data)

    cdef bint is_in_unit(self) noexcept:
        return self._index > 0

    cdef void drop_unit(self) noexcept:
        self._index = 0

    cdef void end_unit(self) noexcept:
        self.units += self._index > 0
        self._index = 0

    cdef int put_row(self, const Writer* key, const Row* row, bint is_static) except -1:
        cdef Header header
        cdef const Shape* shape = &self.shapes.statics if is_static else &self.shapes.rows
        cdef size_t row_at
        _set_stats(&header, shape, row)
        self._start(key, HAS_STATIC_ROW if is_static else 0)
        write_stats(&self._update, &header)
        self._write_names(row.present, is_static)
        if is_static:
            write_byte(&self._update, 0)  # no regular columns
            write_row_under(&self._update, shape, &header, row.present, row)
            write_byte(&self._update, 0)  # no rows
            return self._put(KIND_SNAPSHOT_STATIC, key, 0)
        write_byte(&self._update, 1)  # one row
        row_at = self._update.size + 1  # after its flags
        write_row_under(&self._update, shape, &header, row.present, row)
        return self._put(KIND_SNAPSHOT_ROW, key, row_at)

    cdef int put_deletion(self, const Writer* key, const Deletion* deletion) except -1:
        cdef Header header
        _set_no_stats(&header)
        _add_deletion(&header, deletion)
        _end_stats(&header)
        self._start(key, HAS_PARTITION_DELETION)
        write_stats(&self._update, &header)
        write_byte(&self._update, 0)  # no columns
        write_deletion(&self._update, &header, deletion)
        write_byte(&self._update, 0)  # no rows
        return self._put(KIND_SNAPSHOT_PARTITION_DELETION, key, 0)

    cdef int put_range(
        self, const Writer* key, const Writer* start, uint8_t kind, int count, const Value* values, const Deletion* deletion
    ) except -1:
        """start: a bound as write_bound writes it. kind, values: of its end."""
        cdef Header header
        _set_no_stats(&header)
        _add_deletion(&header, deletion)
        _end_stats(&header)
        self._start(key, 0)
        write_stats(&self._update, &header)
        write_byte(&self._update, 0)  # no columns
        write_byte(&self._update, 0)  # no rows
        write_byte(&self._update, IS_MARKER)
        write_bytes(&self._update, start.data, start.size)
        write_deletion(&self._update, &header, deletion)
        write_byte(&self._update, IS_MARKER)
        write_bound(&self._update, &self.shapes.rows, kind, count, values)
        write_deletion(&self._update, &header, deletion)
        return self._put(KIND_SNAPSHOT_RANGE_DELETION, key, 0)

    cdef tuple clustering_at(self, size_t at):
        """Return the clustering there in the batch, where `row_at` was."""
        cdef Cursor c
        cdef Value values[MOST_CLUSTERINGS]
        cdef int i, count = self.shapes.rows.clusterings
        c.at, c.end = self.batch.data.data + at, self.batch.data.data + self.batch.data.size
        c.is_bad = False
        read_values(&c, &self.shapes.rows, count, values)
        return tuple([
            None if values[i].is_null else PyBytes_FromStringAndSize(<const char*>values[i].at, <Py_ssize_t>values[i].size)
            for i in range(count)
        ])

    cdef void _start(self, const Writer* key, uint8_t flags) noexcept:
        """PartitionUpdate.PartitionUpdateSerializer.serialize, up to the header."""
        self._update.size = 0
        write_bytes(&self._update, <Bytes>PyBytes_AS_STRING(self._table_id), ID_SIZE)
        write_unsigned_vint(&self._update, key.size)
        write_bytes(&self._update, key.data, key.size)
        write_byte(&self._update, HAS_ROW_ESTIMATE | flags)

    cdef void _write_names(self, uint64_t present, bint is_static) noexcept:
        """The row's own columns. Most rows have those of the row before."""
        cdef int at, count = 0
        cdef list names
        cdef bytes name
        if present != self._named or is_static != self._is_named_static:
            names = self.shapes.names[1 if is_static else 0]
            for at in range(<int>len(names)):
                count += present >> at & 1
            self._names.size = 0
            write_unsigned_vint(&self._names, <uint64_t>count)
            for at in range(<int>len(names)):
                if present >> at & 1:
                    name = names[at]
                    write_bytes(&self._names, <Bytes>PyBytes_AS_STRING(name), <size_t>PyBytes_GET_SIZE(name))
            self._named, self._is_named_static = present, is_static
        write_bytes(&self._update, self._names.data, self._names.size)
        self._update.is_bad |= self._names.is_bad

    cdef int _put(self, uint8_t kind, const Writer* key, size_t row_at) except -1:
        """End the update and put its message into the batch. row_at: where the update has a row's clustering, 0 if it has
        no row.
        """
        cdef Writer* w = &self.batch.data
        cdef Message message
        cdef size_t update_at
        write_byte(&self._update, END_OF_PARTITION)
        message.table = 0
        message.value_at = w.size
        write_bytes(w, <Bytes>PyBytes_AS_STRING(self._begin), <size_t>PyBytes_GET_SIZE(self._begin))
        write_byte(w, <uint8_t>(kind << 1))
        write_avro_long(w, <int64_t>self._update.size)
        update_at = w.size
        write_bytes(w, self._update.data, self._update.size)
        write_bytes(w, <Bytes>PyBytes_AS_STRING(self._middle), <size_t>PyBytes_GET_SIZE(self._middle))
        write_bytes(w, <Bytes>PyBytes_AS_STRING(self._segment), <size_t>PyBytes_GET_SIZE(self._segment))
        write_avro_long(w, self.units)
        write_avro_long(w, self._index)
        write_bytes(w, <Bytes>b"\x00\x00\x00", 3)  # published_up_to_segment, published_up_to_position, clock
        if self._update.is_bad or w.is_bad:
            self._update.is_bad = self._names.is_bad = False
            self._named = <uint64_t>-1
            raise MemoryError
        message.value_size = w.size - message.value_at
        message.key_size = key.size
        message.key_at = update_at + ID_SIZE + _vint_size(key.size)
        self.batch.add(&message)
        self._index += 1
        if row_at:
            self.row_at = update_at + row_at
        return 0


cdef inline size_t _vint_size(size_t value) noexcept nogil:
    """Of a length that a key may have."""
    return 1 if value < 0x80 else 2 if value < 0x4000 else 3


cdef void write_bound(Writer* w, const Shape* shape, uint8_t kind, int count, const Value* values) noexcept nogil:
    """ClusteringBoundOrBoundary.Serializer.serialize."""
    write_byte(w, kind)
    write_byte(w, <uint8_t>(count >> 8))
    write_byte(w, <uint8_t>count)
    write_values(w, shape, count, values)


cdef inline void _set_no_stats(Header* header) noexcept nogil:
    """Of numbers that _end_stats knows for none."""
    header.min_timestamp = NO_TIMESTAMP
    header.min_local = header.min_ttl = NO_DELETION_TIME


cdef inline void _add_timestamp(Header* header, int64_t timestamp) noexcept nogil:
    if timestamp != NO_TIMESTAMP and (timestamp < header.min_timestamp or header.min_timestamp == NO_TIMESTAMP):
        header.min_timestamp = timestamp


cdef inline void _add_local(Header* header, int64_t local) noexcept nogil:
    if local < header.min_local:
        header.min_local = local


cdef inline void _add_deletion(Header* header, const Deletion* deletion) noexcept nogil:
    _add_timestamp(header, deletion.marked)
    _add_local(header, deletion.local)


cdef inline void _add_cell(Header* header, const Cell* cell) noexcept nogil:
    _add_timestamp(header, cell.timestamp)
    _add_local(header, cell.local)
    if cell.ttl and cell.ttl < header.min_ttl:
        header.min_ttl = cell.ttl


cdef inline void _end_stats(Header* header) noexcept nogil:
    """EncodingStats.NO_STATS' where there are none."""
    cdef Header none
    set_stored_stats(&none)
    if header.min_timestamp == NO_TIMESTAMP:
        header.min_timestamp = none.min_timestamp
    if header.min_local == NO_DELETION_TIME:
        header.min_local = none.min_local
    if header.min_ttl == NO_DELETION_TIME:
        header.min_ttl = none.min_ttl


cdef void _set_stats(Header* header, const Shape* shape, const Row* row) noexcept nogil:
    """EncodingStats.Collector: the smallest of each, so that the row's own are small numbers."""
    cdef const Column* column
    cdef int at
    cdef size_t i
    _set_no_stats(header)
    _add_timestamp(header, row.liveness.timestamp)
    _add_local(header, row.liveness.expires)
    if row.liveness.ttl:
        header.min_ttl = row.liveness.ttl
    _add_deletion(header, &row.deletion)
    for at in range(shape.count):
        if not is_present(row, at):
            continue
        column = &row.columns[at]
        if not shape.is_complex[at]:
            _add_cell(header, &column.cell)
            continue
        _add_deletion(header, &column.deletion)
        for i in range(column.first, column.first + column.count):
            _add_cell(header, &row.cells[i])
    _end_stats(header)
