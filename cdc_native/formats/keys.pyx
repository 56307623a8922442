# cython: language_level=3
"""Byte-comparable keys of clusterings and of cells' paths.

Python oracle: cassandra_storage.formats.rows.byte_comparable.

Of the native types but decimal and varint, whose keys the Python code makes.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from cdc_native.formats.buffers cimport Bytes, Writer, bit_length, reserve, write_byte

cdef enum Kind:
    UNKNOWN
    ESCAPED
    SIGNED
    FIXED
    FLOATING
    BOOLEAN
    BIGINT
    UUID
    TIMEUUID
    FIELD

cdef enum:
    _KEY_SIZE = 16  # no key of a type of fixed length is longer

cdef dict _KINDS = {
    "unknown": UNKNOWN, "escaped": ESCAPED, "signed": SIGNED, "fixed": FIXED, "floating": FLOATING, "boolean": BOOLEAN,
    "bigint": BIGINT, "uuid": UUID, "timeuuid": TIMEUUID, "field": FIELD,
}


# The bytes of a value, on which _fixed_key relies.
cdef dict _SIZES = {
    "signed": range(1, _KEY_SIZE + 1), "fixed": range(1, _KEY_SIZE + 1), "floating": (4, 8), "boolean": (1,),
    "bigint": (8,), "uuid": (16,), "timeuuid": (16,), "field": range(1 << 16),
}


cdef int set_key_type(KeyType* t, object form) except -1:
    """form: (kind, size, is reversed). size: a value's bytes; of "field" how many fields the user type has."""
    kind, size, is_reversed = form
    t.kind, t.size, t.is_reversed = _KINDS[kind], size, is_reversed
    if t.size not in _SIZES.get(kind, (t.size,)):
        raise ValueError(f"{size} bytes of the kind {kind}")
    return 0


cdef int _fixed_key(const KeyType* t, Bytes value, uint64_t size, uint8_t* out) noexcept nogil:
    """The key, at most _KEY_SIZE bytes, and its size; 0 for an empty value, -1 for none of the type."""
    cdef int i, length = <int>t.size
    cdef uint64_t high
    if t.kind == FIELD:
        if size != 2 or (value[0] << 8 | value[1]) >= t.size:
            return -1
        out[0], out[1] = value[0] ^ 0x80, value[1]
        return 2
    if size == 0:
        return 0
    if size != <uint64_t>t.size:
        return -1
    if t.kind == BIGINT:
        return _bigint(value, out)
    if t.kind == BOOLEAN:
        out[0] = value[0] != 0
        return 1
    if t.kind == UUID and value[6] & 0xF0 != 0x10:
        high = 0
        for i in range(8):
            high = high << 8 | value[i]
        high = high << 48 & <uint64_t>0xF000000000000000 | high >> 4 & <uint64_t>0x0FFFFFFFFFFFF000 | high & 0xFFF
        for i in range(8):
            out[i] = <uint8_t>(high >> (56 - 8 * i))
        memcpy(out + 8, value + 8, 8)
        return 16
    if t.kind == UUID or t.kind == TIMEUUID:
        memcpy(out, value + 6, 2)
        memcpy(out + 2, value + 4, 2)
        memcpy(out + 4, value, 4)
        for i in range(8, 16):
            out[i] = value[i] ^ (0x80 if t.kind == TIMEUUID else 0)
        return 16
    memcpy(out, value, <size_t>length)
    if t.kind == FLOATING:
        _order_floating(out, length)
    elif t.kind == SIGNED:
        out[0] ^= 0x80
    return length


cdef void _order_floating(uint8_t* out, int length) noexcept nogil:
    """ByteSource's order of a float or double: all NaNs are one, above infinity."""
    cdef int i
    cdef uint8_t rest = out[1] & (0x0F if length == 8 else 0x7F)
    cdef uint8_t exponent = 0xF0 if length == 8 else 0x80
    cdef bint is_special = out[0] & 0x7F == 0x7F and out[1] & exponent == exponent
    for i in range(2, length):
        rest |= out[i]
    if is_special and rest:
        out[0], out[1] = 0x7F, 0xF8 if length == 8 else 0xC0
        for i in range(2, length):
            out[i] = 0
    if out[0] & 0x80:
        for i in range(length):
            out[i] ^= 0xFF
    else:
        out[0] ^= 0x80


cdef int _bigint(Bytes value, uint8_t* out) noexcept nogil:
    """ByteSource.VariableLengthInteger."""
    cdef uint64_t number = 0, magnitude
    cdef int i, bits, size, start = 0
    cdef bint is_negative = value[0] & 0x80
    for i in range(8):
        number = number << 8 | value[i]
    magnitude = ~number if is_negative else number
    bits = bit_length(magnitude)
    size = (bits if bits else 1) // 7 + 1
    if size >= 9:
        out[0] = 0xFF
        start, size = 1, 8
        magnitude |= <uint64_t>1 << 63
    else:
        magnitude |= <uint64_t>(-0x100 >> size & 0xFF) << (8 * size - 8)
    for i in range(size):
        out[start + i] = <uint8_t>(magnitude >> (8 * (size - 1 - i)))
    if is_negative:
        for i in range(start + size):
            out[i] ^= 0xFF
    return start + size


cdef void _write_escaped(Writer* w, Bytes value, uint64_t size) noexcept nogil:
    """AbstractEscaper: a zero byte ends the value, n of the value's own are 00 FE*(n-1) FF, at its end 00 FE*n."""
    cdef uint64_t i
    cdef uint8_t* out
    if size > (<uint64_t>1 << 60) or not reserve(w, 2 * size + 1):
        return
    out = w.data + w.size
    for i in range(size):
        if value[i]:
            if i and value[i - 1] == 0:
                out[0] = 0xFF
                out += 1
            out[0] = value[i]
        else:
            out[0] = 0xFE if i and value[i - 1] == 0 else 0
        out += 1
    if size and value[size - 1] == 0:
        out[0] = 0xFE
    else:
        out[0] = 0
    w.size = <size_t>(out + 1 - w.data)


cdef bint write_component(Writer* w, const KeyType* t, Bytes value, uint64_t size, bint is_null) noexcept nogil:
    """Append one element of a clustering with the separator before it; False if it is the Python code's."""
    cdef size_t start, i
    cdef int length = -1
    if t.kind == UNKNOWN:
        return False
    if is_null:
        write_byte(w, 0x3E)
        return True
    if not reserve(w, _KEY_SIZE + 1):
        return False
    start = w.size
    write_byte(w, 0x40)
    if t.kind == ESCAPED:
        _write_escaped(w, value, size)
    else:
        length = _fixed_key(t, value, size, w.data + w.size)
        if length < 0:
            return False
        if length == 0:
            w.data[start] = 0x41 if t.is_reversed else 0x3F
            return True
        w.size += <size_t>length
    if w.is_bad:
        return False
    if t.is_reversed:
        for i in range(start + 1, w.size):
            w.data[i] ^= 0xFF
    return True


cdef bint is_path(const KeyType* t, Bytes path, uint64_t size) noexcept nogil:
    """Whether this is a path of the type, whose order is known here."""
    cdef uint8_t key[_KEY_SIZE]
    if t.kind == ESCAPED:
        return True
    return t.kind != UNKNOWN and _fixed_key(t, path, size, key) >= 0


cdef int compare_paths(
    const KeyType* t, Bytes left, uint64_t left_size, Bytes right, uint64_t right_size
) noexcept nogil:
    """The order of two paths, by their keys; of what is_path refuses, 0. Paths that are not equal may be two forms of
    one: 0.
    """
    cdef uint8_t left_key[_KEY_SIZE]
    cdef uint8_t right_key[_KEY_SIZE]
    cdef int left_length, right_length
    if t.kind == ESCAPED:
        return compare_bytes(left, left_size, right, right_size)
    left_length = _fixed_key(t, left, left_size, left_key)
    right_length = _fixed_key(t, right, right_size, right_key)
    if left_length < 0 or right_length < 0:
        return 0
    return compare_bytes(left_key, <uint64_t>left_length, right_key, <uint64_t>right_length)


def component(form: tuple, value: bytes | None) -> bytes | None:
    """One element of a clustering's key with its separator; None if the Python code must make it."""
    cdef KeyType t
    cdef Writer w
    cdef bint is_mine
    cdef Bytes at = NULL
    cdef uint64_t size = 0
    w.data, w.size, w.capacity, w.is_bad = NULL, 0, 0, False
    if value is not None:
        at, size = <Bytes><const char*>value, <uint64_t>len(value)
    set_key_type(&t, form)
    try:
        is_mine = write_component(&w, &t, at, size, value is None)
        return w.data[:w.size] if is_mine else None
    finally:
        free(w.data)


def order(form: tuple, left: bytes, right: bytes) -> int | None:
    """-1, 0 or 1 by the order of two paths; None if one is not a path of the type or the Python code must tell."""
    cdef KeyType t
    cdef Bytes x = <Bytes><const char*>left
    cdef Bytes y = <Bytes><const char*>right
    cdef int found
    set_key_type(&t, form)
    if not is_path(&t, x, <uint64_t>len(left)) or not is_path(&t, y, <uint64_t>len(right)):
        return None
    found = compare_paths(&t, x, <uint64_t>len(left), y, <uint64_t>len(right))
    return (found > 0) - (found < 0)
