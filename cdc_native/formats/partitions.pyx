# cython: language_level=3
"""One merge of a table's SSTables, from their bytes to row images.

Python oracle: cassandra_storage.formats.sstable.merge, cassandra_storage.formats.merge.range_merge, publisher.snapshot.rows.sending.

Of each SSTable one row is parsed at a time, and no Python object is made for it.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from cdc_native.formats.constants cimport (
    EXCL_END_BOUND,
    EXCL_START_BOUND,
    INCL_END_BOUND,
    INCL_START_BOUND,
    NO_DELETION_TIME,
    NO_TIMESTAMP,
)
from cdc_native.formats.batches cimport Batch
from cdc_native.formats.buffers cimport Bytes, Writer, reserve, write_bytes
from cdc_native.formats.keys cimport compare_bytes
from cdc_native.formats.merge cimport merge_rows, supersedes
from cdc_native.formats.purge cimport Purge, purge_row, purges
from cdc_native.formats.row_images cimport RowImages, write_bound
from cdc_native.formats.rows cimport Deletion, Row, Shape, free_row, is_empty, is_no_deletion
from cdc_native.formats.sources cimport Sources
from cdc_native.formats.sstables cimport END, MARKER, ROW, Marker, SSTable

cdef Deletion _LIVE
_LIVE.marked, _LIVE.local = NO_TIMESTAMP, NO_DELETION_TIME


cdef class Merge:
    """
    sources: as Sources takes them. purge: (now, gc_before, unrepaired, before) as Purger has them, each cut to 64 bits, or
    None for no `before`. after: a place, (token, key, byte-comparable key of a clustering or None), or None.

    `fill` goes as far as all is the core's, then it `is_stopped`. What the functions and the SSTables' chunks raise comes
    out of it, and what it has filled is lost then.
    """
    cdef RowImages _images
    cdef Sources _sources
    cdef PyObject** _same  # those of the group that have the row
    cdef Purge _purge
    cdef bint _has_after
    cdef int64_t _after_token
    cdef bytes _after_key
    cdef bytes _done
    # The partition.
    cdef bint _is_inside
    cdef bint _is_there  # whether anything of it is left
    cdef bint _skips  # what lies up to _done
    cdef Deletion _deletion
    cdef Deletion _range
    cdef Deletion _active
    cdef Writer _start  # the bound of the open range
    cdef Writer _place  # of the row or marker
    cdef Row _left
    cdef Row _right
    # The newest place in the batch.
    cdef bint _has_place
    cdef bint _is_place_inside  # after a row of the partition, whose clustering lies at _place_row in the batch
    cdef size_t _place_row
    cdef int64_t _place_token
    cdef Writer _place_key
    cdef size_t _whole_count
    cdef size_t _whole_size
    cdef int64_t _whole_units
    cdef readonly object place
    cdef readonly int64_t rows
    cdef readonly int64_t partitions
    cdef readonly bint is_done
    cdef readonly bint is_stopped

    def __cinit__(self, RowImages images not None, sources, purge, after):
        self._sources = Sources(sources)
        self._images = images
        images.drop_unit()
        self._same = <PyObject**>calloc(<size_t>self._sources.count + 1, sizeof(PyObject*))
        if self._same == NULL or not reserve(&self._place, 1):  # an empty key has an address, too
            raise MemoryError
        self._purge.now, self._purge.gc_before, self._purge.unrepaired, before = purge
        self._purge.has_before, self._purge.before = before is not None, before or 0
        if after is not None:
            self._has_after = True
            self._after_token, self._after_key, self._done = after
            if self._after_key is None:
                raise TypeError("a place without a key")

    def __dealloc__(self):
        free(self._same)
        free(self._start.data)
        free(self._place.data)
        free(self._place_key.data)
        free_row(&self._left)
        free_row(&self._right)

    def fill(self, Batch batch not None, int64_t most_bytes, int64_t most_steps):
        """Fill the batch with images: of so many bytes, or of so many rows and markers, or all up to where it is done or
        stopped. Whole units.

        `place`: past the images, (token, key, clustering or None); None if there is no new one, until a later batch has
        one. `rows`: the units in the batch; `partitions`: those that have ended and are not empty. Once it
        is stopped, all after the newest place is the caller's: the batch has nothing of the partition in which it
        stopped, and RowImages.units counts what came before.
        """
        cdef RowImages images = self._images
        cdef int64_t units = images.units
        cdef bint is_mine = True
        if self.is_stopped:
            raise ValueError("the merge is stopped")
        batch.clear()
        images.batch = batch
        self.is_stopped = True  # by what is raised
        self.partitions = 0
        self._has_place = self._is_place_inside = False
        self._whole_count, self._whole_size, self._whole_units = 0, 0, units
        try:
            while is_mine and not self.is_done and (
                images.is_in_unit() or (<int64_t>batch.data.size < most_bytes and most_steps > 0)
            ):
                is_mine = self._step() if self._is_inside else self._begin()
                most_steps -= 1
            if is_mine:
                self.is_stopped = False
            else:
                self._is_place_inside = False
                batch.cut(self._whole_count, self._whole_size)
                images.units = self._whole_units
            self.rows = images.units - units
            self.place = self._found_place()
        finally:
            images.batch = None

    cdef object _found_place(self):
        if self._is_place_inside:
            return self._sources.token, _bytes_of(&self._sources.key), self._images.clustering_at(self._place_row)
        return (self._place_token, _bytes_of(&self._place_key), None) if self._has_place else None

    cdef bint _begin(self) except -1:
        """The next partition's deletion and static row."""
        cdef int i
        cdef Deletion deletion = _LIVE
        cdef SSTable source
        if not self._sources.choose():
            return False
        if not self._sources.group_count:
            self.is_done = True
            return True
        if self._is_passed():
            return self._sources.advance()
        for i in range(self._sources.group_count):
            source = <SSTable>self._sources.group[i]
            if supersedes(&source.deletion, &deletion):
                deletion = source.deletion
        self._deletion = self._active = deletion
        self._range = _LIVE
        self._is_inside, self._is_there = True, False
        if purges(&self._purge, &deletion):
            deletion = _LIVE
        if not is_no_deletion(&deletion):
            self._is_there = True
            if not self._skips:
                self._images.put_deletion(&self._sources.key, &deletion)
        if not self._begin_static():
            return False
        if self._sources.group_count > 1:
            for i in range(self._sources.group_count):
                if not (<SSTable>self._sources.group[i]).next_unfiltered(True):
                    return False
        return True

    cdef bint _begin_static(self) except -1:
        cdef int i, count = 0
        cdef Row* row
        for i in range(self._sources.group_count):
            if (<SSTable>self._sources.group[i]).has_static:
                self._same[count] = self._sources.group[i]
                count += 1
        if not count:
            return True
        row = self._merged(&self._images.shapes.statics, count, True)
        if row == NULL:
            return False
        if is_empty(row):
            return True
        self._is_there = True
        if not self._skips:
            self._images.put_row(&self._sources.key, row, True)
        return True

    cdef bint _is_passed(self) noexcept:
        """Whether the partition lies before the place to begin after. Sets `_skips` if that lies in it."""
        cdef int order
        self._skips = False
        if not self._has_after:
            return False
        order = (self._sources.token > self._after_token) - (self._sources.token < self._after_token)
        if not order:
            order = compare_bytes(
                self._sources.key.data,
                self._sources.key.size,
                <Bytes>PyBytes_AS_STRING(self._after_key),
                <size_t>PyBytes_GET_SIZE(self._after_key),
            )
        if order < 0:
            return True
        self._has_after = False
        self._skips = order == 0 and self._done is not None
        return order == 0 and self._done is None

    cdef bint _step(self) except -1:
        """The next row or marker of the partition, or its end."""
        cdef SSTable source
        if self._sources.group_count > 1:
            return self._step_several()
        source = <SSTable>self._sources.group[0]
        if not source.next_unfiltered(self._skips):
            return False
        if source.kind == END:
            return self._end()
        self._same[0] = self._sources.group[0]
        if source.kind == MARKER:
            return self._put_markers(1, &source.place)
        return self._put_rows(1, &source.place)

    cdef bint _step_several(self) except -1:
        cdef int i, count = 0, order
        cdef SSTable source, first = None
        for i in range(self._sources.group_count):
            source = <SSTable>self._sources.group[i]
            if source.kind == END:
                continue
            order = -1
            if first is not None:
                order = compare_bytes(source.place.data, source.place.size, first.place.data, first.place.size)
            if order > 0:
                continue
            if order < 0:
                first = source
                count = 0
            self._same[count] = self._sources.group[i]
            count += 1
        if first is None:
            return self._end()
        self._place.size = 0
        write_bytes(&self._place, first.place.data, first.place.size)
        if self._place.is_bad:
            return False
        if first.kind == MARKER:
            if not self._put_markers(count, &self._place):
                return False
        elif not self._put_rows(count, &self._place):
            return False
        for i in range(count):
            source = <SSTable>self._same[i]
            if not source.next_unfiltered(True):
                return False
            if source.kind != END and compare_bytes(
                source.place.data, source.place.size, self._place.data, self._place.size
            ) <= 0:
                return False
        return True

    cdef Row* _merged(self, const Shape* shape, int count, bint is_static) noexcept:
        """The row that the first of `_same` have, merged and purged; NULL if it cannot be merged here."""
        cdef int i
        cdef SSTable source = <SSTable>self._same[0]
        cdef Row* row = &source.static if is_static else &source.row
        cdef Row* other
        cdef Row* out = &self._left
        if count > 1 or not is_no_deletion(&self._active):
            if row.has_any_path:
                return NULL
            if count == 1:
                if not merge_rows(shape, row, NULL, self._active, out):
                    return NULL
                row = out
            for i in range(1, count):
                source = <SSTable>self._same[i]
                other = &source.static if is_static else &source.row
                if other.has_any_path or not merge_rows(shape, row, other, self._active, out):
                    return NULL
                row = out
                out = &self._right if out == &self._left else &self._left
        purge_row(&self._purge, shape, row)
        return row

    cdef bint _is_skipped(self, const Writer* place) noexcept:
        if not self._skips:
            return False
        self._skips = compare_bytes(
            place.data, place.size, <Bytes>PyBytes_AS_STRING(self._done), <size_t>PyBytes_GET_SIZE(self._done)
        ) <= 0
        return self._skips

    cdef bint _put_rows(self, int count, const Writer* place) except -1:
        cdef int i
        cdef Row* row
        for i in range(count):
            if (<SSTable>self._same[i]).kind != ROW:
                return False
        row = self._merged(&self._images.shapes.rows, count, False)
        if row == NULL:
            return False
        if is_empty(row) or self._is_skipped(place):
            return True
        self._is_there = True
        self._images.put_row(&self._sources.key, row, False)
        self._images.end_unit()
        self._is_place_inside, self._place_row = True, self._images.row_at
        return True

    cdef bint _put_markers(self, int count, const Writer* place) except -1:
        """RangeMerger.add and merged, Purger.marker and with_ranges."""
        cdef int i
        cdef SSTable source = None
        cdef Deletion before = self._range, after = _LIVE
        cdef Marker* marker
        cdef bint is_before
        for i in range(count):
            source = <SSTable>self._same[i]
            marker = &source.marker
            if source.kind != MARKER or marker.closes != source.is_open:
                return False
            if marker.closes and not _are_equal(&marker.close, &source.opened):
                return False
            source.is_open, source.opened = marker.opens, marker.open
        for i in range(self._sources.group_count):
            if (<SSTable>self._sources.group[i]).is_open and supersedes(&(<SSTable>self._sources.group[i]).opened, &after):
                after = (<SSTable>self._sources.group[i]).opened
        if not supersedes(&after, &self._deletion):
            after = _LIVE
        if _are_equal(&before, &after):
            return True
        self._range = after
        self._active = self._deletion if is_no_deletion(&after) else after
        is_before = source.marker.is_before
        if not is_no_deletion(&before) and not purges(&self._purge, &before) and not self._is_skipped(place):
            self._is_there = True
            self._images.end_unit()
            self._images.put_range(
                &self._sources.key,
                &self._start,
                EXCL_END_BOUND if is_before else INCL_END_BOUND,
                source.marker.count,
                source.marker.values,
                &before,
            )
            self._images.end_unit()
        if not is_no_deletion(&after) and not purges(&self._purge, &after):
            self._is_there = self._is_there or not self._is_skipped(place)
            self._start.size = 0
            write_bound(
                &self._start,
                &self._images.shapes.rows,
                INCL_START_BOUND if is_before else EXCL_START_BOUND,
                source.marker.count,
                source.marker.values,
            )
        return not self._start.is_bad

    cdef bint _end(self) except -1:
        """The partition has ended: a place."""
        cdef int i
        for i in range(self._sources.group_count):
            if (<SSTable>self._sources.group[i]).is_open:
                return False
        self._images.end_unit()
        self.partitions += self._is_there
        self._is_inside = self._is_place_inside = False
        self._place_token = self._sources.token
        self._place_key.size = 0
        write_bytes(&self._place_key, self._sources.key.data, self._sources.key.size)
        if self._place_key.is_bad:
            raise MemoryError
        self._has_place = True
        self._whole_count, self._whole_size = self._images.batch.count, self._images.batch.data.size
        self._whole_units = self._images.units
        return self._sources.advance()

cdef bytes _bytes_of(const Writer* w):
    return PyBytes_FromStringAndSize(<const char*>w.data, <Py_ssize_t>w.size)


cdef inline bint _are_equal(const Deletion* left, const Deletion* right) noexcept nogil:
    return left.marked == right.marked and left.local == right.local
