"""Canonical keys of messages, which are equal where the values are, and the Kafka partition of a key.

Python oracle: fastavro.schemaless_reader.

A key is each field with a tag before it. Tags: `i` int and long, `f` float and double, `n` decimal, `s` string and enum,
`y` bytes and fixed, `u` uuid, `b` boolean, `d` date, `t` timestamp, `l` local timestamp, `c` time, `r` record, `a` array,
0 null within a record or an array. So an int equals the long of its number, and times of any precision equal each other.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from cdc_native.avro.messages cimport Messages, raise_at
from cdc_native.avro.program cimport (
    ARRAY,
    BOOLEAN,
    BYTES,
    DOUBLE,
    ENUM,
    FIXED,
    FLOAT,
    NULL_VALUE,
    OPTIONAL,
    RECORD,
    STRING,
    UNION,
    Node,
    Program,
    Symbol,
    read_count,
    skip,
)
from cdc_native.formats.buffers cimport (
    Bytes,
    Cursor,
    Writer,
    read_avro_long,
    read_byte,
    reserve,
    take,
    write_avro_long,
    write_byte,
    write_bytes,
)
from cdc_native.formats.murmur2 cimport murmur2

cdef extern from *:
    """
    /* Strips zeros from the end of a decimal of `size` big-endian bytes; its new scale, and its 16 bytes. */
    static long long strip_zeros(const unsigned char* at, long long size, int scale, unsigned char* out) {
        unsigned __int128 bits = size && (at[0] & 0x80) ? -(unsigned __int128)1 : 0;
        long long i, left = scale;
        __int128 number;
        for (i = 0; i < size; i++) bits = bits << 8 | at[i];
        number = (__int128)bits;
        while (number != 0 && number % 10 == 0) { number /= 10; left--; }
        if (number == 0) left = 0;
        bits = (unsigned __int128)number;
        for (i = 15; i >= 0; i--) { out[i] = (unsigned char)bits; bits >>= 8; }
        return left;
    }
    """
    long long strip_zeros(Bytes at, long long size, int scale, uint8_t* out) nogil

cdef enum:
    UUID_TEXT = 36


cdef struct Step:  # to a field: over so many fields of a record, then to the next level; is_last: it is the key's
    int skipped
    bint is_last


cdef class Keys:
    """Makes keys of fields, which are given by their paths. ValueError for a path to none, or a field that no key has:
    a map, or what contains one.
    """
    cdef readonly Program program
    cdef Step* _steps
    cdef int _count

    def __cinit__(self, Program program not None, paths):
        cdef int at = 0
        cdef list wanted = [tuple(path) for path in paths]
        self.program = program
        if not wanted or not all(wanted):
            raise ValueError("a key of no fields")
        self._steps = <Step*>calloc(sum(map(len, wanted)), sizeof(Step))
        if self._steps == NULL:
            raise MemoryError
        for path in wanted:
            form = program.form
            for name in path:
                if form[0] == "optional":
                    form = form[2][1 - form[1]]
                if form[0] != "record" or name not in form[3]:
                    raise ValueError(f"there is no field {name}")
                self._steps[at].skipped = form[3].index(name)
                form = form[2][self._steps[at].skipped]
                at += 1
            self._steps[at - 1].is_last = True
            if _is_refused(form):
                raise ValueError(f"{'.'.join(path)} has a map, or an array of values without bytes: it is no key")
        self._count = at

    def __dealloc__(self):
        free(self._steps)

    def apply(self, Messages messages not None, int skipped=0):
        """The keys; None for a tombstone, and where one of the fields is null. skipped: bytes before each value. AvroError.
        """
        cdef Messages made = Messages()
        cdef Py_ssize_t i = 0
        cdef Cursor c
        cdef size_t begin
        cdef bint is_bad = False, is_whole
        if skipped < 0:
            raise ValueError("skipped is negative")
        made.inherit(messages)
        with nogil:
            for i in range(messages.count):
                if messages.spans[i].at == NULL:
                    continue
                begin = made.data.size
                is_whole = self._write(messages.spans[i].at, messages.spans[i].size, skipped, &c, &made.data)
                if c.is_bad:
                    is_bad = True
                    break
                if is_whole:
                    made.spans[i].size = -<int64_t>begin - 1
                else:
                    made.data.size = begin
            if not is_bad:
                made.settle()
        if is_bad:
            raise_at(messages, i, c.at - messages.spans[i].at, "not of its schema")
        if made.data.is_bad:
            raise MemoryError
        return made

    cdef bint _write(self, Bytes at, int64_t size, int skipped, Cursor* c, Writer* out) noexcept nogil:
        """Write the key of one message; False if it has none. The message is read to its end."""
        cdef const Node* nodes = self.program.nodes
        cdef const Node* n = nodes
        cdef int step
        cdef bint is_whole = True, is_there = True
        c.at, c.end, c.is_bad = at, at + size, size < skipped
        if c.is_bad:
            return False
        c.at = at + skipped
        skip(nodes, nodes, c)
        if c.at != c.end:
            c.is_bad = True
        for step in range(self._count):
            if c.is_bad:
                return False
            if n == nodes:
                c.at = at + skipped
                is_there = True
            if is_there:
                n = _enter(nodes, n, &self._steps[step], c, &is_there)
            if not is_there:
                is_whole = False
                n = nodes + 1  # so that the rest of the path is left out
            if self._steps[step].is_last:
                if is_there:
                    is_whole = _write_value(nodes, self.program.symbols, n, c, out, False) and is_whole
                n = nodes
        return is_whole and not c.is_bad


cdef const Node* _enter(const Node* nodes, const Node* n, const Step* step, Cursor* c, bint* is_there) noexcept nogil:
    """Step to a field of a record, over those before it."""
    cdef int64_t branch
    cdef int i
    if n.kind == OPTIONAL:
        branch = read_avro_long(c)
        if branch != 1 - n.null_at or c.is_bad:
            c.is_bad = c.is_bad or branch != n.null_at
            is_there[0] = False
            return n
        n = &nodes[n.first + branch]
    for i in range(step.skipped):
        skip(nodes, &nodes[n.first + i], c)
    return &nodes[n.first + step.skipped]


def _is_refused(form):
    if form[0] == "map" or (form[0] == "array" and _is_empty(form[2][0])):
        return True
    return any(map(_is_refused, form[2]))


def _is_empty(form):
    if form[0] == "record":
        return all(map(_is_empty, form[2]))
    return form[0] == "null" or (form[0] == "fixed" and not form[1])


cdef bint _write_value(
    const Node* nodes, const Symbol* symbols, const Node* n, Cursor* c, Writer* out, bint is_within
) noexcept nogil:
    """Write a field; False for null, which is a byte within a record or an array."""
    cdef int64_t branch
    cdef int i
    if n.kind == OPTIONAL or n.kind == UNION:
        branch = read_avro_long(c)
        if branch < 0 or branch >= n.count:
            c.is_bad = True
        if c.is_bad:
            return False
        n = &nodes[n.first + branch]
        if n.kind == OPTIONAL or n.kind == UNION:  # which Avro forbids
            c.is_bad = True
            return False
    if n.kind == NULL_VALUE:
        if is_within:
            write_byte(out, 0)
        return False
    if n.tag != 117:  # u, which text that is no uuid has not
        write_byte(out, n.tag)
    if n.kind == RECORD:
        for i in range(n.count):
            if c.is_bad:
                return False
            _write_value(nodes, symbols, &nodes[n.first + i], c, out, True)
    elif n.kind == ARRAY:
        _write_array(nodes, symbols, &nodes[n.first], c, out)
    else:
        _write_plain(symbols, n, c, out)
    return True


cdef void _write_array(const Node* nodes, const Symbol* symbols, const Node* item, Cursor* c, Writer* out) noexcept nogil:
    """Each item after a 1, then a 0."""
    cdef int64_t count, size
    while not c.is_bad:
        count = read_count(c, &size)
        if count == 0 or c.is_bad:
            break
        if count > c.end - c.at:  # no item is empty
            c.is_bad = True
        while count > 0 and not c.is_bad:
            write_byte(out, 1)
            _write_value(nodes, symbols, item, c, out, True)
            count -= 1
    write_byte(out, 0)


cdef void _write_plain(const Symbol* symbols, const Node* n, Cursor* c, Writer* out) noexcept nogil:
    cdef int64_t size, number, rest
    cdef Bytes found
    if n.kind == STRING or n.kind == BYTES or n.kind == FIXED:
        size = n.size if n.kind == FIXED else read_avro_long(c)
        if size < 0:
            c.is_bad = True
        found = take(c, <uint64_t>size)
        if c.is_bad:
            return
        if n.precision:
            _write_decimal(n, found, size, c, out)
        elif n.tag == 117:
            _write_uuid(found, size, out)
        else:
            write_avro_long(out, size)
            write_bytes(out, found, <size_t>size)
    elif n.kind == BOOLEAN:
        write_byte(out, read_byte(c) != 0)
    elif n.kind == FLOAT or n.kind == DOUBLE:
        _write_floating(n.kind == DOUBLE, c, out)
    else:
        number = read_avro_long(c)
        if n.kind == ENUM:
            if number < 0 or number >= n.count:
                c.is_bad = True
            if not c.is_bad:
                write_avro_long(out, symbols[n.first + number].size)
                write_bytes(out, symbols[n.first + number].text, <size_t>symbols[n.first + number].size)
        elif n.units:
            rest = number % n.units
            if rest < 0:
                rest += n.units
            write_avro_long(out, number // n.units - (1 if number < 0 and rest else 0))
            write_avro_long(out, rest * (<int64_t>1_000_000_000 // n.units))
        else:
            write_avro_long(out, number)


cdef void _write_decimal(const Node* n, Bytes found, int64_t size, Cursor* c, Writer* out) noexcept nogil:
    """Its scale without zeros at its end, and the number in 16 bytes."""
    cdef uint8_t number[16]
    cdef int64_t scale
    if size > 16:
        c.is_bad = True
        return
    scale = strip_zeros(found, size, n.scale, number)
    write_avro_long(out, scale)
    write_bytes(out, number, 16)


cdef void _write_floating(bint is_double, Cursor* c, Writer* out) noexcept nogil:
    """As a double. All zeros are one, and all NaNs."""
    cdef Bytes found = take(c, 8 if is_double else 4)
    cdef double value = 0
    cdef float single = 0
    if c.is_bad or not reserve(out, 8):
        return
    if is_double:
        memcpy(&value, found, 8)
    else:
        memcpy(&single, found, 4)
        value = single
    if value == 0:
        value = 0
    elif value != value:
        memcpy(out.data + out.size, b"\x00\x00\x00\x00\x00\x00\xf8\x7f", 8)
        out.size += 8
        return
    memcpy(out.data + out.size, &value, 8)
    out.size += 8


cdef void _write_uuid(Bytes text, int64_t size, Writer* out) noexcept nogil:
    """16 bytes with the tag of a uuid; other text with that of a string."""
    cdef uint8_t made[16]
    cdef int at = 0, i, digit
    cdef bint is_uuid = size == UUID_TEXT
    for i in range(UUID_TEXT if is_uuid else 0):
        if i == 8 or i == 13 or i == 18 or i == 23:
            is_uuid = is_uuid and text[i] == 45
            continue
        digit = _digit(text[i])
        is_uuid = is_uuid and digit >= 0
        made[at >> 1] = <uint8_t>((made[at >> 1] << 4 if at & 1 else 0) | (digit & 15))
        at += 1
    if is_uuid:
        write_byte(out, 117)
        write_bytes(out, made, 16)
    else:
        write_byte(out, 115)
        write_avro_long(out, size)
        write_bytes(out, text, <size_t>size)


cdef inline int _digit(uint8_t character) noexcept nogil:
    if 48 <= character <= 57:
        return character - 48
    character |= 32
    return character - 87 if 97 <= character <= 102 else -1


def partitions(Messages messages not None, int count):
    """The Kafka partition of each message's bytes, as Kafka's Java clients choose it: int32, as bytes. A message that is
    None has -1.
    """
    cdef bytes made
    cdef int32_t* out
    cdef uint32_t hashed
    cdef Py_ssize_t i
    if count <= 0:
        raise ValueError("a topic of no partitions")
    made = PyBytes_FromStringAndSize(NULL, messages.count * <Py_ssize_t>sizeof(int32_t))
    out = <int32_t*>PyBytes_AS_STRING(made)
    with nogil:
        for i in range(messages.count):
            if messages.spans[i].at == NULL:
                out[i] = -1
            else:
                hashed = murmur2(messages.spans[i].at, <size_t>messages.spans[i].size)
                out[i] = <int32_t>((hashed & 0x7FFFFFFF) % <uint32_t>count)
    return made
