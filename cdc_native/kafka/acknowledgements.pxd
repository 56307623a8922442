# cython: language_level=3
"""See acknowledgements.pyx."""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from cdc_native.kafka.librdkafka cimport RkMessage


cdef struct _Group:  # messages whose acknowledgements are counted together
    int64_t outstanding
    int64_t acknowledged  # since the last report


cdef struct _Topic:
    uint8_t* is_reached  # by partition: whether a message was acknowledged since the last report
    int32_t partitions  # room in `is_reached`


cdef struct _Place:
    uint32_t topic
    int32_t partition


cdef struct _Refusal:  # of a message
    uint32_t group
    uint32_t topic
    int error


cdef class Acknowledgements:
    cdef int64_t bytes  # of the values that are not acknowledged
    cdef int64_t in_flight
    cdef list _topic_names
    cdef _Topic* topics
    cdef uint32_t topic_count
    cdef list _pendings
    cdef _Group* groups
    cdef uint32_t group_count
    cdef list _free_groups
    cdef uint32_t _group
    # since the last report
    cdef int64_t acknowledged
    cdef int64_t latency
    cdef uint32_t* reached_groups  # room for group_count
    cdef uint32_t reached_group_count
    cdef _Place* reached_places
    cdef size_t reached_place_count
    cdef size_t reached_place_capacity
    cdef bint is_out_of_memory
    cdef _Refusal* refusals
    cdef size_t refusal_count
    cdef size_t refusal_capacity

    cdef int add_topic(self, str name) except -1
    cdef uint32_t group_of(self, pending) except? 0xFFFFFFFF
    cdef void add(self, uint32_t group, size_t size) noexcept nogil
    cdef void remove(self, uint32_t topic, uint32_t group, const RkMessage* message, int64_t latency) noexcept nogil
    cdef tuple report(self, list errors)
    cdef void _refuse(self, uint32_t topic, uint32_t group, int error) noexcept nogil
    cdef list _take_refusals(self)
    cdef int _settle(self, uint32_t group, int64_t count) except -1
    cdef void _reach(self, uint32_t topic, int32_t partition) noexcept nogil
    cdef uint32_t _new_group(self, pending) except? 0xFFFFFFFF
    cdef int _free_group(self, uint32_t group) except -1
