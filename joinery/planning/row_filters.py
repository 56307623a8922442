"""Plans the filters of an input: a filter becomes ranges of the values of its column, whose type must fit its literals.

Numbers, times and booleans become integers that are in the same order; texts are compared by their UTF-8 bytes.
"""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import IntEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from cdc_common.messages.avro.schemas import definition
from joinery.filters import Filter, Literal, Operator
from joinery.planning.column_types import single
from joinery.planning.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from joinery.planning.input_schema import InputSchema

_LEAST, _MOST = -(2**63), 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
NAN = 0x7FF8000000000000
"""The place of all NaN, after infinity, as in PostgreSQL."""


class Kind(IntEnum):
    """How the bytes of a column are read (cdc_native.avro.filters has the same numbers)."""

    LONG = 0
    BOOLEAN = 1
    FLOAT = 2
    DOUBLE = 3
    BYTES = 4
    ANY = 5  # it is not read: the filter asks for null, or for any value


Range: TypeAlias = "tuple[int, int] | tuple[bytes, bytes | None]"
"""The first and the last integer; or the first bytes, and the first ones after the range, if there are any."""


class RowFilter(NamedTuple):
    """A filter under the schema of its input."""

    # The column's name.
    column: str
    # The column's field, as a tree.
    field: dict[str, Any]
    # How its values are read.
    kind: Kind
    # Whether rows pass that have null.
    passes_null: bool
    # The values that pass, in order and apart from each other. Those of the kind ANY pass if null does not.
    ranges: tuple[Range, ...]


def plan_filters(name: str, schema: InputSchema, filters: Iterable[Filter]) -> tuple[RowFilter, ...]:
    """The filters of an input of this name. PlanError."""
    return tuple(_plan(name, schema, given) for given in filters)


def ordered(value: float) -> int:
    """An integer for a floating-point number: they are in the same order, and 0.0 is -0.0."""
    if math.isnan(value):
        return NAN
    (bits,) = struct.unpack(">q", struct.pack(">d", value))
    return int(bits) if bits >= 0 else -(bits & _MOST)


def _plan(name: str, schema: InputSchema, given: Filter) -> RowFilter:
    place = f"{name}.{given.column}"
    if given.column not in schema.columns:
        raise PlanError(
            f"the filter {given.text!r} names {place}, and the columns of {schema.topic} are "
            f"{', '.join(schema.columns)}"
        )
    field = schema.columns[given.column]
    tree = definition(single(field["type"], place), schema.named)
    if given.operator in (Operator.IS_NULL, Operator.IS_NOT_NULL):
        return RowFilter(given.column, field, Kind.ANY, given.operator is Operator.IS_NULL, ())
    kind = _kinds(tree).get(tree["type"])
    if kind is None:
        raise PlanError(
            f"the filter {given.text!r} compares {place}, which is {tree.get('logicalType') or tree['type']}: filters "
            "compare numbers, texts, bytes, booleans, dates and timestamps"
        )
    makers: dict[Kind, Callable[[Filter, dict[str, Any]], list[Range]]] = {
        Kind.LONG: _of_integers,
        Kind.BOOLEAN: _of_booleans,
        Kind.FLOAT: _of_floats,
        Kind.DOUBLE: _of_floats,
        Kind.BYTES: _of_bytes,
    }
    try:
        ranges = makers[kind](given, tree)
    except (ValueError, OverflowError) as error:
        raise PlanError(f"the filter {given.text!r} does not fit {place}: {error}") from error
    return RowFilter(given.column, field, kind, False, tuple(ranges))


def _kinds(tree: dict[str, Any]) -> dict[str, Kind]:
    """The kinds of types with this one's logical type."""
    logical = tree.get("logicalType")
    if logical in ("date", "timestamp-millis", "timestamp-micros"):
        return {"int": Kind.LONG, "long": Kind.LONG}
    if logical not in (None, "uuid"):
        return {}
    return {
        "int": Kind.LONG,
        "long": Kind.LONG,
        "boolean": Kind.BOOLEAN,
        "float": Kind.FLOAT,
        "double": Kind.DOUBLE,
        "string": Kind.BYTES,
        "bytes": Kind.BYTES,
    }


def _of_integers(given: Filter, tree: dict[str, Any]) -> list[Range]:
    read = _readers.get(tree.get("logicalType", ""), _number)
    return _integers(given.operator, [read(literal) for literal in given.literals])


def _of_booleans(given: Filter, _tree: dict[str, Any]) -> list[Range]:
    if not all(isinstance(literal, bool) for literal in given.literals):
        raise ValueError("write true or false")
    return _integers(given.operator, [Decimal(int(bool(literal))) for literal in given.literals])


def _of_floats(given: Filter, tree: dict[str, Any]) -> list[Range]:
    values = [float(_number(literal)) for literal in given.literals]
    if tree["type"] == "float":
        values = [_single_precision(value) for value in values]
    return _integers(given.operator, [Decimal(ordered(value)) for value in values])


def _of_bytes(given: Filter, tree: dict[str, Any]) -> list[Range]:
    wanted, form = (str, "'text'") if tree["type"] == "string" else (bytes, "x'00ff'")
    if not all(isinstance(literal, wanted) for literal in given.literals):
        raise ValueError(f"write {form}")
    points = [literal.encode() if isinstance(literal, str) else literal for literal in given.literals]
    return _byte_ranges(given.operator, [point for point in points if isinstance(point, bytes)])


def _number(literal: Literal) -> Decimal:
    if not isinstance(literal, Decimal):
        raise ValueError("write a number")  # noqa: TRY004 - of the file
    bound = Decimal(10) ** 400  # beyond all numbers of 64 bits
    return max(-bound, min(bound, literal))


def _date(literal: Literal) -> Decimal:
    if not isinstance(literal, str):
        raise ValueError("write a date, such as '2026-11-27'")  # noqa: TRY004 - as above
    return Decimal((date.fromisoformat(literal) - _EPOCH.date()).days)


def _micros(literal: Literal) -> Decimal:
    if not isinstance(literal, str):
        raise ValueError("write a time, such as '2026-11-27T10:15:00Z'")  # noqa: TRY004 - as above
    found = datetime.fromisoformat(literal)
    return Decimal(((found if found.tzinfo else found.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND)


def _millis(literal: Literal) -> Decimal:
    return _micros(literal) / 1000


_readers: dict[str, Callable[[Literal], Decimal]] = {
    "date": _date,
    "timestamp-micros": _micros,
    "timestamp-millis": _millis,
}


def _single_precision(value: float) -> float:
    try:
        (found,) = struct.unpack(">f", struct.pack(">f", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(found)


def _integers(operator: Operator, points: Sequence[Decimal]) -> list[Range]:
    """The ranges of integers."""
    first = points[0]
    match operator:
        case Operator.LESS:
            found = [(_LEAST, math.ceil(first) - 1)]
        case Operator.AT_MOST:
            found = [(_LEAST, math.floor(first))]
        case Operator.MORE:
            found = [(math.floor(first) + 1, _MOST)]
        case Operator.AT_LEAST:
            found = [(math.ceil(first), _MOST)]
        case _:
            whole = sorted({int(point) for point in points if point == point.to_integral_value()})
            bounds = [_LEAST - 1, *whole, _MOST + 1]
            found = (
                [(point, point) for point in whole]
                if operator is Operator.IN
                else [(low + 1, high - 1) for low, high in pairwise(bounds)]
            )
    clamped = ((max(_LEAST, low), min(_MOST, high)) for low, high in found)
    return [(low, high) for low, high in clamped if low <= high]


def _byte_ranges(operator: Operator, points: Sequence[bytes]) -> list[Range]:
    """The ranges of bytes. What follows directly after some bytes are these with a zero byte."""
    first = points[0]
    match operator:
        case Operator.LESS:
            found: list[tuple[bytes, bytes | None]] = [(b"", first)]
        case Operator.AT_MOST:
            found = [(b"", first + b"\x00")]
        case Operator.MORE:
            found = [(first + b"\x00", None)]
        case Operator.AT_LEAST:
            found = [(first, None)]
        case Operator.IN:
            found = [(point, point + b"\x00") for point in sorted(set(points))]
        case _:
            starts = [b"", *(point + b"\x00" for point in sorted(set(points)))]
            found = list(zip(starts, [*sorted(set(points)), None], strict=True))
    return [(low, high) for low, high in found if high is None or low < high]
