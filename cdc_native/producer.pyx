"""A Kafka producer that makes no Python object for a message or its acknowledgement.

It calls the librdkafka that the confluent-kafka package brings. No function of librdkafka calls back: acknowledgements,
errors and log lines are events, which `poll` takes from librdkafka's queue. So no code of this module runs in a thread
of librdkafka's.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from cdc_native.batches cimport Batch, Message
from cdc_native.librdkafka cimport (
    CONF_OK,
    ERR_FATAL,
    ERR_QUEUE_FULL,
    EVENT_DR,
    EVENT_ERROR,
    EVENT_LOG,
    MSG_F_COPY,
    NO_PARTITION,
    PRODUCER,
    Library,
    RkMessage,
    find_functions,
    text_of,
)

cdef enum:
    TEXT_SIZE = 512
    SIGNALS_MS = 100  # a wait looks for signals this often
    MOST_EVENTS = 10_000  # of one poll
    NO_GROUP = 0  # of messages for whose acknowledgement nobody waits


class SendError(Exception):
    """librdkafka does not take a message, or does not answer. `code`: its error code; `text`: what it says."""

    def __init__(self, int code, str text, str topic) -> None:
        super().__init__(code, text, topic)
        self.code = code
        self.text = text
        self.topic = topic


cdef struct Group:  # messages whose acknowledgements are counted together
    int64_t outstanding
    int64_t acknowledged  # since the last report


cdef struct Topic:
    void* handle
    uint8_t* is_reached  # by partition: whether a message was acknowledged since the last report
    int32_t partitions  # room in `is_reached`


cdef struct Place:
    uint32_t topic
    int32_t partition


cdef class Producer:
    """Sends messages. Only `__len__` and `refresh_metadata` may be called by a second thread.

    `library`: a shared library that is linked to librdkafka. `config`: librdkafka's properties. `most_bytes`: of the
    messages that are not acknowledged; a larger message is sent alone. `log`: is called with the syslog level and the
    text of each of librdkafka's log lines. OSError if the library is not usable, ValueError for a wrong property.
    """
    cdef Library rk
    cdef void* client
    cdef void* queue
    cdef object _log
    cdef int64_t _most_bytes
    cdef int64_t _bytes
    cdef int64_t _in_flight
    cdef dict _topic_places
    cdef list _topic_names
    cdef Topic* topics
    cdef uint32_t topic_count
    cdef tuple _batch_topics
    cdef uint32_t* batch_places  # the place in `topics` of each of _batch_topics
    cdef list _pendings
    cdef Group* groups
    cdef uint32_t group_count
    cdef list _free_groups
    cdef uint32_t _group
    # since the last report
    cdef int64_t acknowledged
    cdef int64_t latency
    cdef uint32_t* reached_groups  # room for group_count
    cdef uint32_t reached_group_count
    cdef Place* reached_places
    cdef size_t reached_place_count
    cdef size_t reached_place_capacity
    cdef list _errors
    cdef bint is_out_of_memory
    cdef int refused
    cdef uint32_t refused_topic

    def __cinit__(self, str library not None, config not None, int64_t most_bytes, log):
        if sizeof(void*) < 8:
            raise OSError("the native producer needs pointers of 64 bits")
        self._log = log
        self._most_bytes = most_bytes
        self._topic_places = {}
        self._topic_names = []
        self._pendings = []
        self._free_groups = []
        self._errors = []
        find_functions(&self.rk, library.encode())
        self._open(config)
        self._new_group(None)

    cdef int _open(self, config) except -1:
        cdef char text[TEXT_SIZE]
        cdef bytes name, value
        cdef void* conf = self.rk.conf_new()
        text[0] = 0
        for key, content in {**config, "log.queue": "true"}.items():
            value = (str(content).lower() if isinstance(content, bool) else str(content)).encode()
            name = key.encode()
            if self.rk.conf_set(conf, name, value, text, TEXT_SIZE) != CONF_OK:
                self.rk.conf_destroy(conf)
                raise ValueError((<bytes>text).decode(errors="replace"))
        self.rk.conf_set_events(conf, EVENT_DR | EVENT_ERROR | EVENT_LOG)
        self.client = self.rk.new(PRODUCER, conf, text, TEXT_SIZE)
        if self.client == NULL:
            self.rk.conf_destroy(conf)
            raise ValueError((<bytes>text).decode(errors="replace"))
        self.queue = self.rk.queue_get_main(self.client)
        self.rk.set_log_queue(self.client, NULL)
        return 0

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.topic_count):
            self.rk.topic_destroy(self.topics[i].handle)
            free(self.topics[i].is_reached)
        if self.client != NULL:
            with nogil:
                self.rk.queue_destroy(self.queue)
                self.rk.destroy(self.client)
        free(self.topics)
        free(self.batch_places)
        free(self.groups)
        free(self.reached_groups)
        free(self.reached_places)

    def __len__(self):
        """The number of messages that are not acknowledged."""
        return self._in_flight

    def send(self, str topic not None, int32_t partition, bytes key, bytes value not None, pending):
        """Queue a message; False if the queue is full. `partition`: -1 to choose it by the key. `pending`: what `poll`
        reports when it is acknowledged, or None.
        """
        cdef uint32_t place = self._topic(topic)
        cdef uint32_t group = self._group_of(pending)
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
        cdef uint32_t group = self._group_of(pending)
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
            raise SendError(error, "", topics[batch.messages[at].table])
        return <Py_ssize_t>at

    cdef int _produce(
        self, uint32_t topic, int32_t partition, void* value, size_t size, void* key, size_t key_size, uint32_t group
    ) noexcept nogil:
        """0 or librdkafka's error."""
        cdef size_t opaque = <size_t>topic << 32 | group
        if self._bytes and self._bytes + <int64_t>size > self._most_bytes:
            return ERR_QUEUE_FULL
        if self.rk.produce(
            self.topics[topic].handle, partition, MSG_F_COPY, value, size, key, key_size, <void*>opaque
        ):
            return self.rk.last_error()
        self._bytes += <int64_t>size
        self._in_flight += 1
        self.groups[group].outstanding += 1
        return 0

    def poll(self, double seconds):
        """Handle what has happened, or wait up to `seconds` for the first thing to happen. (list of a `pending` and how
        many of its messages were acknowledged; how many in all; the sum of their times in seconds; the topics and
        partitions that they are in; errors: code, text, whether it is fatal, the refused message's topic or "".)
        """
        cdef void* event
        cdef int rest = <int>(seconds * 1000) if 0 < seconds < 86_400 else 0
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
                return self._report()

    cdef void _count(self, void* event) noexcept nogil:
        """Count what a delivery report says."""
        cdef const RkMessage* message = self.rk.event_message_next(event)
        cdef uint32_t topic, group
        while message != NULL:
            topic = <uint32_t>(<size_t>message.opaque >> 32)
            group = <uint32_t><size_t>message.opaque
            self._bytes -= <int64_t>message.len
            self._in_flight -= 1
            if message.err:
                if not self.refused:
                    self.refused, self.refused_topic = message.err, topic
            else:
                self.acknowledged += 1
                self.latency += self.rk.message_latency(message)
                if group != NO_GROUP:
                    if not self.groups[group].acknowledged:
                        self.reached_groups[self.reached_group_count] = group
                        self.reached_group_count += 1
                    self.groups[group].acknowledged += 1
                self._reach(topic, message.partition)
            message = self.rk.event_message_next(event)

    cdef void _reach(self, uint32_t topic, int32_t partition) noexcept nogil:
        """Note that the partition was written to."""
        cdef Topic* found = &self.topics[topic]
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
            memory = realloc(self.reached_places, (self.reached_place_capacity * 2 + 64) * sizeof(Place))
            if memory == NULL:
                self.is_out_of_memory = True
                return
            self.reached_places = <Place*>memory
            self.reached_place_capacity = self.reached_place_capacity * 2 + 64
        found.is_reached[partition] = True
        self.reached_places[self.reached_place_count].topic = topic
        self.reached_places[self.reached_place_count].partition = partition
        self.reached_place_count += 1

    cdef int _take(self, void* event) except -1:
        """An error or a log line."""
        cdef const char* facility = NULL
        cdef const char* line = NULL
        cdef char text[TEXT_SIZE]
        cdef int level = 0, code
        cdef int kind = self.rk.event_type(event)
        if kind == EVENT_LOG and self.rk.event_log(event, &facility, &line, &level) == 0:
            self._log(level, f"{text_of(facility)} [{text_of(self.rk.name(self.client))}] {text_of(line)}")
        elif kind == EVENT_ERROR:
            code = self.rk.event_error(event)
            if code == ERR_FATAL:
                text[0] = 0
                code = self.rk.fatal_error(self.client, text, TEXT_SIZE)
                self._errors.append((code, text_of(text), True, ""))
            else:
                self._errors.append((code, text_of(self.rk.event_error_string(event)), False, ""))
        return 0

    cdef tuple _report(self):
        cdef list pendings = [], places = [], errors = self._errors
        cdef uint32_t i, group
        cdef Place* place
        cdef int64_t count = self.acknowledged
        cdef double seconds = self.latency / 1e6
        if self.is_out_of_memory:
            raise MemoryError
        for i in range(self.reached_group_count):
            group = self.reached_groups[i]
            pendings.append((self._pendings[group], self.groups[group].acknowledged))
            self.groups[group].outstanding -= self.groups[group].acknowledged
            self.groups[group].acknowledged = 0
            if not self.groups[group].outstanding and group != self._group:
                self._free_group(group)
        for i in range(<uint32_t>self.reached_place_count):
            place = &self.reached_places[i]
            self.topics[place.topic].is_reached[place.partition] = False
            places.append((self._topic_names[place.topic], place.partition))
        if self.refused:
            errors.append((self.refused, "", False, self._topic_names[self.refused_topic]))
        self._errors = []
        self.acknowledged = self.latency = 0
        self.reached_group_count = 0
        self.reached_place_count = 0
        self.refused = 0
        return pendings, count, seconds, places, errors

    def refresh_metadata(self, str topic not None, double seconds):
        """Make librdkafka know the topic's partitions. SendError if no broker answers in time."""
        cdef bytes name = topic.encode()
        cdef char* c_name = name
        cdef void* metadata = NULL
        cdef void* handle
        cdef int milliseconds = <int>(seconds * 1000) if 0 < seconds < 86_400 else 0
        cdef int error
        with nogil:
            handle = self.rk.topic_new(self.client, c_name, NULL)
            if handle == NULL:
                error = self.rk.last_error()
            else:
                error = self.rk.metadata(self.client, 0, handle, &metadata, milliseconds)
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
        memory = realloc(self.topics, (self.topic_count + 1) * sizeof(Topic))
        if memory == NULL:
            raise MemoryError
        self.topics = <Topic*>memory
        encoded = name.encode()
        handle = self.rk.topic_new(self.client, encoded, NULL)
        if handle == NULL:
            raise SendError(self.rk.last_error(), "", name)
        memset(&self.topics[self.topic_count], 0, sizeof(Topic))
        self.topics[self.topic_count].handle = handle
        self.topic_count += 1
        self._topic_names.append(name)
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

    cdef uint32_t _group_of(self, pending) except? 0xFFFFFFFF:
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
        cdef size_t count = self.group_count + 1
        cdef void* groups = realloc(self.groups, count * sizeof(Group))
        cdef void* reached
        if groups == NULL:
            raise MemoryError
        self.groups = <Group*>groups
        reached = realloc(self.reached_groups, count * sizeof(uint32_t))
        if reached == NULL:
            raise MemoryError
        self.reached_groups = <uint32_t*>reached
        memset(&self.groups[self.group_count], 0, sizeof(Group))
        self._pendings.append(pending)
        self.group_count += 1
        return self.group_count - 1

    cdef int _free_group(self, uint32_t group) except -1:
        self._pendings[group] = None
        self._free_groups.append(group)
        return 0
