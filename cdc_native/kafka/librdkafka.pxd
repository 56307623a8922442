# cython: language_level=3
"""The functions of librdkafka's public interface (rdkafka.h) that the core calls, found at run time."""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t

cdef enum:
    PRODUCER = 0  # rd_kafka_type_t
    CONSUMER = 1
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
    # rd_kafka_vtype_t
    VTYPE_RKT = 2
    VTYPE_PARTITION = 3
    VTYPE_VALUE = 4
    VTYPE_KEY = 5
    VTYPE_MSGFLAGS = 7
    VTYPE_HEADERS = 10
    TEXT_SIZE = 512


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


cdef struct RkPartition:  # rd_kafka_topic_partition_t
    char* topic
    int32_t partition
    int64_t offset
    void* metadata
    size_t metadata_size
    void* opaque
    int err
    void* own


cdef struct RkPartitions:  # rd_kafka_topic_partition_list_t
    int count
    int size
    RkPartition* items


cdef struct RkMemory:
    void* at
    size_t size


cdef union RkValue:  # of rd_kafka_vu_t
    void* pointer
    int number
    int32_t partition
    RkMemory memory
    char room[64]


cdef struct RkArgument:  # rd_kafka_vu_t
    int type
    RkValue u


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
    void* (*produceva)(void*, const RkArgument*, size_t) noexcept nogil
    void* (*headers_new)(size_t) noexcept nogil
    int (*header_add)(void*, const char*, Py_ssize_t, const void*, Py_ssize_t) noexcept nogil
    void (*headers_destroy)(void*) noexcept nogil
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
    const char* (*err2str)(int) noexcept nogil
    int (*error_code)(void*) noexcept nogil
    const char* (*error_string)(void*) noexcept nogil
    int (*error_is_fatal)(void*) noexcept nogil
    int (*error_is_retriable)(void*) noexcept nogil
    int (*error_requires_abort)(void*) noexcept nogil
    void (*error_destroy)(void*) noexcept nogil
    # of consumers
    void* (*queue_new)(void*) noexcept nogil
    void* (*queue_get_consumer)(void*) noexcept nogil
    int (*poll_set_consumer)(void*) noexcept nogil
    Py_ssize_t (*consume_batch)(void*, int, RkMessage**, size_t) noexcept nogil
    void (*message_destroy)(RkMessage*) noexcept nogil
    int64_t (*message_timestamp)(const RkMessage*, int*) noexcept nogil
    const char* (*message_errstr)(const RkMessage*) noexcept nogil
    const char* (*topic_name)(void*) noexcept nogil
    RkPartitions* (*partitions_new)(int) noexcept nogil
    RkPartition* (*partitions_add)(RkPartitions*, const char*, int32_t) noexcept nogil
    void (*partitions_destroy)(RkPartitions*) noexcept nogil
    void* (*incremental_assign)(void*, RkPartitions*) noexcept nogil
    void* (*incremental_unassign)(void*, RkPartitions*) noexcept nogil
    int (*committed)(void*, RkPartitions*, int) noexcept nogil
    int (*query_watermark_offsets)(void*, const char*, int32_t, int64_t*, int64_t*, int) noexcept nogil
    int (*consumer_close)(void*) noexcept nogil
    void* (*group_metadata_new)(const char*) noexcept nogil
    void (*group_metadata_destroy)(void*) noexcept nogil
    # of transactions
    void* (*init_transactions)(void*, int) noexcept nogil
    void* (*begin_transaction)(void*) noexcept nogil
    void* (*send_offsets)(void*, RkPartitions*, void*, int) noexcept nogil
    void* (*commit_transaction)(void*, int) noexcept nogil
    void* (*abort_transaction)(void*, int) noexcept nogil


cdef class Client:
    cdef Library rk
    cdef void* client
    cdef void* queue  # of events
    cdef object _log

    cdef int open(self, int kind, str library, config, int events) except -1
    cdef int take_log(self, void* event) except -1
    cdef int check(self, void* error) except -1
    cdef int check_code(self, int code) except -1


cdef str text_of(const char* text)
cdef bytes c_text(str text)
cdef int milliseconds(double seconds) noexcept
