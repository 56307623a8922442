"""The net changes of one mutation: Cassandra applies it at once, so each row that it changes has one change event.

Its parts arrive as separate messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.messages.changes import Cause, RowChange, change_op

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cassandra_storage.formats.rows.clustering import Clustering
    from materializer.records import Change


def as_row_change(change: Change) -> RowChange:
    """The change with its images, whether Python or the native core made it."""
    return change if isinstance(change, RowChange) else change.row_change()


def net_changes(changes: Sequence[RowChange]) -> tuple[list[RowChange], Mapping[Clustering | None, int]]:
    """The net changes of one mutation, in the order in which it first changed each row; and the new row_sequence of the
    rows that it changed more than once.
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
            net.append(
                last._replace(
                    op=change_op(first.before, last.after, is_snapshot=last.source.snapshot),
                    before=first.before,
                    row_sequence=first.row_sequence,
                    source=last.source._replace(cause=_cause([first, *more])),
                )
            )
    return net, sequences


def _cause(changes: Sequence[RowChange]) -> Cause:
    causes = {change.source.cause for change in changes}
    return "expired_write" if "expired_write" in causes else "write"
