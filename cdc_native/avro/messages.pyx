"""A batch of Avro messages: bytes in one buffer with offsets, or bytes objects, without a copy.

Python oracle: cdc_common.messages.wire.
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from cdc_native.formats.buffers cimport Bytes
from cdc_native.formats.constants cimport WIRE_HEADER_SIZE

cdef uint8_t _nothing = 0  # the address of an empty message


class AvroError(ValueError):
    """A message that is not of its schema. index: in the batch; position: the byte in the message; reason: no value."""

    def __init__(self, Py_ssize_t index, Py_ssize_t position, str reason) -> None:
        super().__init__(index, position, reason)
        self.index = index
        self.position = position
        self.reason = reason

    def __str__(self) -> str:
        return f"message {self.index}, byte {self.position}: {self.reason}"


cdef class Messages:
    """Messages in order, None for a tombstone. They keep what holds their bytes.

    Messages(data, offsets): message i lies in data[offsets[i]:offsets[i + 1]]; offsets are a buffer of int64.
    """

    def __cinit__(self, data=None, offsets=None):
        cdef Py_buffer found
        cdef int64_t* at
        cdef Py_ssize_t i
        if data is None:
            return
        PyObject_GetBuffer(data, &self._view, PyBUF_SIMPLE)
        self._has_view = True
        PyObject_GetBuffer(offsets, &found, PyBUF_SIMPLE)
        try:
            if found.len < 8 or found.len % 8:
                raise ValueError("offsets are int64, and one more than messages")
            at = <int64_t*>found.buf
            self.allocate(found.len // 8 - 1)
            for i in range(self.count):
                if not 0 <= at[i] <= at[i + 1] <= self._view.len:
                    raise ValueError(f"message {i}: its offsets are not in the {self._view.len} bytes")
                self.spans[i].at = <Bytes>self._view.buf + at[i]
                self.spans[i].size = at[i + 1] - at[i]
        finally:
            PyBuffer_Release(&found)

    @staticmethod
    def of(values, Messages source=None):
        """Messages of bytes objects, None for a tombstone. source: the messages that they are made of, in whose places
        they are.
        """
        cdef Messages made = Messages()
        cdef tuple owner = tuple(values)
        cdef Py_ssize_t i
        made._owner = owner
        if source is None:
            made.allocate(len(owner))
        elif source.count != len(owner):
            raise ValueError("as many messages as the source has")
        else:
            made.inherit(source)
        for i in range(made.count):
            value = owner[i]
            if value is None:
                continue
            if type(value) is not bytes:
                raise TypeError(f"message {i} is not bytes")
            made.spans[i].at = <Bytes>PyBytes_AS_STRING(value)
            made.spans[i].size = PyBytes_GET_SIZE(value)
        return made

    def __dealloc__(self):
        free(self.spans)
        free(self.indices)
        free(self.data.data)
        if self._has_view:
            PyBuffer_Release(&self._view)

    def __len__(self):
        return self.count

    def __getitem__(self, Py_ssize_t number):
        """The bytes of a message, or None."""
        if not 0 <= number < self.count:
            raise IndexError(number)
        if self.spans[number].at == NULL:
            return None
        return PyBytes_FromStringAndSize(<const char*>self.spans[number].at, self.spans[number].size)

    def to_list(self):
        """All of them, as bytes or None."""
        return [self[i] for i in range(self.count)]

    def index(self, Py_ssize_t number):
        """The place of a message in the batch that was read."""
        if not 0 <= number < self.count:
            raise IndexError(number)
        return self.index_of(number)

    @property
    def places(self):
        """The places of all messages in the batch that was read, as a buffer's bytes: an int64 for each."""
        cdef Py_ssize_t i
        cdef bytes made = PyBytes_FromStringAndSize(NULL, self.count * sizeof(int64_t))
        cdef int64_t* at = <int64_t*>PyBytes_AS_STRING(made)
        for i in range(self.count):
            at[i] = self.index_of(i)
        return made

    def binary(self):
        """The bytes of all messages as buffers of Arrow's large_binary: offsets (int64), data, and a byte for each
        message that is 1 unless it is None.
        """
        cdef Py_ssize_t i
        cdef int64_t size = 0
        cdef bytes offsets, data, present
        cdef int64_t* at
        cdef char* to
        cdef char* is_there
        for i in range(self.count):
            size += self.spans[i].size if self.spans[i].at != NULL else 0
        offsets = PyBytes_FromStringAndSize(NULL, (self.count + 1) * sizeof(int64_t))
        data, present = PyBytes_FromStringAndSize(NULL, size), PyBytes_FromStringAndSize(NULL, self.count)
        at, to, is_there = <int64_t*>PyBytes_AS_STRING(offsets), PyBytes_AS_STRING(data), PyBytes_AS_STRING(present)
        with nogil:
            at[0] = 0
            for i in range(self.count):
                is_there[i], size = self.spans[i].at != NULL, 0
                if is_there[i]:
                    size = self.spans[i].size
                    memcpy(to + at[i], self.spans[i].at, <size_t>size)
                at[i + 1] = at[i] + size
        return offsets, data, present

    def groups(self):
        """[(schema id, messages)] by the ids in Confluent's headers; id None for tombstones. Each keeps the order.

        AvroError for a message without a header.
        """
        cdef Py_ssize_t i, place = -1
        cdef int64_t found_id, last_id = -2
        cdef Py_ssize_t* places = <Py_ssize_t*>malloc(<size_t>(self.count or 1) * sizeof(Py_ssize_t))
        cdef dict found = {}
        cdef list sizes = []
        if places == NULL:
            raise MemoryError
        try:
            for i in range(self.count):
                found_id = schema_id(self, i)
                if found_id != last_id:
                    place, last_id = _place(found, sizes, None if found_id < 0 else found_id), found_id
                places[i] = place
                sizes[place] += 1
            return [
                (id_, self.subset(places, place, sizes[place])) for place, id_ in enumerate(found)
            ]
        finally:
            free(places)

    def part(self, Py_ssize_t first, Py_ssize_t end):
        """The messages [first, end), as a batch of their own, without a copy of their bytes."""
        cdef Messages made = Messages()
        cdef Py_ssize_t i
        if not 0 <= first <= end <= self.count:
            raise IndexError((first, end))
        made._owner = self
        made.allocate(end - first)
        for i in range(made.count):
            made.spans[i] = self.spans[first + i]
        return made

    cdef Messages subset(self, const Py_ssize_t* places, Py_ssize_t place, Py_ssize_t size):
        """The `size` messages of those that have this place."""
        cdef Messages made = Messages()
        cdef Py_ssize_t i, at = 0
        made._owner = self
        made.allocate(size)
        made.indices = <Py_ssize_t*>malloc(<size_t>(size or 1) * sizeof(Py_ssize_t))
        if made.indices == NULL:
            raise MemoryError
        for i in range(self.count):
            if places[i] == place:
                made.spans[at] = self.spans[i]
                made.indices[at] = self.index_of(i)
                at += 1
        return made

    cdef int allocate(self, Py_ssize_t count) except -1:
        """Room for so many tombstones, which are filled in."""
        self.spans = <Span*>calloc(<size_t>(count or 1), sizeof(Span))
        if self.spans == NULL:
            raise MemoryError
        self.count = count
        return 0

    cdef int inherit(self, Messages source) except -1:
        """As many messages as `source` has, with its indices."""
        self.allocate(source.count)
        if source.indices != NULL:
            self.indices = <Py_ssize_t*>malloc(<size_t>(source.count or 1) * sizeof(Py_ssize_t))
            if self.indices == NULL:
                raise MemoryError
            memcpy(self.indices, source.indices, <size_t>source.count * sizeof(Py_ssize_t))
        return 0

    cdef void settle(self) noexcept nogil:
        """The bytes of all messages are in `data`: point to them. A span's size was where it begins: -1 - place."""
        cdef Py_ssize_t i = self.count
        cdef int64_t begin, end = <int64_t>self.data.size
        cdef Bytes data = self.data.data if self.data.data != NULL else &_nothing
        while i > 0:
            i -= 1
            if self.spans[i].size < 0:
                begin = -self.spans[i].size - 1
                self.spans[i].at, self.spans[i].size = data + begin, end - begin
                end = begin

    cdef Py_ssize_t index_of(self, Py_ssize_t number) noexcept nogil:
        return number if self.indices == NULL else self.indices[number]


cdef Py_ssize_t _place(dict found, list sizes, id_) except -1:
    """The place of a group, which is new perhaps."""
    place = found.setdefault(id_, len(sizes))
    if place == len(sizes):
        sizes.append(0)
    return place


cdef int64_t schema_id(Messages messages, Py_ssize_t number) except? -2:
    """The id in a message's Confluent header; -1 for a tombstone. AvroError for a message without a header."""
    cdef Bytes at = messages.spans[number].at
    if at == NULL:
        return -1
    if messages.spans[number].size < WIRE_HEADER_SIZE or at[0] != 0:
        raise_at(messages, number, 0, "no Confluent header")
    return <uint32_t>at[1] << 24 | <uint32_t>at[2] << 16 | <uint32_t>at[3] << 8 | at[4]


cdef int raise_at(Messages messages, Py_ssize_t number, int64_t position, str reason) except -1:
    raise AvroError(messages.index_of(number), position, reason)
