# cython: language_level=3
"""See output.pyx."""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t

from cdc_native.formats.buffers cimport Writer
from cdc_native.joins.messages cimport Routed
from cdc_native.joins.rule cimport Rule, Text


cdef struct Image:    # a row of an input in a joined row
    bint is_row
    Text ident
    Text columns
    int64_t sequence


cdef struct Made:     # a message of the target, in Output.data
    size_t key_at
    size_t value_at   # the key's end
    size_t value_end
    bint is_tombstone


cdef struct Mark:     # how much is written
    size_t size
    int32_t count
    int64_t changes


cdef class Output:
    cdef Rule rule
    cdef Writer data
    cdef Made* made
    cdef int32_t count, room
    cdef int64_t changes
    cdef bint is_bad      # there is no memory
    cdef bytes _kept
    cdef Text ending      # of each value

    cdef Mark mark(self) noexcept nogil
    cdef void undo(self, Mark mark) noexcept nogil
    cdef int64_t write(
        self, const Routed* routed, int64_t offset, const Image* others, const Image* before, const Image* after
    ) noexcept nogil
    cdef size_t _write_image(
        self, const Routed* routed, const Image* others, const Image* own, size_t key_at, size_t key_size
    ) noexcept nogil
    cdef void _write_source(
        self, const Routed* routed, int64_t offset, const Image* others, const Image* own
    ) noexcept nogil
    cdef void _add(self, Made made) noexcept nogil
    cdef tuple messages(self)
