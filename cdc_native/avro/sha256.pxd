# cython: language_level=3
"""HMAC-SHA256 under a key that is set once, by OpenSSL's functions."""
from libc.stdint cimport uint8_t, uint64_t

from cdc_native.formats.buffers cimport Bytes

cdef enum:
    DIGEST_SIZE = 32


cdef struct State:  # SHA256_CTX, of 112 bytes in all versions of OpenSSL, with room to spare
    uint64_t words[32]


cdef struct Hmac:  # the states after the first block, which the key decides
    State inner
    State outer


cdef bint is_available() noexcept
cdef int set_key(Hmac* h, bytes key) except -1
cdef void authenticate(const Hmac* h, Bytes data, size_t size, uint8_t* digest) noexcept nogil
