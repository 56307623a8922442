# cython: language_level=3
"""The functions of librdkafka's public interface (rdkafka.h) that the producer calls, found at run time."""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t

cdef enum:
    PRODUCER = 0  # rd_kafka_type_t
    CONF_OK = 0
    MSG_F_COPY = 0x2
    NO_PARTITION = -1  # RD_KAFKA_PARTITION_UA
    # rd_kafka_event_type_t
    EVENT_DR = 0x1
    EVENT_LOG = 0x4
    EVENT_ERROR = 0x8
    # rd_kafka_resp_err_t
    ERR_QUEUE_FULL = -184
    ERR_FATAL = -150


cdef struct RkMessage:  # rd_kafka_message_t
    int err
    void* rkt
    int32_t partition
    void* payload
    size_t len
    void* key
    size_t key_len
    int64_t offset
    void* opaque


cdef struct Library:
    void* (*conf_new)() noexcept nogil
    void (*conf_destroy)(void*) noexcept nogil
    int (*conf_set)(void*, const char*, const char*, char*, size_t) noexcept nogil
    void (*conf_set_events)(void*, int) noexcept nogil
    void* (*new)(int, void*, char*, size_t) noexcept nogil
    void (*destroy)(void*) noexcept nogil
    const char* (*name)(void*) noexcept nogil
    int (*set_log_queue)(void*, void*) noexcept nogil
    void* (*queue_get_main)(void*) noexcept nogil
    void (*queue_destroy)(void*) noexcept nogil
    void* (*queue_poll)(void*, int) noexcept nogil
    void* (*topic_new)(void*, const char*, void*) noexcept nogil
    void (*topic_destroy)(void*) noexcept nogil
    int (*produce)(void*, int32_t, int, void*, size_t, const void*, size_t, void*) noexcept nogil
    int (*last_error)() noexcept nogil
    int (*metadata)(void*, int, void*, void**, int) noexcept nogil
    void (*metadata_destroy)(void*) noexcept nogil
    int (*event_type)(void*) noexcept nogil
    void (*event_destroy)(void*) noexcept nogil
    const RkMessage* (*event_message_next)(void*) noexcept nogil
    int (*event_log)(void*, const char**, const char**, int*) noexcept nogil
    int (*event_error)(void*) noexcept nogil
    const char* (*event_error_string)(void*) noexcept nogil
    int (*fatal_error)(void*, char*, size_t) noexcept nogil
    int64_t (*message_latency)(const RkMessage*) noexcept nogil


cdef str text_of(const char* text)
cdef int find_functions(Library* rk, bytes library) except -1
