"""The native core's way from a batch of an input's messages to messages of the internal topic.

It makes the same bytes as RowCutter, `route` and the codec, which do what the core does not take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cdc_native
from cdc_common.messages.avro.forms import NotNativeError, form_of
from cdc_common.messages.avro.schemas import to_tree
from joinery.internal.codec import DEFINITION_BITS, FORMAT_VERSION, MAY_MISS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdc_common.messages.avro.forms import Form
    from joinery.planning.plan import JoinPlan
    from joinery.routing.pieces import Piece
    from joinery.routing.rows import RowCutter

IS_NATIVE = cdc_native.is_enabled()
REFUSALS: tuple[type[Exception], ...] = ()
"""The exceptions with which the core refuses a message."""
if IS_NATIVE:
    from cdc_native.avro.messages import AvroError
    from cdc_native.avro.program import Program
    from cdc_native.avro.rewrite import Layout
    from cdc_native.avro.routes import Routes

    REFUSALS = (AvroError,)

_IMAGES = ("before", "after")
_SOURCE = {"row_sequence": "long", "ts_us": "long", "cause": "string"}


def native_routes(plan: JoinPlan, number: int, value_schema: Any, cutter: RowCutter) -> Routes | None:  # noqa: ANN401 - JSON
    """The routes of an input's messages of one schema; None if the core is not in use or does not take the schema."""
    if not IS_NATIVE:
        return None
    try:
        form = form_of(*to_tree(value_schema))
        layout = Layout(Program(form), [(name,) for name in (*_IMAGES, "source")])
    except (NotNativeError, ValueError):
        return None
    source = _inner(form, "source")
    if any(_inner(source, name).kind != kind for name, kind in _SOURCE.items()):
        return None
    slots = [layout.slots["source", name] for name in _SOURCE]
    return Routes(
        layout,
        [[_native(layout, image, pieces) for pieces in cutter.pieces] for image in _IMAGES],
        [_filters(layout, image, cutter) for image in _IMAGES],
        [layout.slots[image, cutter.first_column] for image in _IMAGES],
        [*slots, layout.slots.get(("source", "left_out"), -1)],
        FORMAT_VERSION,
        MAY_MISS | plan.rule.definition << DEFINITION_BITS,
        number,
        plan.rule.keeps_alone(number),
    )


def _filters(layout: Layout, image: str, cutter: RowCutter) -> list[tuple[Any, ...]]:
    """Of each filter: its column's place, as of a piece, its kind, whether null passes, and its ranges."""
    places = _native(layout, image, [found.piece for found in cutter.filters])
    return [
        (*place[:2], int(found.filter.kind), found.filter.passes_null, found.filter.ranges)
        for place, found in zip(places, cutter.filters, strict=True)
    ]


def _native(layout: Layout, image: str, pieces: Sequence[Piece]) -> list[tuple[int, int, bool]]:
    return [
        (
            -1 if piece.place is None else layout.slots[image, piece.name],
            -1 if piece.null_branch is None else piece.null_branch,
            piece.is_nullable,
        )
        for piece in pieces
    ]


def _inner(form: Form, name: str) -> Form:
    return form.inner[form.names.index(name)]
