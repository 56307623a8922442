"""Pieces of a row's Avro bytes: a column is cut out, and null is put before it where the joined row may have null."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cdc_common.messages.avro.encoding import NULL, VALUE
from cdc_common.messages.avro.schemas import Named, Tree, definition
from cdc_common.messages.avro.skipping import read_long
from joinery.planning.column_types import branches, is_nullable, without_docs
from joinery.routing.errors import RouteError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from joinery.planning.plan import Target

_PROMOTED = ("int", "long")


class Piece(NamedTuple):
    """A column of a joined row."""

    # The number of the column in the input's record; None if that schema does not have it, so that it is null.
    place: int | None
    # The number of the branch that is null in the input's type; None if it is never null.
    null_branch: int | None
    # Whether it may be null in the joined row.
    is_nullable: bool
    # The column's name in the input.
    name: str

    def cut(self, data: bytes, ends: Sequence[int]) -> bytes | None:
        """The column's bytes in the joined row; None if it is null and must not be. RouteError.

        ends: where each field of the record begins, and where the last one ends.
        """
        value = self.value(data, ends)
        if not self.is_nullable:
            return value
        return NULL if value is None else VALUE + value

    def value(self, data: bytes, ends: Sequence[int]) -> bytes | None:
        """The value's bytes without those of a branch; None if it is null."""
        if self.place is None:
            return None
        start, end = ends[self.place], ends[self.place + 1]
        if self.null_branch is None:
            return data[start:end]
        branch, start = read_long(data, start)
        return None if branch == self.null_branch else data[start:end]


def make_piece(target: Target, planned: tuple[Tree, Named], row: Tree, named: Named) -> Piece:
    """The piece for a record of one schema. RouteError if its type is not the planned one.

    planned: the column's type in the schema of the plan. row: the record, as a tree.
    """
    allows_null = is_nullable(target.field["type"])
    places = [place for place, field in enumerate(row["fields"]) if field["name"] == target.column]
    if not places:
        return Piece(None, None, allows_null, target.column)
    tree = row["fields"][places[0]]["type"]
    if len(branches(tree)) != 1 or not _fits((branches(tree)[0], named), (branches(planned[0])[0], planned[1])):
        raise RouteError(f"its schema has another type for the column {target.column} than the newest schema")
    null_branch = tree.index("null") if is_nullable(tree) else None
    return Piece(places[0], null_branch, allows_null, target.column)


def _fits(found: tuple[Tree, Named], planned: tuple[Tree, Named]) -> bool:
    """Whether values of both types have the same bytes."""
    return without_docs(*found) == without_docs(*planned) or (
        definition(*found)["type"] in _PROMOTED
        and definition(*planned)["type"] in _PROMOTED
        and definition(*found).get("logicalType") == definition(*planned).get("logicalType")
    )
