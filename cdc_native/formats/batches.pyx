"""Messages of many mutations, in one buffer: filled by cdc_native.formats.mutations, sent by cdc_native.kafka.producer.

Python oracle: publisher.mutations.messages.OutgoingMessage.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdlib cimport free, realloc

cdef enum:
    MOST_KEPT = 4 << 20  # bytes of the buffer that are kept when it is filled again
    FIRST_CAPACITY = 1024


cdef class Batch:
    """A list of messages. It keeps its memory when it is filled again. Not to be used by two threads at once."""

    def __dealloc__(self):
        free(self.data.data)
        free(self.messages)

    def __len__(self):
        return <Py_ssize_t>self.count

    @property
    def size(self):
        """The bytes of all values."""
        return <Py_ssize_t>self.data.size

    def message(self, Py_ssize_t index):
        """(the table's place, the partition key, the value)."""
        cdef const Message* found
        if not 0 <= index < <Py_ssize_t>self.count:
            raise IndexError(index)
        found = &self.messages[index]
        return (
            found.table,
            PyBytes_FromStringAndSize(<const char*>self.data.data + found.key_at, <Py_ssize_t>found.key_size),
            PyBytes_FromStringAndSize(<const char*>self.data.data + found.value_at, <Py_ssize_t>found.value_size),
        )

    cdef void clear(self) noexcept:
        if self.data.capacity > MOST_KEPT:
            free(self.data.data)
            self.data.data = NULL
            self.data.capacity = 0
        self.cut(0, 0)
        self.mutations = 0
        self.excluded_updates = 0

    cdef void cut(self, size_t count, size_t size) noexcept:
        """Forget all but the first messages, and that there was no memory."""
        self.count = count
        self.data.size = size
        self.data.is_bad = False

    cdef int add(self, const Message* message) except -1:
        """Add a message whose value has been written to `data`. MemoryError, also if it was not written for lack of it."""
        cdef size_t capacity
        cdef void* memory
        if self.data.is_bad:
            raise MemoryError
        if self.count == self.capacity:
            capacity = self.capacity * 2 or FIRST_CAPACITY
            memory = realloc(self.messages, capacity * sizeof(Message))
            if memory == NULL:
                raise MemoryError
            self.messages = <Message*>memory
            self.capacity = capacity
        self.messages[self.count] = message[0]
        self.count += 1
        return 0
