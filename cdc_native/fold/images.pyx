# cython: language_level=3
"""Change messages written from rows in C structs.

Python oracle: materializer.rows.row_image.RowImager, cdc_common.messages.envelope.ChangeEncoder.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free

from cdc_native.formats.buffers cimport Bytes, Writer, write_avro_long, write_byte, write_bytes
from cdc_native.formats.keys cimport compare_bytes
from cdc_native.fold.plan cimport Field, Plan
from cdc_native.formats.rows cimport Cell, Column, Row, Shape, is_live, is_present, is_row_live
from cdc_native.formats.texts cimport write_uuid
from cdc_native.fold.numbers cimport put_size_before
from cdc_native.fold.types cimport Type, is_field, written_type
from cdc_native.fold.values cimport (
    FITS,
    IS_EMPTY,
    NOT_MINE,
    Fit,
    write_key_text,
    write_value,
)

cdef enum:
    _NULL = 0
    _VALUE = 2
    _MOST_ROW_SEQUENCE_BITS = 62


cdef inline bint _is_visible(const Cell* cell, int64_t now, const Field* field) noexcept nogil:
    return is_live(cell, now) and (not field.has_drop or cell.timestamp > field.dropped)


cdef bint _is_shown(const Shape* shape, const Field* field, const Row* row, int64_t now) noexcept nogil:
    cdef const Column* column = &row.columns[field.place]
    cdef size_t i
    if not is_present(row, field.place):
        return False
    if not shape.is_complex[field.place]:
        return _is_visible(&column.cell, now, field)
    for i in range(column.first, column.first + column.count):
        if _is_visible(&row.cells[i], now, field):
            return True
    return False


cdef bint is_there(Plan plan, const Row* row, int64_t now) noexcept:
    """RowImager.image is not None."""
    cdef int i
    if is_row_live(&row.liveness, now):
        return True
    for i in range(plan.field_count):
        if not plan.fields[i].is_static and _is_shown(&plan.rows, &plan.fields[i], row, now):
            return True
    return False


cdef bint has_statics(Plan plan, const Row* static_row, int64_t now) noexcept:
    """Whether a static row shows any column."""
    cdef int i
    for i in range(plan.field_count):
        if plan.fields[i].is_static and _is_shown(&plan.statics, &plan.fields[i], static_row, now):
            return True
    return False


cdef inline const Type* _type_within(Plan plan, const Type* of, int place) noexcept nogil:
    return &plan.types.types[of.first + place]


cdef Fit _write_path_or_value(Writer* w, Plan plan, const Type* of, int place, Bytes value, uint64_t size) noexcept nogil:
    return write_value(w, plan.types.types, _type_within(plan, of, place), value, size)


cdef Fit _write_cells(Writer* w, Plan plan, const Field* field, const Row* row, int64_t now) noexcept nogil:
    """The visible cells of a complex column, at least one. `form` of its type says what of a cell is written."""
    cdef const Type* of = written_type(plan.types.types, &plan.types.types[field.shown])
    cdef const Column* column = &row.columns[field.place]
    cdef const Cell* cell
    cdef int64_t count = 0
    cdef bint is_map = of.size == 3, is_first = True
    cdef size_t i
    cdef Fit fit
    for i in range(column.first, column.first + column.count):
        count += _is_visible(&row.cells[i], now, field)
    if of.is_json:
        write_byte(w, c'{' if is_map else c'[')
    else:
        write_avro_long(w, count)
    for i in range(column.first, column.first + column.count):
        cell = &row.cells[i]
        if not _is_visible(cell, now, field):
            continue
        if of.is_json and not is_first:
            write_byte(w, c',')
        is_first = False
        if of.is_json and is_map:
            fit = write_key_text(w, plan.types.types, _type_within(plan, of, 0), cell.path, cell.path_size)
            if fit != FITS:
                return fit
        elif of.size != 1:  # a set's element, or a map's key
            fit = _write_path_or_value(w, plan, of, 0, cell.path, cell.path_size)
            if fit != FITS:
                return fit
        if of.size != 2:  # a list's element, or a map's value
            fit = _write_path_or_value(w, plan, of, of.count - 1, cell.value, cell.value_size)
            if fit != FITS:
                return fit
    if of.is_json:
        write_byte(w, c'}' if is_map else c']')
    else:
        write_byte(w, _NULL)  # the end of the array
    return FITS


cdef Fit _write_field_cells(Writer* w, Plan plan, const Field* field, const Row* row, int64_t now) noexcept nogil:
    """The visible fields of a multi-cell user type."""
    cdef const Type* of = written_type(plan.types.types, &plan.types.types[field.shown])
    cdef const Column* column = &row.columns[field.place]
    cdef const Cell* cell
    cdef bint is_first = True
    cdef int64_t place = 0, reached = 0
    cdef size_t i
    cdef Fit fit
    if of.is_json:
        write_byte(w, c'{')
    for i in range(column.first, column.first + column.count):
        cell = &row.cells[i]
        if not _is_visible(cell, now, field):
            continue
        if not is_field(of, cell.path, cell.path_size, &place) or place < reached:
            return NOT_MINE
        _write_field_start(w, _type_within(plan, of, <int>place), place - reached, is_first)
        reached, is_first = place, False
        fit = _write_path_or_value(w, plan, of, <int>place, cell.value, cell.value_size)
        if fit != FITS:
            return fit
        reached += 1
    if of.is_json:
        write_byte(w, c'}')
        return FITS
    while reached < of.count:
        write_byte(w, _NULL)
        reached += 1
    return FITS


cdef inline void _write_field_start(Writer* w, const Type* of, int64_t missing, bint is_first) noexcept nogil:
    """Write the fields that are missing before a field, and that it is there; its value follows."""
    if of.is_json:
        if not is_first:
            write_byte(w, c',')
        write_bytes(w, of.label, of.label_size)
        return
    while missing:
        write_byte(w, _NULL)
        missing -= 1
    write_byte(w, _VALUE)


cdef Fit _write_column(Writer* w, Plan plan, const Field* field, const Shape* shape, const Row* row, int64_t now) noexcept nogil:
    cdef const Type* of = &plan.types.types[field.shown]
    cdef const Cell* cell
    cdef size_t start = w.size
    cdef Fit fit
    if shape.is_complex[field.place]:
        if written_type(plan.types.types, of).fixed:
            fit = _write_field_cells(w, plan, field, row, now)
        else:
            fit = _write_cells(w, plan, field, row, now)
        if written_type(plan.types.types, of) != of:
            put_size_before(w, start)
        return fit
    cell = &row.columns[field.place].cell
    return write_value(w, plan.types.types, of, cell.value, cell.value_size)


cdef bint write_key(Writer* w, Plan plan, bytes partition_key, const Row* row) noexcept:
    """The fields of the primary key; `row` NULL is the row of a partition that has only statics. False if the key is
    the Python code's.
    """
    cdef Bytes at = <Bytes>PyBytes_AS_STRING(partition_key)
    cdef uint64_t left = <uint64_t>PyBytes_GET_SIZE(partition_key), size
    cdef int i
    cdef const Type* types = plan.types.types
    if plan.partition_columns == 1:
        if write_value(w, types, &types[plan.partition_types[0]], at, left) != FITS:
            return False
    else:
        for i in range(plan.partition_columns):
            if left < 3:
                return False
            size = <uint64_t>at[0] << 8 | at[1]
            if size > left - 3 or write_value(w, types, &types[plan.partition_types[i]], at + 2, size) != FITS:
                return False
            at += size + 3
            left -= size + 3
        if left:
            return False
    for i in range(plan.rows.clusterings):
        if row == NULL:
            if not plan.is_clustering_nullable:
                return False
            write_byte(w, _NULL)
            continue
        if row.values[i].is_null:
            return False
        if plan.is_clustering_nullable:
            write_byte(w, _VALUE)
        if write_value(w, types, &types[plan.clustering_types[i]], row.values[i].at, row.values[i].size) != FITS:
            return False
    return True


cdef inline void _write_object(Writer* w, bytes data) noexcept:
    write_bytes(w, <Bytes>PyBytes_AS_STRING(data), <size_t>PyBytes_GET_SIZE(data))


cdef inline void _init(Writer* w) noexcept:
    w.data, w.size, w.capacity, w.is_bad = NULL, 0, 0, False


cdef class MessageWriter:
    """Writes one message after the other. The value lacks its end: the time at which the message is made (ms)."""

    def __cinit__(self):
        _init(&self.key)
        _init(&self.value)
        _init(&self.empty)
        _init(&self.unreadable)

    def __dealloc__(self):
        free(self.key.data)
        free(self.value.data)
        free(self.empty.data)
        free(self.unreadable.data)

    cdef Likeness compare(self, Plan plan, const Row* left, int64_t left_now, const Row* right, int64_t right_now) noexcept:
        """Whether the regular columns of two rows that are there show the same."""
        cdef int i
        cdef Likeness found
        for i in range(plan.field_count):
            if plan.fields[i].is_static:
                continue
            found = self._compare_columns(plan, &plan.fields[i], left, left_now, right, right_now)
            if found != SAME:
                return found
        return SAME

    cdef Likeness _compare_columns(
        self, Plan plan, const Field* field, const Row* left, int64_t left_now, const Row* right, int64_t right_now
    ) noexcept:
        cdef const Type* of = &plan.types.types[field.type]
        cdef const Column* x = &left.columns[field.place]
        cdef const Column* y = &right.columns[field.place]
        cdef size_t i = 0, j = 0, left_count = 0, right_count = 0
        cdef bint is_left, is_right
        cdef Likeness found
        if not plan.rows.is_complex[field.place]:
            is_left = _is_shown(&plan.rows, field, left, left_now)
            is_right = _is_shown(&plan.rows, field, right, right_now)
            if is_left != is_right:
                return DIFFERENT
            if not is_left:
                return SAME
            return self._compare(plan, of, x.cell.value, x.cell.value_size, y.cell.value, y.cell.value_size)
        if is_present(left, field.place):
            left_count = x.count
        if is_present(right, field.place):
            right_count = y.count
        while True:
            while i < left_count and not _is_visible(&left.cells[x.first + i], left_now, field):
                i += 1
            while j < right_count and not _is_visible(&right.cells[y.first + j], right_now, field):
                j += 1
            if i == left_count or j == right_count:
                return SAME if i == left_count and j == right_count else DIFFERENT
            found = self._compare_cells(plan, of, &left.cells[x.first + i], &right.cells[y.first + j])
            if found != SAME:
                return found
            i += 1
            j += 1

    cdef Likeness _compare_cells(self, Plan plan, const Type* of, const Cell* x, const Cell* y) noexcept:
        """Two cells of a complex column: what a message shows of them, as _write_cells and _write_field_cells."""
        cdef int64_t place = of.count - 1
        cdef Likeness found = SAME
        if of.fixed:  # a user type
            if compare_bytes(x.path, x.path_size, y.path, y.path_size):
                return DIFFERENT
            if not is_field(of, x.path, x.path_size, &place):
                return UNKNOWN
        elif of.size != 1:  # a set's element, or a map's key
            found = self._compare(plan, _type_within(plan, of, 0), x.path, x.path_size, y.path, y.path_size)
        if found != SAME or (of.size == 2 and not of.fixed):
            return found
        return self._compare(plan, _type_within(plan, of, <int>place), x.value, x.value_size, y.value, y.value_size)

    cdef Likeness _compare(
        self, Plan plan, const Type* t, Bytes left, uint64_t left_size, Bytes right, uint64_t right_size
    ) noexcept:
        """Two values of one type: by their bytes, and where different bytes may be shown alike, as they are shown."""
        if left_size == right_size and (left == right or compare_bytes(left, left_size, right, right_size) == 0):
            return SAME
        if not t.has_forms:
            return DIFFERENT
        self.key.size = self.value.size = 0
        if write_value(&self.key, plan.types.types, t, left, left_size) != FITS:
            return UNKNOWN
        if write_value(&self.value, plan.types.types, t, right, right_size) != FITS:
            return UNKNOWN
        if self.key.is_bad or self.value.is_bad:
            return UNKNOWN
        if compare_bytes(self.key.data, self.key.size, self.value.data, self.value.size):
            return DIFFERENT
        return SAME

    cdef bint write(
        self,
        Plan plan,
        bytes partition_key,
        const Row* key_row,
        const Image* before,
        const Image* after,
        uint64_t row_sequence,
        const Source* source,
    ) except -1:
        """Write key and value; an image that is NULL is that of a row that is not there. False if it is not mine."""
        cdef Writer* w = &self.value
        if row_sequence >> _MOST_ROW_SEQUENCE_BITS:
            return False
        self.key.size = self.value.size = self.empty.size = self.unreadable.size = 0
        self.empty_count = self.unreadable_count = 0
        _write_object(&self.key, plan.key_header)
        if not write_key(&self.key, plan, partition_key, key_row):
            return False
        _write_object(w, plan.value_header)
        if not self._write_image(plan, before, 0, <size_t>PyBytes_GET_SIZE(plan.key_header)):
            return False
        self.after_empty, self.after_unreadable = -self.empty_count, -self.unreadable_count
        if not self._write_image(plan, after, 1, <size_t>PyBytes_GET_SIZE(plan.key_header)):
            return False
        self.after_empty += self.empty_count
        self.after_unreadable += self.unreadable_count
        self._write_source(plan, source, row_sequence)
        write_byte(w, 2)
        if before == NULL:
            write_byte(w, 0x72 if source.is_snapshot else 0x63)
        else:
            write_byte(w, 0x64 if after == NULL else 0x75)
        write_byte(w, _VALUE)
        if self.key.is_bad or w.is_bad or self.empty.is_bad or self.unreadable.is_bad:
            raise MemoryError
        return True

    cdef bint _write_image(self, Plan plan, const Image* image, int which, size_t key_start) except -1:
        cdef Writer* w = &self.value
        cdef const Field* field
        cdef const Shape* shape
        cdef const Row* row
        cdef int64_t now
        cdef int i
        cdef size_t start
        cdef Fit fit
        if image == NULL:
            write_byte(w, _NULL)
            return True
        write_byte(w, _VALUE)
        write_bytes(w, self.key.data + key_start, self.key.size - key_start)
        for i in range(plan.field_count):
            field = &plan.fields[i]
            if field.is_static:
                shape, row, now = &plan.statics, image.static_row, image.static_now
            else:
                shape, row, now = &plan.rows, image.row, image.now
            if row == NULL or not _is_shown(shape, field, row, now):
                write_byte(w, _NULL)
                continue
            start = w.size
            write_byte(w, _VALUE)
            fit = _write_column(w, plan, field, shape, row, now)
            if fit == NOT_MINE:
                return False
            if fit != FITS:
                w.size = start
                write_byte(w, _NULL)
                self._add_name(plan.field_names[i][which], fit == IS_EMPTY)
        return True

    cdef int _add_name(self, bytes name, bint is_empty) except -1:
        if is_empty:
            _write_object(&self.empty, name)
            self.empty_count += 1
        else:
            _write_object(&self.unreadable, name)
            self.unreadable_count += 1
        return 0

    cdef int _write_source(self, Plan plan, const Source* source, uint64_t row_sequence) except -1:
        cdef Writer* w = &self.value
        cdef int64_t ms = source.timestamp // 1000
        if source.timestamp % 1000 < 0:  # Python rounds down
            ms -= 1
        _write_object(w, plan.source_start)
        write_avro_long(w, ms)
        write_avro_long(w, source.timestamp)
        _write_object(w, plan.snapshot_source_table if source.is_snapshot else plan.source_table)
        write_uuid(w, source.host)
        write_avro_long(w, source.file_size)
        write_bytes(w, source.file, <size_t>source.file_size)
        write_avro_long(w, source.position)
        write_avro_long(w, source.cause_size)
        write_bytes(w, source.cause, <size_t>source.cause_size)
        write_avro_long(w, <int64_t>row_sequence)
        _write_array(w, &self.empty, self.empty_count)
        _write_array(w, &self.unreadable, self.unreadable_count)
        write_byte(w, 1 if source.is_incomplete else 0)
        write_byte(w, 0)  # left_out: nothing
        return 0

    cdef bytes take_key(self):
        return PyBytes_FromStringAndSize(<const char*>self.key.data, <Py_ssize_t>self.key.size)

    cdef bytes take_value(self):
        return PyBytes_FromStringAndSize(<const char*>self.value.data, <Py_ssize_t>self.value.size)


cdef void _write_array(Writer* w, const Writer* items, int64_t count) noexcept:
    if count:
        write_avro_long(w, count)
        write_bytes(w, items.data, items.size)
    write_byte(w, 0)
