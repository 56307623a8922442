# cython: language_level=3
"""Texts, and what is written as one: UUIDs and addresses.

Python oracle: uuid.UUID, ipaddress.ip_address.
"""
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from cdc_native.formats.buffers cimport Bytes, Writer, reserve


cdef bint is_ascii(Bytes value, uint64_t size) noexcept nogil:
    cdef uint8_t found = 0
    cdef uint64_t i
    for i in range(size):
        found |= value[i]
    return found < 0x80


cdef bint is_utf8(Bytes value, uint64_t size) noexcept nogil:
    """Whether Python decodes it: no overlong forms, no surrogates, nothing above U+10FFFF."""
    cdef uint64_t i = 0, word
    cdef uint8_t first, second, low, high
    cdef int more, j
    while i < size:
        if size - i >= 8:
            memcpy(&word, value + i, 8)
            if not word & <uint64_t>0x8080808080808080:
                i += 8
                continue
        first = value[i]
        i += 1
        if first < 0x80:
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            more = 3
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        else:
            return False
        if size - i < <uint64_t>more:
            return False
        second = value[i]
        if second < low or second > high:
            return False
        for j in range(1, more):
            if value[i + j] & 0xC0 != 0x80:
                return False
        i += <uint64_t>more
    return True


cdef const char* _HEX = b"0123456789abcdef"


cdef void write_uuid(Writer* w, Bytes value) noexcept nogil:
    """16 bytes as a string of 36 characters, with its length."""
    cdef uint8_t* out
    cdef int i
    if not reserve(w, 37):
        return
    out = w.data + w.size
    out[0] = 0x48
    out += 1
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            out[0] = 0x2D
            out += 1
        out[0] = _HEX[value[i] >> 4]
        out[1] = _HEX[value[i] & 15]
        out += 2
    w.size += 37


cdef int _decimal(uint8_t* out, int number) noexcept nogil:
    """0 .. 255 in decimal; how many digits."""
    cdef int size = 0
    if number >= 100:
        out[size] = <uint8_t>(48 + number // 100)
        size += 1
    if number >= 10:
        out[size] = <uint8_t>(48 + number // 10 % 10)
        size += 1
    out[size] = <uint8_t>(48 + number % 10)
    return size + 1


cdef int write_ipv4(uint8_t* out, Bytes value) noexcept nogil:
    """4 bytes in at most 15 characters; how many."""
    cdef int size = 0, i
    for i in range(4):
        if i:
            out[size] = 0x2E
            size += 1
        size += _decimal(out + size, value[i])
    return size


cdef int write_ipv6(uint8_t* out, Bytes value) noexcept nogil:
    """16 bytes in at most 39 characters, as str(ipaddress.IPv6Address): the longest run of zeros, of several the first,
    is ::. How many characters.
    """
    cdef int group[8]
    cdef int i, j, best = -1, longest = 1, run, size = 0, shift
    cdef bint has_digit
    for i in range(8):
        group[i] = value[2 * i] << 8 | value[2 * i + 1]
    i = 0
    while i < 8:
        run = 0
        while i + run < 8 and group[i + run] == 0:
            run += 1
        if run > longest:
            best, longest = i, run
        i += run + 1
    i = 0
    while i < 8:
        if i == best:
            out[size] = 0x3A
            size += 1
            i += longest
            if i == 8:
                out[size] = 0x3A
                size += 1
            continue
        if i:
            out[size] = 0x3A
            size += 1
        has_digit = False
        for j in range(4):
            shift = 12 - 4 * j
            if has_digit or group[i] >> shift & 15 or j == 3:
                out[size] = <uint8_t>_HEX[group[i] >> shift & 15]
                size += 1
                has_digit = True
        i += 1
    return size
