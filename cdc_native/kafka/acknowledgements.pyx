# cython: language_level=3
"""Counts messages that a producer has sent and Kafka has not acknowledged, and those acknowledged since the last
report.

Python oracle: publisher.kafka.producers.ConfluentProducer.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from cdc_native.kafka.librdkafka cimport RkMessage

cdef enum:
    NO_GROUP = 0  # of messages whose acknowledgement is not awaited


cdef class Acknowledgements:
    """Messages are counted in groups, one for each `pending`, and by topic and partition. Not to be used by two threads.

    A group and a topic are named by their places, which `group_of` and `add_topic` give: the other functions take no
    other numbers.
    """

    def __cinit__(self):
        self._topic_names, self._pendings, self._free_groups = [], [], []
        self._new_group(None)

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.topic_count):
            free(self.topics[i].is_reached)
        free(self.topics)
        free(self.groups)
        free(self.reached_groups)
        free(self.reached_places)
        free(self.refusals)

    cdef int add_topic(self, str name) except -1:
        """Its place is the number of topics before it."""
        cdef void* memory = realloc(self.topics, (<size_t>self.topic_count + 1) * sizeof(_Topic))
        if memory == NULL:
            raise MemoryError
        self.topics = <_Topic*>memory
        memset(&self.topics[self.topic_count], 0, sizeof(_Topic))
        self._topic_names.append(name)
        self.topic_count += 1
        return 0

    cdef void add(self, uint32_t group, size_t size) noexcept nogil:
        """Count a message that was sent."""
        self.bytes += <int64_t>size
        self.in_flight += 1
        self.groups[group].outstanding += 1

    cdef void remove(self, uint32_t topic, uint32_t group, const RkMessage* message, int64_t latency) noexcept nogil:
        """Count a message that was acknowledged, `latency` us after it was sent, or refused."""
        self.bytes -= <int64_t>message.len
        self.in_flight -= 1
        if message.err:
            self._refuse(topic, group, message.err)
            return
        self.acknowledged += 1
        self.latency += latency
        if group != NO_GROUP:
            if not self.groups[group].acknowledged:
                self.reached_groups[self.reached_group_count] = group
                self.reached_group_count += 1
            self.groups[group].acknowledged += 1
        self._reach(topic, message.partition)

    cdef void _refuse(self, uint32_t topic, uint32_t group, int error) noexcept nogil:
        """Note a message that was refused."""
        cdef void* memory
        if self.refusal_count == self.refusal_capacity:
            memory = realloc(self.refusals, (self.refusal_capacity * 2 + 64) * sizeof(_Refusal))
            if memory == NULL:
                self.is_out_of_memory = True
                return
            self.refusals = <_Refusal*>memory
            self.refusal_capacity = self.refusal_capacity * 2 + 64
        self.refusals[self.refusal_count].group = group
        self.refusals[self.refusal_count].topic = topic
        self.refusals[self.refusal_count].error = error
        self.refusal_count += 1

    cdef void _reach(self, uint32_t topic, int32_t partition) noexcept nogil:
        """Note that the partition was written to."""
        cdef _Topic* found = &self.topics[topic]
        cdef void* memory
        cdef int32_t i
        if partition < 0:
            return
        if partition >= found.partitions:
            memory = realloc(found.is_reached, <size_t>partition + 1)
            if memory == NULL:
                self.is_out_of_memory = True
                return
            found.is_reached = <uint8_t*>memory
            for i in range(found.partitions, partition + 1):
                found.is_reached[i] = False
            found.partitions = partition + 1
        if found.is_reached[partition]:
            return
        if self.reached_place_count == self.reached_place_capacity:
            memory = realloc(self.reached_places, (self.reached_place_capacity * 2 + 64) * sizeof(_Place))
            if memory == NULL:
                self.is_out_of_memory = True
                return
            self.reached_places = <_Place*>memory
            self.reached_place_capacity = self.reached_place_capacity * 2 + 64
        found.is_reached[partition] = True
        self.reached_places[self.reached_place_count].topic = topic
        self.reached_places[self.reached_place_count].partition = partition
        self.reached_place_count += 1

    cdef tuple report(self, list errors):
        """Return what Producer.poll returns. MemoryError if there was none to count with."""
        cdef list pendings = [], places = [], refusals
        cdef uint32_t i, group
        cdef _Place* place
        cdef int64_t count = self.acknowledged
        cdef double seconds = self.latency / 1e6
        if self.is_out_of_memory:
            raise MemoryError
        for i in range(self.reached_group_count):
            group = self.reached_groups[i]
            pendings.append((self._pendings[group], self.groups[group].acknowledged))
            self._settle(group, self.groups[group].acknowledged)
            self.groups[group].acknowledged = 0
        refusals = self._take_refusals()
        for i in range(<uint32_t>self.reached_place_count):
            place = &self.reached_places[i]
            self.topics[place.topic].is_reached[place.partition] = False
            places.append((self._topic_names[place.topic], place.partition))
        self.acknowledged = self.latency = 0
        self.reached_group_count = 0
        self.reached_place_count = 0
        return pendings, count, seconds, places, errors, refusals

    cdef list _take_refusals(self):
        """A list of a `pending` or None, how many of its messages were refused, librdkafka's error, and the topic."""
        cdef dict counts = {}
        cdef size_t i
        for i in range(self.refusal_count):
            place = self.refusals[i].group, self.refusals[i].error, self.refusals[i].topic
            counts[place] = counts.get(place, 0) + 1
        self.refusal_count = 0
        found = []
        for (group, error, topic), count in counts.items():
            found.append((self._pendings[group], count, error, self._topic_names[topic]))
            if group != NO_GROUP:
                self._settle(group, count)
        return found

    cdef int _settle(self, uint32_t group, int64_t count) except -1:
        """So many messages of the group are no longer outstanding."""
        self.groups[group].outstanding -= count
        if not self.groups[group].outstanding and group != self._group:
            self._free_group(group)
        return 0

    cdef uint32_t group_of(self, pending) except? 0xFFFFFFFF:
        """The group of the messages of `pending`, which is new unless the last message had the same."""
        cdef uint32_t latest = self._group
        if pending is None:
            return NO_GROUP
        if latest != NO_GROUP and self._pendings[latest] is pending:
            return latest
        if self._free_groups:
            self._group = self._free_groups.pop()
            self._pendings[self._group] = pending
        else:
            self._group = self._new_group(pending)
        if latest != NO_GROUP and not self.groups[latest].outstanding:
            self._free_group(latest)
        return self._group

    cdef uint32_t _new_group(self, pending) except? 0xFFFFFFFF:
        cdef size_t count = <size_t>self.group_count + 1
        cdef void* groups = realloc(self.groups, count * sizeof(_Group))
        cdef void* reached
        if groups == NULL:
            raise MemoryError
        self.groups = <_Group*>groups
        reached = realloc(self.reached_groups, count * sizeof(uint32_t))
        if reached == NULL:
            raise MemoryError
        self.reached_groups = <uint32_t*>reached
        memset(&self.groups[self.group_count], 0, sizeof(_Group))
        self._pendings.append(pending)
        self.group_count += 1
        return self.group_count - 1

    cdef int _free_group(self, uint32_t group) except -1:
        self._pendings[group] = None
        self._free_groups.append(group)
        return 0
