"""Cuts the rows of an input out of its messages, under the join keys that they have.

A cutter is compiled once for a schema. Nothing is decoded: a joined row's bytes are those of its columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.messages.avro.encoding import NULL
from cdc_common.messages.avro.schemas import definition, to_tree
from cdc_common.messages.avro.skipping import read_long, skipper
from joinery.joining.records import Group, Origin, Row
from joinery.planning.column_types import is_nullable
from joinery.routing.errors import RouteError
from joinery.routing.passes import make_filter
from joinery.routing.pieces import make_piece
from joinery.routing.route import InputChange

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cdc_common.messages.avro.schemas import Named, Tree
    from joinery.planning.plan import JoinPlan, Target
    from joinery.routing.pieces import Piece

_UNFIT = "it does not have the schema that its header names"


class RowCutter:
    """Cuts the rows of one input, out of messages of one schema."""

    def __init__(self, plan: JoinPlan, number: int, value_schema: Any) -> None:  # noqa: ANN401 - JSON
        """number: the input's. value_schema: of the messages, as JSON. RouteError if it does not fit the plan."""
        self._number = number
        self._keeps_alone = plan.rule.keeps_alone(number)
        given = plan.inputs[number]
        envelope, named = to_tree(value_schema)
        self._fields = {field["name"]: place for place, field in enumerate(envelope["fields"])}
        self._skips = [skipper(field["type"], named) for field in envelope["fields"]]
        images = [field["type"] for field in envelope["fields"] if field["name"] in ("before", "after")]
        self._null_branch = images[0].index("null") if is_nullable(images[0]) else None
        row = definition(next(branch for branch in _listed(images[0]) if branch != "null"), named)
        self.first_column: str = row["fields"][0]["name"]
        self._row_skips = [skipper(field["type"], named) for field in row["fields"]]
        self._source = _SourceCutter(definition(_type_of(envelope, "source"), named), named)
        types = {name: (field["type"], given.schema.named) for name, field in given.schema.columns.items()}
        self._join, self._ident, self._columns = (
            self._made_of(targets, types, row, named) for targets in (given.join, given.ident, given.columns)
        )
        self.filters = [make_filter(found, given.schema.named, row, named) for found in given.filters]

    @property
    def pieces(self) -> tuple[list[Piece], list[Piece], list[Piece]]:
        """Those of the join key, of the other key columns, and of the selected columns."""
        return self._join, self._ident, self._columns

    def change(self, value: bytes, partition: int, offset: int) -> InputChange:
        """The change that the Avro bytes of a value hold. RouteError."""
        try:
            return self._change(value, partition, offset)
        except (IndexError, ValueError, RecursionError) as error:
            raise RouteError(_UNFIT) from error

    def _change(self, value: bytes, partition: int, offset: int) -> InputChange:
        starts = _ends(value, 0, self._skips)
        if starts[-1] != len(value):
            raise ValueError
        sequence, ts_us, cause, left_out = self._source.cut(value, starts[self._fields["source"]])
        if left_out:
            raise RouteError("its row before the change is left out, so that its join key before it is not known")
        before, after = (self._row(value, starts[self._fields[name]]) for name in ("before", "after"))
        return InputChange(before, after, Origin(self._number, partition, offset, sequence, ts_us, cause))

    def _row(self, value: bytes, start: int) -> Row | None:
        """The row of an image; None if it is null, does not pass the filters, or never has a joined row."""
        if self._null_branch is not None:
            branch, start = read_long(value, start)
            if branch == self._null_branch:
                return None
        ends = _ends(value, start, self._row_skips)
        if not all(found.passes(value, ends) for found in self.filters):
            return None
        join = [piece.cut(value, ends) for piece in self._join]
        ident = self._cut(self._ident, value, ends)
        alone = b""
        if any(self._is_null(piece, part) for piece, part in zip(self._join, join, strict=True)):
            if not self._keeps_alone:
                return None
            alone = bytes((self._number,)) + ident
        return Row(Group(self._whole(self._join, join), alone), ident, self._cut(self._columns, value, ends))

    def _is_null(self, piece: Piece, part: bytes | None) -> bool:
        return part is None or (piece.is_nullable and part == NULL)

    def _cut(self, pieces: Sequence[Piece], value: bytes, ends: Sequence[int]) -> bytes:
        return self._whole(pieces, [piece.cut(value, ends) for piece in pieces])

    def _whole(self, pieces: Sequence[Piece], parts: Sequence[bytes | None]) -> bytes:
        found = [part for part in parts if part is not None]
        if len(found) < len(parts):
            missing = next(piece.name for piece, part in zip(pieces, parts, strict=True) if part is None)
            raise RouteError(f"its column {missing} is null or missing, and joined rows have a value there")
        return b"".join(found)

    def _made_of(
        self, targets: Sequence[Target], types: dict[str, tuple[Tree, Named]], row: Tree, named: Named
    ) -> list[Piece]:
        return [make_piece(target, types[target.column], row, named) for target in targets]


class _SourceCutter:
    """Reads what a join needs of `source`."""

    def __init__(self, source: dict[str, Any], named: Named) -> None:
        self._places = {field["name"]: place for place, field in enumerate(source["fields"])}
        self._skips = [skipper(field["type"], named) for field in source["fields"]]
        if missing := [name for name in ("row_sequence", "ts_us", "cause") if name not in self._places]:
            raise RouteError(f"its schema has no source.{missing[0]}")

    def cut(self, value: bytes, start: int) -> tuple[int, int, str, bool]:
        """The sequence, the time in µs, the cause, and whether the row before the change is left out."""
        starts = _ends(value, start, self._skips)
        sequence, _ = read_long(value, starts[self._places["row_sequence"]])
        ts_us, _ = read_long(value, starts[self._places["ts_us"]])
        length, at = read_long(value, starts[self._places["cause"]])
        left_out = "left_out" in self._places and value[starts[self._places["left_out"]]] != 0
        return sequence, ts_us, value[at : at + length].decode(), left_out


def _ends(data: bytes, start: int, skips: Sequence[Any]) -> list[int]:
    """Where each field of a record begins, and where the last one ends."""
    ends = [start]
    for skip in skips:
        start = skip(data, start)
        ends.append(start)
    return ends


def _listed(tree: Tree) -> list[Tree]:
    return tree if isinstance(tree, list) else [tree]


def _type_of(envelope: dict[str, Any], name: str) -> Tree:
    return next(field["type"] for field in envelope["fields"] if field["name"] == name)
