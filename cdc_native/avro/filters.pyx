# cython: language_level=3
"""Filters of rows: whether the values of columns, where they lie in a message, are in ranges.

Python oracle: joinery.routing.passes.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.math cimport isnan
from libc.stddef cimport size_t
from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from cdc_native.formats.buffers cimport Bytes, Cursor, read_avro_long

cdef enum:
    LONG, BOOLEAN, FLOAT, DOUBLE, BYTES, ANY  # joinery.planning.row_filters.Kind

cdef int64_t NAN = 0x7FF8000000000000


cdef class Filters:
    """filters: of each, the slot of its column in a layout and the branch that is null, or -1 where there is none; its
    kind, whether null passes, and its ranges in order.
    """

    def __cinit__(self, filters, int slots):
        cdef Filter* found
        self._kept = []
        given = list(filters)
        self._filters = <Filter*>calloc(len(given) or 1, sizeof(Filter))
        if self._filters == NULL:
            raise MemoryError
        for slot, null_at, kind, passes_null, ranges in given:
            if not -1 <= slot < slots or not LONG <= kind <= ANY:
                raise ValueError("no such slot or kind")
            found = self._filters + self._count
            self._count += 1
            found.slot, found.null_at, found.kind, found.passes_null = slot, null_at, kind, passes_null
            self._read_ranges(found, ranges)

    def __dealloc__(self):
        cdef size_t i
        if self._filters != NULL:
            for i in range(self._count):
                free(self._filters[i].ranges)
        free(self._filters)

    cdef int _read_ranges(self, Filter* found, ranges) except -1:
        cdef Range* made
        found.ranges = <Range*>calloc(len(ranges) or 1, sizeof(Range))
        if found.ranges == NULL:
            raise MemoryError
        for first, last in ranges:
            made = found.ranges + found.count
            found.count += 1
            if found.kind != BYTES:
                made.low, made.high = first, last
                continue
            if type(first) is not bytes or type(last) not in (bytes, type(None)):
                raise TypeError("a range that is not of bytes")
            self._kept += first, last
            made.first = Span(<Bytes>PyBytes_AS_STRING(first), <size_t>PyBytes_GET_SIZE(first))
            if last is not None:
                made.after = Span(<Bytes>PyBytes_AS_STRING(last), <size_t>PyBytes_GET_SIZE(last))
        return 0

    cdef bint passes(self, Bytes at, const int32_t* extents) noexcept nogil:
        """Whether a row passes all of them. extents: of its fields, which were checked."""
        cdef size_t i
        for i in range(self._count):
            if not _passes(self._filters + i, at, extents):
                return False
        return True


cdef bint _passes(const Filter* given, Bytes at, const int32_t* extents) noexcept nogil:
    cdef Cursor c
    if given.slot < 0:
        return given.passes_null
    c.at, c.end, c.is_bad = at + extents[2 * given.slot], at + extents[2 * given.slot + 1], False
    if given.null_at >= 0 and read_avro_long(&c) == given.null_at:
        return given.passes_null
    if given.kind == ANY:
        return not given.passes_null
    if given.kind == BYTES:
        read_avro_long(&c)
        return _has_bytes(given, Span(c.at, <size_t>(c.end - c.at)))
    return _has_integer(given, _integer(given.kind, &c))


cdef int64_t _integer(int kind, Cursor* c) noexcept nogil:
    """The value as an integer: those of floating-point numbers are in the same order."""
    cdef double number
    cdef float single
    cdef int64_t bits
    if kind == LONG:
        return read_avro_long(c)
    if kind == BOOLEAN:
        return c.at[0] != 0
    if kind == FLOAT:
        memcpy(&single, c.at, sizeof(float))
        number = single
    else:
        memcpy(&number, c.at, sizeof(double))
    if isnan(number):
        return NAN
    memcpy(&bits, &number, sizeof(double))
    return bits if bits >= 0 else -(bits & INT64_MAX)


cdef bint _has_integer(const Filter* given, int64_t value) noexcept nogil:
    cdef size_t first = 0, end = given.count, middle
    while first < end:  # the number of ranges that begin at the value or before it
        middle = (first + end) // 2
        if given.ranges[middle].low <= value:
            first = middle + 1
        else:
            end = middle
    return first > 0 and value <= given.ranges[first - 1].high


cdef bint _has_bytes(const Filter* given, Span value) noexcept nogil:
    cdef size_t first = 0, end = given.count, middle
    while first < end:
        middle = (first + end) // 2
        if _compare(given.ranges[middle].first, value) <= 0:
            first = middle + 1
        else:
            end = middle
    if first == 0:
        return False
    return given.ranges[first - 1].after.at == NULL or _compare(value, given.ranges[first - 1].after) < 0


cdef int _compare(Span one, Span other) noexcept nogil:
    cdef size_t size = one.size if one.size < other.size else other.size
    cdef int found = memcmp(one.at, other.at, size) if size else 0
    if found or one.size == other.size:
        return found
    return -1 if one.size < other.size else 1
