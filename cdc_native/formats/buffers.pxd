# cython: language_level=3
"""Bounds-checked reading and writing of bytes; every reader and writer of the core is made of these functions.

A Cursor that would read past its end sets `is_bad` and returns 0 from then on: check it after a group of reads, and
before a value of these reads decides about memory. A Writer that finds no memory sets `is_bad`.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy

ctypedef const uint8_t* Bytes

cdef extern from *:
    """
    static inline int leading_ones(unsigned char b) { return b == 0xff ? 8 : __builtin_clz(~(((unsigned)b) << 24)); }
    static inline int bit_length(unsigned long long v) { return v ? 64 - __builtin_clzll(v) : 0; }
    """
    int leading_ones(uint8_t b) nogil
    int bit_length(uint64_t v) nogil


cdef struct Cursor:
    Bytes at
    Bytes end
    bint is_bad


cdef struct Writer:
    uint8_t* data
    size_t size
    size_t capacity
    bint is_bad


cdef inline Bytes take(Cursor* c, uint64_t count) noexcept nogil:
    """Step over `count` bytes; where they begin."""
    cdef Bytes start = c.at
    if c.is_bad or count > <uint64_t>(c.end - c.at):
        c.is_bad = True
        return c.end
    c.at += count
    return start


cdef inline uint8_t read_byte(Cursor* c) noexcept nogil:
    if c.is_bad or c.at >= c.end:
        c.is_bad = True
        return 0
    cdef uint8_t value = c.at[0]
    c.at += 1
    return value


cdef inline uint64_t read_unsigned_vint(Cursor* c) noexcept nogil:
    """VIntCoding.readUnsignedVInt."""
    cdef uint8_t first
    cdef uint64_t value
    cdef int extra, i
    if c.is_bad or c.at >= c.end:
        c.is_bad = True
        return 0
    first = c.at[0]
    if first < 0x80:
        c.at += 1
        return first
    extra = leading_ones(first)
    if c.end - c.at <= extra:
        c.is_bad = True
        return 0
    value = first & (0xFF >> extra)
    for i in range(1, extra + 1):
        value = value << 8 | c.at[i]
    c.at += extra + 1
    return value


cdef inline int64_t read_int(Cursor* c) noexcept nogil:
    """cassandra_storage.formats.primitives.vint.read_int: the lower 32 bits as a signed number."""
    return <int32_t><uint32_t>read_unsigned_vint(c)


cdef inline int64_t read_avro_long(Cursor* c) noexcept nogil:
    """Avro's int or long of at most ten bytes: zigzag, seven bits a byte, the lowest first."""
    cdef Bytes at = c.at
    cdef uint64_t value
    cdef int shift = 7
    cdef uint8_t byte
    if c.is_bad or at >= c.end:
        c.is_bad = True
        return 0
    byte = at[0]
    at += 1
    value = byte & 0x7F
    while byte >= 0x80:
        if at >= c.end or shift > 63:
            c.is_bad = True
            return 0
        byte = at[0]
        at += 1
        if shift == 63 and byte > 1:
            c.is_bad = True
            return 0
        value |= <uint64_t>(byte & 0x7F) << shift
        shift += 7
    c.at = at
    return <int64_t>((value >> 1) ^ (0 - (value & 1)))


cdef inline bint reserve(Writer* w, size_t count) noexcept nogil:
    """Make room for `count` more bytes; False if there is no memory."""
    cdef size_t capacity
    cdef void* data
    if w.is_bad:
        return False
    if count <= w.capacity - w.size:
        return True
    if count > (<size_t>-1 >> 1) - w.size:
        w.is_bad = True
        return False
    capacity = (w.size + count) * 2
    data = realloc(w.data, capacity)
    if data == NULL:
        w.is_bad = True
        return False
    w.data = <uint8_t*>data
    w.capacity = capacity
    return True


cdef inline void write_byte(Writer* w, uint8_t value) noexcept nogil:
    if reserve(w, 1):
        w.data[w.size] = value
        w.size += 1


cdef inline void write_bytes(Writer* w, Bytes data, size_t count) noexcept nogil:
    if reserve(w, count) and count:  # a Writer without memory has no address to copy nothing to
        memcpy(w.data + w.size, data, count)
        w.size += count


cdef inline void write_unsigned_vint(Writer* w, uint64_t value) noexcept nogil:
    """VIntCoding.writeUnsignedVInt."""
    cdef int size, i
    cdef uint8_t* out
    if not reserve(w, 9):
        return
    out = w.data + w.size
    size = (bit_length(value) + 6) // 7
    if size <= 1:
        out[0] = <uint8_t>value
        w.size += 1
        return
    if size > 8:
        out[0] = 0xFF
        for i in range(8):
            out[1 + i] = <uint8_t>(value >> (56 - 8 * i))
        w.size += 9
        return
    for i in range(size):
        out[i] = <uint8_t>(value >> (8 * (size - 1 - i)))
    out[0] |= <uint8_t>(0xFF00 >> (size - 1))
    w.size += size


cdef inline void write_avro_long(Writer* w, int64_t number) noexcept nogil:
    """Avro's long: zigzag, seven bits a byte, the lowest first."""
    cdef uint64_t value = (<uint64_t>number << 1) ^ <uint64_t>(number >> 63)
    if not reserve(w, 10):
        return
    while value >= 0x80:
        w.data[w.size] = <uint8_t>(value | 0x80)
        w.size += 1
        value >>= 7
    w.data[w.size] = <uint8_t>value
    w.size += 1
