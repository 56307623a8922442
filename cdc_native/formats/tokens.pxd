# cython: language_level=3
"""Tokens of the Murmur3Partitioner (cassandra_storage.formats.primitives.murmur3), for processors of any byte order."""
from libc.stdint cimport INT64_MAX, INT64_MIN, int8_t, int64_t, uint64_t

from cdc_native.formats.buffers cimport Bytes

cdef enum:
    _BLOCK = 16


cdef inline uint64_t _rotate(uint64_t word, int bits) noexcept nogil:
    return word << bits | word >> (64 - bits)


cdef inline uint64_t _mix1(uint64_t word) noexcept nogil:
    return _rotate(word * <uint64_t>0x87C37B91114253D5, 31) * <uint64_t>0x4CF5AD432745937F


cdef inline uint64_t _mix2(uint64_t word) noexcept nogil:
    return _rotate(word * <uint64_t>0x4CF5AD432745937F, 33) * <uint64_t>0x87C37B91114253D5


cdef inline uint64_t _end(uint64_t word) noexcept nogil:
    word = (word ^ word >> 33) * <uint64_t>0xFF51AFD7ED558CCD
    word = (word ^ word >> 33) * <uint64_t>0xC4CEB9FE1A85EC53
    return word ^ word >> 33


cdef inline uint64_t _block_word(Bytes at) noexcept nogil:
    cdef uint64_t word = 0
    cdef int i
    for i in range(8):
        word |= <uint64_t>at[i] << 8 * i
    return word


cdef inline uint64_t _tail_word(Bytes at, uint64_t size) noexcept nogil:
    """Cassandra takes the bytes of the tail as signed."""
    cdef uint64_t word = 0, i
    for i in range(size):
        word ^= <uint64_t><int64_t><int8_t>at[i] << 8 * i
    return word


cdef inline int64_t token_of(Bytes key, uint64_t size) noexcept nogil:
    """murmur3.decorated_token."""
    cdef uint64_t h1 = 0, h2 = 0, at = 0, tail = size % _BLOCK
    if size == 0:
        return INT64_MIN
    while at < size - tail:
        h1 = (_rotate(h1 ^ _mix1(_block_word(key + at)), 27) + h2) * 5 + 0x52DCE729
        h2 = (_rotate(h2 ^ _mix2(_block_word(key + at + 8)), 31) + h1) * 5 + 0x38495AB5
        at += _BLOCK
    h1 ^= _mix1(_tail_word(key + at, tail if tail < 8 else 8))
    h2 ^= _mix2(_tail_word(key + at + 8, tail - 8 if tail > 8 else 0))
    h1 ^= size
    h2 ^= size
    h1 += h2
    h2 += h1
    h1 = _end(h1) + _end(h2)
    return INT64_MAX if h1 == <uint64_t>1 << 63 else <int64_t>h1
