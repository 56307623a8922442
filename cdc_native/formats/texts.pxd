# cython: language_level=3
"""See texts.pyx."""
from libc.stdint cimport uint8_t, uint64_t

from cdc_native.formats.buffers cimport Bytes, Writer

cdef bint is_ascii(Bytes value, uint64_t size) noexcept nogil
cdef bint is_utf8(Bytes value, uint64_t size) noexcept nogil
cdef void write_uuid(Writer* w, Bytes value) noexcept nogil
cdef int write_ipv4(uint8_t* out, Bytes value) noexcept nogil
cdef int write_ipv6(uint8_t* out, Bytes value) noexcept nogil
