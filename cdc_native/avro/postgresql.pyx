"""Rows of Arrow as PostgreSQL's COPY reads them with FORMAT binary.

Python oracle: tests.support.warehouse.binary_copy.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from cdc_native.avro.arrow cimport ArrowArray, ArrowSchema
from cdc_native.formats.buffers cimport Bytes, Writer, reserve, write_bytes

cdef enum Kind:
    NOTHING
    BIT
    FOUR
    EIGHT
    SIZED
    FIXED
    UUID_TEXT

cdef enum:
    UUID_SIZE = 16
    UUID_TEXT_SIZE = 36

cdef int64_t _DAYS = 10_957  # from 1970 to 2000, when PostgreSQL's time begins
cdef int64_t _MICROS = 946_684_800_000_000
cdef bytes _BEGIN = b"PGCOPY\n\xff\r\n\0" + bytes(8)
cdef bytes _END = b"\xff\xff"

cdef struct Field:
    Kind kind
    int32_t width
    int64_t less  # what PostgreSQL's number is less than Arrow's
    const uint8_t* valid
    const uint8_t* data
    const uint8_t* bytes
    int64_t offset


class CopyError(ValueError):
    """A value that PostgreSQL's type cannot have. index: of the row; column: its number."""

    def __init__(self, Py_ssize_t index, Py_ssize_t column) -> None:
        super().__init__(index, column)
        self.index = index
        self.column = column


def copy_rows(rows, uuids=()):
    """The bytes of a whole COPY. rows: whatever has Arrow's `__arrow_c_array__`; uuids: the numbers of the columns whose
    texts are UUIDs.

    Texts, bytes, booleans, int32, int64, floats, date32, and microseconds are written. ValueError for another type,
    CopyError for a text that is no UUID.
    """
    schema_at, array_at = rows.__arrow_c_array__()
    cdef const ArrowSchema* schema = <const ArrowSchema*>PyCapsule_GetPointer(schema_at, b"arrow_schema")
    cdef const ArrowArray* array = <const ArrowArray*>PyCapsule_GetPointer(array_at, b"arrow_array")
    cdef int64_t count = schema.n_children, row = 0, number = 0
    cdef Field* fields
    cdef Writer out
    cdef bint is_whole = True
    if count > 1600 or array.n_children != count or array.offset:
        raise ValueError("rows that PostgreSQL cannot have")
    out.data, out.size, out.capacity, out.is_bad = NULL, 0, 0, False
    fields = <Field*>calloc(<size_t>(count or 1), sizeof(Field))
    if fields == NULL:
        raise MemoryError
    try:
        for number in range(count):
            _fill(&fields[number], schema.children[number], array.children[number], array.length, number in uuids)
        write_bytes(&out, <Bytes><const char*>_BEGIN, <size_t>len(_BEGIN))
        with nogil:
            for row in range(array.length):
                _write_number(&out, <uint64_t>count, 2)
                for number in range(count):
                    is_whole = _write(&out, &fields[number], row)
                    if not is_whole:
                        break
                if not is_whole:
                    break
        if not is_whole:
            raise CopyError(row, number)
        write_bytes(&out, <Bytes><const char*>_END, <size_t>len(_END))
        if out.is_bad:
            raise MemoryError
        return PyBytes_FromStringAndSize(<const char*>out.data, <Py_ssize_t>out.size)
    finally:
        free(fields)
        free(out.data)


cdef int _fill(Field* made, const ArrowSchema* schema, const ArrowArray* array, int64_t rows, bint is_uuid) except -1:
    """Describe a column."""
    cdef bytes form = schema.format
    made.offset = array.offset
    if array.length != rows or schema.dictionary != NULL:
        raise ValueError("columns of different lengths")
    if form == b"n":
        made.kind = NOTHING
        return 0
    made.valid = <const uint8_t*>array.buffers[0]
    made.data = <const uint8_t*>array.buffers[1]
    if form == b"b":
        made.kind, made.width = BIT, 1
    elif form == b"i" or form == b"f" or form == b"tdD":
        made.kind, made.width, made.less = FOUR, 4, _DAYS if form == b"tdD" else 0
    elif form == b"l" or form == b"g" or form == b"ttu" or form.startswith(b"tsu:"):
        made.kind, made.width, made.less = EIGHT, 8, _MICROS if form.startswith(b"tsu:") else 0
    elif form == b"u" or form == b"z":
        made.kind, made.bytes = UUID_TEXT if is_uuid else SIZED, <const uint8_t*>array.buffers[2]
    elif form.startswith(b"w:"):
        made.kind, made.width = FIXED, int(form[2:])
    else:
        raise ValueError(f"a column of the Arrow type {form.decode()}")
    return 0


cdef inline void _write_number(Writer* out, uint64_t number, int size) noexcept nogil:
    """A number, big-endian."""
    cdef int i
    if reserve(out, <size_t>size):
        for i in range(size):
            out.data[out.size + i] = <uint8_t>(number >> (8 * (size - 1 - i)))
        out.size += <size_t>size


cdef inline bint _write(Writer* out, const Field* field, int64_t row) noexcept nogil:
    """A value with its size before it; False if PostgreSQL cannot have it."""
    cdef int64_t at = row + field.offset
    cdef int32_t begin, end
    cdef uint32_t four
    cdef uint64_t eight
    if field.kind == NOTHING or (field.valid != NULL and not field.valid[at >> 3] >> (at & 7) & 1):
        _write_number(out, <uint64_t>-1, 4)
    elif field.kind == SIZED:
        begin, end = (<const int32_t*>field.data)[at], (<const int32_t*>field.data)[at + 1]
        _write_number(out, <uint64_t>(end - begin), 4)
        write_bytes(out, field.bytes + begin, <size_t>(end - begin))
    elif field.kind == UUID_TEXT:
        begin, end = (<const int32_t*>field.data)[at], (<const int32_t*>field.data)[at + 1]
        _write_number(out, UUID_SIZE, 4)
        return end - begin == UUID_TEXT_SIZE and _write_uuid(out, field.bytes + begin)
    elif field.kind == EIGHT:
        memcpy(&eight, field.data + 8 * at, 8)
        _write_number(out, 8, 4)
        _write_number(out, eight - <uint64_t>field.less, 8)
    elif field.kind == FOUR:
        memcpy(&four, field.data + 4 * at, 4)
        _write_number(out, 4, 4)
        _write_number(out, four - <uint32_t>field.less, 4)
    elif field.kind == BIT:
        _write_number(out, 1, 4)
        _write_number(out, field.data[at >> 3] >> (at & 7) & 1, 1)
    else:
        _write_number(out, <uint64_t>field.width, 4)
        write_bytes(out, field.data + field.width * at, <size_t>field.width)
    return True


cdef inline bint _write_uuid(Writer* out, const uint8_t* text) noexcept nogil:
    """The bytes of a UUID. text: its 8-4-4-4-12 digits."""
    cdef int i, digits = 0, digit
    cdef uint64_t byte = 0
    for i in range(UUID_TEXT_SIZE):
        if i == 8 or i == 13 or i == 18 or i == 23:
            if text[i] != c"-":
                return False
            continue
        digit = _digit(text[i])
        if digit < 0:
            return False
        byte = byte << 4 | <uint64_t>digit
        digits += 1
        if digits & 1 == 0:
            _write_number(out, byte & 0xFF, 1)
    return True


cdef inline int _digit(uint8_t letter) noexcept nogil:
    if c"0" <= letter <= c"9":
        return letter - c"0"
    if c"a" <= letter <= c"f":
        return letter - c"a" + 10
    return letter - c"A" + 10 if c"A" <= letter <= c"F" else -1
