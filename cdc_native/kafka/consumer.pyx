"""A Kafka consumer that makes no Python object for a message: what it reads of a partition is one batch.

Partitions are assigned by hand. Headers are not read.

Python oracle: stream_runtime.kafka.consumers.ConfluentConsumer.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from cdc_native.avro.messages cimport Messages
from cdc_native.formats.buffers cimport Bytes, write_bytes
from cdc_native.kafka.librdkafka cimport (
    CONSUMER,
    EVENT_LOG,
    Client,
    RkMessage,
    RkPartition,
    RkPartitions,
    c_text,
    milliseconds,
    text_of,
)
from cdc_native.kafka.source_batch cimport SourceBatch

cdef enum:
    AT_ONCE = 1000  # messages that librdkafka is asked for
    SLICE_MS = 100  # a wait looks for signals this often
    MOST_LOG_LINES = 1000  # of one poll


cdef struct Slot:  # a partition whose messages are in a read
    void* topic
    int32_t partition
    Py_ssize_t count


cdef class Consumer(Client):
    """Reads the partitions that are assigned. Not to be used by two threads at once.

    library: a shared library that is linked to librdkafka. config: librdkafka's properties. log: is called with the
    syslog level and the text of each of librdkafka's log lines. OSError if the library is not usable, ValueError for a
    wrong property. All methods raise LibrdkafkaError.
    """
    cdef void* _messages  # librdkafka's queue
    cdef RkMessage** _held
    cdef size_t _count, _capacity
    cdef bint _is_closed

    def __cinit__(self, str library not None, config not None, log):
        self._log = log
        self.open(CONSUMER, library, config, EVENT_LOG)
        self.queue = self.rk.queue_new(self.client)
        self.rk.set_log_queue(self.client, self.queue)
        self.rk.poll_set_consumer(self.client)
        self._messages = self.rk.queue_get_consumer(self.client)

    def __dealloc__(self):
        self._release()
        free(self._held)
        if self._messages != NULL:
            self.rk.queue_destroy(self._messages)
        if self.client != NULL and not self._is_closed:
            with nogil:
                self.rk.consumer_close(self.client)

    def close(self):
        """Close the consumer, which reads nothing after this."""
        cdef int error
        if self._is_closed:
            return
        self._is_closed = True
        with nogil:
            error = self.rk.consumer_close(self.client)
        self._take_logs()
        self.check_code(error)

    def assign(self, partitions):
        """Read these partitions too: (topic, partition, offset)."""
        cdef RkPartitions* made = self._list([(topic, number) for topic, number, _ in partitions])
        cdef void* error
        cdef int i
        try:
            for i, (_, _, offset) in enumerate(partitions):
                made.items[i].offset = offset
            with nogil:
                error = self.rk.incremental_assign(self.client, made)
        finally:
            self.rk.partitions_destroy(made)
        self.check(error)

    def unassign(self, partitions):
        """Read these partitions, (topic, partition), no more. Their messages that were not polled are dropped."""
        cdef set removed = set(partitions)
        cdef RkPartitions* made = self._list(removed)
        cdef void* error
        with nogil:
            error = self.rk.incremental_unassign(self.client, made)
            self.rk.partitions_destroy(made)
        self._drop(removed)
        self.check(error)

    def committed(self, partitions, double seconds):
        """The group's committed offset, metadata and error code of each of the (topic, partition); offset -1001 if there
        is none, code 0 without an error.

        Waits up to `seconds`, also for the end of an open transaction. confluent-kafka and this core end metadata
        with a NUL, which is left out.
        """
        cdef RkPartitions* made = self._list(partitions)
        cdef RkPartition* item
        cdef int wait = milliseconds(seconds)
        cdef int error, i
        found = []
        try:
            with nogil:
                error = self.rk.committed(self.client, made, wait)
            self.check_code(error)
            for i in range(made.count):
                item = &made.items[i]
                text = (<char*>item.metadata)[: item.metadata_size] if item.metadata != NULL else None
                metadata = None if text is None else text.removesuffix(b"\0").decode(errors="replace")
                found.append((item.offset, metadata, item.err))
        finally:
            self.rk.partitions_destroy(made)
        return found

    def bounds(self, str topic not None, int32_t partition, double seconds):
        """A partition's first offset and its next one."""
        cdef bytes name = c_text(topic)
        cdef char* c_name = name
        cdef int64_t first = 0, following = 0
        cdef int wait = milliseconds(seconds)
        cdef int error
        with nogil:
            error = self.rk.query_watermark_offsets(self.client, c_name, partition, &first, &following, wait)
        self.check_code(error)
        return first, following

    def poll(self, Py_ssize_t most, int64_t most_bytes, double seconds):
        """Read for `seconds`, or until there are `most` messages or `most_bytes` of keys and values. After an exception
        the next poll returns what was read before it.

        ([a SourceBatch for each partition], [(topic or None, partition, offset, code, text) of each error or end]).
        """
        cdef int64_t until = _now_ms() + milliseconds(seconds)
        cdef int64_t size = 0
        cdef Py_ssize_t got, wanted
        cdef int wait
        if self._is_closed:
            raise ValueError("the consumer is closed")
        self._take_logs()
        while True:
            wanted = min(AT_ONCE, most - <Py_ssize_t>self._count)
            if wanted <= 0 or size >= most_bytes:
                break
            self._room(<size_t>wanted)
            wait = <int>min(SLICE_MS, max(0, until - _now_ms()))
            with nogil:
                got = self.rk.consume_batch(self._messages, wait, self._held + self._count, <size_t>wanted)
            if got < 0:
                self.check_code(self.rk.last_error())
            size += self._take(got)
            PyErr_CheckSignals()
            if got < wanted and _now_ms() >= until:
                break
        found = self._batches()
        self._release()  # not after an exception: the next poll returns them
        return found

    cdef int64_t _take(self, Py_ssize_t got) noexcept nogil:
        """Keep the messages that have come: their bytes."""
        cdef int64_t size = 0
        cdef size_t i
        for i in range(self._count, self._count + <size_t>got):
            size += <int64_t>(self._held[i].len + self._held[i].key_len) if not self._held[i].err else 0
        self._count += <size_t>got
        return size

    cdef int _room(self, size_t wanted) except -1:
        cdef RkMessage** made
        cdef size_t i
        if self._count + wanted <= self._capacity:
            return 0
        made = <RkMessage**>malloc(2 * (self._count + wanted) * sizeof(RkMessage*))
        if made == NULL:
            raise MemoryError
        for i in range(self._count):
            made[i] = self._held[i]
        free(self._held)
        self._held = made
        self._capacity = 2 * (self._count + wanted)
        return 0

    cdef void _release(self) noexcept:
        """Give the messages back to librdkafka."""
        cdef size_t i
        with nogil:
            for i in range(self._count):
                self.rk.message_destroy(self._held[i])
        self._count = 0

    cdef int _drop(self, set removed) except -1:
        """Give back the messages of these (topic, partition), which a poll with an exception has left."""
        cdef size_t i, count = self._count
        cdef RkMessage* message
        self._count = 0
        for i in range(count):
            message = self._held[i]
            if message.rkt != NULL and (text_of(self.rk.topic_name(message.rkt)), message.partition) in removed:
                self.rk.message_destroy(message)
            else:
                self._held[self._count] = message
                self._count += 1
        return 0

    cdef tuple _batches(self):
        """The messages that are held, by partition, and the errors."""
        cdef Py_ssize_t i, slot, slots = 0, capacity = 4
        cdef Py_ssize_t* places = <Py_ssize_t*>malloc((self._count or 1) * sizeof(Py_ssize_t))
        cdef Slot* found
        cdef Py_ssize_t* table
        while capacity < 2 * <Py_ssize_t>self._count:
            capacity *= 2
        table = <Py_ssize_t*>calloc(<size_t>capacity, sizeof(Py_ssize_t))  # 0, or one more than a slot's place
        found = <Slot*>malloc((self._count or 1) * sizeof(Slot))
        try:
            if places == NULL or table == NULL or found == NULL:
                raise MemoryError
            with nogil:
                slots = _slots(self._held, self._count, places, found, table, capacity)
            batches = [self._batch(places, slot, &found[slot]) for slot in range(slots)]
            errors = [
                self._error(self._held[i]) for i in range(<Py_ssize_t>self._count) if self._held[i].err
            ]
            return batches, errors
        finally:
            free(places)
            free(found)
            free(table)

    cdef SourceBatch _batch(self, const Py_ssize_t* places, Py_ssize_t slot, const Slot* of):
        cdef SourceBatch made = SourceBatch()
        cdef Messages keys = Messages()
        cdef Messages values = Messages()
        cdef size_t i
        cdef Py_ssize_t at = 0
        cdef int kind = 0
        cdef const RkMessage* message
        made.topic, made.partition = text_of(self.rk.topic_name(of.topic)), of.partition
        made.allocate(of.count)
        keys.allocate(of.count)
        values.allocate(of.count)
        made.keys, made.values = keys, values
        with nogil:
            for i in range(self._count):
                if places[i] != slot:
                    continue
                message = self._held[i]
                made.offsets_at[at] = message.offset
                made.timestamps_at[at] = self.rk.message_timestamp(message, &kind)
                _add(keys, at, <Bytes>message.key, message.key_len)
                _add(values, at, <Bytes>message.payload, message.len)
                at += 1
            keys.settle()
            values.settle()
            made.measure()
        if keys.data.is_bad or values.data.is_bad:
            raise MemoryError
        return made

    cdef tuple _error(self, const RkMessage* message):
        name = None if message.rkt == NULL else text_of(self.rk.topic_name(message.rkt))
        return name, message.partition, message.offset, message.err, text_of(self.rk.message_errstr(message))

    cdef RkPartitions* _list(self, partitions) except NULL:
        cdef RkPartitions* made
        cdef list found = [(c_text(topic), number) for topic, number in partitions]
        cdef bytes name
        made = self.rk.partitions_new(<int>len(found))
        for name, number in found:
            self.rk.partitions_add(made, name, <int32_t>number)
        return made

    cdef int _take_logs(self) except -1:
        cdef void* event
        cdef int i
        for i in range(MOST_LOG_LINES):
            event = self.rk.queue_poll(self.queue, 0)
            if event == NULL:
                break
            try:
                if self.rk.event_type(event) == EVENT_LOG:
                    self.take_log(event)
            finally:
                self.rk.event_destroy(event)
        return 0


cdef void _add(Messages messages, Py_ssize_t at, Bytes data, size_t size) noexcept nogil:
    """Copy a message, unless it is null, to its place; `settle` makes its address."""
    if data == NULL:
        return
    messages.spans[at].size = -1 - <int64_t>messages.data.size
    write_bytes(&messages.data, data, size)


cdef Py_ssize_t _slots(
    RkMessage** held, size_t count, Py_ssize_t* places, Slot* found, Py_ssize_t* table, Py_ssize_t capacity
) noexcept nogil:
    """Fill in the slot of each message, -1 for an error, and the slots: how many there are."""
    cdef Py_ssize_t slots = 0, last = -1, at
    cdef uintptr_t hashed
    cdef size_t i
    cdef const RkMessage* message
    for i in range(count):
        message = held[i]
        if message.err:
            places[i] = -1
            continue
        if last < 0 or found[last].topic != message.rkt or found[last].partition != message.partition:
            hashed = (<uintptr_t>message.rkt >> 4) * 31 + <uintptr_t>message.partition
            at = <Py_ssize_t>(hashed % <uintptr_t>capacity)
            while table[at] and (
                found[table[at] - 1].topic != message.rkt or found[table[at] - 1].partition != message.partition
            ):
                at = at + 1 if at + 1 < capacity else 0
            if not table[at]:
                found[slots].topic, found[slots].partition, found[slots].count = message.rkt, message.partition, 0
                slots += 1
                table[at] = slots
            last = table[at] - 1
        found[last].count += 1
        places[i] = last
    return slots


cdef int64_t _now_ms() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <int64_t>now.tv_sec * 1000 + now.tv_nsec // 1_000_000
