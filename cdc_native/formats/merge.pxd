# cython: language_level=3
"""Cassandra's reconciliation of two versions of a row: see merge.pyx."""
from cdc_native.formats.rows cimport Deletion, Row, Shape

cdef bint merge_rows(const Shape* shape, const Row* stored, const Row* update, Deletion active, Row* merged) noexcept nogil
cdef bint are_equal(const Shape* shape, const Row* left, const Row* right) noexcept nogil


cdef inline bint supersedes(const Deletion* left, const Deletion* right) noexcept nogil:
    """DeletionTime.supersedes."""
    return left.marked > right.marked or (left.marked == right.marked and left.local > right.local)
