"""Where the fields of each message lie, and messages put together from them: project and patch.

Python oracle: transformer.steps.rewrite.
"""
from cpython.buffer cimport Py_buffer, PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport INT32_MAX, int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from cdc_native.avro.converts cimport Converts
from cdc_native.avro.messages cimport Messages, Span, raise_at
from cdc_native.avro.program cimport OPTIONAL, Node, Program, skip
from cdc_native.formats.buffers cimport Bytes, Cursor, Writer, read_avro_long, write_bytes

cdef enum:
    ABSENT = -1

cdef enum OpKind:
    COPY
    CONSTANT
    CONVERT
    GIVEN
    UNLESS    # jump unless a nested record is there
    JUMP

cdef enum Fault:
    NONE
    NOT_OF_SCHEMA
    TOO_LONG
    NO_MEMORY
    NOT_THERE
    REFUSED


cdef dict _REASONS = {
    NOT_OF_SCHEMA: "not of its schema",
    TOO_LONG: "more bytes than its schema says, or than 2 GiB",
    NOT_THERE: "a record that is copied from is null",
    REFUSED: "a conversion refuses the value",
}


cdef struct Field:  # of a record that is open: its slot, and where the fields of the record within begin, or -1
    int slot
    int opened


cdef struct Op:
    int kind
    int first  # COPY: slots. CONVERT: of one slot, with conversions. UNLESS: a slot
    int last
    int count
    int jump
    Bytes text
    size_t size


cdef class Layout:
    """Slots for the extents of fields: of all fields of the record, and of those of nested records that are opened.

    opened: paths of records, outer ones first. A path is a tuple of field names. ValueError for a path to none.
    """
    cdef readonly Program program
    cdef readonly dict slots  # by path
    cdef Field* _fields
    cdef int _count

    def __cinit__(self, Program program not None, opened=()):
        cdef Py_ssize_t most = 0
        self.program = program
        self.slots = {}
        wanted = {tuple(path) for path in opened}
        forms = [program.form] + [_form_at(program.form, path) for path in wanted]
        for form in forms:
            if form[0] != "record" or not form[2]:
                raise ValueError("only a record, or one that may be null, has fields")
            most += len(form[2])
        self._fields = <Field*>malloc(<size_t>(most or 1) * sizeof(Field))
        if self._fields == NULL:
            raise MemoryError
        self._open((), program.form, wanted)
        if wanted:
            raise ValueError(f"{sorted(wanted)[0]} lies in a record that is not opened")

    def __dealloc__(self):
        free(self._fields)

    def __len__(self):
        """The slots."""
        return self._count

    cdef int _open(self, tuple path, object form, set wanted) except -2:
        cdef int first = self._count, i
        self._count += <int>len(form[2])
        for i, name in enumerate(form[3]):
            inner = (*path, name)
            self.slots[inner] = first + i
            self._fields[first + i].slot = first + i
            self._fields[first + i].opened = ABSENT
        for i, name in enumerate(form[3]):
            inner = (*path, name)
            if inner in wanted:
                wanted.remove(inner)
                self._fields[first + i].opened = self._open(inner, _record_of(form[2][i]), wanted)
        return first

    cdef int slot(self, path) except -1:
        return self.slots[tuple(path)]

    cdef bint locate(self, Bytes at, int64_t size, int64_t skipped, int32_t* extents, Cursor* c) noexcept nogil:
        """Fill in where each field begins and ends, ABSENT in a record that is null. False if it is not of its schema.

        skipped: the bytes before the value.
        """
        memset(extents, 0xFF, <size_t>self._count * 2 * sizeof(int32_t))
        c.at, c.end, c.is_bad = at + skipped, at + size, size < skipped
        if c.is_bad:
            c.at = at
            return False
        _locate(self.program.nodes, self.program.nodes, self._fields, at, extents, c)
        return not c.is_bad and c.at == c.end

    def extents(self, Messages messages not None, int skipped=0):
        """Extents of all messages. skipped: bytes before each value, such as a header. AvroError."""
        cdef Extents made = Extents(self, messages.count)
        cdef Py_ssize_t i
        cdef Cursor c
        cdef int32_t* row
        cdef Fault fault = NONE
        if skipped < 0:
            raise ValueError("skipped is negative")
        with nogil:
            for i in range(messages.count):
                row = made._data + i * 2 * self._count
                if messages.spans[i].at == NULL:
                    memset(row, 0xFF, <size_t>self._count * 2 * sizeof(int32_t))
                    continue
                fault = _find(self, messages, i, skipped, row, &c)
                if fault != NONE:
                    break
        if fault != NONE:
            raise_at(messages, i, c.at - messages.spans[i].at, _REASONS[fault])
        return made


cdef Fault _find(Layout layout, Messages messages, Py_ssize_t i, int skipped, int32_t* row, Cursor* c) noexcept nogil:
    c.at = messages.spans[i].at
    if messages.spans[i].size > INT32_MAX:
        return TOO_LONG
    if layout.locate(messages.spans[i].at, messages.spans[i].size, skipped, row, c):
        return NONE
    return NOT_OF_SCHEMA if c.is_bad else TOO_LONG


cdef void _locate(
    const Node* nodes, const Node* record, const Field* fields, Bytes start, int32_t* extents, Cursor* c
) noexcept nogil:
    cdef int i
    cdef const Node* n
    cdef const Field* f
    for i in range(record.count):
        n = &nodes[record.first + i]
        f = &fields[i]
        extents[2 * f.slot] = <int32_t>(c.at - start)
        if f.opened == ABSENT:
            skip(nodes, n, c)
        else:
            _locate_nested(nodes, n, fields + (f.opened - f.slot + i), start, extents, c)
        if c.is_bad:
            return
        extents[2 * f.slot + 1] = <int32_t>(c.at - start)


cdef void _locate_nested(
    const Node* nodes, const Node* n, const Field* fields, Bytes start, int32_t* extents, Cursor* c
) noexcept nogil:
    """A record that is open, or null."""
    cdef int64_t branch
    if n.kind == OPTIONAL:
        branch = read_avro_long(c)
        if c.is_bad or branch == n.null_at:
            return
        if branch != 1 - n.null_at:
            c.is_bad = True
            return
        n = &nodes[n.first + branch]
    _locate(nodes, n, fields, start, extents, c)


def _record_of(form):
    """The form of a record, which may be in an optional."""
    return form[2][1 - form[1]] if form[0] == "optional" else form


def _form_at(form, path):
    for name in path:
        if form[0] != "record" or name not in form[3]:
            raise ValueError(f"there is no field {name}")
        form = _record_of(form[2][form[3].index(name)])
    return form


cdef class Extents:
    """(begin, end) of each slot in each message: int32, as a buffer; (-1, -1) where there is no such field."""
    cdef Layout _layout
    cdef int32_t* _data
    cdef readonly Py_ssize_t count

    def __cinit__(self, Layout layout not None, Py_ssize_t count):
        self._layout, self.count = layout, count
        self._data = <int32_t*>malloc(<size_t>(count * layout._count or 1) * 2 * sizeof(int32_t))
        if self._data == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._data)

    def __len__(self):
        return self.count

    def of(self, Py_ssize_t number, path):
        """(begin, end) of a field, or None if the message or a record around it is null."""
        cdef const int32_t* found
        if not 0 <= number < self.count:
            raise IndexError(number)
        found = self._data + 2 * (number * self._layout._count + self._layout.slot(path))
        return None if found[1] == ABSENT else (found[0], found[1])

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(
            buffer, self, self._data, self.count * self._layout._count * 2 * <Py_ssize_t>sizeof(int32_t), True, flags
        )


cdef class Rewrite:
    """Makes a message of each message, by operations in the order of the output:

    ("copy", first path, last path): the bytes from one field to another. ("bytes", bytes). ("given", n): the n-th of
    the batches that are given. ("convert", path, [conversions]). ("present", path, [operations], [operations]): the
    first if the nested record is not null, otherwise the second.
    """
    cdef readonly Layout layout
    cdef Converts _converts
    cdef Op* _ops
    cdef int _count
    cdef int _given
    cdef list _kept

    def __cinit__(self, Layout layout not None, ops):
        cdef list flat = [], converts = []
        cdef int i
        self.layout = layout
        self._kept = []
        self._flatten(ops, flat, converts)
        self._converts = Converts(converts)
        self._ops = <Op*>calloc(<size_t>(len(flat) or 1), sizeof(Op))
        if self._ops == NULL:
            raise MemoryError
        for i, operation in enumerate(flat):
            self._fill(&self._ops[i], operation)
        self._count = <int>len(flat)

    def __dealloc__(self):
        free(self._ops)

    cdef int _flatten(self, ops, list flat, list converts) except -1:
        for op in ops:
            kind = op[0]
            if kind == "present":
                at = len(flat)
                flat.append(None)
                self._flatten(op[2], flat, converts)
                end = len(flat)
                flat.append(None)
                self._flatten(op[3], flat, converts)
                flat[at] = "unless", self._first_within(op[1]), end + 1
                flat[end] = "jump", 0, len(flat)
            elif kind == "convert":
                if not op[2]:
                    raise ValueError("no conversions")
                flat.append((kind, self.layout.slot(op[1]), len(converts), len(op[2])))
                converts.extend(op[2])
            elif kind == "copy":
                flat.append((kind, self.layout.slot(op[1]), self.layout.slot(op[2])))
            else:
                flat.append(op)
        return 0

    cdef int _first_within(self, path) except -1:
        """The slot of the first field of a nested record, which has no extents where the record is null."""
        cdef const Field* field = &self.layout._fields[self.layout.slot(path)]
        if field.opened == ABSENT:
            raise ValueError("a record that is not opened")
        return self.layout._fields[field.opened].slot

    cdef int _fill(self, Op* made, tuple op) except -1:
        cdef bytes text
        kind = op[0]
        if kind == "copy":
            made.kind, made.first, made.last = COPY, op[1], op[2]
        elif kind == "convert":
            made.kind, made.last, made.first, made.count = CONVERT, op[1], op[2], op[3]
        elif kind == "bytes":
            text = op[1]
            self._kept.append(text)
            made.kind, made.text, made.size = CONSTANT, <Bytes>PyBytes_AS_STRING(text), <size_t>PyBytes_GET_SIZE(text)
        elif kind == "given":
            if op[1] < 0:
                raise ValueError("a batch is given by a number from 0 on")
            made.kind, made.first = GIVEN, op[1]
            self._given = max(self._given, made.first + 1)
        else:
            made.kind, made.first, made.jump = {"unless": UNLESS, "jump": JUMP}[kind], op[1], op[2]
        return 0

    def apply(self, Messages messages not None, int skipped=0, bytes header not None=b"", given=()):
        """The new messages; a tombstone stays one. skipped: bytes before each value; header: before each new one.

        given: batches as long as `messages`. AvroError for a message that is not of its schema or that is refused.
        """
        cdef Messages made = Messages()
        cdef list others = list(given)
        cdef Messages other
        cdef void** batches
        cdef int32_t* extents
        cdef Writer spare[2]
        cdef Cursor c
        cdef Py_ssize_t i, j
        cdef Fault fault = NONE
        cdef Bytes header_at = <Bytes>PyBytes_AS_STRING(header)
        cdef size_t header_size = <size_t>PyBytes_GET_SIZE(header)
        if len(others) < self._given or skipped < 0:
            raise ValueError(f"{self._given} batches are to be given, and skipped is not negative")
        for other in others:
            if other is None or other.count != messages.count:
                raise ValueError("a batch that is given has another length")
        made.inherit(messages)
        memset(spare, 0, sizeof(spare))
        extents = <int32_t*>malloc(<size_t>(self.layout._count or 1) * 2 * sizeof(int32_t))
        batches = <void**>malloc(<size_t>(len(others) or 1) * sizeof(void*))
        if extents == NULL or batches == NULL:
            free(extents)
            free(batches)
            raise MemoryError
        for i in range(len(others)):
            batches[i] = <void*>(<Messages>others[i]).spans
        with nogil:
            for i in range(messages.count):
                if messages.spans[i].at == NULL:
                    continue
                fault = _find(self.layout, messages, i, skipped, extents, &c)
                if fault != NONE:
                    break
                made.spans[i].size = -<int64_t>made.data.size - 1  # where it begins, until the buffer's address is known
                write_bytes(&made.data, header_at, header_size)
                c.at = messages.spans[i].at
                fault = self._write(messages.spans[i].at, i, extents, batches, &made.data, spare, &c)
                if fault != NONE:
                    break
            if fault == NONE:
                made.settle()
        free(extents)
        free(batches)
        free(spare[0].data)
        free(spare[1].data)
        if fault == NO_MEMORY:
            raise MemoryError
        if fault != NONE:
            raise_at(messages, i, c.at - messages.spans[i].at, _REASONS[fault])
        return made

    cdef Fault _write(
        self, Bytes start, Py_ssize_t number, const int32_t* extents, void** batches, Writer* out, Writer* spare, Cursor* c
    ) noexcept nogil:
        cdef int at = 0
        cdef const Op* op
        cdef int32_t first, last
        while at < self._count:
            op = &self._ops[at]
            at += 1
            if op.kind == COPY:
                first, last = extents[2 * op.first], extents[2 * op.last + 1]
                if first < 0 or last < first:
                    return NOT_THERE
                write_bytes(out, start + first, <size_t>(last - first))
            elif op.kind == CONSTANT:
                write_bytes(out, op.text, op.size)
            elif op.kind == CONVERT:
                first, last = extents[2 * op.last], extents[2 * op.last + 1]
                if first < 0 or last < first:
                    return NOT_THERE
                c.at = start + first
                if not self._converts.run(op.first, op.count, start + first, <size_t>(last - first), out, spare):
                    return NO_MEMORY if out.is_bad or spare[0].is_bad or spare[1].is_bad else REFUSED
            elif op.kind == GIVEN:
                if not _write_given(batches[op.first], number, out):
                    return NOT_THERE
            elif op.kind == JUMP:
                at = op.jump
            elif extents[2 * op.first] == ABSENT:
                at = op.jump
        return NO_MEMORY if out.is_bad or spare[0].is_bad or spare[1].is_bad else NONE


cdef bint _write_given(void* batch, Py_ssize_t number, Writer* out) noexcept nogil:
    cdef const Span* span = <const Span*>batch + number
    if span.at == NULL:
        return False
    write_bytes(out, span.at, <size_t>span.size)
    return True
