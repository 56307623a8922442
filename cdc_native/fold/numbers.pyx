# cython: language_level=3
"""Numbers and durations as text, and the parts of JSON.

Python oracle: cdc_common.messages.avro.form_values, cdc_common.messages.avro.json_values.
"""
from cpython.mem cimport PyMem_Free
from libc.math cimport isinf, isnan
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memmove, strlen

from cdc_native.formats.buffers cimport Bytes, Writer, reserve, write_avro_long, write_byte, write_bytes

cdef extern from "Python.h":
    char* PyOS_double_to_string(double value, char code, int precision, int flags, int* kind)
    double PyOS_string_to_double(const char* text, char** end, object overflow) except? -1.0
    int Py_DTSF_ADD_DOT_0

cdef extern from *:
    """
    static inline double parse_double(const char* text) {
        double found = PyOS_string_to_double(text, NULL, NULL);
        if (PyErr_Occurred()) PyErr_Clear();
        return found;
    }
    """
    double parse_double(const char* text)

cdef enum:
    _MOST_BYTES = 64  # of a number that the core turns into digits
    _MOST_LIMBS = 17
    _MOST_DIGITS = 160
    _LIMB = 1_000_000_000
    _LEAST_ADJUSTED = -6
    _SHORT = 8  # bytes of a number that the core rescales

cdef const char* _QUIET_FLOAT = b"\x7f\xc0\x00\x00"
cdef const char* _QUIET_DOUBLE = b"\x7f\xf8\x00\x00\x00\x00\x00\x00"
cdef const char* _HEX = "0123456789abcdef"
cdef uint64_t[20] _POWERS
_POWERS[0] = 1
for _i in range(1, 20):
    _POWERS[_i] = _POWERS[_i - 1] * 10


# The decimal digits of a number's magnitude: `count` of them from `first` on.
cdef struct Digits:
    uint8_t text[_MOST_DIGITS]
    int first
    int count
    bint is_negative


cdef void write_text(Writer* w, const char* text) noexcept nogil:
    write_bytes(w, <Bytes>text, strlen(text))


cdef bint is_shortest(Bytes value, uint64_t size) noexcept nogil:
    """Whether two's complement has no byte too many."""
    return size < 2 or value[0] != (0xFF if value[1] & 0x80 else 0)


cdef bint _read_digits(Digits* d, Bytes value, uint64_t size) noexcept nogil:
    """The digits of two's complement; False if there are too many of them."""
    cdef uint32_t[_MOST_LIMBS] limbs
    cdef uint64_t rest, place
    cdef int count, i, j
    cdef uint32_t carry
    while not is_shortest(value, size):
        value += 1
        size -= 1
    if size > _MOST_BYTES:
        return False
    d.is_negative = size > 0 and value[0] & 0x80 != 0
    count = <int>((size + 3) // 4)
    for i in range(count):
        limbs[i] = 0
        for j in range(4):
            place = <uint64_t>(4 * i + j)
            if place < size:
                limbs[i] |= <uint32_t>value[size - 1 - place] << (8 * j)
            elif d.is_negative:
                limbs[i] |= <uint32_t>0xFF << (8 * j)
    if d.is_negative:
        carry = 1
        for i in range(count):
            limbs[i] = ~limbs[i] + carry
            carry = carry and limbs[i] == 0
    d.first = _MOST_DIGITS
    while count and limbs[count - 1] == 0:
        count -= 1
    while count:
        rest = 0
        for i in range(count - 1, -1, -1):
            rest = rest << 32 | limbs[i]
            limbs[i] = <uint32_t>(rest // _LIMB)
            rest %= _LIMB
        while count and limbs[count - 1] == 0:
            count -= 1
        for i in range(9):
            if not count and not rest:
                break
            d.first -= 1
            d.text[d.first] = <uint8_t>(0x30 + rest % 10)
            rest //= 10
    if d.first == _MOST_DIGITS:
        d.first -= 1
        d.text[d.first] = 0x30
    d.count = _MOST_DIGITS - d.first
    return True


cdef bint write_integer_text(Writer* w, Bytes value, uint64_t size) noexcept nogil:
    """False if the number is too large for the core."""
    cdef Digits d
    if not _read_digits(&d, value, size):
        return False
    if d.is_negative:
        write_byte(w, c'-')
    write_bytes(w, d.text + d.first, <size_t>d.count)
    return True


cdef bint write_decimal_text(Writer* w, Bytes value, uint64_t size, int64_t scale) noexcept nogil:
    """As Java's BigDecimal has it; False if the number is too large for the core."""
    cdef Digits d
    cdef int64_t adjusted, i
    if not _read_digits(&d, value, size):
        return False
    if d.is_negative:
        write_byte(w, c'-')
    adjusted = d.count - 1 - scale
    if scale == 0:
        write_bytes(w, d.text + d.first, <size_t>d.count)
    elif scale > 0 and adjusted >= _LEAST_ADJUSTED:
        if d.count > scale:
            write_bytes(w, d.text + d.first, <size_t>(d.count - scale))
            write_byte(w, c'.')
            write_bytes(w, d.text + d.first + d.count - scale, <size_t>scale)
        else:
            write_byte(w, c'0')
            write_byte(w, c'.')
            for i in range(scale - d.count):
                write_byte(w, c'0')
            write_bytes(w, d.text + d.first, <size_t>d.count)
    else:
        write_byte(w, d.text[d.first])
        if d.count > 1:
            write_byte(w, c'.')
            write_bytes(w, d.text + d.first + 1, <size_t>(d.count - 1))
        write_byte(w, c'E')
        if adjusted >= 0:
            write_byte(w, c'+')
        write_long_text(w, adjusted)
    return True


cdef bint write_decimal_double(Writer* w, Bytes value, uint64_t size, int64_t scale) noexcept nogil:
    """The nearest double; False if the number is too large for the core."""
    cdef size_t start = w.size
    cdef double number
    if not write_decimal_text(w, value, size, scale):
        return False
    write_byte(w, 0)
    if w.is_bad:
        return True
    with gil:
        number = parse_double(<const char*>(w.data + start))
    w.size = start
    if reserve(w, 8):
        memcpy(w.data + w.size, &number, 8)
        w.size += 8
    return True


cdef int write_rescaled(Writer* w, Bytes value, uint64_t size, int64_t by, int64_t precision) noexcept nogil:
    """The shortest two's complement of value * 10 ** by, with its size, if that has at most `precision` digits: 1. 0 if
    it has more, or a fraction; -1 if the number is too large for the core.
    """
    cdef int64_t number, i, count
    cdef uint64_t magnitude
    cdef uint8_t[9] out
    while not is_shortest(value, size):
        value += 1
        size -= 1
    if size > _SHORT:
        return -1
    number = -1 if size and value[0] & 0x80 else 0
    for i in range(<int64_t>size):
        number = <int64_t>(<uint64_t>number << 8 | value[i])
    magnitude = 0 - <uint64_t>number if number < 0 else <uint64_t>number
    if magnitude == 0:
        pass
    elif by >= 0:
        if by > 18 or magnitude > (<uint64_t>1 << 63) // _POWERS[by] - 1:
            return -1
        magnitude *= _POWERS[by]
    else:
        if by < -19 or magnitude % _POWERS[-by]:
            return 0
        magnitude //= _POWERS[-by]
    if precision < 20 and magnitude >= _POWERS[precision]:
        return 0
    if magnitude >> 63:
        return -1
    number = -<int64_t>magnitude if number < 0 else <int64_t>magnitude
    for i in range(8):
        out[i] = <uint8_t>(<uint64_t>number >> (56 - 8 * i))
    i = 0
    while i < 7 and not is_shortest(out + i, <uint64_t>(8 - i)):
        i += 1
    count = 8 - i
    write_avro_long(w, count)
    write_bytes(w, out + i, <size_t>count)
    return 1


cdef bint add_days(int64_t* nanos, int64_t days) noexcept nogil:
    """Add days of 24 hours, at most 106,751 of them, to less than 2 ** 62 ns; False if the sum is no long."""
    cdef int64_t day = 86_400_000_000_000
    cdef int64_t largest = (<uint64_t>1 << 63) - 1
    if days >= 0 and nanos[0] > largest - days * day:
        return False
    if days < 0 and nanos[0] < -largest - 1 - days * day:
        return False
    nanos[0] += days * day
    return True


cdef void write_long_text(Writer* w, int64_t number) noexcept nogil:
    cdef uint8_t[20] text
    cdef int first = 20
    cdef uint64_t rest = 0 - <uint64_t>number if number < 0 else <uint64_t>number
    while True:
        first -= 1
        text[first] = <uint8_t>(0x30 + rest % 10)
        rest //= 10
        if not rest:
            break
    if number < 0:
        write_byte(w, c'-')
    write_bytes(w, text + first, <size_t>(20 - first))


cdef void _write_part(Writer* w, bint is_negative, uint64_t count, uint8_t unit) noexcept nogil:
    if count:
        if is_negative:
            write_byte(w, c'-')
        write_long_text(w, <int64_t>count)
        write_byte(w, unit)


cdef void write_duration_text(Writer* w, int64_t months, int64_t days, int64_t nanos) noexcept nogil:
    """ISO 8601 without the parts that are 0."""
    cdef bint is_negative = nanos < 0
    cdef uint64_t rest = 0 - <uint64_t>nanos if is_negative else <uint64_t>nanos
    cdef uint64_t second = 1_000_000_000, fraction, place
    write_byte(w, c'P')
    _write_part(w, months < 0, <uint64_t>(-months if months < 0 else months), c'M')
    _write_part(w, days < 0, <uint64_t>(-days if days < 0 else days), c'D')
    if not rest and (months or days):
        return
    write_byte(w, c'T')
    if not rest:
        write_text(w, b"0S")
        return
    _write_part(w, is_negative, rest // (3600 * second), c'H')
    rest %= 3600 * second
    _write_part(w, is_negative, rest // (60 * second), c'M')
    rest %= 60 * second
    if not rest:
        return
    if is_negative:
        write_byte(w, c'-')
    write_long_text(w, <int64_t>(rest // second))
    fraction = rest % second
    if fraction:
        write_byte(w, c'.')
        place = second // 10
        while fraction:
            write_byte(w, <uint8_t>(0x30 + fraction // place))
            fraction %= place
            place //= 10
    write_byte(w, c'S')


cdef void write_floating_text(Writer* w, Bytes value, int64_t size) noexcept nogil:
    """A float or double of big-endian bytes, as Python's repr; what JSON has no number for is a string."""
    cdef uint8_t[8] swapped
    cdef float single
    cdef double number
    cdef char* text
    cdef int64_t i
    for i in range(size):
        swapped[i] = value[size - 1 - i]
    if size == 4:
        memcpy(&single, swapped, 4)
        number = single
    else:
        memcpy(&number, swapped, 8)
    if isnan(number):
        if memcmp(value, _QUIET_FLOAT if size == 4 else _QUIET_DOUBLE, <size_t>size) == 0:
            write_text(w, b'"NaN"')
            return
        write_text(w, b'"NaN:')
        write_hex(w, value, <uint64_t>size)
        write_byte(w, c'"')
        return
    if isinf(number):
        if number > 0:
            write_text(w, b'"Infinity"')
        else:
            write_text(w, b'"-Infinity"')
        return
    with gil:
        text = PyOS_double_to_string(number, b'r', 0, Py_DTSF_ADD_DOT_0, NULL)
        if text == NULL:
            w.is_bad = True
            return
        write_text(w, text)
        PyMem_Free(text)


cdef void write_json_string(Writer* w, Bytes value, uint64_t size) noexcept nogil:
    """json.dumps of text in UTF-8, which stays as it is."""
    cdef uint64_t i, start = 0
    cdef uint8_t byte
    write_byte(w, c'"')
    for i in range(size):
        byte = value[i]
        if byte >= 0x20 and byte != c'"' and byte != c'\\':
            continue
        write_bytes(w, value + start, i - start)
        start = i + 1
        write_byte(w, c'\\')
        if byte == c'"' or byte == c'\\':
            write_byte(w, byte)
        elif byte == 0x0A:
            write_byte(w, c'n')
        elif byte == 0x0D:
            write_byte(w, c'r')
        elif byte == 0x09:
            write_byte(w, c't')
        elif byte == 0x0C:
            write_byte(w, c'f')
        elif byte == 0x08:
            write_byte(w, c'b')
        else:
            write_text(w, b"u00")
            write_hex(w, &byte, 1)
    write_bytes(w, value + start, size - start)
    write_byte(w, c'"')


cdef void write_hex(Writer* w, Bytes value, uint64_t size) noexcept nogil:
    cdef uint64_t i
    if size > <uint64_t>1 << 40 or not reserve(w, 2 * size):
        w.is_bad = True
        return
    for i in range(size):
        w.data[w.size] = <uint8_t>_HEX[value[i] >> 4]
        w.data[w.size + 1] = <uint8_t>_HEX[value[i] & 15]
        w.size += 2


cdef void put_size_before(Writer* w, size_t start) noexcept nogil:
    """Put the size of what was written from `start` on before it: then it is an Avro string."""
    cdef size_t size, end = w.size
    cdef uint8_t[10] prefix
    if w.is_bad:
        return
    write_avro_long(w, <int64_t>(end - start))
    if w.is_bad:
        return
    size = w.size - end
    memcpy(prefix, w.data + end, size)
    memmove(w.data + start + size, w.data + start, end - start)
    memcpy(w.data + start, prefix, size)


cdef void quote_text(Writer* w, size_t start) noexcept nogil:
    """Make a JSON string of the JSON text from `start` on, which has no control characters."""
    cdef size_t i, extra = 2, at
    if w.is_bad:
        return
    for i in range(start, w.size):
        extra += w.data[i] == c'"' or w.data[i] == c'\\'
    if not reserve(w, extra):
        return
    i, at = w.size, w.size + extra - 1
    w.size += extra
    w.data[at] = c'"'
    while i > start:
        i -= 1
        at -= 1
        w.data[at] = w.data[i]
        if w.data[i] == c'"' or w.data[i] == c'\\':
            at -= 1
            w.data[at] = c'\\'
    w.data[start] = c'"'
