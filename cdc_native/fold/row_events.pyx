# cython: language_level=3
"""Stores a row in the place of another one, emits its change, and sets its timers.

Python oracle: materializer.fold.partition.PartitionFold.

A change's message is written before anything is stored, so that the Python code can do all of it where the core cannot
write the message.
"""
from libc.stdint cimport int64_t, uint64_t

from cdc_native.formats.constants cimport STATIC_SECTION
from cdc_native.fold.changes cimport EncodedChange
from cdc_native.fold.images cimport SAME, UNKNOWN, Image, Likeness, MessageWriter, has_statics, is_there
from cdc_native.formats.merge cimport are_equal, merge_rows
from cdc_native.fold.plan cimport Plan
from cdc_native.formats.rows cimport Deletion, Row, free_row, is_empty, row_size, set_stored_stats
from cdc_native.fold.state cimport Facts, State, Stored, data_key
from cdc_native.fold.updates cimport PlainUpdate


cdef class RowEvents:
    """overlay, timers, floor, number, read_columns, encode: of State. states: the PartitionStates that the Python code
    has made. is_in_snapshot: changes that are not a snapshot's are incomplete. convert: an EncodedChange to a RowChange.
    """

    def __cinit__(
        self,
        Plan plan not None,
        *,
        tuple overlay not None,
        tuple timers not None,
        dict states not None,
        list changes not None,
        budget,
        uint64_t floor,
        uint64_t number,
        bint is_in_snapshot,
        read_columns,
        encode,
        convert,
    ):
        self.plan = plan
        self.state = State(plan, overlay, timers, floor, number, read_columns, encode)
        self.states, self.changes, self.budget = states, changes, budget
        self.is_in_snapshot, self.convert = is_in_snapshot, convert
        self.messages, self.alone = MessageWriter(), MessageWriter()
        set_stored_stats(&self.stored_header)
        set_stored_stats(&self.static_header)
        set_stored_stats(&self.static_after_header)

    def __dealloc__(self):
        free_row(&self.stored_row)
        free_row(&self.update_row)
        free_row(&self.merged_row)
        free_row(&self.static_row)
        free_row(&self.static_after)

    cdef bint _read_static(self, bytes partition_key, bint* has_static) except -1:
        """Read the static row, if the partition has one; False if it is not mine."""
        cdef Stored stored
        has_static[0] = False
        if not self.plan.statics.count:
            return True
        self.static_value = self.state.get(data_key(partition_key, STATIC_SECTION))
        if not self.state.read_row(self.static_value, True, &self.static_header, &self.static_row, &stored):
            return False
        has_static[0] = stored.has_row
        return True

    cdef bint _read_stored(self, bytes value, Stored* stored) except -1:
        return self.state.read_row(value, False, &self.stored_header, &self.stored_row, stored)

    cdef bint _replace(
        self,
        bytes partition_key,
        bytes key,
        bytes value,
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
        cdef const Row* old = &self.stored_row if stored.has_row else NULL
        cdef bint has_gone, has_come, shows_statics
        cdef Shown shown
        cdef EncodedChange change
        cdef Image before, after, alone
        cdef uint64_t visible = facts.visible_rows, static_sequence = (facts.static_sequence or self.state.floor) + 1
        before.static_row = after.static_row = &self.static_row if has_static else NULL
        before.static_now = after.static_now = event.before
        if not self._show(partition_key, stored, old, new, &before, &after, False, event, &shown):
            return False
        if shown.has_changed:
            if shown.was and not shown.there and visible == 0 and self.plan.rows.clusterings:
                return False
            visible = visible + shown.there - shown.was
        shows_statics = has_static and has_statics(self.plan, &self.static_row, event.before)
        has_gone = shows_statics and facts.visible_rows == 0 and visible != 0
        has_come = shows_statics and facts.visible_rows != 0 and visible == 0
        if self.plan.has_messages and (has_gone or has_come):
            alone = before
            alone.row = NULL
            if not self.alone.write(
                self.plan,
                partition_key,
                NULL,
                &alone if has_gone else NULL,
                &alone if has_come else NULL,
                static_sequence,
                &event.source,
            ):
                return False
        # Nothing below is not mine.
        self._spend(
            (row_size(&self.plan.rows, old) if stored.has_row else 0)
            + (row_size(&self.plan.statics, &self.static_row) if has_static else 0)
        )
        if has_gone:
            self._emit_alone(partition_key, update, event, static_sequence, False)
        change = self._store(partition_key, key, value, old, new, active, event, &shown, update)
        if change is not None and has_static:
            change.static = self.static_value
        if has_come:
            self._emit_alone(partition_key, update, event, static_sequence, True)
        if has_gone or has_come:
            facts.static_sequence = static_sequence
        if self.plan.rows.clusterings:
            facts.visible_rows = visible
        return True

    cdef bint _update_row(
        self,
        bytes partition_key,
        bytes key,
        bytes value,
        const Deletion* active,
        const Event* event,
        const Statics* statics,
        tuple source,
        int64_t statics_size,
        Py_ssize_t* visible,
    ) except -1:
        """False, with nothing done, if the row is not mine."""
        cdef Stored stored
        cdef Row* new = &self.stored_row
        cdef Shown shown
        cdef EncodedChange change
        cdef Image before, after
        if not self._read_stored(value, &stored):
            return False
        if active != NULL:
            if not merge_rows(&self.plan.rows, NULL, &self.stored_row, active[0], &self.merged_row):
                raise MemoryError
            new = &self.merged_row
        before.static_row, before.static_now = statics.before, event.before
        after.static_row, after.static_now = statics.after, event.after
        if not self._show(
            partition_key, &stored, &self.stored_row, new, &before, &after, statics.differ, event, &shown
        ):
            return False
        # Nothing below is not mine.
        self._spend(row_size(&self.plan.rows, &self.stored_row))
        self.budget_bytes -= statics_size
        change = self._store(partition_key, key, value, &self.stored_row, new, active, event, &shown, None)
        if change is not None:
            visible[0] += shown.there - shown.was
            change.is_of_fan_out, change.event_source = True, source
            change.static, change.static_after = self.static_value, self.static_after_value
        return True

    cdef void _spend(self, int64_t size) noexcept:
        """Take a row of so many bytes from the budget."""
        self.budget_rows -= 1
        self.budget_bytes -= size

    cdef bint _show(
        self,
        bytes partition_key,
        const Stored* stored,
        const Row* old,
        const Row* new,
        Image* before,
        Image* after,
        bint statics_differ,
        const Event* event,
        Shown* shown,
    ) except -1:
        """Write the message of the change when `new` takes the place of `old`, which may be NULL, if there is a change;
        False if it is not mine. The images have their statics already.
        """
        cdef Likeness found = SAME
        before.row, before.now, after.row, after.now = old, event.before, new, event.after
        shown.was = old != NULL and is_there(self.plan, old, event.before)
        shown.there = is_there(self.plan, new, event.after)
        if shown.was and shown.there and not statics_differ:
            found = self.messages.compare(self.plan, old, event.before, new, event.after)
            if found == UNKNOWN:
                return False
        shown.has_changed = shown.was != shown.there or (shown.was and (statics_differ or found != SAME))
        shown.sequence = stored.row_sequence + shown.has_changed
        if not shown.has_changed or not self.plan.has_messages:
            return True
        return self.messages.write(
            self.plan,
            partition_key,
            new,
            before if shown.was else NULL,
            after if shown.there else NULL,
            shown.sequence,
            &event.source,
        )

    cdef EncodedChange _store(
        self,
        bytes partition_key,
        bytes key,
        bytes value,
        const Row* old,
        Row* new,
        const Deletion* active,
        const Event* event,
        const Shown* shown,
        PlainUpdate update,
    ):
        """Store `new` in the place of `old`, whose stored form is `value`; the change, which is emitted, or None."""
        cdef EncodedChange change = None
        cdef bytes written = self._encode_new(old, new, active, shown.sequence, shown.has_changed)
        if shown.has_changed:
            change = self._change(partition_key, update, event, shown.sequence, self.messages)
            change.op = _op(event, shown.was, shown.there)
            change.before, change.after = value if shown.was else None, written
            self.changes.append(change)
        self.state.put_row(key, written, old, event.before, new, event.after)
        return change

    cdef bytes _encode_new(
        self, const Row* old, Row* new, const Deletion* active, uint64_t row_sequence, bint has_changed
    ):
        """The row `new` as it is to be stored in the place of `old`, which may be NULL; None if nothing is to be
        stored. An empty row keeps the deletion `active`, if that is not NULL.
        """
        if old == NULL:
            return None if is_empty(new) else self.state.encode_row(row_sequence, new)
        if active != NULL and is_empty(new):
            new.deletion = active[0]
        if has_changed or not are_equal(&self.plan.rows, old, new):
            return self.state.encode_row(row_sequence, new)
        return None

    cdef int _emit_alone(self, bytes partition_key, PlainUpdate update, const Event* event, uint64_t sequence, bint has_come) except -1:
        cdef EncodedChange change = self._change(partition_key, update, event, sequence, self.alone)
        change.op = _op(event, not has_come, has_come)
        change.is_alone = True
        change.static = self.static_value
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
        change.is_incomplete = event.source.is_incomplete
        if self.plan.has_messages:
            change.key, change.value = messages.take_key(), messages.take_value()
            change.empty, change.unreadable = messages.after_empty, messages.after_unreadable
        return change


cdef inline str _op(const Event* event, bint was, bint there):
    """cdc_common.messages.changes.change_op."""
    if not was:
        return "r" if event.source.is_snapshot else "c"
    return "u" if there else "d"
