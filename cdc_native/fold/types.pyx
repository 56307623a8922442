# cython: language_level=3
"""The types of a table's values, as values.pyx writes them.

Python oracle: cdc_common.messages.avro.cql_types.AvroTypes.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from cdc_native.formats.buffers cimport Bytes

cdef dict _KINDS = {
    "bytes": BYTES, "text": TEXT, "ascii": ASCII, "integer": INTEGER, "floating": FLOATING, "date": DATE,
    "boolean": BOOLEAN, "uuid": UUID, "varint": VARINT, "decimal": DECIMAL, "inet": INET, "duration": DURATION,
    "list": LIST, "map": MAP, "tuple": TUPLE, "vector": VECTOR, "list_cells": CELLS_OF_LIST, "set_cells": CELLS_OF_SET,
    "map_cells": CELLS_OF_MAP, "field_cells": CELLS_OF_FIELDS, "varint_text": VARINT_TEXT,
    "varint_decimal": VARINT_DECIMAL, "varint_fixed": VARINT_FIXED, "decimal_text": DECIMAL_TEXT,
    "decimal_double": DECIMAL_DOUBLE, "decimal_fixed": DECIMAL_FIXED, "duration_text": DURATION_TEXT,
    "duration_nanos": DURATION_NANOS, "json": JSON, "object": OBJECT, "object_cells": CELLS_OF_OBJECT,
}
cdef int _MOST = 1000  # types of one table

# The bytes of a value, and how many types are within one, on which the writers rely.
cdef dict _SIZES = {"integer": range(1, 9), "floating": (4, 8), "date": (4,), "boolean": (1,), "uuid": (16,)}
cdef dict _COUNTS = {"list": 1, "vector": 1, "list_cells": 1, "set_cells": 1, "map": 2, "map_cells": 2, "json": 1}


cdef int add_type(Types* types, object form) except -1:
    """The index of the type in `types`; `form` is (kind, size, fixed, forms within it), of an object also the labels of
    its fields. ValueError for too many.
    """
    cdef int at = _make_room(types, 1)
    _fill(types, at, form)
    return at


cdef int _make_room(Types* types, Py_ssize_t count) except -1:
    cdef int at = types.count, i
    cdef void* data
    if count > _MOST - at:
        raise ValueError("a table of too many types")
    if at + count > types.capacity:
        data = realloc(types.types, <size_t>(2 * (at + count)) * sizeof(Type))
        if data == NULL:
            raise MemoryError
        types.types = <Type*>data
        types.capacity = <int>(2 * (at + count))
    types.count += <int>count
    for i in range(at, types.count):
        types.types[i].label, types.types[i].label_size, types.types[i].is_json = NULL, 0, False
    return at


cdef int _fill(Types* types, int at, object form) except -1:
    cdef int first, i
    kind, size, fixed, inner, *labels = form
    if size not in _SIZES.get(kind, (size,)) or len(inner) != _COUNTS.get(kind, len(inner)):
        raise ValueError(f"{size} bytes of the kind {kind}, with {len(inner)} types")
    if kind.endswith("_cells") and fixed != (kind in ("field_cells", "object_cells")):
        raise ValueError(f"the kind {kind} with {fixed}")
    first = _make_room(types, len(inner))
    types.types[at].kind = _KINDS[kind]
    types.types[at].size = size
    types.types[at].fixed = fixed
    types.types[at].first = first
    types.types[at].count = len(inner)
    is_json = kind == "json" or types.types[at].is_json
    if kind.startswith("object") != bool(labels) or (labels and len(labels[0]) != len(inner)):
        raise ValueError(f"the kind {kind} with the labels {labels}")
    if kind.startswith("object") and not is_json:
        raise ValueError("an object that is not within JSON")
    types.types[at].is_json = is_json and kind != "json"
    for i, part in enumerate(inner):
        types.types[first + i].is_json = is_json
        if labels:
            _set_label(&types.types[first + i], labels[0][i])
        _fill(types, first + i, part)
    types.types[at].has_forms = _has_forms(types, &types.types[at])
    return 0


cdef int _set_label(Type* t, bytes label) except -1:
    t.label = <uint8_t*>malloc(len(label) or 1)
    if t.label == NULL:
        raise MemoryError
    memcpy(t.label, <const char*>label, len(label))
    t.label_size = len(label)
    return 0


cdef bint _has_forms(const Types* types, const Type* t) noexcept:
    """Whether values.pyx writes some values of the type alike whose bytes differ."""
    cdef int i
    if t.kind == BOOLEAN or t.kind == DURATION or t.kind == TUPLE or (t.kind == VECTOR and t.fixed < 0):
        return True
    if t.kind == VARINT or t.kind == DECIMAL:
        return not t.fixed
    if t.kind == MAP and is_text(&types.types[t.first]):
        return True
    for i in range(t.count):
        if types.types[t.first + i].has_forms:
            return True
    return False


cdef void free_types(Types* types) noexcept:
    cdef int i
    for i in range(types.count):
        free(types.types[i].label)
    free(types.types)
    types.types = NULL
    types.count = types.capacity = 0


cdef const Type* written_type(const Type* types, const Type* t) noexcept nogil:
    """The type itself, or the one whose values a JSON text has."""
    return &types[t.first] if t.kind == JSON else t


cdef bint is_of_cells(const Type* t) noexcept nogil:
    """Whether it is the type of a column whose elements are cells of their own."""
    return t.kind >= CELLS_OF_LIST


cdef bint is_field(const Type* t, Bytes path, uint64_t size, int64_t* place) noexcept nogil:
    """The place that a path of a multi-cell user type names."""
    if size != 2:
        return False
    place[0] = path[0] << 8 | path[1]
    return place[0] < t.count
