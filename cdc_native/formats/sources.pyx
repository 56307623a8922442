# cython: language_level=3
"""The SSTables of a merge, by the partition that they stand at.

Python oracle: cassandra_storage.formats.sstable.merge.MergeInput.

A scan finds the least one: few are open at a time, of a table whose SSTables lie one after the other (leveled
compaction), too.
"""
from libc.stdlib cimport calloc, free

from cdc_native.formats.buffers cimport reserve, write_bytes
from cdc_native.formats.keys cimport compare_bytes
from cdc_native.formats.sstables cimport SSTable


cdef class Sources:
    """
    sources: (first token, a function that opens the SSTable, given its index) of each, in their order; none is opened
    before the merge has come to its first token. TypeError for what is none of these.
    """

    def __cinit__(self, sources):
        sources = list(sources)
        self.count = <int>len(sources)
        self._kept = {}
        self._waiting = [(token, index, opened) for index, (token, opened) in enumerate(sources)]
        self._waiting.sort(key=_by_token, reverse=True)
        self._open = <PyObject**>calloc(<size_t>self.count + 1, sizeof(PyObject*))
        self.group = <PyObject**>calloc(<size_t>self.count + 1, sizeof(PyObject*))
        if self._open == NULL or self.group == NULL or not reserve(&self.key, 1):  # an empty key has an address, too
            raise MemoryError

    def __dealloc__(self):
        free(self._open)
        free(self.group)
        free(self.key.data)

    cdef bint choose(self) except -1:
        """Find the next partition and its group: nothing if there are no more. False if that is not the core's."""
        self.group_count = 0
        if not self._open_due():
            return False
        return not self._open_count or self._choose_group()

    cdef bint _open_due(self) except -1:
        """Open the SSTables that may have the next partition."""
        cdef int i, at
        cdef int64_t first
        cdef SSTable source
        while self._waiting:
            first = self._waiting[len(self._waiting) - 1][0]
            for i in range(self._open_count):
                if (<SSTable>self._open[i]).token < first:
                    return True
            _, index, opened = self._waiting.pop()
            source = opened(index)
            if source is None or source.index != index:
                raise TypeError("no SSTable was opened, or another one")
            if not source.next_partition():
                return False
            if source.is_done:
                continue
            if source.token < first:
                return False
            self._kept[index] = source
            at = self._open_count
            while at and (<SSTable>self._open[at - 1]).index > source.index:
                self._open[at] = self._open[at - 1]
                at -= 1
            self._open[at] = <PyObject*>source
            self._open_count += 1
        return True

    cdef bint _choose_group(self) noexcept:
        """The sources that stand at the first partition, in their order."""
        cdef int i, order
        cdef SSTable source, first = <SSTable>self._open[0]
        for i in range(self._open_count):
            source = <SSTable>self._open[i]
            if source.token > first.token:
                continue
            order = -1
            if source.token == first.token:
                order = compare_bytes(source.key.data, source.key.size, first.key.data, first.key.size)
            if order > 0:
                continue
            if order < 0:
                first = source
                self.group_count = 0
            self.group[self.group_count] = <PyObject*>source
            self.group_count += 1
        self.token = first.token
        self.key.size = 0
        write_bytes(&self.key, first.key.data, first.key.size)
        return not self.key.is_bad

    cdef bint advance(self) except -1:
        """The next partition of each source of the group."""
        cdef int i, at
        cdef int order
        cdef SSTable source
        for i in range(self.group_count):
            source = <SSTable>self.group[i]
            if not source.next_partition():
                return False
            if source.is_done:
                at = 0
                while self._open[at] != self.group[i]:
                    at += 1
                self._open_count -= 1
                while at < self._open_count:
                    self._open[at] = self._open[at + 1]
                    at += 1
                del self._kept[source.index]
                continue
            order = (source.token > self.token) - (source.token < self.token)
            if not order:
                order = compare_bytes(source.key.data, source.key.size, self.key.data, self.key.size)
            if order <= 0:
                return False
        return True


def _by_token(source):
    return source[0]
