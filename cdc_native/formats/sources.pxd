# cython: language_level=3
"""See sources.pyx."""
from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from cdc_native.formats.buffers cimport Writer


cdef class Sources:
    cdef readonly int count
    cdef list _waiting  # those that are not open, the first one last
    cdef dict _kept  # those that are, by their index
    cdef PyObject** _open  # the same, in their order; each stands at a partition
    cdef int _open_count
    cdef PyObject** group  # those of them that stand at the first partition
    cdef int group_count
    cdef int64_t token  # of that partition
    cdef Writer key

    cdef bint choose(self) except -1
    cdef bint advance(self) except -1
    cdef bint _open_due(self) except -1
    cdef bint _choose_group(self) noexcept
