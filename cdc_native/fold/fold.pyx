# cython: language_level=3
"""The fold of plain rows: writes and expiry of single regular rows.

Python oracle: materializer.fold.partition.PartitionFold.

A Fold works on the dicts of an Overlay and keeps nothing of a Cassandra partition, so that the Python code can fold any
mutation between two of the core's. Where Python code must do something first, `fold` stops and says why.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.ref cimport PyObject
from libc.stdint cimport INT64_MAX, int64_t

from cdc_native.formats.constants cimport FACTS_SECTION, STATIC_SECTION
from cdc_native.formats.buffers cimport Bytes, Cursor
from cdc_native.fold.images cimport Source
from cdc_native.formats.merge cimport merge_rows, supersedes
from cdc_native.fold.row_events cimport Event, RowEvents, Statics
from cdc_native.formats.rows cimport Deletion, read_row
from cdc_native.fold.state cimport Facts, Stored, data_key
from cdc_native.fold.updates cimport PlainUpdate, is_same_mutation

cdef enum Outcome:
    FOLDED
    NOT_MINE        # the Python code's
    MAY_BE_COVERED  # by a range tombstone, which is to be found first

cdef const char* _NO_HOST = b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"


cdef class Fold(RowEvents):
    """
    The fold of one table's part of a chunk. overlay, timers, floor, number, read_columns, encode: of State.

    states: the PartitionStates that the Python code has made. convert: an EncodedChange to a RowChange.
    """

    cdef readonly str why         # `fold` has stopped
    cdef readonly bint is_begun   # the mutation at the index that `fold` has returned is begun
    cdef Py_ssize_t _end          # of the mutation that `fold` goes on with when it is called again, or 0

    @property
    def written(self) -> list:
        """The keys of the rows that were written here."""
        return self.state.written

    def prefetch_keys(self, list updates not None, bint has_statics) -> set:
        """The keys of the state that these updates, and those of the Python code among them, read."""
        cdef PlainUpdate update
        cdef set keys = set()
        cdef bytes latest = None
        for given in updates:
            update = <PlainUpdate?>given
            if update.key is not None:
                keys.add(update.key)
            if update.partition_key is None:
                raise TypeError("an update that was not decoded")
            if update.partition_key is latest:
                continue
            latest = update.partition_key
            keys.add(data_key(latest, FACTS_SECTION))
            if has_statics:
                keys.add(data_key(latest, STATIC_SECTION))
        return keys

    def fold(self, list updates not None, Py_ssize_t at, python_only, tuple ranged) -> int:
        """Fold mutations from the index `at` on; the index where it stops. Then `why` is one of:

        end: all are folded. python: the mutation is not mine. If part of it is done already, `is_begun` is true.
        expires: first emit what expires in the partition by the second of the update. ranges: find the deletion of the
        range tombstone that covers the row of the update. After these two, call again with the same index.

        updates: in write order. python_only: a set of partition keys. ranged: after "ranges", (marked, local).
        """
        cdef Py_ssize_t end = self._end, count = len(updates)
        cdef PlainUpdate first
        cdef int outcome
        if at < 0:
            raise IndexError(at)
        self._end = 0
        self._take_budget()
        try:
            while at < count:
                if not end:
                    self.is_begun = False
                    first = <PlainUpdate?>updates[at]
                    end = at + 1
                    while end < count and is_same_mutation(first, <PlainUpdate?>updates[end]):
                        end += 1
                    if self.budget_rows <= 0 or self.budget_bytes <= 0:
                        return self._stop(at, "python")
                    if not self._are_mine(updates, at, end) or (python_only and first.partition_key in python_only):
                        return self._stop(at, "python")
                    if self._expires(first.partition_key, first.second):
                        self.is_begun, self._end = True, end
                        return self._stop(at, "expires")
                while at < end:
                    outcome = self._fold_update(<PlainUpdate?>updates[at], ranged)
                    ranged = None
                    if outcome == MAY_BE_COVERED:
                        self._end = end
                        return self._stop(at, "ranges")
                    if outcome == NOT_MINE:
                        return self._stop(at, "python")
                    self.is_begun = True
                    self.budget.applied += 1
                    at += 1
                end = 0
                self.is_begun = False
            return self._stop(at, "end")
        finally:
            self._give_budget()

    cdef Py_ssize_t _stop(self, Py_ssize_t at, str why):
        self.why = why
        return at

    def expire_rows(self, bytes partition_key not None, int64_t second, list keys not None) -> int:
        """Emit what expires at a second in the rows at some keys, in their order; how many are done."""
        cdef Facts facts, before
        cdef Stored stored
        cdef Event event
        cdef bytes key, value
        cdef Py_ssize_t done = 0
        cdef bint has_static = False
        if not 0 < second <= INT64_MAX // 1_000_000 or not self.state.read_facts(partition_key, &facts):
            return 0
        if not self._read_static(partition_key, &has_static):
            return 0
        before = facts
        event.source = _expiry_source(second)
        event.source.is_incomplete = self.is_in_snapshot
        event.before, event.after = second - 1, second
        self._take_budget()
        try:
            for given in keys:
                key = <bytes?>given
                value = self.state.get(key)
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
        bytes partition_key not None,
        list rows not None,
        tuple deletion,
        tuple source not None,
        tuple seconds not None,
        tuple statics not None,
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
        cdef bytes host, file, cause, key
        cdef Py_ssize_t done = 0, visible = 0
        self.static_value, self.static_after_value, shown.differ = statics
        if not self.state.read_row(self.static_value, True, &self.static_header, &self.static_row, &stored):
            return 0, 0
        shown.before = &self.static_row if stored.has_row else NULL
        if not self.state.read_row(
            self.static_after_value, True, &self.static_after_header, &self.static_after, &stored
        ):
            return 0, 0
        shown.after = &self.static_after if stored.has_row else NULL
        if deletion is not None:
            deleted.marked, deleted.local = deletion
            active = &deleted
        event.before, event.after = seconds
        host, file, cause = source[1], source[2].encode(), source[4].encode()
        if host is None or PyBytes_GET_SIZE(host) != 16:
            raise ValueError("a host id that has not 16 bytes")
        if statics_size >> 40:
            raise ValueError(f"statics of {statics_size} bytes")
        event.source.timestamp, event.source.position = source[0], source[3]
        event.source.host = <Bytes>PyBytes_AS_STRING(host)
        event.source.file, event.source.file_size = <Bytes>PyBytes_AS_STRING(file), PyBytes_GET_SIZE(file)
        event.source.cause, event.source.cause_size = <Bytes>PyBytes_AS_STRING(cause), PyBytes_GET_SIZE(cause)
        event.source.is_snapshot = source[6]
        event.source.is_incomplete = self.is_in_snapshot and not event.source.is_snapshot
        self._take_budget()
        try:
            for row_key, value in rows:
                key = <bytes?>row_key
                if self.budget_rows <= 0 or self.budget_bytes <= 0:
                    break
                if not self._update_row(
                    partition_key, key, self.state.encoded(value), active, &event, &shown, source, statics_size, &visible
                ):
                    break
                done += 1
        finally:
            self._give_budget()
        return done, visible

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
            update = <PlainUpdate?>updates[i]
            if update.columns is None:
                return False  # the Python code's
            if update.first_end <= update.second and not update.is_snapshot:
                return False  # it has expired before it arrived, which is shown
        if end - at == 1:
            return True
        update = <PlainUpdate?>updates[at]
        if self.plan.statics.count and self.state.get(data_key(update.partition_key, STATIC_SECTION)) is not None:
            return False
        keys = set()
        for i in range(at, end):
            update = <PlainUpdate?>updates[i]
            keys.add(update.key)
        return len(keys) == end - at

    cdef bint _expires(self, bytes partition_key, int64_t second) except -1:
        """Whether anything in the partition expires by a second, by the loaded timers."""
        cdef PyObject* found
        cdef list timers
        if not self.state.expiring:
            return False
        found = PyDict_GetItem(self.state.expiring, partition_key)
        if found == NULL:
            return False
        timers = <list?><object>found
        return bool(timers) and timers[0][0] <= second

    cdef int _put_facts(self, bytes partition_key, const Facts* before, const Facts* facts) except -1:
        cdef PyObject* known
        if self.state.put_facts(partition_key, before, facts) and self.states:
            known = PyDict_GetItem(self.states, partition_key)
            if known != NULL:
                (<object>known).reload_facts()
        return 0

    cdef int _fold_update(self, PlainUpdate update, tuple ranged) except -1:
        """PartitionFold.merge_row; an Outcome. ranged: the deletion of the range tombstone that covers the row, if known."""
        cdef Facts facts, before
        cdef Stored stored
        cdef Event event
        cdef Cursor c
        cdef bint has_static = False
        cdef Deletion active, covering
        cdef bytes value
        if not self.state.read_facts(update.partition_key, &facts):
            return NOT_MINE
        active = facts.deletion
        if facts.has_ranges:
            if ranged is None:
                return MAY_BE_COVERED
            covering.marked, covering.local = ranged
            if supersedes(&covering, &active):
                active = covering
        if not self._read_static(update.partition_key, &has_static):
            return NOT_MINE
        value = self.state.get(update.key)
        if not self._read_stored(value, &stored):
            return NOT_MINE
        c.at = <Bytes>PyBytes_AS_STRING(update.raw) + update.row_start
        c.end = <Bytes>PyBytes_AS_STRING(update.raw) + update.row_end
        c.is_bad = False
        if not read_row(&c, &self.plan.rows, &update.header, &self.update_row):
            return NOT_MINE
        if not merge_rows(
            &self.plan.rows, &self.stored_row if stored.has_row else NULL, &self.update_row, active, &self.merged_row
        ):
            raise MemoryError
        before = facts
        event.source = _write_source(update)
        event.source.is_incomplete = self.is_in_snapshot and not update.is_snapshot
        event.before = event.after = update.second
        if not self._replace(
            update.partition_key, update.key, value, &stored, &self.merged_row, &active, &event, &facts, has_static, update
        ):
            return NOT_MINE
        self._put_facts(update.partition_key, &before, &facts)
        return FOLDED


cdef Source _write_source(PlainUpdate update) noexcept:
    cdef Source source
    source.timestamp, source.position = update.largest_timestamp, update.position
    source.is_incomplete, source.is_snapshot = False, update.is_snapshot
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
    source.is_incomplete = source.is_snapshot = False
    return source
