"""One mutation is one event of its partition, as Cassandra applies it at once, though its parts come as messages of
their own: what it changes is told once for each row. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_messages.changes import RowChange, change_op

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cassandra_storage.clustering import Clustering


def net_changes(changes: Sequence[RowChange]) -> tuple[list[RowChange], Mapping[Clustering | None, int]]:
    """What the changes of one mutation come to, in the order in which it first changed each row; and, for the rows
    that it changed more than once, the row_sequence that they now have.
    """
    by_row: dict[Clustering | None, list[RowChange]] = {}
    for change in changes:
        by_row.setdefault(change.clustering, []).append(change)
    net, sequences = [], {}
    for clustering, (first, *more) in by_row.items():
        if not more:
            net.append(first)
            continue
        last = more[-1]
        sequences[clustering] = first.row_sequence
        if first.before == last.after:
            sequences[clustering] -= 1
        else:
            op = change_op(first.before, last.after)
            net.append(last._replace(op=op, before=first.before, row_sequence=first.row_sequence))
    return net, sequences
