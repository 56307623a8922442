# cython: language_level=3
"""The body of a changelog in one buffer.

Python oracle: stream_runtime.state.changelog.encode.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy

cdef enum:
    _MOST = 0x7FFFFFFF  # bytes of a key or a value


cdef inline uint8_t* _write_length(uint8_t* out, uint32_t length) noexcept:
    out[0], out[1], out[2], out[3] = length >> 24, length >> 16 & 0xFF, length >> 8 & 0xFF, length & 0xFF
    return out + 4


cdef inline uint8_t* _write(uint8_t* out, bytes data) noexcept:
    memcpy(out, PyBytes_AS_STRING(data), <size_t>PyBytes_GET_SIZE(data))
    return out + PyBytes_GET_SIZE(data)


cdef Py_ssize_t _length(object data) except -1:
    if not isinstance(data, bytes) or PyBytes_GET_SIZE(data) > _MOST:
        raise OverflowError("a key or a value that is not bytes, or of 2 GiB")
    return PyBytes_GET_SIZE(data)


def encode_body(bytes header, dict writes) -> bytes:
    """The header and each write (None deletes). OverflowError for a key or a value of 2 GiB or more."""
    cdef Py_ssize_t size = 4 + _length(header)
    cdef bytes key, body
    cdef list pairs = list(writes.items())  # so that nothing can change between the two passes
    cdef uint8_t* out
    for key, value in pairs:
        size += 8 + _length(key)
        if value is not None:
            size += _length(value)
    body = PyBytes_FromStringAndSize(NULL, size)
    out = <uint8_t*>PyBytes_AS_STRING(body)
    out = _write(_write_length(out, <uint32_t>PyBytes_GET_SIZE(header)), header)
    for key, value in pairs:
        out = _write_length(out, <uint32_t>PyBytes_GET_SIZE(key))
        if value is None:
            out = _write(_write_length(out, 0xFFFFFFFF), key)
        else:
            out = _write(_write_length(out, <uint32_t>PyBytes_GET_SIZE(<bytes>value)), key)
            out = _write(out, <bytes>value)
    return body
