"""Rows of Arrow as Avro messages: the way back from cdc_native.avro.columns.

Python oracle: fastavro.schemaless_writer.
"""
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcmp, strcmp

from cdc_native.avro.arrow cimport ArrowArray, ArrowSchema, free_schema
from cdc_native.avro.columns cimport Column, Table
from cdc_native.avro.messages cimport Messages
from cdc_native.avro.program cimport ARRAY, BOOLEAN, BYTES, ENUM, INT, LONG, MAP, NULL_VALUE, RECORD, STRING, Symbol
from cdc_native.formats.buffers cimport Bytes, Writer, write_avro_long, write_byte, write_bytes

cdef enum:
    DECIMAL_SIZE = 16

cdef enum Fault:
    NO_FAULT
    IS_NULL
    NO_SYMBOL
    TOO_WIDE
    BAD_ARRAY


cdef dict _REASONS = {
    IS_NULL: "null, where its schema has no null",
    NO_SYMBOL: "text that is no symbol of its enum",
    TOO_WIDE: "a decimal that does not fit its bytes",
    BAD_ARRAY: "an array whose lengths do not fit each other",
}


class RowError(ValueError):
    """A row that is not of the schema. index: of the row; reason: holds no value."""

    def __init__(self, Py_ssize_t index, str reason) -> None:
        super().__init__(index, reason)
        self.index = index
        self.reason = reason

    def __str__(self) -> str:
        return f"row {self.index}: {self.reason}"


def write_rows(Table table not None, rows, bytes header not None=b""):
    """A message of each row. rows: whatever has Arrow's `__arrow_c_array__`, of the table's type; header: before each
    message. Arrays and maps are written in one block. ValueError for rows of another type, RowError for a row.
    """
    schema_at, array_at = rows.__arrow_c_array__()
    cdef const ArrowSchema* schema = <const ArrowSchema*>PyCapsule_GetPointer(schema_at, b"arrow_schema")
    cdef const ArrowArray* array = <const ArrowArray*>PyCapsule_GetPointer(array_at, b"arrow_array")
    cdef ArrowSchema* wanted = table.schema(0)
    cdef Messages made = Messages()
    cdef Bytes before = <Bytes><const char*>header
    cdef size_t header_size = <size_t>len(header)
    cdef int64_t i = 0
    cdef Fault fault = NO_FAULT
    try:
        different = _difference(wanted, schema, "")
    finally:
        free_schema(wanted)
    if different is not None:
        raise ValueError(f"the rows are not of the schema: {different}")
    made.allocate(array.length)
    with nogil:
        if not _is_whole(table.columns, 0, array, array.offset + array.length):
            fault = BAD_ARRAY
        else:
            for i in range(array.length):
                made.spans[i].size = -<int64_t>made.data.size - 1
                write_bytes(&made.data, before, header_size)
                fault = _write(table.columns, table.program.symbols, 0, array, i, &made.data)
                if fault != NO_FAULT:
                    break
            if fault == NO_FAULT:
                made.settle()
    if fault != NO_FAULT:
        raise RowError(i, _REASONS[fault])
    if made.data.is_bad:
        raise MemoryError
    return made


cdef object _difference(const ArrowSchema* wanted, const ArrowSchema* found, str path):
    """Where two schemas differ, or None. Names count only in records."""
    cdef int64_t i
    cdef bint is_record = strcmp(wanted.format, b"+s") == 0
    if strcmp(wanted.format, found.format) or wanted.n_children != found.n_children or found.dictionary != NULL:
        types = (<bytes>found.format).decode(), (<bytes>wanted.format).decode()
        return f"{path or 'the row'} has the Arrow type {types[0]}, not {types[1]}"
    for i in range(wanted.n_children):
        name = (<bytes>wanted.children[i].name).decode()
        inner = f"{path}.{name}" if path else name
        if is_record and (found.children[i].name == NULL or strcmp(wanted.children[i].name, found.children[i].name)):
            return f"the field {inner} is missing or in another place"
        within = _difference(wanted.children[i], found.children[i], inner)
        if within is not None:
            return within
    return None


cdef inline bint _has_offsets(const Column* column) noexcept nogil:
    cdef int kind = column.kind
    return kind == STRING or kind == ENUM or kind == ARRAY or kind == MAP or (kind == BYTES and not column.is_decimal)


cdef bint _is_whole(const Column* columns, int at, const ArrowArray* array, int64_t needed) noexcept nogil:
    """Whether the array has the buffers and children of its type, and at least `needed` values, offset included."""
    cdef const Column* column = &columns[at]
    cdef const ArrowArray* entries = array
    cdef int kind = column.kind
    cdef int64_t buffers = 0 if kind == NULL_VALUE else 1 if kind == RECORD else 2
    cdef int64_t begin, end
    cdef const int32_t* offsets
    cdef int i
    if _has_offsets(column) and kind != ARRAY and kind != MAP:
        buffers = 3
    if array.n_buffers < buffers or array.offset < 0 or array.offset + array.length < needed:
        return False
    if array.n_children != (1 if kind == MAP else column.children):
        return False
    if needed == 0:
        return True
    if buffers > 1 and array.buffers[1] == NULL and (_has_offsets(column) or column.width or kind == BOOLEAN):
        return False
    if kind == RECORD:
        for i in range(column.children):
            if not _is_whole(columns, column.first + i, array.children[i], array.children[i].offset + needed):
                return False
    elif kind == ARRAY or kind == MAP:
        offsets = <const int32_t*>array.buffers[1]
        begin, end = offsets[array.offset], offsets[needed]
        if begin < 0 or end < begin:
            return False
        if kind == MAP:
            entries = array.children[0]
            if entries.n_children != 2 or entries.offset < 0 or entries.length < end:
                return False
            end += entries.offset
        for i in range(column.children):
            if not _is_whole(columns, column.first + i, entries.children[i], entries.children[i].offset + end):
                return False
    return True


cdef inline bint _is_null(const ArrowArray* array, int64_t place) noexcept nogil:
    cdef const uint8_t* bits
    if array.n_buffers == 0:  # of the type null
        return True
    bits = <const uint8_t*>array.buffers[0]
    return bits != NULL and not bits[place >> 3] >> (place & 7) & 1


cdef Fault _write(
    const Column* columns, const Symbol* symbols, int at, const ArrowArray* array, int64_t index, Writer* out
) noexcept nogil:
    """Write the value at an index, to which the array's own offset is added."""
    cdef const Column* column = &columns[at]
    cdef int64_t place = index + array.offset, begin, end
    cdef int kind = column.kind
    cdef const int32_t* offsets
    cdef const uint8_t* data
    cdef Fault fault
    if kind != NULL_VALUE and _is_null(array, place):
        if not column.is_nullable:
            return IS_NULL
        write_avro_long(out, column.null_at)
        return NO_FAULT
    if column.has_branch:
        write_avro_long(out, column.branch)
    if kind == RECORD:
        for at in range(column.first, column.first + column.children):
            fault = _write(columns, symbols, at, array.children[at - column.first], place, out)
            if fault != NO_FAULT:
                return fault
        return NO_FAULT
    if kind == NULL_VALUE:
        return NO_FAULT
    data = <const uint8_t*>array.buffers[1]
    if _has_offsets(column):
        offsets = <const int32_t*>data
        begin, end = offsets[place], offsets[place + 1]
        if begin < 0 or end < begin:
            return BAD_ARRAY
        if kind == ARRAY or kind == MAP:
            return _write_items(columns, symbols, column, array, begin, end, out)
        if kind == ENUM:
            return _write_symbol(column, symbols, <Bytes>array.buffers[2] + begin, end - begin, out)
        write_avro_long(out, end - begin)
        write_bytes(out, <Bytes>array.buffers[2] + begin, <size_t>(end - begin))
    elif kind == INT:
        write_avro_long(out, (<const int32_t*>data)[place])
    elif kind == LONG:
        write_avro_long(out, (<const int64_t*>data)[place])
    elif kind == BOOLEAN:
        write_byte(out, data[place >> 3] >> (place & 7) & 1)
    elif column.is_decimal:
        return _write_decimal(column, data + DECIMAL_SIZE * place, out)
    elif column.width:
        write_bytes(out, data + column.width * place, <size_t>column.width)
    return NO_FAULT


cdef Fault _write_items(
    const Column* columns, const Symbol* symbols, const Column* column, const ArrowArray* array, int64_t begin, int64_t end,
    Writer* out
) noexcept nogil:
    """Items of an array, or entries of a map, in one block."""
    cdef const ArrowArray* within = array.children[0]
    cdef int64_t i, limit = within.length
    cdef int j
    cdef Fault fault
    if end > limit:
        return BAD_ARRAY
    if end > begin:
        write_avro_long(out, end - begin)
    for i in range(begin, end):
        if column.kind == ARRAY:
            fault = _write(columns, symbols, column.first, within, i, out)
            if fault != NO_FAULT:
                return fault
            continue
        for j in range(2):
            fault = _write(columns, symbols, column.first + j, within.children[j], i + within.offset, out)
            if fault != NO_FAULT:
                return fault
    write_byte(out, 0)
    return NO_FAULT


cdef Fault _write_symbol(const Column* column, const Symbol* symbols, Bytes text, int64_t size, Writer* out) noexcept nogil:
    cdef int i
    cdef const Symbol* symbol
    for i in range(column.symbols):
        symbol = &symbols[column.first + i]
        if symbol.size == size and memcmp(symbol.text, text, <size_t>size) == 0:
            write_avro_long(out, i)
            return NO_FAULT
    return NO_SYMBOL


cdef Fault _write_decimal(const Column* column, const uint8_t* number, Writer* out) noexcept nogil:
    """16 bytes, little-endian, as two's complement, big-endian: the shortest, or of a fixed's size."""
    cdef uint8_t sign = 0xFF if number[DECIMAL_SIZE - 1] & 0x80 else 0
    cdef int size = DECIMAL_SIZE, i
    while size > 1 and number[size - 1] == sign and (number[size - 2] ^ sign) & 0x80 == 0:
        size -= 1
    if column.kind == BYTES:
        write_avro_long(out, size)
    elif size > column.fixed:
        return TOO_WIDE
    else:
        for i in range(column.fixed - size):
            write_byte(out, sign)
    for i in range(size):
        write_byte(out, number[size - 1 - i])
    return NO_FAULT
