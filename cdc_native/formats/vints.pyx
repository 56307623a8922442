"""Thin wrappers of buffers.pxd, through which tests compare its readers and writers.

Python oracle: cassandra_storage.formats.primitives.vint.

Readers return (value, position after it), or None where the Python code raises FormatError. Raises IndexError for a
position outside the bytes.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free

from cdc_native.formats.buffers cimport (
    Bytes,
    Cursor,
    Writer,
    read_byte as c_read_byte,
    read_int as c_read_int,
    read_unsigned_vint as c_read_unsigned_vint,
    take as c_take,
    write_avro_long as c_write_avro_long,
    write_byte as c_write_byte,
    write_bytes as c_write_bytes,
    write_unsigned_vint as c_write_unsigned_vint,
)


cdef Cursor _cursor(bytes data, Py_ssize_t pos) except *:
    """Over the bytes from `pos` on; `data` must outlive it."""
    cdef Cursor cursor
    if not 0 <= pos <= len(data):
        raise IndexError(f"position {pos} is not in {len(data)} bytes")
    cursor.at = <Bytes><const char*>data + pos
    cursor.end = <Bytes><const char*>data + len(data)
    cursor.is_bad = False
    return cursor


cdef tuple _result(bytes data, Cursor* cursor, object value):
    return None if cursor.is_bad else (value, <Py_ssize_t>(cursor.at - <Bytes><const char*>data))


cdef bytes _written(Writer* writer):
    """Return its bytes, and give its memory back."""
    try:
        if writer.is_bad:
            raise MemoryError
        return PyBytes_FromStringAndSize(<char*>writer.data, <Py_ssize_t>writer.size)
    finally:
        free(writer.data)


def read_unsigned_vint(bytes data not None, Py_ssize_t pos):
    cdef Cursor cursor = _cursor(data, pos)
    cdef uint64_t value = c_read_unsigned_vint(&cursor)
    return _result(data, &cursor, value)


def read_int(bytes data not None, Py_ssize_t pos):
    cdef Cursor cursor = _cursor(data, pos)
    cdef int64_t value = c_read_int(&cursor)
    return _result(data, &cursor, value)


def read_sized(bytes data not None, Py_ssize_t pos):
    cdef Cursor cursor = _cursor(data, pos)
    cdef uint64_t size = c_read_unsigned_vint(&cursor)
    cdef Bytes start = c_take(&cursor, size)
    if cursor.is_bad:
        return None
    return _result(data, &cursor, PyBytes_FromStringAndSize(<const char*>start, <Py_ssize_t>size))


def read_script(bytes data not None, bytes script not None):
    """Run the readers that `script` names, one after the other: `b` a byte, `v` a vint, `i` an int, `s` sized bytes.

    They share one cursor, and none looks whether an earlier one went wrong. The end's position; None if any did.
    """
    cdef Cursor cursor = _cursor(data, 0)
    for step in script:
        if step == c"b":
            c_read_byte(&cursor)
        elif step == c"v":
            c_read_unsigned_vint(&cursor)
        elif step == c"i":
            c_read_int(&cursor)
        elif step == c"s":
            c_take(&cursor, c_read_unsigned_vint(&cursor))
        else:
            raise ValueError(f"unknown step {step}")
    return None if cursor.is_bad else <Py_ssize_t>(cursor.at - <Bytes><const char*>data)


def write_unsigned_vint(uint64_t value):
    cdef Writer writer = Writer(NULL, 0, 0, False)
    c_write_unsigned_vint(&writer, value)
    return _written(&writer)


def write_avro_long(int64_t value):
    cdef Writer writer = Writer(NULL, 0, 0, False)
    c_write_avro_long(&writer, value)
    return _written(&writer)


def write_all(list parts not None):
    """One writer for all: ints as vints, bytes with their size before them, None as a byte 0xff."""
    cdef Writer writer = Writer(NULL, 0, 0, False)
    cdef uint64_t number
    cdef bytes raw
    try:
        for part in parts:
            if part is None:
                c_write_byte(&writer, 0xFF)
            elif isinstance(part, bytes):
                raw = part
                c_write_unsigned_vint(&writer, <uint64_t>len(raw))
                c_write_bytes(&writer, <Bytes><const char*>raw, <size_t>len(raw))
            else:
                number = part
                c_write_unsigned_vint(&writer, number)
    except BaseException:
        free(writer.data)
        raise
    return _written(&writer)
