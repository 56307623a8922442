# cython: language_level=3
"""The part of a state that a chunk reads, with the chunk's writes over it.

Python oracle: joinery.joining.layout, joinery.joining.overlay.

First all groups, rows and places that the messages name are added; `keys` are those of the state, and `load` takes
their values. The rows of an input in a group are a list: it has those of the messages, and all of them once `load_rows`
was called, or if the state says that there is none.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memmove, memset

from cdc_native.formats.buffers cimport Bytes, Cursor, Writer, read_avro_long, write_avro_long, write_byte, write_bytes
from cdc_native.joins.table cimport free_table, key_at, number_of

cdef enum:
    ROW = 0x72, COUNTS = 0x6E, META = 0x6D, FRONTIER = 0x66, HALF = 0x68, CONTINUATION = 0x63
    PLACE_SIZE = 5
    FIRST_ROOM = 64

cdef int64_t MOST_COUNT = 1 << 60


cdef bint _room_for(void** data, int32_t* room, int32_t count, size_t size) noexcept nogil:
    """Room for one more item of this size. False if there is no memory."""
    cdef void* made
    if count < room[0]:
        return True
    made = realloc(data[0], (<size_t>room[0] * 2 + FIRST_ROOM) * size)
    if made == NULL:
        return False
    data[0], room[0] = made, room[0] * 2 + FIRST_ROOM
    return True


cdef class State:
    def __cinit__(self, Rule rule not None):
        self.rule = rule

    def __dealloc__(self):
        cdef int32_t i
        if self.lists != NULL:
            for i in range(self.group_keys.count * self.rule.count):
                free(self.lists[i].rows)
        free(self.lists)
        free(self.groups)
        free(self.counts)
        free(self.rows)
        free(self.places)
        free(self.values.data)
        free(self.scratch.data)
        free_table(&self.group_keys)
        free_table(&self.row_keys)
        free_table(&self.place_keys)

    cdef int32_t group_of(self, Bytes key, size_t key_size, size_t size) noexcept nogil:
        """The group of a message's key, whose first bytes are the join key. -1 if there is no memory."""
        cdef Writer* out = &self.scratch
        cdef int32_t group, input, inputs = self.rule.count, known = self.group_keys.count
        out.size = 0
        write_byte(out, COUNTS)
        write_avro_long(out, <int64_t>key_size)
        write_bytes(out, key, key_size)
        write_avro_long(out, <int64_t>(size - key_size))
        write_bytes(out, key + key_size, size - key_size)
        if out.is_bad or not self._room_for_group():
            return -1
        group = number_of(&self.group_keys, out.data, out.size)
        if group < known:
            return group
        memset(&self.groups[group], 0, sizeof(Group))
        for input in range(inputs):
            self.counts[group * inputs + input] = 0
            memset(&self.lists[group * inputs + input], 0, sizeof(RowList))
            self.lists[group * inputs + input].first = -1
        for input in range(inputs):
            if self.rule.inputs[input].is_unique and self.row_of(group, input, key, 0) < 0:
                return -1
        return group

    cdef bint _room_for_group(self) noexcept nogil:
        cdef int32_t inputs = self.rule.count, room = self.group_room, unused = room
        if self.group_keys.count < room:
            return True
        if room > 0x7FFFFFFF // (4 * inputs) - FIRST_ROOM:
            return False
        if not _room_for(<void**>&self.groups, &unused, room, sizeof(Group)):
            return False
        unused = room
        if not _room_for(<void**>&self.counts, &unused, room, <size_t>inputs * sizeof(int64_t)):
            return False
        unused = room
        if not _room_for(<void**>&self.lists, &unused, room, <size_t>inputs * sizeof(RowList)):
            return False
        self.group_room = unused
        return True

    cdef int32_t row_of(self, int32_t group, int input, Bytes ident, size_t size) noexcept nogil:
        """The row of an input in a group. -1 if there is no memory."""
        cdef Writer* out = &self.scratch
        out.size = 0
        write_byte(out, ROW)
        write_bytes(out, key_at(&self.group_keys, group) + 1, self.group_keys.keys[group].size - 1)
        write_byte(out, <uint8_t>input)
        write_bytes(out, ident, size)
        if out.is_bad:
            return -1
        return self._add_row(group * self.rule.count + input, size, out.data, out.size)

    cdef int32_t _add_row(self, int32_t of, size_t ident_size, Bytes key, size_t size) noexcept nogil:
        """The row of this key, in a list. It is new if it is the last one, and not there."""
        cdef int32_t row, known = self.row_keys.count
        if not _room_for(<void**>&self.rows, &self.row_room, known, sizeof(StoredRow)):
            return -1
        row = number_of(&self.row_keys, key, size)
        if row == known:
            memset(&self.rows[row], 0, sizeof(StoredRow))
            self.rows[row].list, self.rows[row].ident_size = of, ident_size
            self.rows[row].next, self.lists[of].first = self.lists[of].first, row
        return row

    cdef int32_t place_of(self, int input, int64_t partition) noexcept nogil:
        """The place of a partition of an input. -1 if there is no memory."""
        cdef uint8_t key[PLACE_SIZE]
        cdef int32_t i, place, known = self.place_keys.count
        key[0] = <uint8_t>input
        for i in range(4):
            key[1 + i] = <uint8_t>(partition >> (24 - 8 * i))
        if not _room_for(<void**>&self.places, &self.place_room, known, sizeof(Place)):
            return -1
        place = number_of(&self.place_keys, key, PLACE_SIZE)
        if place == known:
            memset(&self.places[place], 0, sizeof(Place))
        return place

    cdef void put(self, int32_t row, int64_t sequence, Bytes columns, size_t size) noexcept nogil:
        cdef StoredRow* found = &self.rows[row]
        cdef RowList* rows = &self.lists[found.list]
        found.at = self.values.size
        write_avro_long(&self.values, sequence)
        found.columns_at = self.values.size
        write_bytes(&self.values, columns, size)
        found.size, found.sequence = self.values.size - found.at, sequence
        found.is_there = found.is_written = True
        self._insert(rows, row)
        self.is_bad = self.is_bad or self.values.is_bad

    cdef void delete(self, int32_t row) noexcept nogil:
        cdef StoredRow* found = &self.rows[row]
        found.is_there, found.is_written = False, True
        self._remove(&self.lists[found.list], row)

    cdef void _insert(self, RowList* rows, int32_t row) noexcept nogil:
        """Into a list that is loaded, unless it is there."""
        cdef int32_t at
        if not rows.is_loaded or self.rows[row].is_listed:
            return
        if not _room_for(<void**>&rows.rows, &rows.room, rows.count, sizeof(int32_t)):
            self.is_bad = True
            return
        at = self._place_in(rows, row)
        memmove(rows.rows + at + 1, rows.rows + at, <size_t>(rows.count - at) * sizeof(int32_t))
        rows.rows[at] = row
        rows.count += 1
        self.rows[row].is_listed = True

    cdef void _remove(self, RowList* rows, int32_t row) noexcept nogil:
        cdef int32_t at
        if not self.rows[row].is_listed:
            return
        at = self._place_in(rows, row)
        memmove(rows.rows + at, rows.rows + at + 1, <size_t>(rows.count - at - 1) * sizeof(int32_t))
        rows.count -= 1
        self.rows[row].is_listed = False

    cdef int32_t _place_in(self, const RowList* rows, int32_t row) noexcept nogil:
        """The number of rows whose idents are less."""
        cdef int32_t first = 0, end = rows.count, middle
        if end and self._compare(rows.rows[end - 1], row) < 0:  # they mostly come in order
            return end
        while first < end:
            middle = (first + end) // 2
            if self._compare(rows.rows[middle], row) < 0:
                first = middle + 1
            else:
                end = middle
        return first

    cdef int _compare(self, int32_t one, int32_t other) noexcept nogil:
        """Two rows of one list by their keys: only the idents differ."""
        cdef size_t size = self.row_keys.keys[one].size, other_size = self.row_keys.keys[other].size
        cdef int found = memcmp(
            key_at(&self.row_keys, one), key_at(&self.row_keys, other), size if size < other_size else other_size
        )
        if found or size == other_size:
            return found
        return -1 if size < other_size else 1

    cdef list keys(self):
        """The keys of the state that `load` needs."""
        cdef int32_t i
        cdef bytes key
        cdef list made = [b"mc", b"mb"]
        for i in range(self.group_keys.count):
            made.append(_key(key_at(&self.group_keys, i), self.group_keys.keys[i].size))
        for i in range(self.row_keys.count):
            made.append(_key(key_at(&self.row_keys, i), self.row_keys.keys[i].size))
        for i in range(self.place_keys.count):
            made.append(b"mh" + _key(key_at(&self.place_keys, i), PLACE_SIZE))
            made.append(b"ml" + _key(key_at(&self.place_keys, i), PLACE_SIZE))
        self.read_rows = len(made)
        return made

    cdef int load(self, list values) except -1:
        """Take the values at `keys`, without the first one."""
        cdef int32_t i
        cdef Py_ssize_t at = 2
        if len(values) != self.read_rows:
            raise ValueError("as many values as keys")
        self.has_begun = values[1] is None or values[1] == b"\x02"
        for i in range(self.group_keys.count):
            self._load_counts(i, values[at + i])
        at += self.group_keys.count
        for i in range(self.row_keys.count):
            self._load_row(i, values[at + i])
        at += self.row_keys.count
        self._complete_lists()
        for i in range(self.place_keys.count):
            self.places[i].is_half, self.places[i].is_marked = (
                values[at + 2 * i] is not None, values[at + 2 * i + 1] is not None
            )
        if self.is_bad or self.values.is_bad:
            raise MemoryError
        return 0

    cdef void _complete_lists(self) noexcept nogil:
        """A list is loaded if the state has no row of it, or one that is known."""
        cdef int32_t i, input, row
        cdef RowList* rows
        for i in range(self.group_keys.count):
            for input in range(self.rule.count):
                rows = self.lists + i * self.rule.count + input
                rows.is_loaded = self.counts[i * self.rule.count + input] == 0
                row = rows.first
                while row >= 0 and self.counts[i * self.rule.count + input] == 1:
                    rows.is_loaded = rows.is_loaded or self.rows[row].is_there
                    row = self.rows[row].next
        for row in range(self.row_keys.count):
            if self.rows[row].is_there:
                self._insert(self.lists + self.rows[row].list, row)

    cdef int _load_counts(self, int32_t group, value) except -1:
        cdef Cursor c
        cdef int input
        cdef int64_t* counts = self.counts + group * self.rule.count
        if value is None:
            return 0
        c = _cursor(value)
        for input in range(self.rule.count):
            counts[input] = read_avro_long(&c)
            if not 0 <= counts[input] < MOST_COUNT:
                self.groups[group].is_bad = True
        if c.is_bad:
            self.groups[group].is_bad = True
        return 0

    cdef int _load_row(self, int32_t row, value) except -1:
        cdef Cursor c
        if value is not None:
            c = _cursor(value)
            self._decode(row, c.at, <size_t>(c.end - c.at))
        return 0

    cdef void _decode(self, int32_t row, Bytes value, size_t size) noexcept nogil:
        cdef StoredRow* found = &self.rows[row]
        cdef Cursor c
        c.at, c.end, c.is_bad = value, value + size, False
        found.sequence = read_avro_long(&c)
        found.is_there, found.is_bad = True, c.is_bad
        found.at, found.size = self.values.size, size
        found.columns_at = found.at + (size if c.is_bad else <size_t>(c.at - value))
        write_bytes(&self.values, value, size)

    cdef tuple range_of(self, int32_t of):
        """Where the keys of a list's rows begin in the state, and before what they end."""
        cdef int32_t group = of // self.rule.count, input = of % self.rule.count
        cdef bytes start = b"r" + _key(key_at(&self.group_keys, group) + 1, self.group_keys.keys[group].size - 1)
        return start + bytes((input,)), start + bytes((input + 1,))

    cdef int load_rows(self, int32_t of, list pairs, Py_ssize_t most) except -1:
        """Take all pairs of a list's range, in their order. The list is bad if there are more than this."""
        cdef RowList* rows
        cdef bytes key, value
        cdef size_t prefix = self.group_keys.keys[of // self.rule.count].size + 1
        cdef int32_t row, known
        cdef Bytes at
        self.lists[of].is_loaded = True
        if len(pairs) > most:
            self.lists[of].is_bad = True
            return 0
        for key, value in pairs:
            if key is None or value is None or <size_t>PyBytes_GET_SIZE(key) < prefix:
                raise ValueError("a pair that is none of the range")
            at, known = <Bytes>PyBytes_AS_STRING(key), self.row_keys.count
            row = self._add_row(of, <size_t>PyBytes_GET_SIZE(key) - prefix, at, <size_t>PyBytes_GET_SIZE(key))
            if row < 0:
                raise MemoryError
            if self.rows[row].list != of:
                raise ValueError("a pair of another range")
            if row == known:
                self._load_row(row, value)
            if self.rows[row].is_there:
                self._insert(&self.lists[of], row)
        row = self.lists[of].first
        while row >= 0:
            if self.rows[row].is_there:
                self._insert(&self.lists[of], row)
            row = self.rows[row].next
        if self.is_bad or self.values.is_bad:
            raise MemoryError
        return 0

    cdef dict writes(self):
        """The writes to the state; None deletes a key."""
        cdef dict made = {}
        cdef int32_t i
        cdef StoredRow* row
        if self.is_bad or self.values.is_bad:
            raise MemoryError
        for i in range(self.row_keys.count):
            row = &self.rows[i]
            if row.is_written:
                key = _key(key_at(&self.row_keys, i), self.row_keys.keys[i].size)
                made[key] = _key(self.values.data + row.at, row.size) if row.is_there else None
        for i in range(self.group_keys.count):
            if self.groups[i].is_written:
                made[_key(key_at(&self.group_keys, i), self.group_keys.keys[i].size)] = self._encoded_counts(i)
        for i in range(self.place_keys.count):
            place = _key(key_at(&self.place_keys, i), PLACE_SIZE)
            if self.places[i].half_is_written:
                made[b"mh" + place] = b"\x01" if self.places[i].is_half else None
            if self.places[i].frontier_is_written:
                self.scratch.size = 0
                write_avro_long(&self.scratch, self.places[i].frontier)
                made[b"mf" + place] = _key(self.scratch.data, self.scratch.size)
        return made

    cdef bytes _encoded_counts(self, int32_t group):
        """None for a group without rows."""
        cdef int input
        cdef bint has_rows = False
        self.scratch.size = 0
        for input in range(self.rule.count):
            write_avro_long(&self.scratch, self.counts[group * self.rule.count + input])
            has_rows = has_rows or self.counts[group * self.rule.count + input] != 0
        return _key(self.scratch.data, self.scratch.size) if has_rows else None


cdef bytes _key(Bytes at, size_t size):
    return PyBytes_FromStringAndSize(<const char*>at, <Py_ssize_t>size)


cdef Cursor _cursor(value) except *:
    cdef Cursor c
    if type(value) is not bytes:
        raise TypeError("a value of the state that is not bytes")
    c.at = <Bytes>PyBytes_AS_STRING(value)
    c.end, c.is_bad = c.at + PyBytes_GET_SIZE(value), False
    return c
