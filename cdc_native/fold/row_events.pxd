# cython: language_level=3
"""See row_events.pyx."""
from libc.stdint cimport int64_t, uint64_t

from cdc_native.fold.changes cimport EncodedChange
from cdc_native.fold.images cimport Image, MessageWriter, Source
from cdc_native.fold.plan cimport Plan
from cdc_native.formats.rows cimport Deletion, Header, Row
from cdc_native.fold.state cimport Facts, State, Stored
from cdc_native.fold.updates cimport PlainUpdate


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


# What a change shows: whether the row was there before and is there after, and its row_sequence from then on.
cdef struct Shown:
    bint was
    bint there
    bint has_changed
    uint64_t sequence


cdef class RowEvents:
    cdef Plan plan
    cdef State state
    cdef dict states
    cdef list changes
    cdef bint is_in_snapshot
    cdef object convert, budget
    cdef Row stored_row, update_row, merged_row, static_row, static_after
    cdef Header stored_header, static_header, static_after_header
    cdef bytes static_value, static_after_value  # to which the static rows' cells point
    cdef MessageWriter messages, alone
    cdef int64_t budget_rows, budget_bytes

    cdef bint _read_static(self, bytes partition_key, bint* has_static) except -1
    cdef bint _read_stored(self, bytes value, Stored* stored) except -1
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
        PlainUpdate update
    ) except -1
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
        Py_ssize_t* visible
    ) except -1
    cdef void _spend(self, int64_t size) noexcept
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
        Shown* shown
    ) except -1
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
        PlainUpdate update
    )
    cdef bytes _encode_new(
        self, const Row* old, Row* new, const Deletion* active, uint64_t row_sequence, bint has_changed
    )
    cdef int _emit_alone(self, bytes partition_key, PlainUpdate update, const Event* event, uint64_t sequence, bint has_come) except -1
    cdef EncodedChange _change(
        self, bytes partition_key, PlainUpdate update, const Event* event, uint64_t sequence, MessageWriter messages
    )
