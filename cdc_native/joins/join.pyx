# cython: language_level=3
"""Joins a chunk of messages of one partition of the internal topic.

Python oracle: joinery.joining.join.

A ChunkJoin is made of the messages. Python code gives it the values at `keys`, then calls `join` until it is at its
end, and gives it the rows that it asks for in between.
"""
from cpython.buffer cimport PyBUF_SIMPLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from cdc_native.avro.messages cimport Messages
from cdc_native.joins.messages cimport PUT, RETRACT, Routed, read_routed
from cdc_native.joins.output cimport Image, Mark, Output
from cdc_native.joins.rule cimport Input, Rule, Text
from cdc_native.joins.state cimport RowList, State, StoredRow
from cdc_native.joins.table cimport key_at

cdef enum Outcome:
    JOINED
    NEEDS_ROWS   # of the list `_wanted`
    NOT_MINE     # the Python code's
    FULL         # its changes do not fit
    NO_ROWS      # no combination


cdef class ChunkJoin:
    """keys, values, offsets: of the messages; offsets are a buffer of int64. ending: of each value that is made."""

    cdef Rule _rule
    cdef State _state
    cdef Output _output
    cdef Messages _keys, _values   # the messages lie in their memory
    cdef Routed* _routed
    cdef int64_t* _offsets
    cdef Py_ssize_t _count, _done
    cdef int64_t _bytes_left, _late
    cdef int32_t _wanted
    cdef bint _is_loaded
    # Of all messages: the rows that each input has more, the most rows of each that a group has got, and the largest
    # fan-out.
    cdef int64_t* _added
    cdef int64_t* _largest
    cdef int64_t _predicted, _fan_out
    # Of the message that is joined: the row of each input in a combination, the number of that row in its list, and
    # of how many.
    cdef Image* _chosen
    cdef int32_t* _at
    cdef int32_t* _ends

    def __cinit__(
        self, Rule rule not None, Messages keys not None, Messages values not None, offsets, int64_t most_bytes, ending
    ):
        cdef size_t inputs = <size_t>rule.count
        self._rule, self._keys, self._values = rule, keys, values
        self._state, self._output = State(rule), Output(rule, ending)
        self._count, self._bytes_left, self._wanted = keys.count, most_bytes, -1
        if values.count != self._count:
            raise ValueError("as many keys as values")
        self._routed = <Routed*>calloc(<size_t>(self._count or 1), sizeof(Routed))
        self._offsets = <int64_t*>calloc(<size_t>(self._count or 1), sizeof(int64_t))
        self._chosen = <Image*>calloc(inputs, sizeof(Image))
        self._added = <int64_t*>calloc(inputs, sizeof(int64_t))
        self._largest = <int64_t*>calloc(inputs, sizeof(int64_t))
        self._at, self._ends = <int32_t*>calloc(inputs, sizeof(int32_t)), <int32_t*>calloc(inputs, sizeof(int32_t))
        if self._routed == NULL or self._offsets == NULL or self._chosen == NULL or self._at == NULL or self._ends == NULL:
            raise MemoryError
        if self._added == NULL or self._largest == NULL:
            raise MemoryError
        self._read(offsets)

    def __dealloc__(self):
        free(self._routed)
        free(self._offsets)
        free(self._chosen)
        free(self._added)
        free(self._largest)
        free(self._at)
        free(self._ends)

    @property
    def done(self) -> int:
        """How many messages are joined."""
        return self._done

    @property
    def late(self) -> int:
        """How many of them had a version that the state has already, or a newer one."""
        return self._late

    @property
    def changes(self) -> int:
        """How many changes of joined rows there are."""
        return self._output.changes

    @property
    def sizes(self) -> tuple:
        """As joinery.joining.records.Sizes."""
        cdef int i
        added = tuple([self._added[i] for i in range(self._rule.count)])
        return added, tuple([self._largest[i] for i in range(self._rule.count)]), self._fan_out

    def keys(self) -> list:
        """The keys of the state that the messages read. The first ones are those of the continuation and the phase."""
        return self._state.keys()

    def load(self, list values not None):
        """Take the values at `keys`."""
        self._state.load(values)
        self._is_loaded = True

    def join(self):
        """The first key of a range of the state and the first after it, whose pairs `load_rows` needs; None once all
        messages are joined that can be.
        """
        cdef Outcome outcome
        if not self._is_loaded:
            raise ValueError("nothing is loaded")
        with nogil:
            outcome = self._join_all()
        if self._state.is_bad or self._output.is_bad:
            raise MemoryError
        return self._state.range_of(self._wanted) if outcome == NEEDS_ROWS else None

    def load_rows(self, list pairs not None, Py_ssize_t most):
        """Take all pairs of the range, in their order. If there are more than `most`, they are the Python code's."""
        if self._wanted < 0:
            raise ValueError("no rows are wanted")
        self._state.load_rows(self._wanted, pairs, most)
        self._wanted = -1

    def writes(self) -> dict:
        """The writes to the state; None deletes a key."""
        return self._state.writes()

    def messages(self) -> tuple:
        """The keys and the values of the messages of all changes. Then nothing can be joined any more."""
        self._is_loaded = False
        return self._output.messages()

    cdef int _read(self, offsets) except -1:
        """Read the messages before the first one that is not mine."""
        cdef Py_buffer found
        cdef Py_ssize_t i
        cdef Text cause = Text(NULL, 0)
        PyObject_GetBuffer(offsets, &found, PyBUF_SIMPLE)
        try:
            if found.len != self._count * <Py_ssize_t>sizeof(int64_t):
                raise ValueError("as many offsets as messages")
            memcpy(self._offsets, found.buf, <size_t>found.len)
        finally:
            PyBuffer_Release(&found)
        for i in range(self._count):
            read_routed(
                &self._routed[i], self._keys.spans[i].at, self._keys.spans[i].size, self._values.spans[i].at,
                self._values.spans[i].size, self._rule.count, &cause
            )
            if not self._routed[i].is_mine or not self._takes(&self._routed[i]):
                self._count = i
                break
            if not self._find(&self._routed[i]):
                raise MemoryError
        return 0

    cdef bint _takes(self, const Routed* routed) noexcept nogil:
        """Whether it was routed by the definition of this join."""
        return not self._rule.definition or not routed.definition or routed.definition == self._rule.definition

    cdef bint _find(self, Routed* routed) noexcept nogil:
        """Find what the message names in the state. False if there is no memory."""
        routed.group = self._state.group_of(routed.key, routed.join_size, routed.key_size)
        if routed.group < 0:
            return False
        routed.row = self._state.row_of(routed.group, routed.input, routed.ident.at, routed.ident.size)
        routed.place = self._state.place_of(routed.input, routed.partition)
        return routed.row >= 0 and routed.place >= 0

    cdef Outcome _join_all(self) noexcept nogil:
        cdef Outcome outcome
        while self._done < self._count and (not self._done or self._bytes_left > 0):
            outcome = self._join(&self._routed[self._done], self._offsets[self._done])
            if outcome != JOINED:
                return outcome
            self._done += 1
        return JOINED

    cdef Outcome _join(self, const Routed* routed, int64_t offset) noexcept nogil:
        cdef StoredRow* row = self._state.rows + routed.row
        cdef Image before, after
        cdef Outcome outcome
        if row.is_bad or self._state.groups[routed.group].is_bad:
            return NOT_MINE
        if row.is_there and row.sequence >= routed.sequence:
            self._late += 1
            self._move_frontier(routed)
            return JOINED
        if not row.is_there and routed.kind != PUT:
            if not routed.may_miss or self._state.places[routed.place].is_marked:
                return NOT_MINE  # history is lost
        self._take(&before, routed.input, routed.row if row.is_there else -1)
        self._take(&after, routed.input, -1)
        if routed.kind != RETRACT:
            after = Image(True, routed.ident, routed.columns, routed.sequence)
        if not self._state.has_begun:
            self._write(routed, before.is_row, after.is_row)
            self._move_frontier(routed)
            return JOINED
        if before.is_row != after.is_row or (before.is_row and not _equal(before.columns, after.columns)):
            outcome = self._emit(routed, offset, &before, &after)
            if outcome != JOINED:
                return outcome
        self._write(routed, before.is_row, after.is_row)
        self._move_frontier(routed)
        return JOINED

    cdef void _take(self, Image* image, int input, int32_t number) noexcept nogil:
        """The image of a row; of none if its number is -1."""
        cdef const StoredRow* row
        cdef const Input* given = self._rule.inputs + input
        cdef size_t key_end
        if number < 0:
            image[0] = Image(False, given.ident, given.columns, 0)
            return
        row = self._state.rows + number
        key_end = self._state.row_keys.keys[number].size
        image.is_row, image.sequence = True, row.sequence
        image.ident = Text(key_at(&self._state.row_keys, number) + key_end - row.ident_size, row.ident_size)
        image.columns = Text(self._state.values.data + row.columns_at, row.at + row.size - row.columns_at)

    cdef Outcome _emit(
        self, const Routed* routed, int64_t offset, const Image* before, const Image* after
    ) noexcept nogil:
        """Write the changes of all combinations with the rows of the other inputs, in the order of their idents."""
        cdef const int64_t* counts = self._state.counts + routed.group * self._rule.count
        cdef Mark mark = self._output.mark()
        cdef int64_t bytes_left = self._bytes_left
        cdef Outcome outcome
        cdef int first = 0
        self._predicted = 0
        if not self._rule.has_rows(counts, routed.input, 1):
            return JOINED
        outcome = self._begin(routed, counts)
        while outcome == JOINED and first >= 0:
            if self._choose(routed, first):
                self._write_changes(routed, offset, counts, before, after)
                first = self._next(routed.input)
                if first >= 0 and self._bytes_left <= 0:
                    outcome = FULL
            else:
                outcome = NOT_MINE
        if outcome != JOINED:
            self._output.undo(mark)
            self._bytes_left = bytes_left
        elif self._predicted > self._fan_out:
            self._fan_out = self._predicted
        return JOINED if outcome == NO_ROWS else outcome

    cdef Outcome _begin(self, const Routed* routed, const int64_t* counts) noexcept nogil:
        """Begin with the first combination. NO_ROWS if there is none."""
        cdef int64_t predicted = 1, fan_out = 1
        cdef int input
        cdef int32_t of
        cdef const RowList* rows
        for input in range(self._rule.count):
            self._at[input] = self._ends[input] = 0
            if input == routed.input or counts[input] <= 0:
                continue
            if counts[input] > self._rule.most_rows // predicted:
                return NOT_MINE
            predicted *= counts[input]
        self._predicted = predicted
        for input in range(self._rule.count):
            if input == routed.input or counts[input] <= 0:
                continue
            of = routed.group * self._rule.count + input
            rows = self._state.lists + of
            if not rows.is_loaded:
                self._wanted = of
                return NEEDS_ROWS
            if not rows.count:
                return NO_ROWS
            if rows.is_bad or rows.count > self._rule.most_rows // fan_out:
                return NOT_MINE
            fan_out *= rows.count
            self._ends[input] = rows.count
        return JOINED

    cdef bint _choose(self, const Routed* routed, int first) noexcept nogil:
        """Take the rows of the combination, from the input `first` on. False if one of them is bad."""
        cdef const RowList* rows = self._state.lists + routed.group * self._rule.count
        cdef int input
        cdef int32_t row
        for input in range(first, self._rule.count):
            if input == routed.input:
                continue
            row = rows[input].rows[self._at[input]] if self._ends[input] else -1
            if row >= 0 and self._state.rows[row].is_bad:
                return False
            self._take(self._chosen + input, input, row)
        return True

    cdef int _next(self, int own) noexcept nogil:
        """Go to the next combination: the first input whose row is another one; -1 after the last combination."""
        cdef int input = self._rule.count - 1
        while input >= 0:
            if input != own and self._ends[input]:
                self._at[input] += 1
                if self._at[input] < self._ends[input]:
                    return input
                self._at[input] = 0
            input -= 1
        return -1

    cdef void _write_changes(
        self, const Routed* routed, int64_t offset, const int64_t* counts, const Image* before, const Image* after
    ) noexcept nogil:
        """The changes of one combination. A row that takes the place of none, or gives it back, changes two joined rows,
        or one if both have the same key.
        """
        cdef int64_t count = counts[routed.input], own = count + after.is_row - before.is_row
        cdef bint has_other = (count == 0 or own == 0) and self._rule.has_rows(counts, routed.input, 0)
        cdef bint has_one_key = has_other and _equal(routed.ident, self._rule.inputs[routed.input].ident)
        if (before.is_row and after.is_row) or has_one_key:
            if not _equal(before.columns, after.columns):
                self._write_change(routed, offset, before, after)
            return
        if before.is_row or has_other:
            self._write_change(routed, offset, before, NULL)
        if after.is_row or has_other:
            self._write_change(routed, offset, NULL, after)

    cdef void _write_change(
        self, const Routed* routed, int64_t offset, const Image* before, const Image* after
    ) noexcept nogil:
        self._bytes_left -= self._output.write(routed, offset, self._chosen, before, after)

    cdef void _write(self, const Routed* routed, bint was, bint is_there) noexcept nogil:
        """Write the row as it is after the message."""
        cdef int64_t* count = self._state.counts + routed.group * self._rule.count + routed.input
        if is_there:
            self._state.put(routed.row, routed.sequence, routed.columns.at, routed.columns.size)
        elif was:
            self._state.delete(routed.row)
        if was != is_there:
            count[0] += 1 if is_there else -1
            self._added[routed.input] += 1 if is_there else -1
            if count[0] > self._largest[routed.input]:
                self._largest[routed.input] = count[0]
            self._state.groups[routed.group].is_written = True
            self._state.groups[routed.group].is_bad = count[0] < 0

    cdef void _move_frontier(self, const Routed* routed) noexcept nogil:
        """The frontier is after a change once all its messages in this partition are joined."""
        if routed.has_more:
            self._state.places[routed.place].is_half = True
            self._state.places[routed.place].half_is_written = True
            return
        if routed.kind == PUT and self._state.places[routed.place].is_half:
            self._state.places[routed.place].is_half = False
            self._state.places[routed.place].half_is_written = True
        self._state.places[routed.place].frontier = routed.offset + 1
        self._state.places[routed.place].frontier_is_written = True


cdef inline bint _equal(Text one, Text other) noexcept nogil:
    return one.size == other.size and (not one.size or memcmp(one.at, other.at, one.size) == 0)
