"""Finds the functions of librdkafka in a library that is linked to it, whatever the file's name is, and opens clients.

No function of librdkafka calls back: what happens in its threads are events, which a client takes from a queue.

Python oracle: confluent_kafka.Producer.
"""
from posix.dlfcn cimport RTLD_NOW, dlerror, dlopen, dlsym


class LibrdkafkaError(Exception):
    """librdkafka's error: `code`, and `text`, what it says."""

    def __init__(
        self, int code, str text, bint is_fatal=False, bint is_retriable=False, bint requires_abort=False
    ) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text
        self.is_fatal = is_fatal
        self.is_retriable = is_retriable
        self.requires_abort = requires_abort


cdef class Client:
    """A client of librdkafka, which a subclass opens."""

    def __dealloc__(self):
        if self.client != NULL:
            with nogil:
                if self.queue != NULL:
                    self.rk.queue_destroy(self.queue)
                self.rk.destroy(self.client)

    cdef int open(self, int kind, str library, config, int events) except -1:
        """events: those that come as events instead of being ignored. OSError if the library is not usable, ValueError
        for a wrong property.
        """
        cdef char text[TEXT_SIZE]
        cdef bytes name, value
        cdef list properties
        cdef void* conf
        if sizeof(void*) < 8:
            raise OSError("the native clients of Kafka need pointers of 64 bits")
        _find_functions(&self.rk, library.encode())
        properties = [
            (c_text(key), c_text(str(content).lower() if isinstance(content, bool) else str(content)))
            for key, content in {**config, "log.queue": "true"}.items()
        ]
        conf = self.rk.conf_new()
        text[0] = 0
        for name, value in properties:
            if self.rk.conf_set(conf, name, value, text, TEXT_SIZE) != CONF_OK:
                self.rk.conf_destroy(conf)
                raise ValueError((<bytes>text).decode(errors="replace"))
        self.rk.conf_set_events(conf, events)
        self.client = self.rk.new(kind, conf, text, TEXT_SIZE)
        if self.client == NULL:
            self.rk.conf_destroy(conf)
            raise ValueError((<bytes>text).decode(errors="replace"))
        return 0

    cdef int take_log(self, void* event) except -1:
        """Give a log line to the log."""
        cdef const char* facility = NULL
        cdef const char* line = NULL
        cdef int level = 0
        if self.rk.event_log(event, &facility, &line, &level) == 0:
            self._log(level, f"{text_of(facility)} [{text_of(self.rk.name(self.client))}] {text_of(line)}")
        return 0

    cdef int check(self, void* error) except -1:
        """Raise LibrdkafkaError if there is an error, which is freed."""
        if error == NULL:
            return 0
        made = LibrdkafkaError(
            self.rk.error_code(error),
            text_of(self.rk.error_string(error)),
            bool(self.rk.error_is_fatal(error)),
            bool(self.rk.error_is_retriable(error)),
            bool(self.rk.error_requires_abort(error)),
        )
        self.rk.error_destroy(error)
        raise made

    cdef int check_code(self, int code) except -1:
        """Raise LibrdkafkaError if the code is one of an error."""
        if code:
            raise LibrdkafkaError(code, text_of(self.rk.err2str(code)))
        return 0


cdef str text_of(const char* text):
    return "" if text == NULL else (<bytes>text).decode(errors="replace")


cdef bytes c_text(str text):
    """Encode a text as librdkafka takes it. ValueError for one that C would take for a shorter one."""
    cdef bytes encoded = text.encode()
    if b"\0" in encoded:
        raise ValueError(f"{text!r} has a zero byte")
    return encoded


cdef int milliseconds(double seconds) noexcept:
    """Of a time to wait, which is at most a day."""
    return <int>(seconds * 1000) if 0 < seconds < 86_400 else 0


cdef int _find_functions(Library* rk, bytes library) except -1:
    """OSError if the library or one of the functions is not found."""
    cdef void* handle = dlopen(library, RTLD_NOW)  # never closed: the functions are called until the end
    if handle == NULL:
        raise OSError(text_of(dlerror()))
    (<void**>&rk.conf_new)[0] = _function(handle, b"rd_kafka_conf_new")
    (<void**>&rk.conf_destroy)[0] = _function(handle, b"rd_kafka_conf_destroy")
    (<void**>&rk.conf_set)[0] = _function(handle, b"rd_kafka_conf_set")
    (<void**>&rk.conf_set_events)[0] = _function(handle, b"rd_kafka_conf_set_events")
    (<void**>&rk.new)[0] = _function(handle, b"rd_kafka_new")
    (<void**>&rk.destroy)[0] = _function(handle, b"rd_kafka_destroy")
    (<void**>&rk.name)[0] = _function(handle, b"rd_kafka_name")
    (<void**>&rk.set_log_queue)[0] = _function(handle, b"rd_kafka_set_log_queue")
    (<void**>&rk.queue_get_main)[0] = _function(handle, b"rd_kafka_queue_get_main")
    (<void**>&rk.queue_destroy)[0] = _function(handle, b"rd_kafka_queue_destroy")
    (<void**>&rk.queue_poll)[0] = _function(handle, b"rd_kafka_queue_poll")
    (<void**>&rk.topic_new)[0] = _function(handle, b"rd_kafka_topic_new")
    (<void**>&rk.topic_destroy)[0] = _function(handle, b"rd_kafka_topic_destroy")
    (<void**>&rk.produce)[0] = _function(handle, b"rd_kafka_produce")
    (<void**>&rk.produceva)[0] = _function(handle, b"rd_kafka_produceva")
    (<void**>&rk.headers_new)[0] = _function(handle, b"rd_kafka_headers_new")
    (<void**>&rk.header_add)[0] = _function(handle, b"rd_kafka_header_add")
    (<void**>&rk.headers_destroy)[0] = _function(handle, b"rd_kafka_headers_destroy")
    (<void**>&rk.last_error)[0] = _function(handle, b"rd_kafka_last_error")
    (<void**>&rk.metadata)[0] = _function(handle, b"rd_kafka_metadata")
    (<void**>&rk.metadata_destroy)[0] = _function(handle, b"rd_kafka_metadata_destroy")
    (<void**>&rk.event_type)[0] = _function(handle, b"rd_kafka_event_type")
    (<void**>&rk.event_destroy)[0] = _function(handle, b"rd_kafka_event_destroy")
    (<void**>&rk.event_message_next)[0] = _function(handle, b"rd_kafka_event_message_next")
    (<void**>&rk.event_log)[0] = _function(handle, b"rd_kafka_event_log")
    (<void**>&rk.event_error)[0] = _function(handle, b"rd_kafka_event_error")
    (<void**>&rk.event_error_string)[0] = _function(handle, b"rd_kafka_event_error_string")
    (<void**>&rk.fatal_error)[0] = _function(handle, b"rd_kafka_fatal_error")
    (<void**>&rk.message_latency)[0] = _function(handle, b"rd_kafka_message_latency")
    (<void**>&rk.err2str)[0] = _function(handle, b"rd_kafka_err2str")
    (<void**>&rk.error_code)[0] = _function(handle, b"rd_kafka_error_code")
    (<void**>&rk.error_string)[0] = _function(handle, b"rd_kafka_error_string")
    (<void**>&rk.error_is_fatal)[0] = _function(handle, b"rd_kafka_error_is_fatal")
    (<void**>&rk.error_is_retriable)[0] = _function(handle, b"rd_kafka_error_is_retriable")
    (<void**>&rk.error_requires_abort)[0] = _function(handle, b"rd_kafka_error_txn_requires_abort")
    (<void**>&rk.error_destroy)[0] = _function(handle, b"rd_kafka_error_destroy")
    (<void**>&rk.queue_new)[0] = _function(handle, b"rd_kafka_queue_new")
    (<void**>&rk.queue_get_consumer)[0] = _function(handle, b"rd_kafka_queue_get_consumer")
    (<void**>&rk.poll_set_consumer)[0] = _function(handle, b"rd_kafka_poll_set_consumer")
    (<void**>&rk.consume_batch)[0] = _function(handle, b"rd_kafka_consume_batch_queue")
    (<void**>&rk.message_destroy)[0] = _function(handle, b"rd_kafka_message_destroy")
    (<void**>&rk.message_timestamp)[0] = _function(handle, b"rd_kafka_message_timestamp")
    (<void**>&rk.message_errstr)[0] = _function(handle, b"rd_kafka_message_errstr")
    (<void**>&rk.topic_name)[0] = _function(handle, b"rd_kafka_topic_name")
    (<void**>&rk.partitions_new)[0] = _function(handle, b"rd_kafka_topic_partition_list_new")
    (<void**>&rk.partitions_add)[0] = _function(handle, b"rd_kafka_topic_partition_list_add")
    (<void**>&rk.partitions_destroy)[0] = _function(handle, b"rd_kafka_topic_partition_list_destroy")
    (<void**>&rk.incremental_assign)[0] = _function(handle, b"rd_kafka_incremental_assign")
    (<void**>&rk.incremental_unassign)[0] = _function(handle, b"rd_kafka_incremental_unassign")
    (<void**>&rk.committed)[0] = _function(handle, b"rd_kafka_committed")
    (<void**>&rk.query_watermark_offsets)[0] = _function(handle, b"rd_kafka_query_watermark_offsets")
    (<void**>&rk.consumer_close)[0] = _function(handle, b"rd_kafka_consumer_close")
    (<void**>&rk.group_metadata_new)[0] = _function(handle, b"rd_kafka_consumer_group_metadata_new")
    (<void**>&rk.group_metadata_destroy)[0] = _function(handle, b"rd_kafka_consumer_group_metadata_destroy")
    (<void**>&rk.init_transactions)[0] = _function(handle, b"rd_kafka_init_transactions")
    (<void**>&rk.begin_transaction)[0] = _function(handle, b"rd_kafka_begin_transaction")
    (<void**>&rk.send_offsets)[0] = _function(handle, b"rd_kafka_send_offsets_to_transaction")
    (<void**>&rk.commit_transaction)[0] = _function(handle, b"rd_kafka_commit_transaction")
    (<void**>&rk.abort_transaction)[0] = _function(handle, b"rd_kafka_abort_transaction")
    return 0


cdef void* _function(void* handle, const char* name) except NULL:
    cdef void* found = dlsym(handle, name)
    if found == NULL:
        raise OSError(f"librdkafka has no {text_of(name)}")
    return found
