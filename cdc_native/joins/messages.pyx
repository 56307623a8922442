# cython: language_level=3
"""Reads messages of a join's internal topic where they lie.

Python oracle: joinery.internal.codec.
"""
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stddef cimport size_t
from libc.stdint cimport INT64_MAX, int64_t
from libc.string cimport memcmp

from cdc_native.formats.buffers cimport Bytes, Cursor, read_avro_long

cdef enum:
    VERSION = 1
    KIND = 3, MAY_MISS = 4, HAS_MORE = 8, DEFINITION_BITS = 4
    NUMBERS = 8, TEXTS = 3
    FLAGS = 1, JOIN_SIZE, INPUT, PARTITION, OFFSET, SEQUENCE, TIME  # of the numbers


cdef int read_routed(
    Routed* routed, Bytes key, int64_t key_size, Bytes value, int64_t size, int inputs, Text* cause
) except -1:
    """Read a message. It is not mine if it is no message of this version. cause: the last one that was checked."""
    cdef Cursor c
    cdef int64_t numbers[NUMBERS]
    cdef Text texts[TEXTS]
    cdef int64_t found
    cdef int i
    routed.is_mine = False
    if value == NULL or key == NULL:
        return 0
    c.at, c.end, c.is_bad = value, value + size, False
    for i in range(NUMBERS):
        numbers[i] = read_avro_long(&c)
    for i in range(TEXTS):
        found = read_avro_long(&c)
        if c.is_bad or not 0 <= found <= c.end - c.at:
            return 0
        texts[i] = Text(c.at, <size_t>found)
        c.at += found
    if c.is_bad or c.at != c.end or numbers[0] != VERSION or numbers[FLAGS] & KIND > RETRACT:
        return 0
    if not 0 <= numbers[JOIN_SIZE] <= key_size or not 0 <= numbers[INPUT] < inputs:
        return 0
    if not 0 <= numbers[PARTITION] <= 0x7FFFFFFF or not 0 <= numbers[OFFSET] < INT64_MAX:
        return 0
    if not _is_text(&texts[0], cause):
        return 0
    routed.is_mine, routed.kind = True, <int>(numbers[FLAGS] & KIND)
    routed.may_miss, routed.has_more = numbers[FLAGS] & MAY_MISS != 0, numbers[FLAGS] & HAS_MORE != 0
    routed.definition = numbers[FLAGS] >> DEFINITION_BITS
    routed.input, routed.partition, routed.offset = <int>numbers[INPUT], numbers[PARTITION], numbers[OFFSET]
    routed.sequence, routed.ts_us = numbers[SEQUENCE], numbers[TIME]
    routed.key, routed.join_size, routed.key_size = key, <size_t>numbers[JOIN_SIZE], <size_t>key_size
    routed.cause, routed.ident, routed.columns = texts[0], texts[1], texts[2]
    return 0


cdef bint _is_text(const Text* text, Text* last) except -1:
    """Whether it is UTF-8."""
    if last.at != NULL and last.size == text.size and memcmp(last.at, text.at, text.size) == 0:
        return True
    try:
        PyUnicode_DecodeUTF8(<const char*>text.at, <Py_ssize_t>text.size, NULL)
    except UnicodeDecodeError:
        return False
    last[0] = text[0]
    return True
