# cython: language_level=3
"""See columns.pyx."""
from cdc_native.avro.arrow cimport ArrowSchema
from cdc_native.avro.program cimport Program


# A column of Arrow: a type of the schema where it occurs. kind: without its union; first, children: the columns within,
# of a map its keys and its values; of an enum, `first` of its symbols. branch, null_at: the branches of a union, where
# has_branch. width: bytes of a value of fixed size, 0 for others; fixed: bytes of a fixed.
cdef struct Column:
    int kind
    int first
    int children
    int symbols
    int null_at
    int branch
    bint has_branch
    bint is_nullable
    bint is_decimal
    int precision
    int width
    int fixed


cdef class Table:
    """The Arrow type of a schema: what columns and rows share."""
    cdef readonly Program program
    cdef Column* columns
    cdef int count
    cdef int _capacity
    cdef list _formats

    cdef int _room(self, Py_ssize_t count) except -1
    cdef int _fill(self, int at, int node, object form, str name) except -1
    cdef int _set_width(self, Column* made, object form) except -1
    cdef int _fill_key(self, int at) except -1
    cdef ArrowSchema* schema(self, int at) except NULL
