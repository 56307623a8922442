# cython: language_level=3
"""Byte-comparable keys of clusterings and of cells' paths: see keys.pyx."""
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp

from cdc_native.formats.buffers cimport Bytes, Writer


# How values are ordered; `size` as set_key_type has it.
cdef struct KeyType:
    int kind
    int64_t size
    bint is_reversed


cdef int set_key_type(KeyType* t, object form) except -1
cdef bint write_component(Writer* w, const KeyType* t, Bytes value, uint64_t size, bint is_null) noexcept nogil
cdef bint is_path(const KeyType* t, Bytes path, uint64_t size) noexcept nogil
cdef int compare_paths(
    const KeyType* t, Bytes left, uint64_t left_size, Bytes right, uint64_t right_size
) noexcept nogil


cdef inline int compare_bytes(Bytes left, uint64_t left_size, Bytes right, uint64_t right_size) noexcept nogil:
    cdef int found = memcmp(left, right, left_size if left_size < right_size else right_size)
    if found:
        return found
    return 0 if left_size == right_size else (-1 if left_size < right_size else 1)
