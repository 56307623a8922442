# cython: language_level=3
"""A raw partition's state as the fold reads and writes it: rows, what is known of Cassandra partitions, and timers.

Python oracle: materializer.rows.overlay, materializer.rows.row_codec, materializer.rows.partition_state, materializer.rows.timers.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Contains, PyDict_GetItem
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from cdc_native.formats.constants cimport (
    EXPIRY_TIMER,
    FACTS_SECTION,
    NO_DELETION_TIME,
    NO_TIMESTAMP,
    PURGE_TIMER,
    STATE_FORMAT_VERSION,
)
from cdc_native.formats.buffers cimport Bytes, Cursor, read_byte, read_unsigned_vint, write_byte, write_unsigned_vint
from cdc_native.fold.plan cimport ColumnList, Plan
from cdc_native.fold.row_times cimport RowTimers, row_timers
from cdc_native.formats.rows cimport Header, Row, write_row
from cdc_native.formats.rows cimport read_row as parse_row
from cdc_native.fold.values cimport read_signed

cdef enum:
    _FACTS_SIZE = 34  # >BqqQQ?


cdef class State:
    """The state of an Overlay: `writes`, `fetched`, and `new_keys`, to which the keys are added that are new in
    `writes`; `read` reads a key of the committed state. `written`: the keys of the rows that were encoded here.

    expiring, loaded_until, push: of Timers. floor: of the row_sequences. number: of the newest schema. read_columns:
    (place, dropped time or None) of the columns of a schema, by its number, or None. encode: a StoredRow to bytes.
    """

    def __cinit__(
        self,
        Plan plan not None,
        tuple overlay not None,
        tuple timers not None,
        uint64_t floor,
        uint64_t number,
        read_columns,
        encode,
    ):
        self.plan = plan
        self.writes, self.fetched, self.new_keys, self.read = overlay
        self.expiring, self.loaded_until, self.push = timers
        if self.writes is None or self.fetched is None or self.new_keys is None or self.expiring is None:
            raise TypeError("a part of the state is missing")
        self.floor, self.number = floor, number
        self.read_columns, self.encode = read_columns, encode
        self.columns = {}
        self.written = []

    def __dealloc__(self):
        free(self.value.data)

    cdef bytes get(self, bytes key):
        """The value at a key of the state, encoded."""
        cdef PyObject* found = PyDict_GetItem(self.writes, key)
        cdef bytes value
        if found == NULL:
            found = PyDict_GetItem(self.fetched, key)
            if found == NULL:
                value = self.fetched[key] = self.read(key)
                return value
            return <object>found
        if found == <PyObject*>None or type(<object>found) is bytes:
            return <object>found
        value = self.writes[key] = self.encoded(<object>found)
        self.written.append(key)
        return value

    cdef bytes encoded(self, value):
        """A row as it is stored. It may be encoded, or a StoredRow."""
        cdef bytes found = value if type(value) is bytes else self.encode(value)
        if found is None:
            raise TypeError("no stored row")
        return found

    cdef int put(self, bytes key, bytes value) except -1:
        """None deletes."""
        if not PyDict_Contains(self.writes, key):
            self.new_keys.append(key)
        self.writes[key] = value
        return 0

    cdef bint read_facts(self, bytes partition_key, Facts* facts) except -1:
        """False if the stored ones are the Python code's."""
        cdef bytes value = self.get(data_key(partition_key, FACTS_SECTION))
        cdef Bytes at
        facts.deletion.marked, facts.deletion.local = NO_TIMESTAMP, NO_DELETION_TIME
        facts.visible_rows = facts.static_sequence = 0
        facts.has_ranges = False
        if value is None:
            return True
        at = <Bytes>PyBytes_AS_STRING(value)
        if PyBytes_GET_SIZE(value) != _FACTS_SIZE or at[0] != STATE_FORMAT_VERSION:
            return False
        facts.deletion.marked, facts.deletion.local = read_signed(at + 1, 8), read_signed(at + 9, 8)
        facts.visible_rows, facts.static_sequence = <uint64_t>read_signed(at + 17, 8), <uint64_t>read_signed(at + 25, 8)
        facts.has_ranges = at[33] != 0
        if facts.deletion.marked == NO_TIMESTAMP and facts.deletion.local == NO_DELETION_TIME:
            return True
        return -0x80000000 <= facts.deletion.local <= 0xFFFFFFFF

    cdef bint put_facts(self, bytes partition_key, const Facts* before, const Facts* facts) except -1:
        """Whether they have changed. Facts that equal the defaults are not stored. The partition's deletion never
        changes here.
        """
        cdef uint8_t data[_FACTS_SIZE]
        cdef bytes value = None
        if before.visible_rows == facts.visible_rows and before.static_sequence == facts.static_sequence:
            return False
        if (
            facts.visible_rows or facts.static_sequence or facts.has_ranges
            or facts.deletion.marked != NO_TIMESTAMP or facts.deletion.local != NO_DELETION_TIME
        ):
            data[0] = STATE_FORMAT_VERSION
            _write_number(data + 1, <uint64_t>facts.deletion.marked)
            _write_number(data + 9, <uint64_t>facts.deletion.local)
            _write_number(data + 17, facts.visible_rows)
            _write_number(data + 25, facts.static_sequence)
            data[33] = facts.has_ranges
            value = PyBytes_FromStringAndSize(<const char*>data, _FACTS_SIZE)
        self.put(data_key(partition_key, FACTS_SECTION), value)
        return True

    cdef bint read_row(self, bytes value, bint is_static, Header* header, Row* row, Stored* stored) except -1:
        """materializer.rows.row_codec.RowCodec.decode; False if the row is not mine. None is no row.

        The row points into `value`, which the caller must keep.
        """
        cdef Cursor c
        cdef ColumnList columns
        stored.has_row, stored.row_sequence, stored.number = False, self.floor, -1
        if value is None:
            return True
        c.at = <Bytes>PyBytes_AS_STRING(value)
        c.end, c.is_bad = c.at + PyBytes_GET_SIZE(value), False
        if read_byte(&c) != STATE_FORMAT_VERSION:
            return False
        stored.has_row = True
        stored.row_sequence = read_unsigned_vint(&c)
        stored.number = <int64_t>read_unsigned_vint(&c)
        if c.is_bad or stored.row_sequence >> 62 or not 0 <= stored.number < 0x7FFFFFFF:
            return False
        columns = self._columns_of(stored.number, is_static)
        if columns is None:
            return False
        header.columns = &columns.columns
        return parse_row(&c, &self.plan.statics if is_static else &self.plan.rows, header, row)

    cdef ColumnList _columns_of(self, int64_t number, bint is_static):
        """The columns of a stored row; kept here, so that headers can point to them."""
        key = number, is_static
        if key not in self.columns:
            entries = self.read_columns(number, is_static)
            self.columns[key] = None if entries is None else ColumnList(entries)
        return self.columns[key]

    cdef bytes encode_row(self, uint64_t row_sequence, const Row* row):
        """RowCodec.encode."""
        self.value.size = 0
        write_byte(&self.value, STATE_FORMAT_VERSION)
        write_unsigned_vint(&self.value, row_sequence)
        write_unsigned_vint(&self.value, self.number)
        write_row(&self.value, &self.plan.rows, row)
        if self.value.is_bad:
            raise MemoryError
        return PyBytes_FromStringAndSize(<const char*>self.value.data, <Py_ssize_t>self.value.size)

    cdef int put_row(
        self, bytes key, bytes written, const Row* old, int64_t before, const Row* new, int64_t after
    ) except -1:
        """Put a row in the place of another one, which may be NULL. written: the new row, or None if it is the old one.
        Then time alone may change its timers: from the second `before` to `after`.
        """
        if written is not None:
            self.put(key, written)
            self.written.append(key)
        elif before == after:
            return 0
        return self._update_timers(key, old, before, new, after)

    cdef int _update_timers(self, bytes key, const Row* old, int64_t before, const Row* new, int64_t after) except -1:
        """Timers.update_timers."""
        cdef RowTimers was, now
        was.expires = was.dead_since = -1
        if old != NULL:
            was = row_timers(&self.plan.rows, old, before)
        now = row_timers(&self.plan.rows, new, after)
        if was.expires != now.expires:
            self._replace_timer(EXPIRY_TIMER, key, was.expires, now.expires)
            if 0 <= now.expires <= self.loaded_until:
                self.push(now.expires, key)
        if was.dead_since != now.dead_since:
            self._replace_timer(PURGE_TIMER, key, was.dead_since, now.dead_since)
        return 0

    cdef int _replace_timer(self, uint8_t kind, bytes key, int64_t before, int64_t after) except -1:
        if before >= 0:
            self.put(_timer_key(kind, before, key), None)
        if after >= 0:
            self.put(_timer_key(kind, after, key), b"")
        return 0


cdef inline void _write_number(uint8_t* out, uint64_t number) noexcept:
    cdef int i
    for i in range(8):
        out[i] = <uint8_t>(number >> (56 - 8 * i))


cdef bytes data_key(bytes partition_key, uint8_t section):
    """materializer.rows.keys.partition_prefix and a section."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(partition_key)
    cdef bytes key = PyBytes_FromStringAndSize(NULL, size + 6)
    cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(key)
    cdef int i
    out[0] = 0x70
    for i in range(4):
        out[1 + i] = <uint8_t>(size >> (24 - 8 * i))
    memcpy(out + 5, PyBytes_AS_STRING(partition_key), <size_t>size)
    out[5 + size] = section
    return key


cdef bytes _timer_key(uint8_t kind, int64_t second, bytes key):
    cdef Py_ssize_t size = PyBytes_GET_SIZE(key)
    cdef bytes made = PyBytes_FromStringAndSize(NULL, size + 9)
    cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(made)
    out[0] = kind
    _write_number(out + 1, <uint64_t>second)
    memcpy(out + 9, PyBytes_AS_STRING(key), <size_t>size)
    return made
