# cython: language_level=3
"""The fold of plain rows: the twin of materializer.fold.partition for writes and expiry of single regular rows.

A Fold works on the dicts of an Overlay and keeps nothing of a Cassandra partition, so that the Python code can fold any
mutation between two of the core's.
"""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Contains, PyDict_GetItem
from cpython.ref cimport PyObject
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy

from cdc_native.buffers cimport Bytes, Cursor, Writer, read_byte, read_unsigned_vint, write_byte, write_unsigned_vint
from cdc_native.images cimport Image, MessageWriter, Source, has_statics, is_there, show_the_same
from cdc_native.merge cimport are_equal, merge_rows, supersedes
from cdc_native.plan cimport ColumnList, Plan
from cdc_native.rows cimport (
    NO_DELETION_TIME,
    NO_TIMESTAMP,
    Deletion,
    Header,
    Row,
    RowTimers,
    Shape,
    free_row,
    is_empty,
    read_row,
    row_size,
    row_timers,
    set_stored_stats,
    write_row,
)
from cdc_native.updates cimport PlainUpdate, is_same_mutation
from cdc_native.values cimport read_signed

cdef enum:
    _FORMAT_VERSION = 1
    _FACTS_SIZE = 34  # >BqqQQ?
    _FACTS = 0
    _STATIC = 2

cdef const char* _NO_HOST = b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"


# materializer.rows.partition_state.PartitionFacts; `is_stored`: whether the state has any.
cdef struct Facts:
    Deletion deletion
    uint64_t visible_rows
    uint64_t static_sequence
    bint has_ranges


# A row as the state has it; `has_row`: there is one.
cdef struct Stored:
    bint has_row
    uint64_t row_sequence
    int64_t number


# The static rows of a fan-out, or NULL: what is shown of them has changed.
cdef struct Statics:
    const Row* before
    const Row* after
    bint differ


# What happens to a row: a write (before == after), or the expiry of the second `after`.
cdef struct Event:
    Source source
    int64_t before
    int64_t after


@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class EncodedChange:
    """A change whose message is written already, but for its end: `value` lacks the time in ms.

    op, row_sequence, partition_key, schema: as in cdc_messages.changes.RowChange. before, after: the stored rows, and
    `static` the static row, or None. now: the seconds at which before and after are shown. is_alone: of the row that
    stands for a partition that has only statics. It refers to nothing that may refer to it.

    is_of_fan_out: of a row that something else has changed, `event_source`; then `after` has the statics `static_after`.
    """

    cdef readonly bytes partition_key, schema, key, value
    cdef readonly str op
    cdef readonly uint64_t row_sequence
    cdef readonly bint is_alone, is_of_fan_out
    cdef readonly object before, after, static, static_after
    cdef readonly int64_t before_second, after_second
    cdef PlainUpdate update
    cdef object convert, event_source

    @property
    def source(self) -> tuple:
        """Timestamp (µs), host, file, position and cause of cdc_messages.changes.Source."""
        if self.is_of_fan_out:
            return self.event_source
        if self.update is None:
            return self.after_second * 1_000_000, bytes(16), "", 0, "expiry"
        return self.update.timestamp, self.update.host_bytes(), self.update.file, self.update.position, "write"

    def row_change(self):
        """cdc_messages.changes.RowChange."""
        return self.convert(self)

    def partition(self, uint32_t count) -> int:
        """cdc_messages.topics.partition_for."""
        return (_murmur2(self.partition_key) & 0x7FFFFFFF) % count


cdef uint32_t _murmur2(bytes data) noexcept:
    """org.apache.kafka.common.utils.Utils.murmur2."""
    cdef size_t size = <size_t>PyBytes_GET_SIZE(data), i
    cdef const uint8_t* at = <const uint8_t*>PyBytes_AS_STRING(data)
    cdef uint32_t hashed = <uint32_t>0x9747B28C ^ <uint32_t>size, mixed, factor = 0x5BD1E995
    for i in range(size >> 2):
        mixed = at[0] | <uint32_t>at[1] << 8 | <uint32_t>at[2] << 16 | <uint32_t>at[3] << 24
        mixed *= factor
        mixed = (mixed ^ mixed >> 24) * factor
        hashed = hashed * factor ^ mixed
        at += 4
    if size & 3:
        mixed = at[0]
        if size & 3 > 1:
            mixed |= <uint32_t>at[1] << 8
        if size & 3 > 2:
            mixed |= <uint32_t>at[2] << 16
        hashed = (hashed ^ mixed) * factor
    hashed = (hashed ^ hashed >> 13) * factor
    return hashed ^ hashed >> 15


cdef class Fold:
    """
    The fold of one table's part of a chunk. The state is that of an Overlay: `writes`, `fetched`, and `new_keys`, to
    which the keys are added that are new in `writes`; `read` reads a key of the committed state.

    expiring, loaded_until, push: of Timers. states: the PartitionStates that the Python code has made. floor: of the
    row_sequences. number: of the newest schema. read_columns: (place, dropped time or None) of the columns of a schema,
    by its number, or None. encode: a StoredRow to bytes. convert: an EncodedChange to a RowChange.
    """

    cdef Plan plan
    cdef dict writes, fetched, expiring, states, columns
    cdef list new_keys, changes
    cdef object read, push, read_columns, encode, convert, budget
    cdef int64_t loaded_until
    cdef uint64_t floor, number
    cdef Row stored_row, update_row, merged_row, static_row, static_after
    cdef Header stored_header, static_header, static_after_header
    cdef object static_value  # to which the static row's cells point
    cdef Writer value
    cdef MessageWriter messages, alone
    cdef int64_t budget_rows, budget_bytes
    cdef readonly bint is_begun   # the mutation at the index that `fold` has returned is begun
    cdef readonly list written    # keys of the rows that were written here

    def __cinit__(self):
        self.stored_row.cells = self.update_row.cells = self.merged_row.cells = NULL
        self.static_row.cells = self.static_after.cells = NULL
        self.stored_row.capacity = self.update_row.capacity = self.merged_row.capacity = 0
        self.static_row.capacity = self.static_after.capacity = 0
        self.value.data = NULL
        self.value.size = self.value.capacity = 0
        self.value.is_bad = False

    def __dealloc__(self):
        free_row(&self.stored_row)
        free_row(&self.update_row)
        free_row(&self.merged_row)
        free_row(&self.static_row)
        free_row(&self.static_after)
        free(self.value.data)

    def __init__(
        self,
        Plan plan,
        *,
        tuple overlay,
        tuple timers,
        dict states,
        list changes,
        budget,
        uint64_t floor,
        uint64_t number,
        read_columns,
        encode,
        convert,
    ) -> None:
        self.plan = plan
        self.writes, self.fetched, self.new_keys, self.read = overlay
        self.expiring, self.loaded_until, self.push = timers
        self.states, self.changes, self.budget = states, changes, budget
        self.floor, self.number = floor, number
        self.read_columns, self.encode, self.convert = read_columns, encode, convert
        self.columns = {}
        self.written = []
        self.messages, self.alone = MessageWriter(), MessageWriter()
        set_stored_stats(&self.stored_header)
        set_stored_stats(&self.static_header)
        set_stored_stats(&self.static_after_header)

    def prefetch_keys(self, list updates, bint has_statics) -> set:
        """The keys of the state that these updates, and those of the Python code among them, read."""
        cdef PlainUpdate update
        cdef set keys = set()
        cdef bytes latest = None
        for update in updates:
            if update.key is not None:
                keys.add(update.key)
            if update.partition_key is latest:
                continue
            latest = update.partition_key
            keys.add(_data_key(latest, _FACTS))
            if has_statics:
                keys.add(_data_key(latest, _STATIC))
        return keys

    def fold(self, list updates, Py_ssize_t at, python_only, table) -> int:
        """Fold mutations from the index `at` on, up to one that is not mine; its index, or that of the end.

        updates: in write order. python_only: a set of partition keys. table: materializer.fold.table.TableFold, for
        what the core leaves to it. If part of the mutation is done already, `is_begun` is true. BudgetSpentError.
        """
        cdef Py_ssize_t end, i, count = len(updates)
        cdef PlainUpdate first
        self.is_begun = False
        self._take_budget()
        try:
            while at < count:
                first = updates[at]
                end = at + 1
                while end < count and is_same_mutation(first, updates[end]):
                    end += 1
                if self.budget_rows <= 0 or self.budget_bytes <= 0:
                    return at
                if not self._are_mine(updates, at, end) or (python_only and first.partition_key in python_only):
                    return at
                self.is_begun = self._expires(first.partition_key, first.second)
                if self.is_begun:
                    self._give_budget()
                    table.expire_until(first.partition_key, first.second)
                    self._take_budget()
                for i in range(at, end):
                    if not self._fold_update(updates[i], table):
                        return i
                    self.is_begun = True
                    self.budget.applied += 1
                self.is_begun = False
                at = end
            return at
        finally:
            self._give_budget()

    def expire_rows(self, bytes partition_key, int64_t second, list keys, table) -> int:
        """Emit what expires at a second in the rows at some keys, in their order; how many are done."""
        cdef Facts facts, before
        cdef Stored stored
        cdef Event event
        cdef bytes key
        cdef Py_ssize_t done = 0
        cdef bint has_static = False
        if second > INT64_MAX // 1_000_000 or not self._read_facts(partition_key, &facts):
            return 0
        if not self._read_static(partition_key, &has_static):
            return 0
        before = facts
        event.source = _expiry_source(second)
        event.before, event.after = second - 1, second
        self._take_budget()
        try:
            for key in keys:
                value = self._get(key)
                if value is not None:
                    if not self._read_stored(value, &stored):
                        break
                    if not self._replace(
                        partition_key, key, value, &stored, &self.stored_row, NULL, &event, &facts, has_static, None
                    ):
                        break
                done += 1
            self._put_facts(partition_key, &before, &facts)
        finally:
            self._give_budget()
        return done

    def fan_out(
        self,
        bytes partition_key,
        list rows,
        tuple deletion,
        tuple source,
        tuple seconds,
        tuple statics,
        int64_t statics_size,
    ) -> tuple:
        """PartitionFold._update_row of one row after the other: (how many are done, by how many more are visible).

        rows: key and value of each. deletion: (marked, local) or None. source: as EncodedChange.source. seconds: before
        and after. statics: before and after, as stored, or None; and whether what is shown of them differs.
        """
        cdef Deletion deleted
        cdef Deletion* active = NULL
        cdef Event event
        cdef Statics shown
        cdef Stored stored
        cdef bytes host, file, cause
        cdef Py_ssize_t done = 0, visible = 0
        before, after, shown.differ = statics
        shown.before = shown.after = NULL
        if before is not None:
            if not self._read_value(before, True, &self.static_header, &self.static_row, &stored):
                return 0, 0
            shown.before = &self.static_row
        if after is not None:
            if not self._read_value(after, True, &self.static_after_header, &self.static_after, &stored):
                return 0, 0
            shown.after = &self.static_after
        if deletion is not None:
            deleted.marked, deleted.local = deletion
            active = &deleted
        event.before, event.after = seconds
        host, file, cause = source[1], source[2].encode(), source[4].encode()
        if PyBytes_GET_SIZE(host) != 16:
            return 0, 0
        event.source.timestamp, event.source.position = source[0], source[3]
        event.source.host = <Bytes>PyBytes_AS_STRING(host)
        event.source.file, event.source.file_size = <Bytes>PyBytes_AS_STRING(file), PyBytes_GET_SIZE(file)
        event.source.cause, event.source.cause_size = <Bytes>PyBytes_AS_STRING(cause), PyBytes_GET_SIZE(cause)
        self._take_budget()
        try:
            for key, value in rows:
                if self.budget_rows <= 0 or self.budget_bytes <= 0:
                    break
                if not self._update_row(
                    partition_key, key, value, active, &event, &shown, statics, source, statics_size, &visible
                ):
                    break
                done += 1
        finally:
            self._give_budget()
        return done, visible

    cdef bint _update_row(
        self,
        bytes partition_key,
        bytes key,
        value,
        const Deletion* active,
        const Event* event,
        const Statics* shown,
        tuple statics,
        tuple source,
        int64_t statics_size,
        Py_ssize_t* visible,
    ) except -1:
        """False, with nothing done, if the row is not mine."""
        cdef const Shape* shape = &self.plan.rows
        cdef Stored stored
        cdef Row* new = &self.stored_row
        cdef Image before, after
        cdef EncodedChange change
        cdef bint was, there
        cdef bytes written = None
        encoded = value if type(value) is bytes else self.encode(value)
        if not self._read_stored(encoded, &stored):
            return False
        if active != NULL:
            if not merge_rows(shape, NULL, &self.stored_row, active[0], &self.merged_row):
                raise MemoryError
            new = &self.merged_row
        was = is_there(self.plan, &self.stored_row, event.before)
        there = is_there(self.plan, new, event.after)
        before.row, before.now, before.static_row, before.static_now = &self.stored_row, event.before, shown.before, event.before
        after.row, after.now, after.static_row, after.static_now = new, event.after, shown.after, event.after
        has_changed = was != there or (
            was and (shown.differ or not show_the_same(self.plan, &self.stored_row, event.before, new, event.after))
        )
        if has_changed:
            stored.row_sequence += 1
            if self.plan.has_messages and not self.messages.write(
                self.plan, partition_key, new, &before if was else NULL, &after if there else NULL,
                stored.row_sequence, &event.source,
            ):
                return False
        # Nothing below is not mine.
        self.budget_rows -= 1
        self.budget_bytes -= row_size(shape, &self.stored_row) + statics_size
        if is_empty(new) and active != NULL:
            new.deletion = active[0]
        if has_changed or not are_equal(shape, &self.stored_row, new):
            written = self._encode(stored.row_sequence, new)
        if has_changed:
            visible[0] += there - was
            change = self._change(partition_key, None, event, stored.row_sequence, self.messages)
            change.op = "c" if not was else ("d" if not there else "u")
            change.before, change.after = encoded if was else None, written
            change.is_of_fan_out, change.event_source = True, source
            change.static, change.static_after, _ = statics
            self.changes.append(change)
        if written is not None:
            self._put(key, written)
            self.written.append(key)
        elif event.before == event.after:
            return True
        self._update_timers(key, &self.stored_row, new, event)
        return True

    cdef int _take_budget(self) except -1:
        self.budget_rows, self.budget_bytes = self.budget.rows, self.budget.bytes
        return 0

    cdef int _give_budget(self) except -1:
        self.budget.rows, self.budget.bytes = self.budget_rows, self.budget_bytes
        return 0

    cdef bint _are_mine(self, list updates, Py_ssize_t at, Py_ssize_t end) except -1:
        """Whether all updates of a mutation are plain, of rows that are not written twice."""
        cdef Py_ssize_t i
        cdef PlainUpdate update
        cdef set keys
        for i in range(at, end):
            update = updates[i]
            if update.python is not None or update.first_end <= update.second:
                return False  # what has expired before it arrived is shown
        if end - at == 1:
            return True
        update = updates[at]
        if self.plan.statics.count and self._get(_data_key(update.partition_key, _STATIC)) is not None:
            return False
        keys = set()
        for i in range(at, end):
            update = updates[i]
            keys.add(update.key)
        return len(keys) == end - at

    cdef bint _expires(self, bytes partition_key, int64_t second) except -1:
        """Whether anything in the partition expires by a second, by the loaded timers."""
        cdef PyObject* found
        if not self.expiring:
            return False
        found = PyDict_GetItem(self.expiring, partition_key)
        if found == NULL or not <list>found:
            return False
        return (<list>found)[0][0] <= second

    cdef object _get(self, bytes key):
        """The value at a key of the state, encoded."""
        cdef PyObject* found = PyDict_GetItem(self.writes, key)
        if found == NULL:
            found = PyDict_GetItem(self.fetched, key)
            if found == NULL:
                value = self.fetched[key] = self.read(key)
                return value
            return <object>found
        value = <object>found
        if value is None or type(value) is bytes:
            return value
        value = self.encode(value)
        self.writes[key] = value
        self.written.append(key)
        return value

    cdef int _put(self, bytes key, object value) except -1:
        if not PyDict_Contains(self.writes, key):
            self.new_keys.append(key)
        self.writes[key] = value
        return 0

    cdef bint _read_facts(self, bytes partition_key, Facts* facts) except -1:
        value = self._get(_data_key(partition_key, _FACTS))
        cdef Bytes at
        facts.deletion = _no_deletion()
        facts.visible_rows = facts.static_sequence = 0
        facts.has_ranges = False
        if value is None:
            return True
        at = <Bytes>PyBytes_AS_STRING(value)
        if PyBytes_GET_SIZE(value) != _FACTS_SIZE or at[0] != _FORMAT_VERSION:
            return False
        facts.deletion.marked, facts.deletion.local = read_signed(at + 1, 8), read_signed(at + 9, 8)
        facts.visible_rows, facts.static_sequence = <uint64_t>read_signed(at + 17, 8), <uint64_t>read_signed(at + 25, 8)
        facts.has_ranges = at[33] != 0
        return True

    cdef int _put_facts(self, bytes partition_key, const Facts* before, const Facts* facts) except -1:
        """Facts that equal the defaults are not stored. The partition's deletion never changes here."""
        cdef uint8_t data[_FACTS_SIZE]
        cdef bytes key
        cdef PyObject* state
        if before.visible_rows == facts.visible_rows and before.static_sequence == facts.static_sequence:
            return 0
        data[0] = _FORMAT_VERSION
        _write_number(data + 1, <uint64_t>facts.deletion.marked)
        _write_number(data + 9, <uint64_t>facts.deletion.local)
        _write_number(data + 17, facts.visible_rows)
        _write_number(data + 25, facts.static_sequence)
        data[33] = facts.has_ranges
        key = _data_key(partition_key, _FACTS)
        if (
            facts.visible_rows == 0 and facts.static_sequence == 0 and not facts.has_ranges
            and facts.deletion.marked == NO_TIMESTAMP and facts.deletion.local == NO_DELETION_TIME
        ):
            self._put(key, None)
        else:
            self._put(key, PyBytes_FromStringAndSize(<const char*>data, _FACTS_SIZE))
        if self.states:
            state = PyDict_GetItem(self.states, partition_key)
            if state != NULL:
                (<object>state).reload_facts()
        return 0

    cdef bint _read_static(self, bytes partition_key, bint* has_static) except -1:
        """Read the static row, if the partition has one; False if it is not mine."""
        cdef Stored stored
        has_static[0] = False
        if not self.plan.statics.count:
            return True
        value = self._get(_data_key(partition_key, _STATIC))
        if value is None:
            return True
        has_static[0] = True
        self.static_value = value
        return self._read_value(value, True, &self.static_header, &self.static_row, &stored)

    cdef bint _read_stored(self, value, Stored* stored) except -1:
        if value is None:
            stored.has_row, stored.row_sequence, stored.number = False, self.floor, -1
            return True
        stored.has_row = True
        return self._read_value(value, False, &self.stored_header, &self.stored_row, stored)

    cdef bint _read_value(self, value, bint is_static, Header* header, Row* row, Stored* stored) except -1:
        """materializer.rows.row_codec.RowCodec.decode; False if the row is not mine."""
        cdef Cursor c
        cdef ColumnList columns
        c.at = <Bytes>PyBytes_AS_STRING(value)
        c.end, c.is_bad = c.at + PyBytes_GET_SIZE(value), False
        if read_byte(&c) != _FORMAT_VERSION:
            return False
        stored.row_sequence = read_unsigned_vint(&c)
        stored.number = <int64_t>read_unsigned_vint(&c)
        if c.is_bad or stored.row_sequence >> 62 or not 0 <= stored.number < 0x7FFFFFFF:
            return False
        columns = self._columns_of(stored.number, is_static)
        if columns is None:
            return False
        header.columns = &columns.columns
        return read_row(&c, &self.plan.statics if is_static else &self.plan.rows, header, row)

    cdef ColumnList _columns_of(self, int64_t number, bint is_static):
        """The columns of a stored row; kept here, so that headers can point to them."""
        key = number, is_static
        if key not in self.columns:
            entries = self.read_columns(number, is_static)
            self.columns[key] = None if entries is None else ColumnList(entries)
        return self.columns[key]

    cdef bint _fold_update(self, PlainUpdate update, table) except -1:
        """PartitionFold.merge_row; False if it is not mine."""
        cdef Facts facts, before
        cdef Stored stored
        cdef Event event
        cdef Cursor c
        cdef bint has_static = False
        cdef Deletion active
        if not self._read_facts(update.partition_key, &facts) or not self._read_static(update.partition_key, &has_static):
            return False
        value = self._get(update.key)
        if not self._read_stored(value, &stored):
            return False
        active = facts.deletion
        if facts.has_ranges:
            self._add_ranged_deletion(update, table, &active)
        c.at = <Bytes>PyBytes_AS_STRING(update.raw) + update.row_start
        c.end = <Bytes>PyBytes_AS_STRING(update.raw) + update.row_end
        c.is_bad = False
        if not read_row(&c, &self.plan.rows, &update.header, &self.update_row):
            return False
        if not merge_rows(
            &self.plan.rows, &self.stored_row if stored.has_row else NULL, &self.update_row, active, &self.merged_row
        ):
            raise MemoryError
        before = facts
        event.source = _write_source(update)
        event.before = event.after = update.second
        if not self._replace(
            update.partition_key, update.key, value, &stored, &self.merged_row, &active, &event, &facts, has_static, update
        ):
            return False
        self._put_facts(update.partition_key, &before, &facts)
        return True

    cdef int _add_ranged_deletion(self, PlainUpdate update, table, Deletion* active) except -1:
        cdef Deletion ranged
        cdef Py_ssize_t start = 6 + PyBytes_GET_SIZE(update.partition_key)
        ranged.marked, ranged.local = table.ranged_deletion(update.partition_key, update.second, update.key[start:])
        if supersedes(&ranged, active):
            active[0] = ranged
        return 0

    cdef bint _replace(
        self,
        bytes partition_key,
        bytes key,
        value,
        const Stored* stored,
        Row* new,
        const Deletion* active,
        const Event* event,
        Facts* facts,
        bint has_static,
        PlainUpdate update,
    ) except -1:
        """PartitionFold._replace_row and what _finish emits: store the row `new` and emit the changes; False, with
        nothing done, if it is not mine. `active`: the deletion that the row was merged under, or NULL.
        """
        cdef const Shape* shape = &self.plan.rows
        cdef const Row* old = &self.stored_row if stored.has_row else NULL
        cdef uint64_t sequence = stored.row_sequence
        cdef bint was = old != NULL and is_there(self.plan, old, event.before)
        cdef bint there = is_there(self.plan, new, event.after)
        cdef bint has_changed = was != there
        cdef bint has_gone, has_come, shows_statics
        cdef bytes written = None
        cdef Image before, after, alone
        cdef uint64_t visible = facts.visible_rows
        if was and there:
            has_changed = not show_the_same(self.plan, old, event.before, new, event.after)
        if has_changed:
            sequence += 1
            if was and not there and visible == 0 and shape.clusterings:
                return False
            visible = visible + there - was
        shows_statics = has_static and has_statics(self.plan, &self.static_row, event.before)
        has_gone = shows_statics and facts.visible_rows == 0 and visible != 0
        has_come = shows_statics and facts.visible_rows != 0 and visible == 0
        before.row, before.now, after.row, after.now = old, event.before, new, event.after
        before.static_row = after.static_row = &self.static_row if has_static else NULL
        before.static_now = after.static_now = event.before
        alone = before
        alone.row = NULL
        if self.plan.has_messages:
            if has_changed and not self.messages.write(
                self.plan, partition_key, new, &before if was else NULL, &after if there else NULL, sequence, &event.source
            ):
                return False
            if (has_gone or has_come) and not self.alone.write(
                self.plan,
                partition_key,
                NULL,
                &alone if has_gone else NULL,
                &alone if has_come else NULL,
                (facts.static_sequence or self.floor) + 1,
                &event.source,
            ):
                return False
        # Nothing below is not mine.
        self.budget_rows -= 1
        if stored.has_row:
            self.budget_bytes -= row_size(shape, old)
        if has_static:
            self.budget_bytes -= row_size(&self.plan.statics, &self.static_row)
        if is_empty(new) and stored.has_row and active != NULL:
            new.deletion = active[0]
        if has_changed or not stored.has_row or not are_equal(shape, old, new):
            if stored.has_row or not is_empty(new):
                written = self._encode(sequence, new)
        if has_gone or has_come:
            facts.static_sequence = (facts.static_sequence or self.floor) + 1
        if has_gone:
            self._emit_alone(partition_key, update, event, facts.static_sequence, "d")
        if has_changed:
            self._emit(partition_key, update, event, sequence, value, written, was, there, has_static)
        if has_come:
            self._emit_alone(partition_key, update, event, facts.static_sequence, "c")
        if shape.clusterings:
            facts.visible_rows = visible
        if written is not None:
            self._put(key, written)
            self.written.append(key)
        elif event.before == event.after:
            return True
        self._update_timers(key, old, new, event)
        return True

    cdef bytes _encode(self, uint64_t row_sequence, const Row* row):
        """RowCodec.encode."""
        self.value.size = 0
        write_byte(&self.value, _FORMAT_VERSION)
        write_unsigned_vint(&self.value, row_sequence)
        write_unsigned_vint(&self.value, self.number)
        write_row(&self.value, &self.plan.rows, row)
        if self.value.is_bad:
            raise MemoryError
        return PyBytes_FromStringAndSize(<const char*>self.value.data, <Py_ssize_t>self.value.size)

    cdef int _emit(
        self,
        bytes partition_key,
        PlainUpdate update,
        const Event* event,
        uint64_t sequence,
        before,
        bytes after,
        bint was,
        bint there,
        bint has_static,
    ) except -1:
        cdef EncodedChange change = self._change(partition_key, update, event, sequence, self.messages)
        change.op = "c" if not was else ("d" if not there else "u")
        change.before, change.after = before if was else None, after
        if has_static:
            change.static = self._get(_data_key(partition_key, _STATIC))
        self.changes.append(change)
        return 0

    cdef int _emit_alone(self, bytes partition_key, PlainUpdate update, const Event* event, uint64_t sequence, str op) except -1:
        cdef EncodedChange change = self._change(partition_key, update, event, sequence, self.alone)
        change.op = op
        change.is_alone = True
        change.static = self._get(_data_key(partition_key, _STATIC))
        self.changes.append(change)
        return 0

    cdef EncodedChange _change(
        self, bytes partition_key, PlainUpdate update, const Event* event, uint64_t sequence, MessageWriter messages
    ):
        cdef EncodedChange change = EncodedChange.__new__(EncodedChange)
        change.partition_key, change.schema, change.row_sequence = partition_key, self.plan.digest, sequence
        change.before_second, change.after_second = event.before, event.after
        change.update, change.convert = update, self.convert
        change.is_alone = change.is_of_fan_out = False
        if self.plan.has_messages:
            change.key, change.value = messages.take_key(), messages.take_value()
        return change

    cdef int _update_timers(self, bytes key, const Row* old, const Row* new, const Event* event) except -1:
        """Timers.update_timers."""
        cdef RowTimers before, after
        before.expires = before.dead_since = -1
        if old != NULL:
            before = row_timers(&self.plan.rows, old, event.before)
        after = row_timers(&self.plan.rows, new, event.after)
        if before.expires != after.expires:
            self._replace_timer(b"x", key, before.expires, after.expires)
            if 0 <= after.expires <= self.loaded_until:
                self.push(after.expires, key)
        if before.dead_since != after.dead_since:
            self._replace_timer(b"g", key, before.dead_since, after.dead_since)
        return 0

    cdef int _replace_timer(self, bytes kind, bytes key, int64_t before, int64_t after) except -1:
        if before >= 0:
            self._put(_timer_key(kind, before, key), None)
        if after >= 0:
            self._put(_timer_key(kind, after, key), b"")
        return 0


cdef inline Deletion _no_deletion() noexcept:
    cdef Deletion deletion
    deletion.marked, deletion.local = NO_TIMESTAMP, NO_DELETION_TIME
    return deletion


cdef inline void _write_number(uint8_t* out, uint64_t number) noexcept:
    cdef int i
    for i in range(8):
        out[i] = <uint8_t>(number >> (56 - 8 * i))


cdef bytes _data_key(bytes partition_key, uint8_t section):
    """materializer.rows.keys.partition_prefix and a section."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(partition_key)
    cdef bytes key = PyBytes_FromStringAndSize(NULL, size + 6)
    cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(key)
    cdef int i
    out[0] = 0x70
    for i in range(4):
        out[1 + i] = <uint8_t>(size >> (24 - 8 * i))
    memcpy(out + 5, PyBytes_AS_STRING(partition_key), <size_t>size)
    out[5 + size] = section
    return key


cdef bytes _timer_key(bytes kind, int64_t second, bytes key):
    cdef Py_ssize_t size = PyBytes_GET_SIZE(key)
    cdef bytes made = PyBytes_FromStringAndSize(NULL, size + 9)
    cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(made)
    out[0] = <uint8_t>PyBytes_AS_STRING(kind)[0]
    _write_number(out + 1, <uint64_t>second)
    memcpy(out + 9, PyBytes_AS_STRING(key), <size_t>size)
    return made


cdef Source _write_source(PlainUpdate update) noexcept:
    cdef Source source
    source.timestamp, source.position = update.timestamp, update.position
    source.host = update.host
    source.file = <Bytes>PyBytes_AS_STRING(update.raw) + update.file_start
    source.file_size = update.file_size
    source.cause, source.cause_size = <Bytes>b"write", 5
    return source


cdef Source _expiry_source(int64_t second) noexcept:
    cdef Source source
    source.timestamp, source.position = second * 1_000_000, 0
    source.host = source.file = <Bytes>_NO_HOST
    source.file_size = 0
    source.cause, source.cause_size = <Bytes>b"expiry", 6
    return source
