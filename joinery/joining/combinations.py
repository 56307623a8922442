"""Combinations of the rows that other inputs have in a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from joinery.joining.layout import StoredRow
    from joinery.joining.overlay import Overlay
    from joinery.joining.records import Group

Combination: TypeAlias = "tuple[StoredRow | None, ...]"
"""A row of each of the other inputs; None for an input without one."""
Place: TypeAlias = tuple[bytes | None, ...]
"""The idents of a combination."""


def combinations(
    overlay: Overlay, group: Group, others: Sequence[int], counts: Sequence[int], after: Place | None
) -> Iterator[Combination]:
    """All combinations in an order that depends on the rows' idents alone. Rows are read one by one.

    others: the numbers of the other inputs. counts: of the rows of all inputs. after: only what follows this place.
    """
    if not others:
        if after is None:
            yield ()
        return
    first, rest = others[0], others[1:]
    start = None if after is None else after[0]
    rows: Iterator[StoredRow | None] = overlay.rows(group, first, start or b"") if counts[first] else iter((None,))
    for row in rows:
        is_start = after is not None and (row is None or row.ident == start)
        for combination in combinations(overlay, group, rest, counts, after[1:] if after and is_start else None):
            yield row, *combination


def place_of(combination: Combination) -> Place:
    return tuple(None if row is None else row.ident for row in combination)
