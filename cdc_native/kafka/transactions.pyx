"""A transactional Kafka producer that makes no Python object for a message.

Python oracle: confluent_kafka.Producer.
"""
from cpython.exc cimport PyErr_CheckSignals
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy

from cdc_native.avro.messages cimport Messages, Span
from cdc_native.fold.changes cimport EncodedChange
from cdc_native.formats.buffers cimport Bytes
from cdc_native.kafka.librdkafka cimport (
    ERR_QUEUE_FULL,
    EVENT_LOG,
    MSG_F_COPY,
    PRODUCER,
    VTYPE_HEADERS,
    VTYPE_KEY,
    VTYPE_MSGFLAGS,
    VTYPE_PARTITION,
    VTYPE_RKT,
    VTYPE_VALUE,
    Client,
    RkArgument,
    RkPartitions,
    c_text,
    milliseconds,
)

cdef enum:
    WAIT_MS = 10  # for room in librdkafka's queue
    MOST_EVENTS = 1000  # of one poll


cdef struct Sent:  # a message to send
    void* topic  # NULL: none
    Span key
    Span value


cdef inline Span _span(bytes data) noexcept:
    """The bytes of a key or a value; nothing for None."""
    cdef Span span
    span.at, span.size = NULL, 0
    if data is not None:
        span.at, span.size = <Bytes>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data)
    return span


cdef class TransactionalProducer(Client):
    """Sends messages in transactions. Not to be used by two threads at once.

    library, config, log: as those of Consumer. All methods raise LibrdkafkaError, which says whether the transaction
    has to be aborted.
    """
    cdef dict _places
    cdef void** _topics  # librdkafka's, by place
    cdef Py_ssize_t _topic_count

    def __cinit__(self, str library not None, config not None, log):
        self._log = log
        self._places = {}
        self.open(PRODUCER, library, config, EVENT_LOG)
        self.queue = self.rk.queue_get_main(self.client)
        self.rk.set_log_queue(self.client, NULL)

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self._topic_count):  # not of `_places`, which may be cleared before this
            self.rk.topic_destroy(self._topics[i])
        free(self._topics)

    def init(self, double seconds):
        """Fence every earlier producer with the same transactional id."""
        cdef int wait = milliseconds(seconds)
        cdef void* error
        with nogil:
            error = self.rk.init_transactions(self.client, wait)
        self._serve(0)
        self.check(error)

    def begin(self):
        """Begin a transaction."""
        self._serve(0)
        self.check(self.rk.begin_transaction(self.client))

    def send(self, str topic not None, int32_t partition, bytes key, bytes value, headers=()):
        """Send a message. Waits for room in librdkafka's queue. headers: pairs of a name and bytes."""
        cdef Sent sent
        cdef list named
        sent.topic = self._topics[self._topic(topic)]
        sent.key, sent.value = _span(key), _span(value)
        if not headers:
            self._send_all(&sent, 1, partition)
            return
        named = [(c_text(name), header) for name, header in headers]
        while self._produce_with_headers(&sent, partition, named):
            self._wait_for_room()

    def send_changes(self, str topic not None, uint32_t partitions, list changes not None, bytes end not None, bint tombstones):
        """Send EncodedChanges to a topic of so many partitions: each to that of its partition key, with `end` after its
        value. Where `tombstones`, a message without a value follows each deletion. Waits for room in librdkafka's queue.
        """
        cdef EncodedChange change
        cdef size_t size, end_size = <size_t>PyBytes_GET_SIZE(end), room = 0
        cdef char* data = NULL
        cdef void* made
        cdef int32_t partition
        cdef Sent sent
        sent.topic = self._topics[self._topic(topic)]
        try:
            for change in changes:
                partition = change.partition(partitions)
                size = <size_t>PyBytes_GET_SIZE(change.value)
                if size + end_size > room:
                    made = realloc(data, 2 * (size + end_size))
                    if made == NULL:
                        raise MemoryError
                    data, room = <char*>made, 2 * (size + end_size)
                memcpy(data, PyBytes_AS_STRING(change.value), size)
                memcpy(data + size, PyBytes_AS_STRING(end), end_size)
                sent.key = _span(change.key)
                sent.value.at, sent.value.size = <Bytes>data, <Py_ssize_t>(size + end_size)
                self._send_one(&sent, partition)
                if tombstones and change.op == "d":
                    sent.value.at, sent.value.size = NULL, 0
                    self._send_one(&sent, partition)
        finally:
            free(data)

    def send_groups(self, int32_t partition, groups):
        """Send messages to one partition of each topic: (topic, keys, values). All groups are parts of one batch that
        was read, and are sent in its order. Waits for room in librdkafka's queue.
        """
        cdef Messages keys, values
        cdef Py_ssize_t i, at, total = 0
        cdef void* handle
        cdef Sent* sent
        cdef list found = [(self._topic(topic), keys, values) for topic, keys, values in groups]
        for _, keys, values in found:
            if keys.count != values.count:
                raise ValueError("as many keys as values")
            for i in range(values.count):
                total = max(total, values.index_of(i) + 1)
        sent = <Sent*>calloc(<size_t>(total or 1), sizeof(Sent))
        if sent == NULL:
            raise MemoryError
        try:
            for place, keys, values in found:
                handle = self._topics[<Py_ssize_t>place]
                for i in range(values.count):
                    at = values.index_of(i)
                    if sent[at].topic != NULL:
                        raise ValueError("two messages with one place in the batch")
                    sent[at].topic, sent[at].key, sent[at].value = handle, keys.spans[i], values.spans[i]
            self._send_all(sent, total, partition)
        finally:
            free(sent)

    cdef int _send_one(self, const Sent* sent, int32_t partition) except -1:
        """With the GIL: a message takes less than a microsecond."""
        cdef int error
        while True:
            error = self._produce(sent, partition)
            if not error:
                return 0
            if error != ERR_QUEUE_FULL:
                self.check_code(error)
            self._wait_for_room()

    cdef int _produce_with_headers(self, const Sent* sent, int32_t partition, list headers) except -1:
        """1 if there is no room in librdkafka's queue."""
        cdef RkArgument arguments[6]
        cdef void* made = self.rk.headers_new(<size_t>len(headers))
        cdef void* error
        cdef int code
        for name, header in headers:
            code = self.rk.header_add(
                made, <bytes>name, len(name), PyBytes_AS_STRING(header), PyBytes_GET_SIZE(header)
            )
            if code:
                self.rk.headers_destroy(made)
                self.check_code(code)
        arguments[0].type, arguments[0].u.pointer = VTYPE_RKT, sent.topic
        arguments[1].type, arguments[1].u.partition = VTYPE_PARTITION, partition
        arguments[2].type, arguments[2].u.number = VTYPE_MSGFLAGS, MSG_F_COPY
        arguments[3].type, arguments[4].type = VTYPE_KEY, VTYPE_VALUE
        arguments[3].u.memory.at, arguments[3].u.memory.size = <void*>sent.key.at, <size_t>sent.key.size
        arguments[4].u.memory.at, arguments[4].u.memory.size = <void*>sent.value.at, <size_t>sent.value.size
        arguments[5].type, arguments[5].u.pointer = VTYPE_HEADERS, made
        error = self.rk.produceva(self.client, arguments, 6)
        if error == NULL:
            return 0  # the headers are the message's now
        self.rk.headers_destroy(made)
        if self.rk.error_code(error) == ERR_QUEUE_FULL:
            self.rk.error_destroy(error)
            return 1
        self.check(error)
        return 0

    cdef int _wait_for_room(self) except -1:
        self._serve(WAIT_MS)
        PyErr_CheckSignals()
        return 0

    cdef int _send_all(self, const Sent* sent, Py_ssize_t total, int32_t partition) except -1:
        cdef Py_ssize_t at = 0
        cdef int error = 0
        while True:
            with nogil:
                while at < total:
                    if sent[at].topic != NULL:
                        error = self._produce(&sent[at], partition)
                        if error:
                            break
                    at += 1
            if not error:
                return 0
            if error != ERR_QUEUE_FULL:
                self.check_code(error)
            error = 0
            self._wait_for_room()

    cdef int _produce(self, const Sent* sent, int32_t partition) noexcept nogil:
        """0 or librdkafka's error."""
        if self.rk.produce(
            sent.topic,
            partition,
            MSG_F_COPY,
            <void*>sent.value.at,
            <size_t>sent.value.size,
            <void*>sent.key.at,
            <size_t>sent.key.size,
            NULL,
        ):
            return self.rk.last_error()
        return 0

    def send_offsets(self, offsets, str group not None, double seconds):
        """Add committed offsets to the transaction: (topic, partition, offset, metadata). group: a consumer group; the
        caller is not a member.

        Metadata ends with a NUL, as confluent-kafka writes it: its consumer reads up to the first NUL, even beyond the
        end of metadata that has none.
        """
        cdef RkPartitions* made
        cdef void* metadata
        cdef void* error
        cdef int wait = milliseconds(seconds)
        cdef int i
        cdef bytes name
        cdef list found = [(c_text(topic), number, offset, text.encode()) for topic, number, offset, text in offsets]
        metadata = self.rk.group_metadata_new(c_text(group))
        made = self.rk.partitions_new(<int>len(found))
        for i, (name, number, offset, text) in enumerate(found):
            self.rk.partitions_add(made, name, <int32_t>number)
            made.items[i].offset = offset
            made.items[i].metadata = <char*><bytes>text  # librdkafka copies it below
            made.items[i].metadata_size = <size_t>len(text) + 1 if text else 0  # with the NUL
        try:
            with nogil:
                error = self.rk.send_offsets(self.client, made, metadata, wait)
        finally:
            for i in range(made.count):
                made.items[i].metadata = NULL  # which is not librdkafka's to free
                made.items[i].metadata_size = 0
            self.rk.partitions_destroy(made)
            self.rk.group_metadata_destroy(metadata)
        self._serve(0)
        self.check(error)

    def commit(self, double seconds):
        """Wait until all messages are acknowledged, and commit them with the offsets."""
        cdef int wait = milliseconds(seconds)
        cdef void* error
        with nogil:
            error = self.rk.commit_transaction(self.client, wait)
        self._serve(0)
        self.check(error)

    def abort(self, double seconds):
        """Abort the transaction."""
        cdef int wait = milliseconds(seconds)
        cdef void* error
        with nogil:
            error = self.rk.abort_transaction(self.client, wait)
        self._serve(0)
        self.check(error)

    cdef Py_ssize_t _topic(self, str name) except -1:
        """The topic's place in `_topics`."""
        cdef bytes encoded
        cdef void* memory
        cdef void* handle
        found = self._places.get(name)
        if found is not None:
            return found
        encoded = c_text(name)
        memory = realloc(self._topics, (<size_t>self._topic_count + 1) * sizeof(void*))
        if memory == NULL:
            raise MemoryError
        self._topics = <void**>memory
        handle = self.rk.topic_new(self.client, encoded, NULL)
        if handle == NULL:
            self.check_code(self.rk.last_error())
        self._topics[self._topic_count] = handle
        self._topic_count += 1
        self._places[name] = self._topic_count - 1
        return self._topic_count - 1

    cdef int _serve(self, int wait) except -1:
        """Handle what librdkafka has to say, or wait for it."""
        cdef void* event
        cdef int i
        for i in range(MOST_EVENTS):
            with nogil:
                event = self.rk.queue_poll(self.queue, wait if i == 0 else 0)
            if event == NULL:
                break
            try:
                if self.rk.event_type(event) == EVENT_LOG:
                    self.take_log(event)
            finally:
                self.rk.event_destroy(event)
        return 0
