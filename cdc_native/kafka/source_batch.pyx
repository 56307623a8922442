"""What was read of a source partition at once: keys, values, offsets and timestamps, without a Python object for a message.

Python oracle: stream_runtime.records.SourceRecord.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stddef cimport size_t
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from cdc_native.avro.messages cimport Messages


cdef class SourceBatch:
    """Messages of a partition, by rising offsets. A value of None is a tombstone, and a key may be None.

    offsets, timestamps: an int64 for each message; timestamps are in ms, -1 without one. size: bytes of all keys and
    values.
    """
    def __dealloc__(self):
        if self._owner is None:
            free(self.offsets_at)
            free(self.timestamps_at)

    def __len__(self):
        return self.count

    @staticmethod
    def of(str topic not None, int partition, records):
        """A batch of (key, value, offset, timestamp)."""
        cdef list found = list(records)
        cdef SourceBatch made = SourceBatch()
        cdef Py_ssize_t i
        made.topic, made.partition = topic, partition
        made.allocate(len(found))
        for i in range(made.count):
            made.offsets_at[i], made.timestamps_at[i] = found[i][2], found[i][3]
        made.keys = Messages.of([record[0] for record in found])
        made.values = Messages.of([record[1] for record in found])
        made.measure()
        return made

    cdef int allocate(self, Py_ssize_t count) except -1:
        self.offsets_at = <int64_t*>malloc(<size_t>(count or 1) * sizeof(int64_t))
        self.timestamps_at = <int64_t*>malloc(<size_t>(count or 1) * sizeof(int64_t))
        if self.offsets_at == NULL or self.timestamps_at == NULL:
            raise MemoryError
        self.count = count
        return 0

    cdef void measure(self) noexcept nogil:
        cdef Py_ssize_t i
        self.size = 0
        for i in range(self.count):
            self.size += self.keys.spans[i].size + self.values.spans[i].size

    @property
    def offsets(self):
        """The offsets, as a buffer's bytes."""
        return PyBytes_FromStringAndSize(<const char*>self.offsets_at, self.count * sizeof(int64_t))

    @property
    def timestamps(self):
        """The timestamps, as a buffer's bytes."""
        return PyBytes_FromStringAndSize(<const char*>self.timestamps_at, self.count * sizeof(int64_t))

    def offset(self, Py_ssize_t number):
        """The offset of a message."""
        if not 0 <= number < self.count:
            raise IndexError(number)
        return self.offsets_at[number]

    def part(self, Py_ssize_t first, Py_ssize_t end):
        """The messages [first, end), without a copy of their bytes."""
        if not 0 <= first <= end <= self.count:
            raise IndexError((first, end))
        cdef SourceBatch made = SourceBatch()
        made._owner = self if self._owner is None else self._owner
        made.topic, made.partition, made.count = self.topic, self.partition, end - first
        made.offsets_at, made.timestamps_at = self.offsets_at + first, self.timestamps_at + first
        made.keys, made.values = self.keys.part(first, end), self.values.part(first, end)
        made.measure()
        return made

    def fitting(self, Py_ssize_t first, Py_ssize_t most_messages, int64_t most_bytes):
        """The end of the longest part from `first` on within these limits; one message is always in it."""
        cdef Py_ssize_t at = first
        cdef int64_t size = 0
        while at < self.count and (at == first or at - first < most_messages):
            size += self.keys.spans[at].size + self.values.spans[at].size
            if size > most_bytes and at > first:
                break
            at += 1
        return at
