# cython: language_level=3
"""Writes changes of joined rows as messages: Debezium's envelope, and a tombstone after each deletion.

Python oracle: joinery.output.messages.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from cdc_native.avro.messages cimport Messages, Span
from cdc_native.formats.buffers cimport Bytes, reserve, write_avro_long, write_byte, write_bytes

cdef enum:
    NULL_BRANCH = 0, VALUE_BRANCH = 2, END = 0  # cdc_common.messages.avro.encoding
    ONE_LETTER = 2  # the length of a text
    FIRST_ROOM = 64


cdef class Output:
    """ending: the last bytes of each value, which say when it is made."""

    def __cinit__(self, Rule rule not None, bytes ending not None):
        self.rule, self._kept = rule, ending
        self.ending = Text(<Bytes>PyBytes_AS_STRING(ending), <size_t>PyBytes_GET_SIZE(ending))

    def __dealloc__(self):
        free(self.data.data)
        free(self.made)

    cdef Mark mark(self) noexcept nogil:
        return Mark(self.data.size, self.count, self.changes)

    cdef void undo(self, Mark mark) noexcept nogil:
        """Forget what was written after the mark."""
        self.data.size, self.count, self.changes = mark.size, mark.count, mark.changes

    cdef int64_t write(
        self, const Routed* routed, int64_t offset, const Image* others, const Image* before, const Image* after
    ) noexcept nogil:
        """Write a change, and return its bytes: those of its key and its images. before, after: the row of the input
        that changes; NULL where there is no joined row. others: the row of each input; this one's is not used.
        """
        cdef const Image* own = before if after == NULL else after
        cdef const Image* row
        cdef Made made
        cdef size_t start, size
        cdef int input
        made.key_at, made.is_tombstone = self.data.size, False
        write_bytes(&self.data, self.rule.key_header.at, self.rule.key_header.size)
        start = self.data.size
        write_bytes(&self.data, routed.key, routed.join_size)
        for input in range(self.rule.count):
            row = own if input == routed.input else others + input
            write_bytes(&self.data, row.ident.at, row.ident.size)
        made.value_at = self.data.size
        size = made.value_at - start
        write_bytes(&self.data, self.rule.value_header.at, self.rule.value_header.size)
        size += self._write_image(routed, others, before, start, made.value_at - start)
        size += self._write_image(routed, others, after, start, made.value_at - start)
        self._write_source(routed, offset, others, own)
        write_byte(&self.data, ONE_LETTER)
        write_byte(&self.data, c"c" if before == NULL else c"d" if after == NULL else c"u")
        write_bytes(&self.data, self.ending.at, self.ending.size)
        made.value_end = self.data.size
        self._add(made)
        if after == NULL:
            made.is_tombstone = True
            self._add(made)
        self.changes += 1
        self.is_bad = self.is_bad or self.data.is_bad
        return <int64_t>size

    cdef size_t _write_image(
        self, const Routed* routed, const Image* others, const Image* own, size_t key_at, size_t key_size
    ) noexcept nogil:
        """Write a joined row, or null, and return the bytes of the row."""
        cdef size_t start
        cdef int input
        cdef const Image* row
        if own == NULL:
            write_byte(&self.data, NULL_BRANCH)
            return 0
        write_byte(&self.data, VALUE_BRANCH)
        start = self.data.size
        if reserve(&self.data, key_size):
            memcpy(self.data.data + start, self.data.data + key_at, key_size)
            self.data.size += key_size
        for input in range(self.rule.count):
            row = own if input == routed.input else others + input
            write_bytes(&self.data, row.columns.at, row.columns.size)
        return self.data.size - start

    cdef void _write_source(
        self, const Routed* routed, int64_t offset, const Image* others, const Image* own
    ) noexcept nogil:
        cdef int64_t ts_ms = routed.ts_us // 1000
        cdef int input
        cdef const Image* row
        if routed.ts_us % 1000 < 0:  # in C, division rounds to 0
            ts_ms -= 1
        write_bytes(&self.data, self.rule.source.at, self.rule.source.size)
        write_avro_long(&self.data, ts_ms)
        write_avro_long(&self.data, routed.ts_us)
        write_bytes(&self.data, self.rule.inputs[routed.input].name.at, self.rule.inputs[routed.input].name.size)
        write_avro_long(&self.data, <int64_t>routed.cause.size)
        write_bytes(&self.data, routed.cause.at, routed.cause.size)
        write_avro_long(&self.data, offset)
        write_avro_long(&self.data, self.rule.count)
        for input in range(self.rule.count):
            row = own if input == routed.input else others + input
            if row.is_row:
                write_byte(&self.data, VALUE_BRANCH)
                write_avro_long(&self.data, row.sequence)
            else:
                write_byte(&self.data, NULL_BRANCH)
        write_byte(&self.data, END)

    cdef void _add(self, Made made) noexcept nogil:
        cdef void* grown
        if self.count == self.room:
            grown = NULL
            if self.room < 0x3FFFFFFF:
                grown = realloc(self.made, (<size_t>self.room * 2 + FIRST_ROOM) * sizeof(Made))
            if grown == NULL:
                self.is_bad = True
                return
            self.made, self.room = <Made*>grown, self.room * 2 + FIRST_ROOM
        self.made[self.count] = made
        self.count += 1

    cdef tuple messages(self):
        """The keys and the values of all messages. Nothing can be written any more."""
        cdef Messages keys = Messages(), values = Messages()
        cdef int32_t i
        cdef uint8_t* data
        if self.is_bad:
            raise MemoryError
        keys.allocate(self.count)
        values.allocate(self.count)
        keys.data, values._owner = self.data, keys
        self.data.data, self.data.size, self.data.capacity = NULL, 0, 0
        data = keys.data.data
        for i in range(self.count):
            keys.spans[i] = Span(data + self.made[i].key_at, <int64_t>(self.made[i].value_at - self.made[i].key_at))
            if not self.made[i].is_tombstone:
                values.spans[i] = Span(
                    data + self.made[i].value_at, <int64_t>(self.made[i].value_end - self.made[i].value_at)
                )
        self.count = 0
        return keys, values
