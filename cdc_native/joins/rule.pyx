# cython: language_level=3
"""A join's rule, and the parts of its messages that are always the same.

Python oracle: joinery.joining.records.Rule, joinery.output.messages.JoinedWriter.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from cdc_native.formats.buffers cimport Bytes


cdef class Rule:
    """inputs: of each input, whether it is optional, its ident and its columns where it has no row, and its name as a
    string in Avro. most_rows: that the core joins with a message; more are the Python code's.

    definition: the number of the definition that messages must have; 0 for any. headers: of keys and of values. source: the Avro bytes of the first fields of `source`.
    """

    def __cinit__(self, inputs, int64_t most_rows, headers, source, int64_t definition=0):
        cdef list found = list(inputs)
        self._kept = []
        if not 0 < len(found) <= MOST_INPUTS:
            raise ValueError(f"a join of {len(found)} inputs")
        self.count, self.most_rows, self.definition = <int>len(found), most_rows, definition
        self.inputs = <Input*>calloc(<size_t>self.count, sizeof(Input))
        if self.inputs == NULL:
            raise MemoryError
        for number, (is_optional, ident, columns, name) in enumerate(found):
            self._keep(&self.inputs[<int>number].ident, ident)
            self._keep(&self.inputs[<int>number].columns, columns)
            self._keep(&self.inputs[<int>number].name, name)
            self.inputs[<int>number].is_optional = is_optional
            self.inputs[<int>number].is_unique = not ident
        key_header, value_header = headers
        self._keep(&self.key_header, key_header)
        self._keep(&self.value_header, value_header)
        self._keep(&self.source, source)

    def __dealloc__(self):
        free(self.inputs)

    cdef int _keep(self, Text* text, value) except -1:
        if type(value) is not bytes:
            raise TypeError("a part of a message that is not bytes")
        self._kept.append(value)
        text.at, text.size = <Bytes>PyBytes_AS_STRING(value), <size_t>PyBytes_GET_SIZE(value)
        return 0

    cdef bint has_rows(self, const int64_t* counts, int number, int64_t count) noexcept nogil:
        """Whether a group with so many rows of each input has joined rows. count: of the input of this number."""
        cdef bint any_row = False
        cdef int64_t found
        cdef int i
        for i in range(self.count):
            found = count if i == number else counts[i]
            if found:
                any_row = True
            if found <= 0 and not self.inputs[i].is_optional:
                return False
        return any_row
