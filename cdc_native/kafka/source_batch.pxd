# cython: language_level=3
"""See source_batch.pyx."""
from libc.stdint cimport int64_t

from cdc_native.avro.messages cimport Messages


cdef class SourceBatch:
    cdef readonly str topic
    cdef readonly int partition
    cdef readonly Messages keys
    cdef readonly Messages values
    cdef readonly Py_ssize_t count
    cdef readonly int64_t size
    cdef int64_t* offsets_at
    cdef int64_t* timestamps_at
    cdef bint is_part
    cdef SourceBatch _owner  # of the offsets and timestamps of a part

    cdef int allocate(self, Py_ssize_t count) except -1
    cdef void measure(self) noexcept nogil
