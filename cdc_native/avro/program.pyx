"""A writer schema, compiled once into a flat array of types.

Python oracle: cdc_common.messages.avro.skipping.skipper.
"""
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from cdc_native.formats.buffers cimport Cursor, read_avro_long, take

cdef dict _KINDS = {
    "null": NULL_VALUE, "boolean": BOOLEAN, "int": INT, "long": LONG, "float": FLOAT, "double": DOUBLE, "bytes": BYTES,
    "string": STRING, "fixed": FIXED, "enum": ENUM, "record": RECORD, "array": ARRAY, "map": MAP, "optional": OPTIONAL,
    "union": UNION,
}
cdef dict _COUNTS = {"array": 1, "map": 1, "optional": 2}  # types within, on which the readers rely
cdef frozenset _NESTED = frozenset(("record", "array", "map", "optional", "union"))
# The tag of a field of a key, by logical type or kind, and units in a second. Equal values of types with one tag are equal.
cdef dict _TAGS = {
    "boolean": (b"b", 0), "int": (b"i", 0), "long": (b"i", 0), "float": (b"f", 0), "double": (b"f", 0),
    "bytes": (b"y", 0), "fixed": (b"y", 0), "string": (b"s", 0), "enum": (b"s", 0), "record": (b"r", 0),
    "array": (b"a", 0), "decimal": (b"n", 0), "date": (b"d", 0), "uuid": (b"u", 0), "time-millis": (b"c", 1_000),
    "time-micros": (b"c", 1_000_000), "timestamp-millis": (b"t", 1_000), "timestamp-micros": (b"t", 1_000_000),
    "timestamp-nanos": (b"t", 1_000_000_000), "local-timestamp-millis": (b"l", 1_000),
    "local-timestamp-micros": (b"l", 1_000_000), "local-timestamp-nanos": (b"l", 1_000_000_000),
}
cdef int _MOST = 100_000  # types of one schema
cdef int _MOST_DEPTH = 64


cdef class Program:
    """A schema in the form of cdc_common.messages.avro.forms. ValueError for one that is too large or nested too deeply."""

    def __cinit__(self, form):
        self.form = form
        self._kept = []
        self._room(1)
        self._fill(0, form, {})

    def __dealloc__(self):
        free(self.nodes)
        free(self.symbols)

    def __len__(self):
        """The types of the program."""
        return self.count

    cdef int _room(self, Py_ssize_t count) except -1:
        """The place of the first of so many new types."""
        cdef int at = self.count
        cdef void* data
        if count > _MOST - at:
            raise ValueError("a schema of too many types")
        if at + count > self._capacity:
            data = realloc(self.nodes, <size_t>(2 * (at + count)) * sizeof(Node))
            if data == NULL:
                raise MemoryError
            self.nodes = <Node*>data
            self._capacity = <int>(2 * (at + count))
        self.count += <int>count
        memset(&self.nodes[at], 0, <size_t>count * sizeof(Node))
        return at

    cdef int _fill(self, int at, object form, dict made) except -1:
        """Write the type at its place: its depth. made: (first, depth) by the form's identity."""
        cdef int first, depth = 0, i
        cdef bytes tag
        kind, size, inner, names, logical, (precision, scale) = form
        if len(inner) != _COUNTS.get(kind, len(inner)) or (len(inner) and kind not in _NESTED) or size < 0:
            raise ValueError(f"{len(inner)} types in the kind {kind}")
        known = made.get(id(form))
        if known is None:
            first = self._add_symbols(names) if kind == "enum" else self._room(len(inner))
            for i, part in enumerate(inner):
                depth = max(depth, self._fill(first + i, part, made))
            made[id(form)] = first, depth
        else:
            first, depth = known
        if depth >= _MOST_DEPTH:
            raise ValueError("a schema that is nested too deeply")
        self.nodes[at].kind = _KINDS[kind]
        self.nodes[at].first = first
        self.nodes[at].count = <int>len(names if kind == "enum" else inner)
        self.nodes[at].size = size
        self.nodes[at].precision, self.nodes[at].scale = precision, scale
        tag, self.nodes[at].units = _TAGS.get("decimal" if precision else logical or kind, (b"\0", 0))
        self.nodes[at].tag = tag[0]
        if kind == "optional":
            if size > 1 or self.nodes[first + <int>size].kind != NULL_VALUE:
                raise ValueError("an optional without null")
            self.nodes[at].null_at = size
        self.nodes[at].is_empty = self._takes_nothing(at)
        return depth + 1

    cdef int _add_symbols(self, names) except -1:
        cdef int first = self._symbol_count
        cdef bytes text
        cdef void* data = realloc(self.symbols, <size_t>(first + len(names) + 1) * sizeof(Symbol))
        if data == NULL:
            raise MemoryError
        self.symbols = <Symbol*>data
        for name in names:
            text = name.encode()
            self._kept.append(text)
            self.symbols[self._symbol_count].text = <Bytes><const char*>text
            self.symbols[self._symbol_count].size = len(text)
            self._symbol_count += 1
        return first

    cdef bint _takes_nothing(self, int at) noexcept:
        cdef Node* n = &self.nodes[at]
        cdef int i
        if n.kind != RECORD:
            return n.kind == NULL_VALUE or (n.kind == FIXED and n.size == 0)
        for i in range(n.count):
            if not self.nodes[n.first + i].is_empty:
                return False
        return True


cdef void skip_more(const Node* nodes, const Node* n, Cursor* c) noexcept nogil:
    cdef int i, kind = n.kind
    cdef int64_t branch
    if kind == RECORD:
        for i in range(n.count):
            skip(nodes, &nodes[n.first + i], c)
            if c.is_bad:
                return
    elif kind == FIXED:
        take(c, <uint64_t>n.size)
    elif kind == ARRAY or kind == MAP:
        _skip_blocks(nodes, n, c)
    elif kind == UNION:
        branch = read_avro_long(c)
        if branch < 0 or branch >= n.count:
            c.is_bad = True
        if not c.is_bad:
            skip(nodes, &nodes[n.first + branch], c)
    elif kind != NULL_VALUE:
        skip(nodes, n, c)


cdef void _skip_blocks(const Node* nodes, const Node* n, Cursor* c) noexcept nogil:
    cdef const Node* item = &nodes[n.first]
    cdef int64_t count, size
    cdef bint is_map = n.kind == MAP
    while not c.is_bad:
        count = read_count(c, &size)
        if count == 0 or c.is_bad:
            return
        if size >= 0:
            take(c, <uint64_t>size)
        elif not item.is_empty or is_map:
            if count > c.end - c.at:
                c.is_bad = True
                return
            while count > 0 and not c.is_bad:
                if is_map:
                    skip_sized(c)
                skip(nodes, item, c)
                count -= 1


def skip_value(Program program not None, bytes data not None, Py_ssize_t position) -> int | None:
    """The position after a value, or None if the bytes are not of the schema: for tests."""
    cdef Cursor c
    if not 0 <= position <= len(data):
        raise IndexError(position)
    c.at = <Bytes><const char*>data + position
    c.end = <Bytes><const char*>data + len(data)
    c.is_bad = False
    skip(program.nodes, program.nodes, &c)
    return None if c.is_bad else <Py_ssize_t>(c.at - <Bytes><const char*>data)
