# cython: language_level=3
"""Serialized CQL values as Avro's binary encoding, and their splitting.

Python oracle: cdc_common.messages.avro.cql_values, cassandra_storage.formats.types.marshal.

The values get the one form of all that are shown alike (materializer.rows.shown_forms).
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from cdc_native.formats.buffers cimport (
    Bytes,
    Cursor,
    Writer,
    bit_length,
    read_unsigned_vint,
    reserve,
    write_avro_long,
    write_byte,
    write_bytes,
)
from cdc_native.fold.numbers cimport (
    add_days,
    is_shortest,
    put_size_before,
    quote_text,
    write_decimal_double,
    write_decimal_text,
    write_duration_text,
    write_floating_text,
    write_hex,
    write_integer_text,
    write_json_string,
    write_long_text,
    write_rescaled,
    write_text,
)
from cdc_native.fold.types cimport (
    BOOLEAN,
    BYTES,
    CELLS_OF_LIST,
    DATE,
    DECIMAL,
    DECIMAL_FIXED,
    DECIMAL_TEXT,
    DURATION,
    DURATION_NANOS,
    DURATION_TEXT,
    FLOATING,
    INET,
    INTEGER,
    JSON,
    LIST,
    MAP,
    OBJECT,
    TEXT,
    TUPLE,
    UUID,
    VARINT,
    VARINT_DECIMAL,
    VARINT_FIXED,
    VARINT_TEXT,
    VECTOR,
    Type,
    Types,
    add_type,
    free_types,
    is_text,
)
from cdc_native.formats.keys cimport compare_bytes
from cdc_native.formats.texts cimport is_ascii, is_utf8, write_ipv4, write_ipv6, write_uuid


cdef Fit write_value(Writer* w, const Type* types, const Type* t, Bytes value, uint64_t size) noexcept nogil:
    """Append the value of a type that is not one of cells. What was appended counts only if it FITS."""
    cdef size_t start = w.size
    cdef int i
    cdef Fit fit
    if t.is_json:
        return _write_json(w, types, t, value, size)
    if t.kind == JSON:
        fit = write_value(w, types, &types[t.first], value, size)
        put_size_before(w, start)
        return fit
    if is_text(t):
        if not (is_utf8(value, size) if t.kind == TEXT else is_ascii(value, size)):
            return IS_UNREADABLE
        _write_sized(w, value, size)
    elif t.kind == BYTES:
        _write_sized(w, value, size)
    elif t.kind == VARINT:
        if size == 0:
            return IS_EMPTY
        _write_number(w, t, value, size)
    elif t.kind == DECIMAL:
        if size < 5:
            return IS_UNREADABLE if size else IS_EMPTY
        write_avro_long(w, read_signed(value, 4))
        _write_number(w, t, value + 4, size - 4)
    elif t.kind == INET:
        return _write_inet(w, value, size)
    elif t.kind == DURATION:
        return _write_duration(w, t, value, size)
    elif t.kind < LIST and t.kind > DURATION:
        return _write_form(w, t, value, size)
    elif t.kind >= OBJECT:
        return NOT_MINE
    elif t.kind >= LIST:
        if size == 0:
            return IS_EMPTY
        if t.kind == LIST or t.kind == MAP:
            return _write_elements(w, types, t, value, size)
        if t.kind == TUPLE:
            return _write_fields(w, types, t, value, size)
        return _write_vector(w, types, t, value, size)
    elif size != <uint64_t>t.size:
        return IS_UNREADABLE if size else IS_EMPTY
    elif t.kind == INTEGER or t.kind == DATE:
        fit = _fit_in_range(t, value)
        if fit != FITS:
            return fit
        write_avro_long(w, _read_number(t, value))
    elif t.kind == FLOATING:
        if reserve(w, 8):
            for i in range(<int>t.size):
                w.data[w.size + i] = value[t.size - 1 - i]
            w.size += <size_t>t.size
    elif t.kind == BOOLEAN:
        write_byte(w, value[0] != 0)
    elif t.kind == UUID:
        write_uuid(w, value)
    else:
        return NOT_MINE
    return FITS


cdef inline int64_t _read_number(const Type* t, Bytes value) noexcept nogil:
    """An integer, a timestamp, or a date, which counts from 1970."""
    if t.kind == DATE:
        return (read_signed(value, 4) & <int64_t>0xFFFFFFFF) - <int64_t>0x80000000
    return read_signed(value, <int>t.size)


cdef inline Fit _fit_in_range(const Type* t, Bytes value) noexcept nogil:
    """Whether a date or timestamp is within the years 1 to 9999, if that matters."""
    cdef int64_t number
    if not t.fixed:
        return FITS
    number = _read_number(t, value)
    if t.kind == DATE and -719_162 <= number <= 2_932_896:
        return FITS
    if t.kind == INTEGER and <int64_t>-62_135_596_800_000 <= number <= <int64_t>253_402_300_799_999:
        return FITS
    return IS_UNREADABLE if t.fixed == 1 else NOT_MINE


cdef Fit _write_form(Writer* w, const Type* t, Bytes value, uint64_t size) noexcept nogil:
    """A decimal, varint or duration in a form that is not Cassandra's own."""
    cdef size_t start = w.size
    cdef int done
    cdef bint is_decimal = t.kind >= DECIMAL_TEXT
    if t.kind == DURATION_TEXT or t.kind == DURATION_NANOS:
        return _write_duration(w, t, value, size)
    if size == 0:
        return IS_EMPTY
    if is_decimal and size < 5:
        return IS_UNREADABLE
    if t.kind == VARINT_TEXT or t.kind == DECIMAL_TEXT:
        if not _write_number_text(w, t, value, size, is_decimal):
            return NOT_MINE
        put_size_before(w, start)
        return FITS
    if t.kind == VARINT_DECIMAL:
        done = write_rescaled(w, value, size, 0, 38)
    elif t.kind == VARINT_FIXED:
        done = write_rescaled(w, value, size, t.fixed, t.size)
    elif t.kind == DECIMAL_FIXED:
        done = write_rescaled(w, value + 4, size - 4, t.fixed - read_signed(value, 4), t.size)
    else:
        return FITS if write_decimal_double(w, value + 4, size - 4, read_signed(value, 4)) else NOT_MINE
    return FITS if done == 1 else (NOT_MINE if done < 0 else IS_UNREADABLE)


cdef bint _write_number_text(Writer* w, const Type* t, Bytes value, uint64_t size, bint is_decimal) noexcept nogil:
    """False if the Python code must: the number is too large, or has bytes that a key's text does not show."""
    cdef Bytes number = value + 4 if is_decimal else value
    cdef uint64_t length = size - 4 if is_decimal else size
    if t.fixed and not is_shortest(number, length):
        return False
    if is_decimal:
        return write_decimal_text(w, number, length, read_signed(value, 4))
    return write_integer_text(w, number, length)


cdef Fit _write_json(Writer* w, const Type* types, const Type* t, Bytes value, uint64_t size) noexcept nogil:
    """The JSON text of a value of a type that is not one of cells."""
    cdef size_t start = w.size
    cdef Fit fit
    if is_text(t):
        if not (is_utf8(value, size) if t.kind == TEXT else is_ascii(value, size)):
            return IS_UNREADABLE
        write_json_string(w, value, size)
        return FITS
    if t.kind == BYTES:
        write_text(w, b'"0x')
        write_hex(w, value, size)
        write_byte(w, c'"')
        return FITS
    if t.kind >= CELLS_OF_LIST:
        return NOT_MINE
    if size == 0:
        return IS_EMPTY
    if t.kind == LIST or t.kind == MAP:
        return _write_elements(w, types, t, value, size)
    if t.kind == TUPLE or t.kind == OBJECT:
        return _write_fields(w, types, t, value, size)
    if t.kind == VECTOR:
        return _write_vector(w, types, t, value, size)
    if t.kind == VARINT or t.kind == DECIMAL:
        if t.kind == DECIMAL and size < 5:
            return IS_UNREADABLE
        write_byte(w, c'"')
        if not _write_number_text(w, t, value, size, t.kind == DECIMAL):
            return NOT_MINE
        write_byte(w, c'"')
        return FITS
    if t.kind == INET or t.kind == DURATION:
        write_byte(w, c'"')
        fit = _write_inet_text(w, value, size) if t.kind == INET else _write_duration(w, t, value, size)
        write_byte(w, c'"')
        return fit
    if size != <uint64_t>t.size:
        return IS_UNREADABLE
    if t.kind == INTEGER or t.kind == DATE:
        write_long_text(w, _read_number(t, value))
        return _fit_in_range(t, value)
    if t.kind == FLOATING:
        write_floating_text(w, value, t.size)
    elif t.kind == BOOLEAN:
        if value[0]:
            write_text(w, b"true")
        else:
            write_text(w, b"false")
    elif t.kind == UUID:
        write_uuid(w, value)
        if not w.is_bad:
            w.data[start] = c'"'  # where its size was
        write_byte(w, c'"')
    else:
        return NOT_MINE
    return FITS


cdef Fit write_key_text(Writer* w, const Type* types, const Type* t, Bytes value, uint64_t size) noexcept nogil:
    """The key of a JSON object, with its colon: a string, or the text of anything else as a string."""
    cdef size_t start = w.size
    cdef Fit fit = write_value(w, types, t, value, size)
    if fit != FITS or w.is_bad:
        return fit
    if w.data[start] != c'"':
        quote_text(w, start)
    write_byte(w, c':')
    return FITS


cdef inline void _write_sized(Writer* w, Bytes value, uint64_t size) noexcept nogil:
    write_avro_long(w, <int64_t>size)
    write_bytes(w, value, size)


cdef inline void _write_number(Writer* w, const Type* t, Bytes value, uint64_t size) noexcept nogil:
    """Two's complement of any size, not empty: the shortest, unless it is written as it is."""
    while not t.fixed and size > 1 and value[0] == (0xFF if value[1] & 0x80 else 0):
        value += 1
        size -= 1
    _write_sized(w, value, size)


cdef Fit _write_inet(Writer* w, Bytes value, uint64_t size) noexcept nogil:
    cdef size_t start = w.size
    cdef Fit fit = _write_inet_text(w, value, size)
    put_size_before(w, start)
    return fit


cdef Fit _write_inet_text(Writer* w, Bytes value, uint64_t size) noexcept nogil:
    cdef uint8_t text[64]
    cdef int length = 0, i
    cdef bint is_mapped = size == 16
    if size == 0:
        return IS_EMPTY
    if size == 4:
        length = write_ipv4(text, value)
    elif size == 16:
        for i in range(12):
            is_mapped = is_mapped and value[i] == (0xFF if i >= 10 else 0)
        if is_mapped:
            memcpy(text, b"::ffff:", 7)
            length = 7 + write_ipv4(text + 7, value + 12)
        else:
            length = write_ipv6(text, value)
    else:
        return IS_UNREADABLE
    write_bytes(w, text, <size_t>length)
    return FITS


cdef inline int64_t _zigzag(uint64_t value) noexcept nogil:
    return <int64_t>(value >> 1) ^ -<int64_t>(value & 1)


cdef Fit _write_duration(Writer* w, const Type* t, Bytes value, uint64_t size) noexcept nogil:
    cdef Cursor c
    cdef size_t start = w.size
    cdef int64_t months, days, nanos
    if size == 0:
        return IS_EMPTY
    c.at, c.end, c.is_bad = value, value + size, False
    months = _zigzag(read_unsigned_vint(&c))
    days = _zigzag(read_unsigned_vint(&c))
    nanos = _zigzag(read_unsigned_vint(&c))
    if c.is_bad or months != <int32_t>months or days != <int32_t>days:
        return IS_UNREADABLE
    if (months < 0 or days < 0 or nanos < 0) and (months > 0 or days > 0 or nanos > 0):
        return IS_UNREADABLE
    if t.is_json or t.kind == DURATION_TEXT:
        write_duration_text(w, months, days, nanos)
        if not t.is_json:
            put_size_before(w, start)
        return FITS
    if t.kind == DURATION_NANOS:
        if months:
            return IS_UNREADABLE
        if not -106_751 < days < 106_751 or not -(<int64_t>1 << 62) < nanos < (<int64_t>1 << 62):
            return NOT_MINE
        if not add_days(&nanos, days):
            return IS_UNREADABLE
        write_avro_long(w, nanos)
        return FITS
    write_avro_long(w, months)
    write_avro_long(w, days)
    write_avro_long(w, nanos)
    return FITS


cdef Fit _write_elements(Writer* w, const Type* types, const Type* t, Bytes value, uint64_t size) noexcept nogil:
    """A frozen list or set, or a frozen map: a count, then each element with its size in 4 bytes. All are split first.

    The keys of a map that Avro has as one must rise.
    """
    cdef int64_t count, i, length, key_size = -1
    cdef int per = t.count, j
    cdef uint64_t at = 4
    cdef bint has_order = t.kind == LIST or not is_text(&types[t.first])
    cdef bint rises = True
    cdef Bytes key = NULL
    cdef Fit fit
    if size < 4:
        return IS_UNREADABLE
    count = read_signed(value, 4)
    if count < 0:
        return IS_UNREADABLE
    for i in range(count * per):
        if size - at < 4:
            return IS_UNREADABLE
        length = read_signed(value + at, 4)
        at += 4
        if length < 0 or <uint64_t>length > size - at:
            return IS_UNREADABLE
        if not has_order and i % per == 0:
            rises = rises and (
                key_size < 0 or compare_bytes(key, <size_t>key_size, value + at, <size_t>length) < 0
            )
            key, key_size = value + at, length
        at += <uint64_t>length
    if at != size:
        return IS_UNREADABLE
    if not rises:
        return NOT_MINE
    _begin(w, t, count)
    at = 4
    for i in range(count):
        if t.is_json and i:
            write_byte(w, c',')
        for j in range(per):
            length = read_signed(value + at, 4)
            if t.is_json and per == 2 and j == 0:
                fit = write_key_text(w, types, &types[t.first], value + at + 4, <uint64_t>length)
            else:
                fit = write_value(w, types, &types[t.first + j], value + at + 4, <uint64_t>length)
            if fit != FITS:
                return fit
            at += 4 + <uint64_t>length
    _end(w, t)
    return FITS


cdef inline void _begin(Writer* w, const Type* t, int64_t count) noexcept nogil:
    """Begin an array or a map of so many elements."""
    if t.is_json:
        write_byte(w, c'{' if t.kind == MAP else c'[')
    elif count:
        write_avro_long(w, count)


cdef inline void _end(Writer* w, const Type* t) noexcept nogil:
    if t.is_json:
        write_byte(w, c'}' if t.kind == MAP else c']')
    else:
        write_byte(w, 0)


cdef bint _split_field(Bytes value, uint64_t size, uint64_t* at, int64_t* length) noexcept nogil:
    """Step over a field's size, if there is one; False if the field reaches past the end."""
    if size - at[0] < 4:
        return False
    length[0] = read_signed(value + at[0], 4)
    at[0] += 4
    return length[0] <= 0 or <uint64_t>length[0] <= size - at[0]


cdef Fit _write_fields(Writer* w, const Type* types, const Type* t, Bytes value, uint64_t size) noexcept nogil:
    """A tuple or frozen user type. All fields are split first."""
    cdef const Type* of
    cdef bint is_first = True
    cdef uint64_t at = 0
    cdef int64_t length = 0
    cdef int found = 0, i
    cdef Fit fit
    while at < size:
        if found == t.count or not _split_field(value, size, &at, &length):
            return IS_UNREADABLE
        if length > 0:
            at += <uint64_t>length
        found += 1
    at = 0
    if t.is_json:
        write_byte(w, c'{' if t.kind == OBJECT else c'[')
    for i in range(t.count):
        length = -1
        if i < found:
            _split_field(value, size, &at, &length)
        if t.is_json and (length >= 0 or t.kind == TUPLE):
            if not is_first:
                write_byte(w, c',')
            is_first = False
        if length < 0:
            if not t.is_json:
                write_byte(w, 0)
            elif t.kind == TUPLE:
                write_text(w, b"null")
            continue
        of = &types[t.first + i]
        if not t.is_json:
            write_byte(w, 2)
        elif t.kind == OBJECT:
            write_bytes(w, of.label, of.label_size)
        fit = write_value(w, types, of, value + at, <uint64_t>length)
        if fit != FITS:
            return fit
        at += <uint64_t>length
    if t.is_json:
        write_byte(w, c'}' if t.kind == OBJECT else c']')
    return FITS


cdef inline uint64_t _vint_size(uint64_t value) noexcept nogil:
    cdef int size = (bit_length(value) + 6) // 7
    return 1 if size <= 1 else (9 if size > 8 else <uint64_t>size)


cdef bint _split_element(Bytes value, uint64_t size, uint64_t* at, uint64_t* length) noexcept nogil:
    """Step over the size of a vector's element, as if it were in its shortest form."""
    cdef Cursor c
    c.at, c.end, c.is_bad = value + at[0], value + size, False
    length[0] = read_unsigned_vint(&c)
    if c.is_bad or _vint_size(length[0]) > size - at[0]:
        return False
    at[0] += _vint_size(length[0])
    return length[0] <= size - at[0]


cdef Fit _write_vector(Writer* w, const Type* types, const Type* t, Bytes value, uint64_t size) noexcept nogil:
    cdef uint64_t at = 0, length = 0
    cdef int64_t i
    cdef Fit fit
    if t.size <= 0:
        return NOT_MINE
    if t.fixed >= 0:
        if size // <uint64_t>t.size != <uint64_t>t.fixed or size % <uint64_t>t.size:
            return IS_UNREADABLE
    else:
        for i in range(t.size):
            if not _split_element(value, size, &at, &length):
                return IS_UNREADABLE
            at += length
        if at != size:
            return IS_UNREADABLE
    _begin(w, t, t.size)
    at = 0
    length = <uint64_t>t.fixed
    for i in range(t.size):
        if t.is_json and i:
            write_byte(w, c',')
        if t.fixed < 0:
            _split_element(value, size, &at, &length)
        fit = write_value(w, types, &types[t.first], value + at, length)
        if fit != FITS:
            return fit
        at += length
    _end(w, t)
    return FITS


def encode(form: tuple, value: bytes) -> bytes | int:
    """The Avro form of a value of a type; 1 for an empty value, 2 for none of its type, 3 if the Python code must."""
    cdef Types types
    cdef Writer w
    cdef Fit fit
    types.types, types.count, types.capacity = NULL, 0, 0
    w.data, w.size, w.capacity, w.is_bad = NULL, 0, 0, False
    try:
        add_type(&types, form)
        fit = write_value(&w, types.types, &types.types[0], <Bytes><const char*>value, <uint64_t>len(value))
        if w.is_bad:
            raise MemoryError
        return w.data[:w.size] if fit == FITS else <int>fit
    finally:
        free(w.data)
        free_types(&types)
