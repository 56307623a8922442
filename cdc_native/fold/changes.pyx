# cython: language_level=3
"""Changes whose messages the core has written.

Python oracle: cdc_common.messages.changes.RowChange.
"""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint32_t

from cdc_native.formats.buffers cimport Bytes
from cdc_native.formats.murmur2 cimport murmur2
from cdc_native.fold.updates cimport PlainUpdate


@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class EncodedChange:
    """A change whose message is written already, except for its end: `value` lacks the time in ms.

    op, row_sequence, partition_key, schema: as in cdc_common.messages.changes.RowChange. before, after: the stored rows, and
    `static` the static row, or None. now: the seconds at which before and after are shown. is_alone: of the row that
    stands for a partition that has only statics. It refers to nothing that may refer to it. empty, unreadable: as in
    cdc_common.messages.envelope.EncodedMessage.

    is_of_fan_out: of a row that something else has changed, `event_source`; then `after` has the statics `static_after`.
    """

    @property
    def source(self) -> tuple:
        """cdc_common.messages.changes.Source."""
        cdef PlainUpdate update = self.update
        if self.is_of_fan_out:
            return self.event_source[:5] + (self.is_incomplete, self.event_source[6])
        if update is None:
            return self.after_second * 1_000_000, bytes(16), "", 0, "expiry", self.is_incomplete, False
        place = update.largest_timestamp, update.host_bytes(), update.file, update.position
        return *place, "write", self.is_incomplete, update.is_snapshot

    def row_change(self):
        """cdc_common.messages.changes.RowChange."""
        return self.convert(self)

    def partition(self, uint32_t count) -> int:
        """cdc_common.messages.topics.partition_for."""
        cdef bytes key = self.partition_key
        if count == 0:
            raise ValueError("a topic of no partitions")
        if key is None:
            raise TypeError("a change that was not made by a Fold")
        return (murmur2(<Bytes>PyBytes_AS_STRING(key), <size_t>PyBytes_GET_SIZE(key)) & 0x7FFFFFFF) % count


def run_of(list changes not None, Py_ssize_t start, Py_ssize_t most):
    """How far the changes from `start` on are EncodedChanges of one schema whose key and value have at most `most`
    bytes: (the place after the last one, the sum of their `empty`, the sum of their `unreadable`).
    """
    cdef Py_ssize_t at = start
    cdef int64_t empty = 0, unreadable = 0
    cdef EncodedChange change
    cdef bytes schema = None
    if start < 0:
        raise IndexError(start)
    while at < len(changes) and type(changes[at]) is EncodedChange:
        change = changes[at]
        if schema is None:
            schema = change.schema
        elif change.schema is not schema and change.schema != schema:
            break
        if PyBytes_GET_SIZE(change.key) + PyBytes_GET_SIZE(change.value) > most:
            break
        empty += change.empty
        unreadable += change.unreadable
        at += 1
    return at, empty, unreadable
