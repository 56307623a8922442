"""Routes changes of rows for a join: messages of its internal topic are cut out of a batch of change messages.

Python oracle: joinery.routing, joinery.internal.codec.
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp

from cdc_native.avro.filters cimport Filters
from cdc_native.avro.messages cimport Messages, Span, raise_at
from cdc_native.formats.buffers cimport Bytes, Cursor, Writer, read_avro_long, write_avro_long, write_byte, write_bytes
from cdc_native.formats.murmur2 cimport murmur2

cdef enum:
    JOIN_KEY, IDENT, COLUMNS, PARTS  # of a row
    SEQUENCE = 0, TIME, CAUSE, LEFT_OUT  # of `source`
    PUT = 0, UPDATE, RETRACT  # joinery.joining.records.Kind
    HAS_MORE = 8  # joinery.internal.codec
    NULL_BRANCH = 0, VALUE_BRANCH = 2  # cdc_common.messages.avro.encoding

cdef enum Found:
    THERE
    IS_NULL
    MISSING  # it is null, and must not be


cdef struct Piece:  # a column of a joined row; slot and null_at are -1 where there is none
    int slot
    int null_at
    bint is_nullable


cdef struct Row:
    Writer group  # the join key, then what distinguishes a row that is alone
    Writer ident
    Writer columns
    size_t key_size
    bint is_there


cdef struct Routed:  # where it begins in the data, and where its value does
    int32_t partition
    size_t begin
    size_t value
    size_t end
    int64_t place


cdef class Routes:
    """The way of one input's changes, under one schema.

    images: of the row before a change and of the row after it, the pieces of the join key, of the ident and of the
    columns, each (slot, branch that is null, whether the joined row may have null). filters: of both images, what
    cdc_native.avro.filters takes; a row that does not pass them is none. first: of both, a slot that has an
    extent unless the row is null. source: the slots of `row_sequence`, `ts_us`, `cause` and `left_out`. A slot or a
    branch is -1 where there is none.
    """
    cdef Piece* _pieces[2]
    cdef int _ends[PARTS]
    cdef int _first[2]
    cdef int _source[4]
    cdef int _slots, _input, _flags, _version
    cdef bint _keeps_alone
    cdef Row _rows[2]
    cdef Filters _before, _after
    cdef object _layout

    def __cinit__(
        self, layout, images, filters, first, source, int version, int flags, int number, bint keeps_alone
    ):
        cdef int at, image, part
        self._layout, self._slots = layout, <int>len(layout)
        self._version, self._flags, self._input, self._keeps_alone = version, flags, number, keeps_alone
        self._before, self._after = Filters(filters[0], self._slots), Filters(filters[1], self._slots)
        for at in range(4):
            self._source[at] = self._slot(source[at])
        for image in range(2):
            pieces = [piece for found in images[image] for piece in found]
            self._pieces[image] = <Piece*>calloc(len(pieces) or 1, sizeof(Piece))
            if self._pieces[image] == NULL:
                raise MemoryError
            for at, (slot, null_at, is_nullable) in enumerate(pieces):
                self._pieces[image][at].slot = self._slot(slot)
                self._pieces[image][at].null_at, self._pieces[image][at].is_nullable = null_at, is_nullable
            self._first[image] = self._slot(first[image])
        at = 0
        for part in range(PARTS):
            if len(images[0][part]) != len(images[1][part]):
                raise ValueError("rows before and after a change have the same columns")
            at += <int>len(images[0][part])
            self._ends[part] = at

    def __dealloc__(self):
        cdef int image
        for image in range(2):
            free(self._pieces[image])
            free(self._rows[image].group.data)
            free(self._rows[image].ident.data)
            free(self._rows[image].columns.data)

    cdef int _slot(self, int slot) except -2:
        if not -1 <= slot < self._slots:
            raise ValueError("no such slot")
        return slot

    def apply(self, Messages messages not None, offsets, int partition, int partitions, places, int skipped):
        """[(partition, keys, values)] of the internal topic, of so many partitions.

        offsets: an int64 for each message of the batch that was read, of the source's `partition`. places: if
        other groups of the batch are sent too, the number of this one and how many there are, so that each message gets
        a place of its own in the order of the batch. AvroError for a message
        that cannot be routed.
        """
        cdef Py_buffer extents, at
        cdef object found = self._layout.extents(messages, skipped)
        cdef int group = 0, groups = 0
        if places is not None:
            group, groups = places
        if partitions <= 0:
            raise ValueError("a topic of no partitions")
        PyObject_GetBuffer(found, &extents, PyBUF_SIMPLE)
        try:
            PyObject_GetBuffer(offsets, &at, PyBUF_SIMPLE)
            try:
                if extents.len != messages.count * self._slots * 2 * <Py_ssize_t>sizeof(int32_t):
                    raise ValueError("extents of other messages")
                return self._apply(
                    messages, <int32_t*>extents.buf, <int64_t*>at.buf, at.len // 8, partition, partitions, group, groups
                )
            finally:
                PyBuffer_Release(&at)
        finally:
            PyBuffer_Release(&extents)

    cdef list _apply(
        self,
        Messages messages,
        const int32_t* extents,
        const int64_t* offsets,
        Py_ssize_t most,
        int partition,
        int partitions,
        int group,
        int groups,
    ):
        cdef Messages made = Messages()
        cdef Routed* routed = NULL
        cdef Py_ssize_t i, count = 0
        cdef Bytes cause = NULL
        cdef int64_t cause_size = 0
        cdef const int32_t* row
        try:
            routed = <Routed*>malloc(<size_t>(messages.count or 1) * 2 * sizeof(Routed))
            if routed == NULL:
                raise MemoryError
            for i in range(messages.count):
                if messages.spans[i].at == NULL:
                    continue
                if messages.index_of(i) >= most:
                    raise ValueError("a message without an offset")
                row = extents + i * self._slots * 2
                _check_cause(self._source, row, messages, i, &cause, &cause_size)
                if not self._route(
                    messages.spans[i].at, row, offsets[messages.index_of(i)], partition, partitions, routed, &count,
                    &made.data, messages.index_of(i) * groups + group
                ):
                    raise_at(messages, i, 0, "it cannot be routed")
            if made.data.is_bad or self._rows[0].group.is_bad or self._rows[1].group.is_bad:
                raise MemoryError
            return _placed(made, routed, count, partitions, groups > 0)
        finally:
            free(routed)

    cdef bint _route(
        self, Bytes at, const int32_t* extents, int64_t offset, int partition, int partitions, Routed* routed,
        Py_ssize_t* count, Writer* out, int64_t place
    ) noexcept nogil:
        """Write the messages of one change. False if it cannot be routed."""
        cdef Row* before = &self._rows[0]
        cdef Row* after = &self._rows[1]
        cdef Py_ssize_t first = count[0]
        cdef int left_out = self._source[LEFT_OUT]
        if left_out >= 0 and at[extents[2 * left_out]] != 0:
            return False
        if not self._cut_row(at, extents, 0) or not self._cut_row(at, extents, 1):
            return False
        if before.is_there and after.is_there and before.key_size == after.key_size:
            if _equal(&before.group, &after.group) and _equal(&before.ident, &after.ident):
                if not _equal(&before.columns, &after.columns):
                    self._write(UPDATE, after, at, extents, offset, partition, partitions, &routed[first], out)
                    routed[first].place, count[0] = 2 * place, first + 1
                return True
        if before.is_there:
            before.columns.size = 0
            self._write(RETRACT, before, at, extents, offset, partition, partitions, &routed[first], out)
            routed[first].place, count[0] = 2 * place, first + 1
        if after.is_there:
            if before.is_there and routed[first].partition == _partition(&after.group, partitions):
                self._mark(&routed[first], out)
            self._write(PUT, after, at, extents, offset, partition, partitions, &routed[count[0]], out)
            routed[count[0]].place = 2 * place + 1
            count[0] += 1
        return True

    cdef void _mark(self, Routed* routed, Writer* out) noexcept nogil:
        """Another message of the change follows: its flags are the second number of the value."""
        if not out.is_bad:
            out.data[routed.value + 1] |= HAS_MORE << 1

    cdef void _write(
        self, int kind, const Row* row, Bytes at, const int32_t* extents, int64_t offset, int partition, int partitions,
        Routed* routed, Writer* out
    ) noexcept nogil:
        routed.partition, routed.begin = _partition(&row.group, partitions), out.size
        write_bytes(out, row.group.data, row.group.size)
        routed.value = out.size
        write_avro_long(out, self._version)
        write_avro_long(out, self._flags | kind)
        write_avro_long(out, <int64_t>row.key_size)
        write_avro_long(out, self._input)
        write_avro_long(out, partition)
        write_avro_long(out, offset)
        _write_long(at, extents, self._source[SEQUENCE], out)
        _write_long(at, extents, self._source[TIME], out)
        _write_text(at, extents, self._source[CAUSE], out)
        write_avro_long(out, <int64_t>row.ident.size)
        write_bytes(out, row.ident.data, row.ident.size)
        write_avro_long(out, <int64_t>row.columns.size)
        write_bytes(out, row.columns.data, row.columns.size)
        routed.end = out.size

    cdef bint _cut_row(self, Bytes at, const int32_t* extents, int image) noexcept nogil:
        """Cut a row out. False if a column is null that must not be."""
        cdef Row* row = &self._rows[image]
        cdef Piece* pieces = self._pieces[image]
        cdef Found key, ident
        row.group.size = row.ident.size = row.columns.size = 0
        row.is_there = extents[2 * self._first[image] + 1] >= 0
        if row.is_there:
            row.is_there = self._after.passes(at, extents) if image else self._before.passes(at, extents)
        if not row.is_there:
            return True
        key = _cut(pieces, pieces + self._ends[JOIN_KEY], at, extents, &row.group)
        ident = _cut(pieces + self._ends[JOIN_KEY], pieces + self._ends[IDENT], at, extents, &row.ident)
        if ident == MISSING:
            return False
        row.key_size = row.group.size
        if key != THERE:
            if not self._keeps_alone:
                row.is_there = False
                return True
            if key == MISSING:
                return False
            write_byte(&row.group, <uint8_t>self._input)
            write_bytes(&row.group, row.ident.data, row.ident.size)
        ident = _cut(pieces + self._ends[IDENT], pieces + self._ends[COLUMNS], at, extents, &row.columns)
        if row.ident.is_bad or row.columns.is_bad:
            row.group.is_bad = True
        return ident != MISSING


cdef Found _cut(const Piece* piece, const Piece* end, Bytes at, const int32_t* extents, Writer* out) noexcept nogil:
    """Write pieces. IS_NULL if one of them is null, MISSING if one is that must not be."""
    cdef Found found = THERE
    cdef Cursor c
    cdef bint is_null
    while piece < end:
        is_null = piece.slot < 0
        if not is_null:
            c.at, c.end, c.is_bad = at + extents[2 * piece.slot], at + extents[2 * piece.slot + 1], False
            is_null = piece.null_at >= 0 and read_avro_long(&c) == piece.null_at
        if not is_null:
            if piece.is_nullable:
                write_byte(out, VALUE_BRANCH)
            write_bytes(out, c.at, <size_t>(c.end - c.at))
        elif piece.is_nullable:
            write_byte(out, NULL_BRANCH)
            found = max(found, IS_NULL)
        else:
            found = MISSING
        piece += 1
    return found


cdef inline bint _equal(const Writer* one, const Writer* other) noexcept nogil:
    return one.size == other.size and (not one.size or memcmp(one.data, other.data, one.size) == 0)


cdef inline int32_t _partition(const Writer* group, int partitions) noexcept nogil:
    return <int32_t>((murmur2(group.data, group.size) & 0x7FFFFFFF) % <uint32_t>partitions)


cdef inline void _write_long(Bytes at, const int32_t* extents, int slot, Writer* out) noexcept nogil:
    cdef Cursor c
    c.at, c.end, c.is_bad = at + extents[2 * slot], at + extents[2 * slot + 1], False
    write_avro_long(out, read_avro_long(&c))


cdef inline void _write_text(Bytes at, const int32_t* extents, int slot, Writer* out) noexcept nogil:
    cdef Cursor c
    cdef int64_t size
    c.at, c.end, c.is_bad = at + extents[2 * slot], at + extents[2 * slot + 1], False
    size = read_avro_long(&c)
    write_avro_long(out, size)
    write_bytes(out, c.at, <size_t>size)


cdef int _check_cause(
    const int* source, const int32_t* extents, Messages messages, Py_ssize_t i, Bytes* last, int64_t* last_size
) except -1:
    """AvroError if the cause is no UTF-8. last: the one that was checked before."""
    cdef Bytes at = messages.spans[i].at + extents[2 * source[CAUSE]]
    cdef int64_t size = extents[2 * source[CAUSE] + 1] - extents[2 * source[CAUSE]]
    cdef Cursor c
    if last[0] != NULL and size == last_size[0] and memcmp(at, last[0], <size_t>size) == 0:
        return 0
    c.at, c.end, c.is_bad = at, at + size, False
    read_avro_long(&c)
    try:
        PyUnicode_DecodeUTF8(<const char*>c.at, c.end - c.at, NULL)
    except UnicodeDecodeError:
        raise_at(messages, i, 0, "its cause is no text")
    last[0], last_size[0] = at, size
    return 0


cdef list _placed(Messages made, const Routed* routed, Py_ssize_t count, int partitions, bint has_places):
    """[(partition, keys, values)], each in order."""
    cdef Py_ssize_t* counts = <Py_ssize_t*>calloc(<size_t>partitions, sizeof(Py_ssize_t))
    cdef Py_ssize_t i, at
    cdef Messages keys, values
    cdef dict found = {}
    if counts == NULL:
        raise MemoryError
    try:
        for i in range(count):
            counts[routed[i].partition] += 1
        for i in range(count):
            pair = found.get(routed[i].partition)
            if pair is None:
                at = counts[routed[i].partition]
                pair = found[routed[i].partition] = _room(made, at, has_places), _room(made, at, has_places)
                counts[routed[i].partition] = 0
            keys, values = pair
            at = counts[routed[i].partition]
            counts[routed[i].partition] += 1
            keys.spans[at] = Span(made.data.data + routed[i].begin, <int64_t>(routed[i].value - routed[i].begin))
            values.spans[at] = Span(made.data.data + routed[i].value, <int64_t>(routed[i].end - routed[i].value))
            if has_places:
                keys.indices[at] = values.indices[at] = <Py_ssize_t>routed[i].place
        return [(partition, pair[0], pair[1]) for partition, pair in found.items()]
    finally:
        free(counts)


cdef Messages _room(Messages owner, Py_ssize_t count, bint has_places):
    """Room for messages whose bytes another batch owns."""
    cdef Messages made = Messages()
    made._owner = owner
    made.allocate(count)
    if has_places:
        made.indices = <Py_ssize_t*>malloc(<size_t>count * sizeof(Py_ssize_t))
        if made.indices == NULL:
            raise MemoryError
    return made


def decode(bytes key not None, bytes value not None):
    """(flags, size of the join key in the key, input, partition, offset, sequence, time, cause, ident, columns)
    of a message of the internal topic; None if it is none of version 1.
    """
    cdef Cursor c
    cdef int64_t numbers[8]
    cdef Bytes parts[3]
    cdef int64_t sizes[3]
    cdef int i
    c.at = <Bytes>PyBytes_AS_STRING(value)
    c.end, c.is_bad = c.at + PyBytes_GET_SIZE(value), False
    for i in range(8):
        numbers[i] = read_avro_long(&c)
        if i == 0 and numbers[0] != 1:
            return None
    for i in range(3):
        sizes[i] = read_avro_long(&c)
        if c.is_bad or not 0 <= sizes[i] <= c.end - c.at:
            return None
        parts[i] = c.at
        c.at += sizes[i]
    if c.is_bad or c.at != c.end or not 0 <= numbers[2] <= PyBytes_GET_SIZE(key):
        return None
    try:
        cause = PyUnicode_DecodeUTF8(<const char*>parts[0], sizes[0], NULL)
    except UnicodeDecodeError:
        return None
    return (
        numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6], numbers[7], cause,
        PyBytes_FromStringAndSize(<const char*>parts[1], sizes[1]),
        PyBytes_FromStringAndSize(<const char*>parts[2], sizes[2]),
    )
