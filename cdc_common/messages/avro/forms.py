"""The form of a schema: what the native core's Avro engine compiles.

A form is a tree of plain tuples. A named type that occurs twice is the same object, which the engine compiles once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cdc_common.messages.avro.schemas import PRIMITIVES, definition

if TYPE_CHECKING:
    from cdc_common.messages.avro.schemas import Named, Tree

MOST_DEPTH = 64
_LOGICAL = {
    "int": frozenset({"date", "time-millis"}),
    "long": frozenset(
        {
            "time-micros",
            "timestamp-millis",
            "timestamp-micros",
            "timestamp-nanos",
            "local-timestamp-millis",
            "local-timestamp-micros",
            "local-timestamp-nanos",
        }
    ),
    "string": frozenset({"uuid"}),
}


class Form(NamedTuple):
    """A type."""

    # Avro's name of it; `optional` for a union of null and one type, `union` for any other union.
    kind: str
    # The bytes of a fixed; of an optional, the number of the branch that is null.
    size: int = 0
    # The types inside it: a record's fields, a union's branches, the items or the values.
    inner: tuple[Form, ...] = ()
    # The names of a record's fields, or the symbols of an enum.
    names: tuple[str, ...] = ()
    # The name of a logical type that the engine knows, or "".
    logical: str = ""
    # The precision and scale of a decimal, or (0, 0).
    decimal: tuple[int, int] = (0, 0)


class NotNativeError(Exception):
    """A schema that the engine does not take. `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def form_of(tree: Tree, named: Named) -> Form:
    """Return the form of a tree of `to_tree`. NotNativeError for one that contains itself or is nested too deeply."""
    return _Forms(named).of(tree)


class _Forms:
    def __init__(self, named: Named) -> None:
        self._named = named
        self._made: dict[str, Form] = {}
        self._open: set[str] = set()
        self._depth = 0

    def of(self, tree: Tree) -> Form:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise NotNativeError("is nested too deeply")
        made = self._union(tree) if isinstance(tree, list) else self._of_one(definition(tree, self._named))
        self._depth -= 1
        return made

    def _union(self, branches: list[Tree]) -> Form:
        inner = tuple(self.of(branch) for branch in branches)
        kinds = [form.kind for form in inner]
        if len(inner) == 2 and kinds.count("null") == 1:
            return Form("optional", kinds.index("null"), inner)
        return Form("union", 0, inner)

    def _of_one(self, found: dict[str, Any]) -> Form:
        kind = found["type"]
        match kind:
            case "record" | "error" | "enum" | "fixed":
                return self._named_type(found)
            case "array":
                return Form("array", inner=(self.of(found["items"]),))
            case "map":
                return Form("map", inner=(self.of(found["values"]),))
        assert kind in PRIMITIVES
        return Form(kind, logical=_logical(found, kind), decimal=_decimal(found, 0))

    def _named_type(self, found: dict[str, Any]) -> Form:
        name = found["name"]
        if name in self._open:
            raise NotNativeError("contains itself")
        if name not in self._made:
            self._open.add(name)
            self._made[name] = self._define(found)
            self._open.remove(name)
        return self._made[name]

    def _define(self, found: dict[str, Any]) -> Form:
        if found["type"] == "enum":
            return Form("enum", len(found["symbols"]), names=tuple(found["symbols"]))
        if found["type"] == "fixed":
            return Form("fixed", found["size"], decimal=_decimal(found, found["size"]))
        fields = found["fields"]
        return Form(
            "record", 0, tuple(self.of(field["type"]) for field in fields), tuple(field["name"] for field in fields)
        )


def _logical(found: dict[str, Any], kind: str) -> str:
    """Return the logical type. Readers ignore one that does not fit its type, as Avro demands."""
    name = found.get("logicalType")
    return name if isinstance(name, str) and name in _LOGICAL.get(kind, ()) else ""


def _decimal(found: dict[str, Any], size: int) -> tuple[int, int]:
    """Return precision and scale of a decimal that 128 bits hold; (0, 0) if it is none."""
    precision, scale = found.get("precision"), found.get("scale", 0)
    if found["type"] not in ("bytes", "fixed") or found.get("logicalType") != "decimal":
        return 0, 0
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 < precision <= 38:
        return 0, 0
    if not 0 <= scale <= precision or size > 16:
        return 0, 0
    return precision, scale
