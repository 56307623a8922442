# cython: language_level=3
"""Cells.reconcile, Row.Merger and LivenessInfo.supersedes, without counters.

Python oracle: cassandra_storage.formats.merge.reconciliation.
"""
from libc.stdint cimport int64_t, uint64_t

from cdc_native.formats.constants cimport EXPIRED_LIVENESS_TTL, NO_DELETION_TIME, NO_TIMESTAMP
from cdc_native.formats.keys cimport compare_bytes, compare_paths
from cdc_native.formats.rows cimport (
    Cell,
    Column,
    Deletion,
    Liveness,
    Row,
    Shape,
    add_cell,
    clear_row,
    is_no_deletion,
    is_present,
)


cdef bint _keeps_left(const Cell* left, const Cell* right) noexcept nogil:
    """merge.reconcile."""
    cdef bint left_ends = left.local != NO_DELETION_TIME, right_ends = right.local != NO_DELETION_TIME
    if left.timestamp != right.timestamp:
        return left.timestamp > right.timestamp
    if left_ends != right_ends:
        return left_ends
    if (left.ttl != 0) != (right.ttl != 0):
        return left.ttl == 0
    if left.local != right.local:
        return left.local > right.local
    if left.ttl != right.ttl:
        return left.ttl < right.ttl
    return compare_bytes(left.value, left.value_size, right.value, right.value_size) >= 0


cdef bint _keeps_left_path(const Cell* left, const Cell* right) noexcept nogil:
    """merge._reconcile_paths: of two forms of one path the larger one stays where nothing else decides."""
    if compare_bytes(left.path, left.path_size, right.path, right.path_size) < 0:
        return not _keeps_left(right, left)
    return _keeps_left(left, right)


cdef bint _supersedes(const Liveness* left, const Liveness* right) noexcept nogil:
    """LivenessInfo.supersedes."""
    cdef bint left_expired = left.ttl == EXPIRED_LIVENESS_TTL, right_expired = right.ttl == EXPIRED_LIVENESS_TTL
    if left.timestamp != right.timestamp:
        return left.timestamp > right.timestamp
    if left_expired != right_expired:
        return left_expired
    if (left.ttl != 0) != (right.ttl != 0):
        return left.ttl != 0
    return left.expires > right.expires or (left.expires == right.expires and left.ttl < right.ttl)


cdef bint merge_rows(const Shape* shape, const Row* stored, const Row* update, Deletion active, Row* merged) noexcept nogil:
    """RowMerger.merge of a stored row, which may be NULL, and an update, which may be too, under the deletion `active`.

    What the deletion shadows is left out. The clustering is the first row's. False without memory.
    """
    cdef const Row* first = update if stored == NULL else stored
    cdef int at
    clear_row(merged)
    for at in range(shape.clusterings):
        merged.values[at] = first.values[at]
    if stored != NULL:
        _take_newest(stored, merged)
    if update != NULL:
        _take_newest(update, merged)
    if supersedes(&merged.deletion, &active):
        active = merged.deletion
    else:
        merged.deletion.marked, merged.deletion.local = NO_TIMESTAMP, NO_DELETION_TIME
    if merged.liveness.timestamp <= active.marked:
        merged.liveness.timestamp, merged.liveness.ttl = NO_TIMESTAMP, 0
        merged.liveness.expires = NO_DELETION_TIME
    for at in range(shape.count):
        if not shape.is_complex[at]:
            _merge_simple(at, stored, update, &active, merged)
        elif not _merge_complex(shape, at, stored, update, active, merged):
            return False
    return True


cdef void _take_newest(const Row* row, Row* merged) noexcept nogil:
    if _supersedes(&row.liveness, &merged.liveness):
        merged.liveness = row.liveness
    if supersedes(&row.deletion, &merged.deletion):
        merged.deletion = row.deletion


cdef void _merge_simple(int at, const Row* stored, const Row* update, const Deletion* active, Row* merged) noexcept nogil:
    cdef const Cell* left = NULL
    cdef const Cell* right = NULL
    if stored != NULL and is_present(stored, at) and stored.columns[at].cell.timestamp > active.marked:
        left = &stored.columns[at].cell
    if update != NULL and is_present(update, at) and update.columns[at].cell.timestamp > active.marked:
        right = &update.columns[at].cell
    if left == NULL and right == NULL:
        return
    if right == NULL or (left != NULL and _keeps_left(left, right)):
        right = left
    merged.columns[at].cell = right[0]
    merged.present |= <uint64_t>1 << at


cdef bint _merge_complex(
    const Shape* shape, int at, const Row* stored, const Row* update, Deletion active, Row* merged
) noexcept nogil:
    cdef const Column* left = NULL
    cdef const Column* right = NULL
    cdef Column* column = &merged.columns[at]
    cdef Deletion deletion
    if stored != NULL and is_present(stored, at):
        left = &stored.columns[at]
    if update != NULL and is_present(update, at):
        right = &update.columns[at]
    if left == NULL and right == NULL:
        return True
    deletion.marked, deletion.local = NO_TIMESTAMP, NO_DELETION_TIME
    if left != NULL and supersedes(&left.deletion, &active):
        deletion = left.deletion
    if left != NULL and is_no_deletion(&deletion) and not _has_cell_after(stored, left, active.marked):
        left = NULL
    if right != NULL and (left == NULL or not supersedes(&deletion, &right.deletion)):
        deletion = right.deletion
    if supersedes(&deletion, &active):
        active = deletion
    else:
        deletion.marked, deletion.local = NO_TIMESTAMP, NO_DELETION_TIME
    column.deletion = deletion
    column.first = merged.used
    if not _merge_cells(shape, at, stored, left, update, right, active.marked, merged):
        return False
    column.count = merged.used - column.first
    if column.count or not is_no_deletion(&deletion):
        merged.present |= <uint64_t>1 << at
    return True


cdef bint _has_cell_after(const Row* row, const Column* column, int64_t marked) noexcept nogil:
    cdef size_t i
    for i in range(column.first, column.first + column.count):
        if row.cells[i].timestamp > marked:
            return True
    return False


cdef bint _merge_cells(
    const Shape* shape,
    int at,
    const Row* stored,
    const Column* left,
    const Row* update,
    const Column* right,
    int64_t marked,
    Row* merged,
) noexcept nogil:
    """Both columns' cells are in the order of their paths, and none has two of one path."""
    cdef size_t i = 0, j = 0, left_end = 0, right_end = 0
    cdef const Cell* x = NULL
    cdef const Cell* y = NULL
    cdef Cell* out
    cdef int order
    if left != NULL:
        i, left_end = left.first, left.first + left.count
    if right != NULL:
        j, right_end = right.first, right.first + right.count
    while True:
        while i < left_end and stored.cells[i].timestamp <= marked:
            i += 1
        while j < right_end and update.cells[j].timestamp <= marked:
            j += 1
        if i == left_end and j == right_end:
            return True
        order = 1 if i == left_end else -1
        if i < left_end:
            x = &stored.cells[i]
        if j < right_end:
            y = &update.cells[j]
        if i < left_end and j < right_end:
            order = compare_paths(&shape.paths[at], x.path, x.path_size, y.path, y.path_size)
        out = add_cell(merged)
        if out == NULL:
            return False
        if order < 0 or (order == 0 and _keeps_left_path(x, y)):
            out[0] = x[0]
        else:
            out[0] = y[0]
        i += order <= 0
        j += order >= 0


cdef bint _same_bytes(const Cell* left, const Cell* right) noexcept nogil:
    if left.value_size != right.value_size or left.path_size != right.path_size:
        return False
    if left.value != right.value and compare_bytes(left.value, left.value_size, right.value, right.value_size):
        return False
    return left.path == right.path or compare_bytes(left.path, left.path_size, right.path, right.path_size) == 0


cdef bint _same_cell(const Cell* left, const Cell* right) noexcept nogil:
    if left.timestamp != right.timestamp or left.local != right.local or left.ttl != right.ttl:
        return False
    return _same_bytes(left, right)


cdef bint are_equal(const Shape* shape, const Row* left, const Row* right) noexcept nogil:
    """Whether two rows of one clustering hold the same."""
    cdef int at
    cdef size_t i
    cdef const Column* x
    cdef const Column* y
    if left.present != right.present or left.deletion.marked != right.deletion.marked:
        return False
    if left.deletion.local != right.deletion.local or left.liveness.timestamp != right.liveness.timestamp:
        return False
    if left.liveness.ttl != right.liveness.ttl or left.liveness.expires != right.liveness.expires:
        return False
    for at in range(shape.count):
        if not is_present(left, at):
            continue
        x = &left.columns[at]
        y = &right.columns[at]
        if not shape.is_complex[at]:
            if not _same_cell(&x.cell, &y.cell):
                return False
            continue
        if x.count != y.count or x.deletion.marked != y.deletion.marked or x.deletion.local != y.deletion.local:
            return False
        for i in range(x.count):
            if not _same_cell(&left.cells[x.first + i], &right.cells[y.first + i]):
                return False
    return True
