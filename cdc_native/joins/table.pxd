# cython: language_level=3
"""A table of byte strings, each with a number: 0, 1, 2 and so on, in the order in which they came."""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint32_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp

from cdc_native.formats.buffers cimport Bytes, Writer, write_bytes
from cdc_native.formats.murmur2 cimport murmur2

cdef enum:
    FIRST_SLOTS = 64
    MOST_KEYS = 0x3FFFFFFF


cdef struct Key:  # its place in the table's bytes
    size_t at
    size_t size
    uint32_t hashed


cdef struct Table:
    Writer data
    Key* keys
    int32_t* slots    # the numbers of keys, plus 1; 0 is a free one
    int32_t count
    int32_t room      # for keys
    uint32_t slot_count  # a power of two, at least twice the keys


cdef inline void free_table(Table* table) noexcept nogil:
    free(table.data.data)
    free(table.keys)
    free(table.slots)


cdef inline Bytes key_at(const Table* table, int32_t number) noexcept nogil:
    return table.data.data + table.keys[number].at


cdef inline bint _grow(Table* table) noexcept nogil:
    """Room for another key. False if there is no memory."""
    cdef uint32_t slot_count = FIRST_SLOTS if not table.slot_count else 2 * table.slot_count
    cdef uint32_t at
    cdef int32_t number
    cdef int32_t* slots
    cdef void* keys
    if table.count >= MOST_KEYS:
        return False
    if table.count == table.room:
        keys = realloc(table.keys, (<size_t>table.room * 2 + FIRST_SLOTS) * sizeof(Key))
        if keys == NULL:
            return False
        table.keys, table.room = <Key*>keys, table.room * 2 + FIRST_SLOTS
    if <uint32_t>table.count * 2 < table.slot_count:
        return True
    slots = <int32_t*>calloc(slot_count, sizeof(int32_t))
    if slots == NULL:
        return False
    for number in range(table.count):
        at = table.keys[number].hashed & (slot_count - 1)
        while slots[at]:
            at = (at + 1) & (slot_count - 1)
        slots[at] = number + 1
    free(table.slots)
    table.slots, table.slot_count = slots, slot_count
    return True


cdef inline int32_t number_of(Table* table, Bytes key, size_t size) noexcept nogil:
    """The number of a key, which is added if it is new: then it is the last one. -1 if there is no memory."""
    cdef uint32_t hashed = murmur2(key, size), at
    cdef int32_t number
    if not _grow(table):
        return -1
    at = hashed & (table.slot_count - 1)
    while table.slots[at]:
        number = table.slots[at] - 1
        if table.keys[number].hashed == hashed and table.keys[number].size == size:
            if not size or memcmp(key_at(table, number), key, size) == 0:
                return number
        at = (at + 1) & (table.slot_count - 1)
    number = table.count
    table.keys[number].at, table.keys[number].size, table.keys[number].hashed = table.data.size, size, hashed
    write_bytes(&table.data, key, size)
    if table.data.is_bad:
        return -1
    table.count, table.slots[at] = number + 1, number + 1
    return number
