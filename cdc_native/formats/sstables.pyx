# cython: language_level=3
"""The partitions of an SSTable, one row at a time.

Python oracle: cassandra_storage.formats.sstable.reader.SSTableReader.

It keeps a window of the uncompressed data, and of a row that is larger than it the row. A function that returns False
has met what is not the core's: a form that it does not take, or damage. Then nothing more can be read.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memmove

from cdc_native.formats.constants cimport (
    AFTER,
    BEFORE,
    END_OF_PARTITION,
    INVALID_DELETION_TIME,
    IS_MARKER,
    LARGEST_VALUE,
    LARGEST_VINT,
    LIVE_FLAG,
    NO_DELETION_TIME,
    NO_TIMESTAMP,
    TERMINATOR,
)
from cdc_native.formats.buffers cimport Bytes, read_byte, read_unsigned_vint, reserve, take, write_byte, write_bytes
from cdc_native.formats.keys cimport set_key_type, write_component
from cdc_native.formats.rows cimport (
    MOST_COLUMNS,
    free_row,
    is_empty,
    is_no_deletion,
    read_deletion,
    read_row_body,
    read_row_head,
    read_values,
    set_version,
)
from cdc_native.formats.tokens cimport token_of

cdef enum:
    _REFILL = 1 << 16
    _NO_KIND = 8

cdef int64_t _MOST_STATS = <int64_t>1 << 40

# The bound that a marker of each kind closes or opens (unfiltered.MARKER_KINDS), and whether it lies before its values.
cdef bint[_NO_KIND] _CLOSES = [True, False, True, False, False, True, True, False]
cdef bint[_NO_KIND] _OPENS = [False, True, True, False, False, True, False, True]
cdef bint[_NO_KIND] _IS_BEFORE = [True, True, True, False, False, False, False, False]


cdef class RowShapes:
    """columns, statics: (name as headers have it, length of values or -1, form of its paths' key or None) of each column
    that a row may hold, in their order. clustering: (length, form of its key).
    """

    def __cinit__(self, columns, statics, clustering):
        columns, statics, clustering = tuple(columns), tuple(statics), tuple(clustering)
        self.names = [[], []]
        _set_shape(&self.rows, columns, False, self.names[0])
        _set_shape(&self.statics, statics, True, self.names[1])
        if len(clustering) > MOST_CLUSTERINGS:
            raise ValueError(f"{len(clustering)} clustering columns")
        self.rows.clusterings = len(clustering)
        for i, (length, key) in enumerate(clustering):
            self.rows.clustering_lengths[i] = length
            set_key_type(&self.clustering_keys[i], key)


cdef int _set_shape(Shape* shape, tuple columns, bint is_static, list names) except -1:
    if len(columns) > MOST_COLUMNS:
        raise ValueError(f"{len(columns)} columns")
    shape.is_static = is_static
    shape.takes_any_path = True
    shape.clusterings = 0
    shape.count = len(columns)
    for i, (name, length, path) in enumerate(columns):
        if type(name) is not bytes:
            raise TypeError("a column's name is bytes")
        names.append(name)
        shape.lengths[i] = length
        shape.is_complex[i] = path is not None
        set_key_type(&shape.paths[i], path or ("unknown", 0, False))
    return 0


cdef int _set_columns(Columns* columns, entries, const Shape* shape) except -1:
    if len(entries) > MOST_COLUMNS:
        raise ValueError(f"{len(entries)} columns")
    columns.count = len(entries)
    columns.drops = 0
    for i, (place, dropped) in enumerate(entries):
        if not 0 <= place < shape.count:
            raise ValueError(f"a column's place {place}")
        columns.places[i] = place
        columns.dropped[i] = 0 if dropped is None else dropped
        columns.drops |= <uint64_t>(dropped is not None) << <int>i
    return 0


cdef class SSTable:
    """index: its place in the order of the sources. statics, regulars: (place in the shape, dropped time or None) of
    each column of its header. stats: (least timestamp, local deletion time, TTL). version: the messaging version of its
    times. spans: an iterator of (first token, last token, key that the first partition must have or None, whether the
    first lies before them, bytes of the data from there on, chunks of that data). ValueError or TypeError for what is
    none of these.
    """

    def __cinit__(
        self, int index, RowShapes shapes not None, statics, regulars, stats, int version, bint has_uint_deletion_time, spans
    ):
        cdef Header* header = &self._header
        self.index = index
        self._shapes = shapes
        self._spans = iter(spans)
        self._has_uint_deletion = has_uint_deletion_time
        _set_columns(&self._statics, tuple(statics), &shapes.statics)
        _set_columns(&self._regulars, tuple(regulars), &shapes.rows)
        self._has_static = self._statics.count > 0
        header.min_timestamp, header.min_local, header.min_ttl = stats
        if not set_version(header, version) or not -_MOST_STATS < header.min_local < _MOST_STATS:
            raise ValueError("a header that no SSTable has")
        if not -_MOST_STATS < header.min_ttl < _MOST_STATS:
            raise ValueError("a header that no SSTable has")
        self._static_header = header[0]
        header.columns = &self._regulars
        self._static_header.columns = &self._statics
        # An empty key is compared, too: it needs an address.
        if not reserve(&self.key, 1) or not reserve(&self.place, 1):
            raise MemoryError

    def __dealloc__(self):
        free(self._window.data)
        free(self.key.data)
        free(self.place.data)
        free_row(&self.row)
        free_row(&self.static)

    cdef Cursor _cursor(self) noexcept:
        cdef Cursor c
        c.at = self._window.data + self._at
        c.end = self._window.data + self._window.size
        c.is_bad = False
        return c

    cdef bint _fill(self, uint64_t size) except -1:
        """Have so many bytes, or all that are left; False if there is nothing new. Moves the window."""
        cdef size_t rest = self._window.size - self._at
        cdef bytes chunk
        cdef Py_ssize_t length
        if rest >= size or self._after == 0:
            return False
        if size < rest + _REFILL:
            size = rest + _REFILL
        if self._at:
            memmove(self._window.data, self._window.data + self._at, rest)
            self._window.size = rest
            self._at = 0
        for found in self._chunks:
            chunk = found
            length = PyBytes_GET_SIZE(chunk)
            if length > self._after:
                raise ValueError("more data than there is")
            write_bytes(&self._window, <Bytes>PyBytes_AS_STRING(chunk), <size_t>length)
            if self._window.is_bad:
                raise MemoryError
            self._after -= length
            if self._window.size >= size:
                return True
        return self._window.size > rest

    cdef bint _next_span(self) except -1:
        """False if there is none."""
        for first, last, expected, is_before, size, chunks in self._spans:
            self._first, self._last, self._expected, self._is_before = first, last, expected, is_before
            self._after, self._chunks = size, iter(chunks)
            self._window.size = self._at = 0
            return True
        self.is_done = True
        return False

    cdef bint next_partition(self) except -1:
        """The next one in the spans, or `is_done`."""
        if self._is_inside and not self._pass_rows():
            return False
        while True:
            if self._chunks is None and not self._next_span():
                return True
            if self._at == self._window.size and not self._fill(1):
                if self._after:
                    return False  # the data ends early
                self._chunks = None
                continue
            if not self._read_partition():
                return False
            if self._expected is not None and (
                self.key.size != <size_t>len(self._expected)
                or memcmp(self.key.data, PyBytes_AS_STRING(self._expected), self.key.size)
            ):
                return False
            self._expected = None
            if self._is_before and self.token >= self._first:
                return False
            self._is_before = False
            if self.token > self._last:
                self._chunks = None
                self._is_inside = False
            elif self.token >= self._first:
                return True
            elif not self._pass_rows():
                return False

    cdef bint _pass_rows(self) except -1:
        """Read over the rest of the partition."""
        while self._is_inside:
            if not self.next_unfiltered(False):
                return False
        return True

    cdef bint _read_partition(self) except -1:
        cdef Cursor c = self._cursor()
        if not self._parse_partition(&c):
            if not self._fill(LARGEST_VALUE + 64):
                return False
            c = self._cursor()
            if not self._parse_partition(&c):
                return False
        self._at = <size_t>(c.at - self._window.data)
        self.token = token_of(self.key.data, self.key.size)
        self._is_inside = True
        self.is_open = False
        self.has_static = False
        if not self._has_static:
            return True
        if not self._read_row(&self._shapes.statics, &self._static_header, &self.static):
            return False
        self.has_static = not is_empty(&self.static)
        return True

    cdef bint _parse_partition(self, Cursor* c) noexcept:
        """Its key and deletion (sstable_reader._read_deletion, _read_legacy_deletion)."""
        cdef uint64_t size = read_byte(c)
        cdef Bytes key, at
        cdef int64_t seconds
        size = size << 8 | read_byte(c)
        key = take(c, size)
        if c.is_bad:
            return False
        self.key.size = 0
        write_bytes(&self.key, key, size)
        self.deletion.marked, self.deletion.local = NO_TIMESTAMP, NO_DELETION_TIME
        if self.key.is_bad or c.at >= c.end:
            return False
        if self._has_uint_deletion:
            if c.at[0] & LIVE_FLAG:
                return read_byte(c) == LIVE_FLAG
            at = take(c, 12)
            if c.is_bad:
                return False
            self.deletion.marked = <int64_t>_big_endian(at, 8)
            seconds = <int64_t>_big_endian(at + 8, 4)
        else:
            at = take(c, 12)
            if c.is_bad:
                return False
            seconds = <int32_t>_big_endian(at, 4)
            self.deletion.marked = <int64_t>_big_endian(at + 4, 8)
        if seconds < 0:
            seconds = INVALID_DELETION_TIME
        elif seconds == 0x7FFFFFFF or seconds == 0xFFFFFFFF:
            seconds = NO_DELETION_TIME
        self.deletion.local = seconds
        return True

    cdef bint next_unfiltered(self, bint with_place) except -1:
        """The next row, marker or end of the partition: `kind`. Empty rows are passed over. with_place: make `place`."""
        cdef uint8_t flags
        while True:
            if self._at == self._window.size and not self._fill(1):
                return False
            flags = self._window.data[self._at]
            if flags & END_OF_PARTITION:
                if flags != END_OF_PARTITION:
                    return False
                self._at += 1
                self._is_inside = False
                self.kind = END
                return True
            if flags & IS_MARKER:
                self.kind = MARKER
                if not self._read_marker():
                    return False
                break
            self.kind = ROW
            if not self._read_row(&self._shapes.rows, &self._header, &self.row):
                return False
            if not is_empty(&self.row):
                break
        return not with_place or self.make_place()

    cdef bint _read_row(self, const Shape* shape, const Header* header, Row* row) except -1:
        """A row whose head lies within the largest one there may be, and whose body has the size that it says."""
        cdef Cursor c = self._cursor()
        cdef uint8_t flags = 0
        cdef uint64_t size = 0, head
        cdef bint is_head = read_row_head(&c, shape, row, &flags)
        if is_head:
            size = read_unsigned_vint(&c)
        if not is_head or c.is_bad:
            if not self._fill(64 + (<uint64_t>shape.clusterings + 1) * (LARGEST_VALUE + LARGEST_VINT)):
                return False
            c = self._cursor()
            if not read_row_head(&c, shape, row, &flags):
                return False
            size = read_unsigned_vint(&c)
            if c.is_bad:
                return False
        if size > <uint64_t>(c.end - c.at):
            if size > <uint64_t>(c.end - c.at) + <uint64_t>self._after:
                return False
            head = <uint64_t>(c.at - self._window.data) - self._at
            if not self._fill(head + size):
                return False
            c = self._cursor()
            if not read_row_head(&c, shape, row, &flags) or read_unsigned_vint(&c) != size:
                return False
            if size > <uint64_t>(c.end - c.at):
                return False
        c.end = c.at + size
        read_unsigned_vint(&c)  # the size of the row before
        if not read_row_body(&c, shape, header, flags, row) or c.at != c.end:
            return False
        self._at = <size_t>(c.at - self._window.data)
        return True

    cdef bint _read_marker(self) except -1:
        cdef Cursor c = self._cursor()
        if not self._parse_marker(&c):
            if not self._fill(64 + (<uint64_t>self._shapes.rows.clusterings + 1) * (LARGEST_VALUE + LARGEST_VINT)):
                return False
            c = self._cursor()
            if not self._parse_marker(&c):
                return False
        self._at = <size_t>(c.at - self._window.data)
        return True

    cdef bint _parse_marker(self, Cursor* c) noexcept:
        cdef Marker* marker = &self.marker
        cdef uint8_t flags = read_byte(c), kind = read_byte(c)
        marker.count = read_byte(c) << 8
        marker.count |= read_byte(c)
        if c.is_bad or flags != IS_MARKER or kind >= _NO_KIND or marker.count > self._shapes.rows.clusterings:
            return False
        marker.closes, marker.opens, marker.is_before = _CLOSES[kind], _OPENS[kind], _IS_BEFORE[kind]
        read_values(c, &self._shapes.rows, marker.count, marker.values)
        read_unsigned_vint(c)
        read_unsigned_vint(c)
        if marker.closes:
            read_deletion(c, &self._header, &marker.close)
        if marker.opens:
            read_deletion(c, &self._header, &marker.open)
        return not c.is_bad and (marker.closes or marker.opens)

    cdef bint make_place(self) noexcept:
        """The byte-comparable key of the clustering or bound."""
        cdef int i, count = self._shapes.rows.clusterings
        cdef const Value* values = self.row.values
        self.place.size = 0
        if self.kind == MARKER:
            count, values = self.marker.count, self.marker.values
        for i in range(count):
            if not write_component(
                &self.place, &self._shapes.clustering_keys[i], values[i].at, values[i].size, values[i].is_null
            ):
                return False
        if self.kind == ROW:
            write_byte(&self.place, TERMINATOR)
        else:
            write_byte(&self.place, BEFORE if self.marker.is_before else AFTER)
        return not self.place.is_bad


cdef inline uint64_t _big_endian(Bytes at, int size) noexcept nogil:
    cdef uint64_t number = 0
    cdef int i
    for i in range(size):
        number = number << 8 | at[i]
    return number
