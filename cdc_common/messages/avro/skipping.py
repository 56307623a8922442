"""Finding the end of each value of an Avro binary without decoding it, so that what stays is copied byte for byte.

`skipper(tree, named)` compiles a function (bytes, position) → position after the value. It never loops for longer than
the bytes last. IndexError or ValueError if the bytes are not of the schema, as far as that shows; a position beyond the
end is left to the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from cdc_common.messages.avro.schemas import definition

if TYPE_CHECKING:
    from cdc_common.messages.avro.schemas import Named, Tree

Skip: TypeAlias = Callable[[bytes, int], int]

_LONGEST = 10  # bytes of a long


def read_long(data: bytes, position: int) -> tuple[int, int]:
    """An int or a long, and the position after it."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    bits, shift = byte & 0x7F, 7
    while byte >= 0x80:
        if shift >= 7 * _LONGEST:
            raise ValueError
        byte = data[position]
        position += 1
        bits |= (byte & 0x7F) << shift
        shift += 7
    return (bits >> 1) ^ -(bits & 1), position


def skipper(tree: Tree, named: Named) -> Skip:
    return _Skippers(named).of(tree)


class _Skippers:
    """A record may contain itself, so each record's function is made once, and found when it is called."""

    def __init__(self, named: Named) -> None:
        self._named = named
        self._records: dict[str, Skip | None] = {}

    def of(self, tree: Tree) -> Skip:
        if isinstance(tree, list):
            return _skip_union([self.of(branch) for branch in tree])
        found = definition(tree, self._named)
        match found["type"]:
            case "array":
                return _skip_blocks(self.of(found["items"]), self._is_empty(found["items"]))
            case "map":
                values = self.of(found["values"])
                return _skip_blocks(lambda data, position: values(data, _skip_bytes(data, position)), is_empty=False)
            case "record" | "error":
                return self._record(found)
            case "fixed":
                return _skip_fixed(found["size"])
            case kind:
                return _PRIMITIVE[kind]

    def _record(self, record: dict[str, Any]) -> Skip:
        name = record["name"]
        if name in self._records:
            return self._records[name] or self._later(name)
        self._records[name] = None
        made = self._records[name] = _skip_all([self.of(field["type"]) for field in record["fields"]])
        return made

    def _later(self, name: str) -> Skip:
        """Skips a record that contains itself: its own Skip is not made yet."""

        def skip(data: bytes, position: int) -> int:
            made = self._records[name]
            assert made is not None
            return made(data, position)

        return skip

    def _is_empty(self, tree: Tree, inside: frozenset[str] = frozenset()) -> bool:
        """Whether values take no bytes."""
        if isinstance(tree, list):
            return False
        found = definition(tree, self._named)
        if found["type"] in ("record", "error"):
            name = found["name"]
            if name in inside:
                return False
            return all(self._is_empty(field["type"], inside | {name}) for field in found["fields"])
        return found["type"] == "null" or (found["type"] == "fixed" and not found["size"])


def _skip_null(_data: bytes, position: int) -> int:
    return position


def _skip_long(data: bytes, position: int) -> int:
    while data[position] >= 0x80:
        position += 1
    return position + 1


def _skip_bytes(data: bytes, position: int) -> int:
    length, position = read_long(data, position)
    if length < 0:
        raise ValueError
    return position + length


def _skip_fixed(size: int) -> Skip:
    return lambda _data, position: position + size


_PRIMITIVE: dict[str, Skip] = {
    "null": _skip_null,
    "boolean": _skip_fixed(1),
    "int": _skip_long,
    "long": _skip_long,
    "enum": _skip_long,
    "float": _skip_fixed(4),
    "double": _skip_fixed(8),
    "bytes": _skip_bytes,
    "string": _skip_bytes,
}


def _skip_all(skips: list[Skip]) -> Skip:
    def skip(data: bytes, position: int) -> int:
        for skip_one in skips:
            position = skip_one(data, position)
        return position

    return skip


def _skip_union(skips: list[Skip]) -> Skip:
    def skip(data: bytes, position: int) -> int:
        branch, position = read_long(data, position)
        if branch < 0:
            raise ValueError
        return skips[branch](data, position)

    return skip


def _skip_blocks(item: Skip, is_empty: bool) -> Skip:  # noqa: FBT001 - of the schema
    def skip(data: bytes, position: int) -> int:
        while True:
            count, position = read_long(data, position)
            if not count:
                return position
            if count < 0:
                position = _skip_bytes(data, position)
                continue
            for _ in range(0 if is_empty else count):
                position = item(data, position)
                if position > len(data):
                    raise IndexError

    return skip
