"""A Kafka producer that makes no Python object for a message or its acknowledgement.

Python oracle: publisher.kafka.producers.ConfluentProducer.

It calls the librdkafka that the confluent-kafka package brings. No function of librdkafka calls back: acknowledgements,
errors and log lines are events, which `poll` takes from librdkafka's queue. So no code of this module runs in a thread
of librdkafka's.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free, realloc

from cdc_native.kafka.acknowledgements cimport Acknowledgements
from cdc_native.formats.batches cimport Batch, Message
from cdc_native.kafka.librdkafka cimport (
    ERR_FATAL,
    ERR_QUEUE_FULL,
    EVENT_DR,
    EVENT_ERROR,
    EVENT_LOG,
    MSG_F_COPY,
    NO_PARTITION,
    PRODUCER,
    TEXT_SIZE,
    Client,
    RkMessage,
    c_text,
    milliseconds,
    text_of,
)

cdef enum:
    SIGNALS_MS = 100  # a wait looks for signals this often
    MOST_EVENTS = 10_000  # of one poll


class SendError(Exception):
    """librdkafka does not take a message, or does not answer. `code`: its error code; `text`: what it says; `index`: of
    the message in its batch.
    """

    def __init__(self, int code, str text, str topic, Py_ssize_t index=0) -> None:
        super().__init__(code, text, topic, index)
        self.index = index
        self.code = code
        self.text = text
        self.topic = topic


cdef class Producer(Client):
    """Sends messages. Only `__len__` and `refresh_metadata` may be called by a second thread.

    `library`: a shared library that is linked to librdkafka. `config`: librdkafka's properties. `most_bytes`: of the
    messages that are not acknowledged; a larger message is sent alone. `log`: is called with the syslog level and the
    text of each of librdkafka's log lines. OSError if the library is not usable, ValueError for a wrong property.
    """
    cdef int64_t _most_bytes
    cdef Acknowledgements _waiting
    cdef dict _topic_places
    cdef void** topics  # librdkafka's, by place
    cdef uint32_t topic_count
    cdef tuple _batch_topics
    cdef uint32_t* batch_places  # the place in `topics` of each of _batch_topics
    cdef list _errors  # since the last report

    def __cinit__(self, str library not None, config not None, int64_t most_bytes, log):
        self._log = log
        self._most_bytes = most_bytes
        self._waiting = Acknowledgements()
        self._topic_places = {}
        self._errors = []
        self.open(PRODUCER, library, config, EVENT_DR | EVENT_ERROR | EVENT_LOG)
        self.queue = self.rk.queue_get_main(self.client)
        self.rk.set_log_queue(self.client, NULL)

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.topic_count):
            self.rk.topic_destroy(self.topics[i])
        free(self.topics)
        free(self.batch_places)

    def __len__(self):
        """The number of messages that are not acknowledged."""
        return self._waiting.in_flight

    def send(self, str topic not None, int32_t partition, bytes key, bytes value not None, pending):
        """Queue a message; False if the queue is full. `partition`: -1 to choose it by the key. `pending`: what `poll`
        reports when it is acknowledged, or None.
        """
        cdef uint32_t place = self._topic(topic)
        cdef uint32_t group = self._waiting.group_of(pending)
        cdef void* key_at = NULL if key is None else <void*>PyBytes_AS_STRING(key)
        cdef size_t key_size = 0 if key is None else <size_t>PyBytes_GET_SIZE(key)
        cdef int error = self._produce(
            place, partition, <void*>PyBytes_AS_STRING(value), <size_t>PyBytes_GET_SIZE(value), key_at, key_size, group
        )
        if error and error != ERR_QUEUE_FULL:
            raise SendError(error, "", topic)
        return not error

    def send_batch(self, tuple topics not None, Batch batch not None, Py_ssize_t first, pending):
        """Queue the messages of a batch from the one with the index `first` on; the index of the first that finds no
        room. `topics`: the topic of each of the batch's tables.
        """
        cdef uint32_t group = self._waiting.group_of(pending)
        cdef size_t at = <size_t>first
        cdef uint32_t table_count = <uint32_t>len(topics)
        cdef int error = 0
        cdef const Message* message
        if first < 0:
            raise IndexError(first)
        self._use_topics(topics)
        with nogil:
            while at < batch.count:
                message = &batch.messages[at]
                if message.table >= table_count:
                    break
                error = self._produce(
                    self.batch_places[message.table],
                    NO_PARTITION,
                    batch.data.data + message.value_at,
                    message.value_size,
                    batch.data.data + message.key_at,
                    message.key_size,
                    group,
                )
                if error:
                    break
                at += 1
        if at < batch.count and batch.messages[at].table >= table_count:
            raise IndexError("a table without a topic")
        if error and error != ERR_QUEUE_FULL:
            raise SendError(error, "", topics[batch.messages[at].table], <Py_ssize_t>at)
        return <Py_ssize_t>at

    cdef int _produce(
        self, uint32_t topic, int32_t partition, void* value, size_t size, void* key, size_t key_size, uint32_t group
    ) noexcept nogil:
        """0 or librdkafka's error."""
        cdef size_t opaque = <size_t>topic << 32 | group
        if self._waiting.bytes and <int64_t>size > self._most_bytes - self._waiting.bytes:
            return ERR_QUEUE_FULL
        if self.rk.produce(
            self.topics[topic], partition, MSG_F_COPY, value, size, key, key_size, <void*>opaque
        ):
            return self.rk.last_error()
        self._waiting.add(group, size)
        return 0

    def poll(self, double seconds):
        """Handle what has happened, or wait up to `seconds` for the first thing to happen. (list of a `pending` and how
        many of its messages were acknowledged; how many in all; the sum of their times in seconds; the topics and
        partitions that they are in; the client's errors: code, text, whether it is fatal; a list of a `pending` or
        None, how many of its messages were refused, the code of the error, and the topic.)
        """
        cdef void* event
        cdef int rest = milliseconds(seconds)
        cdef int step
        cdef int taken = 0
        while True:
            step = min(rest, SIGNALS_MS)
            with nogil:
                event = self.rk.queue_poll(self.queue, step)
                while event != NULL and self.rk.event_type(event) == EVENT_DR:
                    self._count(event)
                    self.rk.event_destroy(event)
                    rest = step = 0
                    taken += 1
                    event = self.rk.queue_poll(self.queue, 0) if taken < MOST_EVENTS else NULL
            if event != NULL:
                try:
                    self._take(event)
                finally:
                    self.rk.event_destroy(event)
                rest = 0
                taken += 1
                if taken < MOST_EVENTS:
                    continue
            PyErr_CheckSignals()
            rest -= step
            if rest <= 0:
                errors, self._errors = self._errors, []
                return self._waiting.report(errors)

    cdef void _count(self, void* event) noexcept nogil:
        """Count what a delivery report says."""
        cdef const RkMessage* message = self.rk.event_message_next(event)
        while message != NULL:
            self._waiting.remove(
                <uint32_t>(<size_t>message.opaque >> 32),
                <uint32_t><size_t>message.opaque,
                message,
                0 if message.err else self.rk.message_latency(message),
            )
            message = self.rk.event_message_next(event)

    cdef int _take(self, void* event) except -1:
        """An error or a log line."""
        cdef char text[TEXT_SIZE]
        cdef int code
        cdef int kind = self.rk.event_type(event)
        if kind == EVENT_LOG:
            self.take_log(event)
        elif kind == EVENT_ERROR:
            code = self.rk.event_error(event)
            if code == ERR_FATAL:
                text[0] = 0
                code = self.rk.fatal_error(self.client, text, TEXT_SIZE)
                self._errors.append((code, text_of(text), True))
            else:
                self._errors.append((code, text_of(self.rk.event_error_string(event)), False))
        return 0

    def refresh_metadata(self, str topic not None, double seconds):
        """Make librdkafka know the topic's partitions. SendError if no broker answers in time."""
        cdef bytes name = c_text(topic)
        cdef char* c_name = name
        cdef void* metadata = NULL
        cdef void* handle
        cdef int most = milliseconds(seconds)
        cdef int error
        with nogil:
            handle = self.rk.topic_new(self.client, c_name, NULL)
            if handle == NULL:
                error = self.rk.last_error()
            else:
                error = self.rk.metadata(self.client, 0, handle, &metadata, most)
                if metadata != NULL:
                    self.rk.metadata_destroy(metadata)
                self.rk.topic_destroy(handle)
        if error:
            raise SendError(error, "", topic)

    cdef uint32_t _topic(self, str name) except? 0xFFFFFFFF:
        """The topic's place in `topics`."""
        cdef bytes encoded
        cdef void* memory
        cdef void* handle
        found = self._topic_places.get(name)
        if found is not None:
            return found
        encoded = c_text(name)
        memory = realloc(self.topics, (<size_t>self.topic_count + 1) * sizeof(void*))
        if memory == NULL:
            raise MemoryError
        self.topics = <void**>memory
        handle = self.rk.topic_new(self.client, encoded, NULL)
        if handle == NULL:
            raise SendError(self.rk.last_error(), "", name)
        try:
            self._waiting.add_topic(name)
        except MemoryError:
            self.rk.topic_destroy(handle)
            raise
        self.topics[self.topic_count] = handle
        self.topic_count += 1
        self._topic_places[name] = self.topic_count - 1
        return self.topic_count - 1

    cdef int _use_topics(self, tuple topics) except -1:
        cdef void* memory
        cdef Py_ssize_t i
        if topics is self._batch_topics:
            return 0
        self._batch_topics = None
        memory = realloc(self.batch_places, (<size_t>len(topics) + 1) * sizeof(uint32_t))
        if memory == NULL:
            raise MemoryError
        self.batch_places = <uint32_t*>memory
        for i in range(len(topics)):
            self.batch_places[i] = self._topic(topics[i])
        self._batch_topics = topics
        return 0
