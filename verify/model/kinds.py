"""CQL types as a generator of statements needs them: their text, and random literals of their values.

The pools are small, so that writes meet: equal values, values that only the comparator holds equal, extremes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

POOLS: Mapping[str, tuple[str, ...]] = {
    "ascii": ("''", "'a'", "'~'"),
    "text": ("'x'", "'y'", "'zz'", "'émile'", "''", "'it''s'"),
    "boolean": ("true", "false"),
    "tinyint": ("-128", "0", "127"),
    "smallint": ("-32768", "0", "32767"),
    "int": ("0", "1", "2", "3", "-1", "2147483647"),
    "bigint": ("-9223372036854775808", "0", "7", "9223372036854775807"),
    "varint": ("0", "-1", "255", "170141183460469231731687303715884105728", "-170141183460469231731687303715884105729"),
    "decimal": ("1", "1.0", "1.00", "-0.0", "0", "2.5", "1e-40", "12345678901234567890.0123456789"),
    "float": ("0.0", "-0.0", "1.5", "NaN", "Infinity", "1e-45"),
    "double": ("0.0", "-0.0", "1.5", "NaN", "-Infinity", "1e300"),
    "blob": ("0x", "0x00", "0x0001", "0xff", "0x" + "ab" * 40),
    "inet": ("'127.0.0.1'", "'::1'", "'2001:db8::1'"),
    "date": ("'2020-02-29'", "'1969-12-31'", "'0001-01-01'"),
    "time": ("'00:00:00'", "'23:59:59.999999999'"),
    "timestamp": ("'2020-02-29T12:00:00.123Z'", "'1969-12-31T23:59:59.999Z'", "0"),
    "uuid": ("6ba7b810-9dad-41d1-80b4-00c04fd430c8", "00000000-0000-0000-0000-000000000000"),
    "timeuuid": (
        "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "6ba7b810-9dad-11d1-00b4-00c04fd430c8",
        "50554d6e-29bb-11e5-b345-feff819cdc9f",
    ),
    "duration": ("1y2mo3d4h5m6s7ms8us9ns", "-1mo", "89h4m48s", "0d"),
}
CAN_BE_EMPTY: Mapping[str, str] = {
    "int": "blobAsInt(0x)",
    "bigint": "blobAsBigint(0x)",
    "double": "blobAsDouble(0x)",
    "boolean": "blobAsBoolean(0x)",
    "uuid": "blobAsUuid(0x)",
    "timestamp": "blobAsTimestamp(0x)",
    "decimal": "blobAsDecimal(0x)",
    "varint": "blobAsVarint(0x)",
}
MOST_ELEMENTS = 3


@dataclass(frozen=True, slots=True)
class Kind:
    """A CQL type: `name` is a native type's, or list, set, map, tuple, user or vector; `parts` are its inner types."""

    name: str
    parts: tuple[Kind, ...] = ()
    fields: tuple[str, ...] = ()
    user_type: str = ""
    is_frozen: bool = False

    @property
    def cql(self) -> str:
        """`$k` stands for the keyspace."""
        inner = ", ".join(part.cql for part in self.parts)
        match self.name:
            case "user":
                text = f"$k.{self.user_type}"
            case "vector":
                text = f"vector<{inner}, 2>"
            case _:
                text = f"{self.name}<{inner}>" if self.parts else self.name
        return f"frozen<{text}>" if self.is_frozen else text

    @property
    def is_multi_cell(self) -> bool:
        return self.name in {"list", "set", "map", "user"} and not self.is_frozen

    def literal(self, pick: random.Random) -> str:
        """A value that is there; a field of a tuple or user type may be null."""
        match self.name:
            case "list" | "set" | "map":
                entries = [self.element(pick) for _ in range(pick.randint(0, MOST_ELEMENTS))]
                return self.of(entries if self.name == "list" else list(dict.fromkeys(entries)))
            case "vector":
                return f"[{self.parts[0].literal(pick)}, {self.parts[0].literal(pick)}]"
            case "tuple":
                return f"({', '.join(or_null(pick, part, 0.2) for part in self.parts)})"
            case "user":
                values = zip(self.fields, self.parts, strict=True)
                return "{" + ", ".join(f"{name}: {or_null(pick, part, 0.3)}" for name, part in values) + "}"
        return pick.choice(POOLS[self.name])

    def element(self, pick: random.Random) -> str:
        """One element of a collection; of a map an entry."""
        return ": ".join(part.literal(pick) for part in self.parts)

    def of(self, elements: list[str]) -> str:
        """The collection of these elements, as `element` gives them."""
        inner = ", ".join(elements)
        return f"[{inner}]" if self.name == "list" else "{" + inner + "}"


def or_null(pick: random.Random, kind: Kind, share: float) -> str:
    return "null" if pick.random() < share else kind.literal(pick)


def written(pick: random.Random, kind: Kind) -> str:
    """A value as a statement sets it: sometimes null, sometimes empty."""
    empty = CAN_BE_EMPTY.get(kind.name)
    if empty and pick.random() < 0.03:
        return empty
    return or_null(pick, kind, 0.12)


def native(name: str) -> Kind:
    return Kind(name)


def set_of(element: Kind) -> Kind:
    return Kind("set", (element,))


def list_of(element: Kind) -> Kind:
    return Kind("list", (element,))


def map_of(key: Kind, value: Kind) -> Kind:
    return Kind("map", (key, value))


def tuple_of(*parts: Kind) -> Kind:
    return Kind("tuple", parts)


def vector_of(element: Kind) -> Kind:
    return Kind("vector", (element,))


def user(name: str, **fields: Kind) -> Kind:
    return Kind("user", tuple(fields.values()), tuple(fields), name)


def frozen(kind: Kind) -> Kind:
    return Kind(kind.name, kind.parts, kind.fields, kind.user_type, is_frozen=True)
