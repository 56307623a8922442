# cython: language_level=3
"""Numbers and durations in the forms that are not Cassandra's own: see numbers.pyx."""
from libc.stdint cimport int64_t, uint64_t

from cdc_native.formats.buffers cimport Bytes, Writer

cdef void write_text(Writer* w, const char* text) noexcept nogil
cdef bint is_shortest(Bytes value, uint64_t size) noexcept nogil
cdef bint write_integer_text(Writer* w, Bytes value, uint64_t size) noexcept nogil
cdef bint write_decimal_text(Writer* w, Bytes value, uint64_t size, int64_t scale) noexcept nogil
cdef bint write_decimal_double(Writer* w, Bytes value, uint64_t size, int64_t scale) noexcept nogil
cdef int write_rescaled(Writer* w, Bytes value, uint64_t size, int64_t by, int64_t precision) noexcept nogil
cdef bint add_days(int64_t* nanos, int64_t days) noexcept nogil
cdef void write_long_text(Writer* w, int64_t number) noexcept nogil
cdef void write_duration_text(Writer* w, int64_t months, int64_t days, int64_t nanos) noexcept nogil
cdef void write_floating_text(Writer* w, Bytes value, int64_t size) noexcept nogil
cdef void write_json_string(Writer* w, Bytes value, uint64_t size) noexcept nogil
cdef void write_hex(Writer* w, Bytes value, uint64_t size) noexcept nogil
cdef void put_size_before(Writer* w, size_t start) noexcept nogil
cdef void quote_text(Writer* w, size_t start) noexcept nogil
