# cython: language_level=3
"""The core's view of one table under its newest schema; built once from the schema, for all raw partitions.

Python oracle: materializer.rows.native_plan.build_plan.
"""
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport uint64_t

from cdc_native.formats.buffers cimport Bytes, Cursor, read_unsigned_vint, take
from cdc_native.formats.keys cimport set_key_type
from cdc_native.formats.rows cimport MOST_CLUSTERINGS, MOST_COLUMNS, Columns, Shape
from cdc_native.fold.types cimport Type, add_type, free_types, is_of_cells, written_type

cdef enum:
    _MOST_LISTS = 1024


cdef class ColumnList:
    """The columns of a header: (place, dropped time or None) of each."""

    def __cinit__(self, list entries not None):
        if len(entries) > MOST_COLUMNS:
            raise ValueError(f"{len(entries)} columns")
        self.columns.count = len(entries)
        self.columns.drops = 0
        for i, (place, dropped) in enumerate(entries):
            if not 0 <= place < MOST_COLUMNS:
                raise ValueError(f"a column's place {place}")
            self.columns.places[i] = place
            _set_drop(&self.columns, i, dropped)


cdef int _set_drop(Columns* columns, int at, object dropped) except -1:
    columns.dropped[at] = 0
    if dropped is not None:
        columns.drops |= <uint64_t>1 << at
        columns.dropped[at] = dropped
    return 0


cdef int _set_shape(Shape* shape, object columns, bint is_static) except -1:
    if len(columns) > MOST_COLUMNS:
        raise ValueError(f"{len(columns)} columns")
    shape.is_static = is_static
    shape.takes_any_path = False
    shape.clusterings = 0
    shape.count = len(columns)
    for i, (_, length, path, _) in enumerate(columns):
        shape.lengths[i] = length
        shape.is_complex[i] = path is not None
        set_key_type(&shape.paths[i], path or ("unknown", 0, False))
    return 0


cdef bytes _bytes(part):
    if type(part) is not bytes:
        raise TypeError(f"{part!r} where bytes are wanted")
    return part


cdef class Plan:
    """
    columns, statics: (name as headers have it, length of values or -1, form of its paths' key or None, dropped time or
    None) of each regular or static column that a stored row may hold, in their order.
    clustering: (length, form of its key, form of its type). partition_key: forms of its types.
    fields: (is static, place, form of its type, that of its form in messages, dropped time or None, before's name,
    after's name) in a message's order.
    message: (key header, value header, start of source, its table, is a clustering nullable); None makes no messages.
    """

    def __cinit__(
        self, bytes table_id not None, bytes digest not None, columns, statics, clustering, partition_key, fields, message
    ):
        columns, statics, clustering = tuple(columns), tuple(statics), tuple(clustering)
        partition_key, fields = tuple(partition_key), tuple(fields)
        if len(table_id) != 16 or len(digest) != 16:
            raise ValueError("an id that has not 16 bytes")
        if len(clustering) > MOST_CLUSTERINGS or len(partition_key) > MOST_KEYS or len(fields) > 2 * MOST_COLUMNS:
            raise ValueError("too many columns")
        self.table_id, self.digest = table_id, digest
        _set_shape(&self.rows, columns, False)
        _set_shape(&self.statics, statics, True)
        self.places = {}
        self.newest.count, self.newest.drops = len(columns), 0
        for i, (name, _, _, dropped) in enumerate(columns):
            self.places[name] = i
            self.newest.places[i] = i
            _set_drop(&self.newest, i, dropped)
        self.rows.clusterings = len(clustering)
        for i, (length, key, form) in enumerate(clustering):
            self.rows.clustering_lengths[i] = length
            set_key_type(&self.clustering_keys[i], key)
            self.clustering_types[i] = add_type(&self.types, form)
        self.partition_columns = len(partition_key)
        for i, form in enumerate(partition_key):
            self.partition_types[i] = add_type(&self.types, form)
        self._add_fields(fields)
        self.has_messages = message is not None
        if self.has_messages:
            *parts, nullable = message
            self.key_header, self.value_header, self.source_start, *tables = map(_bytes, parts)
            self.source_table, self.snapshot_source_table = tables
            self.is_clustering_nullable = nullable
        self.lists = {}
        self.latest, self.latest_list = b"\xff", None

    cdef int _add_fields(self, tuple fields) except -1:
        self.field_count, self.field_names = len(fields), []
        for i, (is_static, place, form, shown, dropped, before, after) in enumerate(fields):
            if not 0 <= place < (self.statics.count if is_static else self.rows.count):
                raise ValueError(f"a column's place {place}")
            self.fields[i].is_static, self.fields[i].place = is_static, place
            self.fields[i].type = self.fields[i].shown = add_type(&self.types, form)
            if shown != form:
                self.fields[i].shown = add_type(&self.types, shown)
            if is_of_cells(&self.types.types[self.fields[i].type]) != (
                self.statics.is_complex[<int>place] if is_static else self.rows.is_complex[<int>place]
            ):
                raise ValueError(f"the column at {place} has cells of its own, or its type has: not both")
            if is_of_cells(self._written(self.fields[i].shown)) != is_of_cells(&self.types.types[self.fields[i].type]):
                raise ValueError(f"the column at {place} is shown with cells of its own, or has them: not both")
            self.fields[i].has_drop, self.fields[i].dropped = dropped is not None, dropped or 0
            self.field_names.append((_bytes(before), _bytes(after)))
        return 0

    cdef const Type* _written(self, int at) noexcept:
        return written_type(self.types.types, &self.types.types[at])

    def __dealloc__(self):
        free_types(&self.types)

    cdef ColumnList columns_of(self, bytes names):
        """The columns of an update's header, which begins with their number; None if one is not a regular column."""
        cdef Cursor c
        cdef uint64_t size
        cdef Bytes start = <Bytes>PyBytes_AS_STRING(names)
        cdef Py_ssize_t first
        found = self.lists.get(names)
        if found is not None:
            return found
        c.at, c.end, c.is_bad = start, start + len(names), False
        entries, seen = [], set()
        for _ in range(read_unsigned_vint(&c)):
            first = c.at - start
            size = read_unsigned_vint(&c)
            take(&c, size)
            place = None if c.is_bad else self.places.get(names[first : c.at - start])
            if place is None or place in seen:
                return None
            seen.add(place)
            has_drop = self.newest.drops >> <int>place & 1
            entries.append((place, self.newest.dropped[<int>place] if has_drop else None))
        if len(self.lists) >= _MOST_LISTS:
            self.lists.clear()
        found = self.lists[names] = ColumnList(entries)
        return found
