"""Columns of Arrow, filled from a batch of messages without a Python object for a value.

Python oracle: fastavro.schemaless_reader.
"""
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from cdc_native.avro.arrow cimport (
    ArrowArray,
    ArrowSchema,
    array_capsule,
    free_array,
    free_schema,
    new_array,
    new_schema,
    schema_capsule,
)
from cdc_native.avro.messages cimport Messages, raise_at
from cdc_native.avro.program cimport (
    ARRAY,
    BOOLEAN,
    BYTES,
    ENUM,
    INT,
    LONG,
    MAP,
    NULL_VALUE,
    RECORD,
    STRING,
    Node,
    Program,
    Symbol,
    read_count,
)
from cdc_native.formats.buffers cimport (
    Bytes,
    Cursor,
    Writer,
    read_avro_long,
    read_byte,
    reserve,
    take,
    write_byte,
    write_bytes,
)
from cdc_native.formats.texts cimport is_utf8

cdef extern from *:
    """
    static int is_within(const int64_t* words, int precision) {
        __int128 number = (__int128)(((unsigned __int128)(uint64_t)words[1] << 64) | (uint64_t)words[0]), bound = 1;
        while (precision-- > 0) bound *= 10;
        return -bound < number && number < bound;
    }
    """
    bint is_within(const int64_t* words, int precision) nogil  # whether a decimal has at most so many digits

cdef int _MOST = 10_000  # columns of one schema
cdef enum:
    DECIMAL_SIZE = 16

cdef dict _FORMATS = {
    "null": b"n", "boolean": b"b", "int": b"i", "long": b"l", "float": b"f", "double": b"g", "bytes": b"z",
    "string": b"u", "enum": b"u", "record": b"+s", "array": b"+l", "map": b"+m",
}
cdef dict _LOGICAL_FORMATS = {
    "date": b"tdD", "time-millis": b"ttm", "time-micros": b"ttu", "timestamp-millis": b"tsm:UTC",
    "timestamp-micros": b"tsu:UTC", "timestamp-nanos": b"tsn:UTC", "local-timestamp-millis": b"tsm:",
    "local-timestamp-micros": b"tsu:", "local-timestamp-nanos": b"tsn:",
}
cdef dict _WIDTHS = {"int": 4, "float": 4, "long": 8, "double": 8}


cdef enum Fault:
    NO_FAULT
    NOT_OF_SCHEMA
    MORE_BYTES
    TOMBSTONE
    TOO_LARGE
    NO_MEMORY


cdef dict _REASONS = {
    NOT_OF_SCHEMA: "not of its schema",
    MORE_BYTES: "more bytes than its schema says",
    TOMBSTONE: "a tombstone has no columns",
}


cdef struct Builder:
    Writer validity
    Writer offsets
    Writer data
    int64_t length
    int64_t nulls


cdef struct Build:
    const Column* columns
    const Symbol* symbols
    Builder* builders
    Cursor c
    bint is_large


cdef class Table:
    """The Arrow type of a schema, which is a record. ValueError for a schema that has none here: a union of several
    types, an array of values without bytes, or too many columns.
    """

    def __cinit__(self, Program program not None):
        if program.form[0] != "record":
            raise ValueError("only a record has columns")
        self.program = program
        self._formats = []
        self._room(1)
        self._fill(0, 0, program.form, "")

    def __dealloc__(self):
        free(self.columns)

    def __len__(self):
        """The columns at every level."""
        return self.count

    cdef int _room(self, Py_ssize_t count) except -1:
        cdef int at = self.count
        cdef void* data
        if count > _MOST - at:
            raise ValueError("a schema of too many columns")
        if at + count > self._capacity:
            data = realloc(self.columns, <size_t>(2 * (at + count)) * sizeof(Column))
            if data == NULL:
                raise MemoryError
            self.columns = <Column*>data
            self._capacity = <int>(2 * (at + count))
        self.count += <int>count
        memset(&self.columns[at], 0, <size_t>count * sizeof(Column))
        self._formats.extend([None] * count)
        return at

    cdef int _fill(self, int at, int node, object form, str name) except -1:
        """Write the column of a type at its place."""
        cdef const Node* nodes = self.program.nodes
        cdef Column made
        cdef int i
        memset(&made, 0, sizeof(Column))
        made.null_at = -1
        if form[0] == "optional":
            made.is_nullable, made.has_branch = True, True
            made.null_at, made.branch = form[1], 1 - form[1]
        elif form[0] == "union":
            if len(form[2]) != 1:
                raise ValueError("a union of several types")
            made.has_branch = True
        if made.has_branch:
            node, form = nodes[node].first + made.branch, form[2][made.branch]
        made.kind = nodes[node].kind
        if form[0] == "enum":
            made.first, made.symbols = nodes[node].first, nodes[node].count
        self._set_width(&made, form)
        self._formats[at] = _format(form), name.encode()
        if made.kind == RECORD:
            made.first, made.children = self._room(len(form[2])), <int>len(form[2])
            for i in range(made.children):
                self._fill(made.first + i, nodes[node].first + i, form[2][i], form[3][i])
        elif made.kind == ARRAY:
            if nodes[nodes[node].first].is_empty:
                raise ValueError("an array of values without bytes")
            made.first, made.children = self._room(1), 1
            self._fill(made.first, nodes[node].first, form[2][0], "item")
        elif made.kind == MAP:
            made.first, made.children = self._room(2), 2
            self._fill_key(made.first)
            self._fill(made.first + 1, nodes[node].first, form[2][0], "value")
        self.columns[at] = made
        return 0

    cdef int _set_width(self, Column* made, object form) except -1:
        made.precision = form[5][0]
        made.is_decimal = made.precision > 0
        made.fixed = form[1] if form[0] == "fixed" else 0
        made.width = DECIMAL_SIZE if made.is_decimal else made.fixed or _WIDTHS.get(form[0], 0)
        return 0

    cdef int _fill_key(self, int at) except -1:
        """The keys of a map."""
        self.columns[at].kind, self.columns[at].null_at = STRING, -1
        self._formats[at] = b"u", b"key"
        return 0

    cdef ArrowSchema* schema(self, int at) except NULL:
        """Arrow's schema of a column."""
        cdef const Column* column = &self.columns[at]
        cdef ArrowSchema* made
        cdef ArrowSchema* within
        cdef int i
        form, name = self._formats[at]
        is_nullable = column.is_nullable or column.kind == NULL_VALUE
        made = new_schema(form, name, is_nullable, 1 if column.kind == MAP else column.children)
        try:
            within = made
            if column.kind == MAP:
                within = made.children[0] = new_schema(b"+s", b"entries", False, 2)
            for i in range(column.children):
                within.children[i] = self.schema(column.first + i)
        except BaseException:
            free_schema(made)
            raise
        return made

    def __arrow_c_schema__(self):
        """Arrow's schema, as its PyCapsule protocol has it."""
        return schema_capsule(self.schema(0))

    def rows(self, Messages messages not None, int skipped=0):
        """The columns of all messages. skipped: bytes before each value. AvroError; ValueError for a batch whose columns
        would be larger than 2 GiB.
        """
        cdef Build build
        cdef Py_ssize_t i = 0
        cdef Fault fault = NO_FAULT
        cdef ArrowArray* made = NULL
        if skipped < 0:
            raise ValueError("skipped is negative")
        build.columns, build.symbols, build.is_large = self.columns, self.program.symbols, False
        build.builders = <Builder*>calloc(<size_t>self.count, sizeof(Builder))
        if build.builders == NULL:
            raise MemoryError
        with nogil:
            _begin(&build, self.count)
            for i in range(messages.count):
                fault = _read_message(&build, messages.spans[i].at, messages.spans[i].size, skipped)
                if fault != NO_FAULT:
                    break
            if fault == NO_FAULT:
                fault = _check(&build, self.count)
            if fault == NO_FAULT:
                made = _array(&build, 0)
            _end(&build, self.count)
        if fault in _REASONS:
            raise_at(messages, i, max(build.c.at - messages.spans[i].at, 0), _REASONS[fault])
        if fault == TOO_LARGE:
            raise ValueError("the columns of this batch are larger than 2 GiB: give fewer messages")
        if made == NULL:
            raise MemoryError
        return _rows(self, made)


cdef class Rows:
    """Rows as an Arrow struct, which one reader takes: pyarrow.record_batch(rows)."""
    cdef Table _table
    cdef ArrowArray* _array
    cdef readonly int64_t count

    def __dealloc__(self):
        if self._array != NULL:
            free_array(self._array)

    def __len__(self):
        return self.count

    def __arrow_c_array__(self, requested_schema=None):
        """Schema and array, as Arrow's PyCapsule protocol has it. ValueError the second time."""
        cdef ArrowArray* array = self._array
        if array == NULL:
            raise ValueError("these rows were taken before")
        schema = schema_capsule(self._table.schema(0))
        self._array = NULL
        return schema, array_capsule(array)


cdef Rows _rows(Table table, ArrowArray* array):
    cdef Rows made = Rows.__new__(Rows)
    made._table, made._array, made.count = table, array, array.length
    return made


cdef bytes _format(form):
    kind, size, logical, (precision, scale) = form[0], form[1], form[4], form[5]
    if precision:
        return f"d:{precision},{scale}".encode()
    if kind == "fixed":
        return f"w:{size}".encode()
    return _LOGICAL_FORMATS.get(logical) or _FORMATS[kind]


cdef bint _has_offsets(const Column* column) noexcept nogil:
    cdef int kind = column.kind
    return kind == STRING or kind == ENUM or kind == ARRAY or kind == MAP or (kind == BYTES and not column.is_decimal)


cdef void _begin(Build* build, int count) noexcept nogil:
    cdef int i
    for i in range(count):
        if _has_offsets(&build.columns[i]):
            _write_int(&build.builders[i].offsets, 0)


cdef void _end(Build* build, int count) noexcept nogil:
    cdef int i
    for i in range(count):
        free(build.builders[i].validity.data)
        free(build.builders[i].offsets.data)
        free(build.builders[i].data.data)
    free(build.builders)


cdef Fault _check(const Build* build, int count) noexcept nogil:
    cdef int i
    cdef const Builder* b
    for i in range(count):
        b = &build.builders[i]
        if b.validity.is_bad or b.offsets.is_bad or b.data.is_bad:
            return NO_MEMORY
    return NO_FAULT


cdef Fault _read_message(Build* build, Bytes at, int64_t size, int skipped) noexcept nogil:
    cdef Cursor* c = &build.c
    c.at = at
    if at == NULL:
        return TOMBSTONE
    if size < skipped:
        return NOT_OF_SCHEMA
    c.at, c.end, c.is_bad = at + skipped, at + size, False
    _read(build, 0)
    if c.is_bad:
        return NOT_OF_SCHEMA
    if build.is_large:
        return TOO_LARGE
    return NO_FAULT if c.at == c.end else MORE_BYTES


cdef inline void _write_int(Writer* w, int32_t value) noexcept nogil:
    if reserve(w, 4):
        (<int32_t*>(w.data + w.size))[0] = value
        w.size += 4


cdef inline void _write_long(Writer* w, int64_t value) noexcept nogil:
    if reserve(w, 8):
        (<int64_t*>(w.data + w.size))[0] = value
        w.size += 8


cdef inline void _write_bit(Writer* w, int64_t place, bint value) noexcept nogil:
    if place & 7 == 0:
        write_byte(w, 0)
    if value and not w.is_bad:
        w.data[place >> 3] |= <uint8_t>(1 << (place & 7))


cdef inline void _end_value(Build* build, Builder* b, int64_t size) noexcept nogil:
    """The offset after a value of a column with offsets."""
    if size > INT32_MAX:
        build.is_large = True
        size = 0
    _write_int(&b.offsets, <int32_t>size)


cdef void _read(Build* build, int at) noexcept nogil:
    """Append the next value to a column."""
    cdef const Column* column = &build.columns[at]
    cdef Builder* b = &build.builders[at]
    cdef Cursor* c = &build.c
    cdef int64_t number
    cdef Bytes found
    cdef int kind = column.kind
    if column.has_branch:
        number = read_avro_long(c)
        if number != column.branch or c.is_bad:
            if not column.is_nullable or number != column.null_at:
                c.is_bad = True
            if not c.is_bad:
                _append_null(build, at)
            return
    if column.is_nullable:
        _write_bit(&b.validity, b.length, True)
    b.length += 1
    if kind == STRING or (kind == BYTES and not column.is_decimal):
        _read_sized(build, b, kind == STRING)
    elif kind == LONG:
        _write_long(&b.data, read_avro_long(c))
    elif kind == INT:
        number = read_avro_long(c)
        if number != <int32_t>number:
            c.is_bad = True
        _write_int(&b.data, <int32_t>number)
    elif kind == RECORD:
        for at in range(column.first, column.first + column.children):
            _read(build, at)
            if c.is_bad:
                return
    elif kind == BOOLEAN:
        number = read_byte(c)
        if number > 1:
            c.is_bad = True
        _write_bit(&b.data, b.length - 1, number == 1)
    elif column.is_decimal:
        _read_decimal(c, column, &b.data)
    elif column.width:
        found = take(c, <uint64_t>column.width)
        if not c.is_bad:
            write_bytes(&b.data, found, <size_t>column.width)
    else:
        _read_more(build, column, b)


cdef inline void _read_sized(Build* build, Builder* b, bint is_text) noexcept nogil:
    cdef Cursor* c = &build.c
    cdef int64_t size = read_avro_long(c)
    cdef Bytes found
    if size < 0:
        c.is_bad = True
    found = take(c, <uint64_t>size)
    if c.is_bad:
        return
    if is_text and not is_utf8(found, <uint64_t>size):
        c.is_bad = True
        return
    write_bytes(&b.data, found, <size_t>size)
    _end_value(build, b, <int64_t>b.data.size)


cdef void _read_more(Build* build, const Column* column, Builder* b) noexcept nogil:
    cdef Cursor* c = &build.c
    cdef int64_t number
    if column.kind == ENUM:
        number = read_avro_long(c)
        if number < 0 or number >= column.symbols:
            c.is_bad = True
        if not c.is_bad:
            number += column.first
            write_bytes(&b.data, build.symbols[number].text, <size_t>build.symbols[number].size)
            _end_value(build, b, <int64_t>b.data.size)
    elif column.kind == ARRAY or column.kind == MAP:
        _read_blocks(build, column)
        if not c.is_bad:
            _end_value(build, b, build.builders[column.first].length)


cdef void _read_blocks(Build* build, const Column* column) noexcept nogil:
    cdef Cursor* c = &build.c
    cdef int64_t count, size
    cdef Bytes begin
    cdef Builder* keys
    while not c.is_bad and not build.is_large:
        count = read_count(c, &size)
        if count == 0 or c.is_bad:
            return
        if count > c.end - c.at:  # no item is empty
            c.is_bad = True
            return
        begin = c.at
        while count > 0 and not c.is_bad:
            if column.kind == MAP:
                keys = &build.builders[column.first]
                keys.length += 1
                _read_sized(build, keys, True)
                _read(build, column.first + 1)
            else:
                _read(build, column.first)
            count -= 1
        if size >= 0 and c.at - begin != size:
            c.is_bad = True


cdef void _read_decimal(Cursor* c, const Column* column, Writer* out) noexcept nogil:
    """A number in two's complement, big-endian, as 16 bytes, little-endian."""
    cdef int64_t size = column.fixed
    cdef Bytes found
    cdef uint8_t sign
    cdef int i
    if column.kind == BYTES:
        size = read_avro_long(c)
        if size < 0:
            c.is_bad = True
    found = take(c, <uint64_t>size)
    if c.is_bad:
        return
    sign = 0xFF if size and found[0] & 0x80 else 0
    while size > DECIMAL_SIZE and found[0] == sign and (found[1] ^ sign) & 0x80 == 0:
        found += 1
        size -= 1
    if size > DECIMAL_SIZE or not reserve(out, DECIMAL_SIZE):
        c.is_bad = True
        return
    for i in range(DECIMAL_SIZE):
        out.data[out.size + i] = found[size - 1 - i] if i < size else sign
    out.size += DECIMAL_SIZE
    if not is_within(<const int64_t*>(out.data + out.size - DECIMAL_SIZE), column.precision):
        c.is_bad = True


cdef void _append_null(Build* build, int at) noexcept nogil:
    """A null, or whatever stands in a column within a null."""
    cdef const Column* column = &build.columns[at]
    cdef Builder* b = &build.builders[at]
    cdef int i
    cdef bint is_list
    if column.is_nullable:
        _write_bit(&b.validity, b.length, False)
        b.nulls += 1
    b.length += 1
    if column.kind == BOOLEAN:
        _write_bit(&b.data, b.length - 1, False)
    elif column.kind == RECORD:
        for i in range(column.first, column.first + column.children):
            _append_null(build, i)
    elif _has_offsets(column):
        is_list = column.kind == ARRAY or column.kind == MAP
        _end_value(build, b, build.builders[column.first].length if is_list else <int64_t>b.data.size)
    elif column.width and reserve(&b.data, <size_t>column.width):
        memset(b.data.data + b.data.size, 0, <size_t>column.width)
        b.data.size += <size_t>column.width


cdef const void* _release(Writer* w) noexcept nogil:
    """The buffer, which is another's from now on."""
    cdef const void* data = w.data
    w.data = NULL
    return data


cdef ArrowArray* _array(Build* build, int at) noexcept nogil:
    """The array of a column, which takes the buffers; NULL without memory."""
    cdef const Column* column = &build.columns[at]
    cdef Builder* b = &build.builders[at]
    cdef ArrowArray* made
    cdef ArrowArray* entries
    cdef int kind = column.kind
    cdef int buffers = 0 if kind == NULL_VALUE else 1 if kind == RECORD else 2
    if _has_offsets(column) and kind != ARRAY and kind != MAP:
        buffers = 3
    made = new_array(buffers, 1 if kind == MAP else column.children)
    if made == NULL:
        return NULL
    made.length, made.null_count = b.length, b.length if kind == NULL_VALUE else b.nulls
    if buffers and b.nulls:
        made.buffers[0] = _release(&b.validity)
    if _has_offsets(column):
        made.buffers[1] = _release(&b.offsets)
    elif buffers == 2:
        made.buffers[1] = _release(&b.data)
    if buffers == 3:
        made.buffers[2] = _release(&b.data)
    if kind == MAP:
        entries = made.children[0] = new_array(1, 2)
        if entries != NULL:
            entries.length = build.builders[column.first].length
    else:
        entries = made
    if entries == NULL or not _add_children(build, column, entries):
        free_array(made)
        return NULL
    return made


cdef bint _add_children(Build* build, const Column* column, ArrowArray* made) noexcept nogil:
    cdef int i
    for i in range(column.children):
        made.children[i] = _array(build, column.first + i)
        if made.children[i] == NULL:
            return False
    return True
