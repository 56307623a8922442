"""The messages of a partition that were read at once, without a Python object for each: buffers of keys and values.

Python oracle: stream_runtime.records.SourceRecord.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from libc.stddef cimport size_t
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from cdc_native.avro.messages cimport Messages, Span, schema_id

cdef extern from "Python.h":
    object PyType_GenericAlloc(PyTypeObject* kind, Py_ssize_t count)


cdef class SourceBatch:
    """Messages of a partition, by rising offsets. A value of None is a tombstone, and a key may be None.

    offsets, timestamps: an int64 for each message; timestamps are in ms, -1 without one. size: bytes of all keys and
    values.
    """
    def __dealloc__(self):
        if not self.is_part:  # `_owner` may be cleared before this
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

    def records(self, type kind not None):
        """The messages as objects of `kind`, a NamedTuple of key, value, offset and timestamp. A null is empty bytes."""
        cdef Py_ssize_t i
        cdef list made = []
        if not issubclass(kind, tuple) or len(kind._fields) != 4:
            raise TypeError(f"{kind} is not a NamedTuple of four fields")
        for i in range(self.count):
            record = PyType_GenericAlloc(<PyTypeObject*>kind, 4)  # as tuple.__new__ does: kind's own constructor takes far longer
            _put(record, 0, _bytes(&self.keys.spans[i]))
            _put(record, 1, _bytes(&self.values.spans[i]))
            _put(record, 2, self.offsets_at[i])
            _put(record, 3, self.timestamps_at[i])
            made.append(record)
        return made

    def part(self, Py_ssize_t first, Py_ssize_t end):
        """The messages [first, end), without a copy of their bytes."""
        if not 0 <= first <= end <= self.count:
            raise IndexError((first, end))
        cdef SourceBatch made = SourceBatch()
        made._owner = self._owner if self.is_part else self
        made.is_part = True
        made.topic, made.partition, made.count = self.topic, self.partition, end - first
        made.offsets_at, made.timestamps_at = self.offsets_at + first, self.timestamps_at + first
        made.keys, made.values = self.keys.part(first, end), self.values.part(first, end)
        made.measure()
        return made

    def fitting(self, Py_ssize_t first, Py_ssize_t most_messages, int64_t most_bytes):
        """The end of the part from `first` on that reaches one of these limits, if there are so many messages. The
        message that reaches a limit is in the part.
        """
        cdef Py_ssize_t at = first
        cdef int64_t size = 0
        while at < self.count:
            size += self.keys.spans[at].size + self.values.spans[at].size
            at += 1
            if size >= most_bytes or at - first >= most_messages:
                break
        return at

    def pairs(self):
        """([(key id, value id, keys, values)] by the ids in Confluent's headers, {key id: the last value id}).

        A tombstone is in the group of the last value before it whose key has the same id; its value id is None if there
        is none in the batch. The id of a null key is None. Each group keeps the order. AvroError for a message without
        a header.
        """
        cdef Py_ssize_t i, place = -1
        cdef int64_t key_id, value_id, last_key_id = -2, last_value_id = -2
        cdef Py_ssize_t* places = <Py_ssize_t*>malloc(<size_t>(self.count or 1) * sizeof(Py_ssize_t))
        cdef dict found = {}
        cdef dict last = {}
        cdef list sizes = []
        if places == NULL:
            raise MemoryError
        try:
            for i in range(self.count):
                key_id, value_id = schema_id(self.keys, i), schema_id(self.values, i)
                if key_id != last_key_id or value_id != last_value_id:
                    last_key_id, last_value_id = key_id, value_id
                    key = None if key_id < 0 else key_id
                    if value_id >= 0:
                        last[key] = value_id
                    pair = key, last.get(key)
                    place = found.setdefault(pair, len(sizes))
                    if place == len(sizes):
                        sizes.append(0)
                places[i] = place
                sizes[place] += 1
            groups = [
                (key, value, self.keys.subset(places, at, sizes[at]), self.values.subset(places, at, sizes[at]))
                for at, (key, value) in enumerate(found)
            ]
            return groups, last
        finally:
            free(places)


cdef bytes _bytes(const Span* span):
    return PyBytes_FromStringAndSize(<const char*>span.at, span.size)


cdef int _put(object record, Py_ssize_t place, object field) except -1:
    """Fill in a field of a new tuple, which takes the reference."""
    Py_INCREF(field)
    PyTuple_SET_ITEM(record, place, field)
    return 0
