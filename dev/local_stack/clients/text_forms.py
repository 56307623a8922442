"""Values that change messages have as text or JSON, as they would be in Avro's own types.

The rules are those of docs/reference/data-types.md, guided by the driver's types.
"""

from __future__ import annotations

import json
import re
import struct
from decimal import Context, Decimal
from typing import Any

_EXACT = Context(prec=100_000, Emax=10**17, Emin=-(10**17))
_DURATION = re.compile(
    r"P(?:(-?\d+)M)?(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?)(\d+)(?:\.(\d+))?S)?)?", re.ASCII
)
_TEXTS = frozenset({"text", "varchar", "ascii", "uuid", "timeuuid", "inet", "blob", "varint", "decimal", "duration"})


def decimal_of(text: str) -> Decimal:
    return _EXACT.create_decimal(text)


def duration_of(text: str) -> tuple[int, int, int]:
    """Months, days and nanoseconds of ISO 8601, with a sign for each part."""
    found = _DURATION.fullmatch(text)
    assert found is not None, text
    months, days, hours, minutes = (int(part or 0) for part in found.group(1, 2, 3, 4))
    seconds = int(found[6] or 0) * 10**9 + int((found[7] or "").ljust(9, "0"))
    return months, days, (hours * 60 + minutes) * 60 * 10**9 + (-seconds if found[5] else seconds)


def from_json(kind: Any, text: str) -> Any:  # noqa: ANN401 - the driver's type class, what Avro's own types would have
    """The value of a column that is JSON text."""
    return _value(kind, json.loads(text, object_pairs_hook=list))


def _value(kind: Any, tree: Any) -> Any:  # noqa: ANN401, PLR0911 - one for each kind of type
    if tree is None:
        return None
    if kind.cassname == "UserType":
        found = dict(tree)
        return {name: _value(of, found.get(name)) for name, of in zip(kind.fieldnames, kind.subtypes, strict=True)}
    if kind.cassname == "TupleType":
        return {f"f{at}": _value(of, item) for at, (of, item) in enumerate(zip(kind.subtypes, tree, strict=True))}
    match kind.typename:
        case "list" | "set" | "org.apache.cassandra.db.marshal.VectorType":
            [element] = kind.subtypes or [kind.subtype]
            return [_value(element, item) for item in tree]
        case "map":
            keys, values = kind.subtypes
            return [{"key": _value(keys, _key(keys, key)), "value": _value(values, item)} for key, item in tree]
        case "float" | "double":
            return _floating(kind.typename, tree)
        case name if name in _TEXTS - {"blob"}:
            return tree
    return bytes.fromhex(tree.removeprefix("0x")) if isinstance(tree, str) else tree


def _key(kind: Any, text: str) -> Any:  # noqa: ANN401
    """A key that is no string is the JSON of its value; a float's may be a string, such as NaN."""
    if kind.typename in _TEXTS or (kind.typename in ("float", "double") and text[-1:].isalpha()) or text[:4] == "NaN:":
        return text
    return json.loads(text, object_pairs_hook=list)


def _floating(name: str, tree: Any) -> float:  # noqa: ANN401
    if isinstance(tree, str) and tree.startswith("NaN:"):
        [number] = struct.unpack(">f" if name == "float" else ">d", bytes.fromhex(tree[4:]))
        return float(number)
    return float(tree)
