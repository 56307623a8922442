# cython: language_level=3
"""Kafka's hash of a key."""
from libc.stdint cimport uint32_t

from cdc_native.formats.buffers cimport Bytes


cdef inline uint32_t murmur2(Bytes at, size_t size) noexcept nogil:
    """org.apache.kafka.common.utils.Utils.murmur2."""
    cdef size_t i
    cdef uint32_t hashed = <uint32_t>0x9747B28C ^ <uint32_t>size, mixed, factor = 0x5BD1E995
    for i in range(size >> 2):
        mixed = at[0] | <uint32_t>at[1] << 8 | <uint32_t>at[2] << 16 | <uint32_t>at[3] << 24
        mixed *= factor
        mixed = (mixed ^ mixed >> 24) * factor
        hashed = hashed * factor ^ mixed
        at += 4
    if size & 3:
        mixed = at[0]
        if size & 3 > 1:
            mixed |= <uint32_t>at[1] << 8
        if size & 3 > 2:
            mixed |= <uint32_t>at[2] << 16
        hashed = (hashed ^ mixed) * factor
    hashed = (hashed ^ hashed >> 13) * factor
    return hashed ^ hashed >> 15
