"""Finds the functions of librdkafka in a library that is linked to it, whatever the file's name is.

Python oracle: confluent_kafka.Producer.
"""
from posix.dlfcn cimport RTLD_NOW, dlerror, dlopen, dlsym


cdef str text_of(const char* text):
    return "" if text == NULL else (<bytes>text).decode(errors="replace")


cdef int find_functions(Library* rk, bytes library) except -1:
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
    return 0


cdef void* _function(void* handle, const char* name) except NULL:
    cdef void* found = dlsym(handle, name)
    if found == NULL:
        raise OSError(f"librdkafka has no {text_of(name)}")
    return found
