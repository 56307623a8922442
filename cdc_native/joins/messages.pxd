# cython: language_level=3
"""See messages.pyx."""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t

from cdc_native.formats.buffers cimport Bytes
from cdc_native.joins.rule cimport Text

cdef enum:
    PUT = 0, UPDATE, RETRACT  # joinery.joining.records.Kind


cdef struct Routed:  # a message of the internal topic, where it lies
    bint is_mine     # otherwise it is the Python code's
    int kind
    bint may_miss
    bint has_more
    int64_t definition  # the number of the definition that it was routed by; 0 if that is not known
    int input
    int64_t partition
    int64_t offset
    int64_t sequence
    int64_t ts_us
    Bytes key        # the join key, then what distinguishes a row that is alone
    size_t join_size
    size_t key_size
    Text cause
    Text ident
    Text columns
    int32_t group
    int32_t row
    int32_t place


cdef int read_routed(Routed* routed, Bytes key, int64_t key_size, Bytes value, int64_t size, int inputs, Text* cause) except -1
