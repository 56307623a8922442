"""CQL types as a generator of statements needs them: their text, and random values of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cassandra_storage.formats.primitives.vint import write_unsigned_vint
from dev.verify.model.values import EMPTY, NATIVES, NULL, UNSET, Value, native_value, numbered_value

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence

MOST_ELEMENTS = 3
VECTOR_LENGTH = 2
COLLECTIONS = frozenset({"list", "set", "map"})
FIXED_SIZE = frozenset({"int", "bigint", "float", "double"})  # of what vectors hold here


@dataclass(frozen=True, slots=True)
class Kind:
    """A CQL type."""

    # The name of a native type, or list, set, map, tuple, user or vector.
    name: str
    # The inner types.
    parts: tuple[Kind, ...] = ()
    # The names of a user type's fields.
    fields: tuple[str, ...] = ()
    # The name of a user type.
    user_type: str = ""
    # Whether it is frozen.
    is_frozen: bool = False

    @property
    def cql(self) -> str:
        """`$k` stands for the keyspace."""
        inner = ", ".join(part.cql for part in self.parts)
        match self.name:
            case "user":
                text = f"$k.{self.user_type}"
            case "vector":
                text = f"vector<{inner}, {VECTOR_LENGTH}>"
            case _:
                text = f"{self.name}<{inner}>" if self.parts else self.name
        return f"frozen<{text}>" if self.is_frozen else text

    @property
    def is_multi_cell(self) -> bool:
        return self.name in {*COLLECTIONS, "user"} and not self.is_frozen

    def value(self, pick: random.Random) -> Value:
        """A value that is there; a field of a tuple or user type may be null."""
        match self.name:
            case "list" | "set" | "map":
                return self.of(self.element(pick) for _ in range(pick.randint(0, MOST_ELEMENTS)))
            case "vector":
                return self.of([tuple(self.parts[0].value(pick) for _ in range(VECTOR_LENGTH))])
            case "tuple" | "user":
                share = 0.2 if self.name == "tuple" else 0.3
                return self.of([tuple(or_null(pick, part, share) for part in self.parts)])
        return native_value(self.name, pick.choice(NATIVES[self.name].pool))

    def numbered(self, number: int) -> Value:
        """A value of its own for each number: an element, or the first part, is the number's."""
        if not self.parts:
            return numbered_value(self.name, number)
        first, *others = self.parts
        if self.name in COLLECTIONS:
            return self.of([(first.numbered(number), *(other.numbered(number % 3) for other in others))])
        if self.name == "vector":
            return self.of([(first.numbered(number), *(first.numbered(1) for _ in range(VECTOR_LENGTH - 1)))])
        rest = (NULL if (number + at) % 3 == 0 else other.numbered(number % 5) for at, other in enumerate(others))
        return self.of([(first.numbered(number), *rest)])

    def element(self, pick: random.Random) -> tuple[Value, ...]:
        """One element of a collection; of a map an entry."""
        return tuple(part.value(pick) for part in self.parts)

    def of(self, elements: Iterable[tuple[Value, ...]]) -> Value:
        """The value of these elements: of a map of pairs, of a tuple, user type or vector of one with all its parts."""
        entries = list(elements)
        if self.name in {"set", "map"}:
            unique = {_sort_key(self.parts[0], key): (key, *rest) for key, *rest in entries}
            entries = [unique[key] for key in sorted(unique)]
        texts = [": ".join(value.text for value in entry) for entry in entries]
        match self.name:
            case "list":
                return Value(f"[{', '.join(texts)}]", _counted(entries))
            case "set" | "map":
                return Value("{" + ", ".join(texts) + "}", _counted(entries))
        [values] = entries
        match self.name:
            case "tuple":
                return Value(f"({', '.join(value.text for value in values)})", _sized(values))
            case "user":
                pairs = zip(self.fields, values, strict=True)
                return Value("{" + ", ".join(f"{name}: {value.text}" for name, value in pairs) + "}", _sized(values))
        return Value(f"[{', '.join(value.text for value in values)}]", self._vector(values))

    def _vector(self, values: Sequence[Value]) -> bytes:
        data = [value.bytes for value in values]
        if self.parts[0].name in FIXED_SIZE:
            return b"".join(data)
        return b"".join(write_unsigned_vint(len(part)) + part for part in data)

    def with_user_type(self, changed: Kind) -> Kind:
        """The same type after ALTER TYPE: `changed` is what the user type of its name has become."""
        if self.user_type == changed.user_type:
            return replace(changed, is_frozen=self.is_frozen)
        return replace(self, parts=tuple(part.with_user_type(changed) for part in self.parts))

    def without_user_types(self) -> Kind:
        """The type with tuples for its user types: as such Cassandra remembers a dropped column."""
        parts = tuple(part.without_user_types() for part in self.parts)
        if self.name == "user":
            return Kind("tuple", parts, is_frozen=True)
        return replace(self, parts=parts)

    def user_types(self) -> set[str]:
        """The names of the user types in it."""
        inner = {name for part in self.parts for name in part.user_types()}
        return inner | {self.user_type} if self.user_type else inner


def _sort_key(kind: Kind, value: Value) -> int | bytes:
    """The order of elements of the types that sets and keys of maps have here."""
    data = value.bytes
    return int.from_bytes(data, "big", signed=True) if kind.name in {"int", "bigint", "varint"} else data


def _sized(values: Iterable[Value]) -> bytes:
    return b"".join(
        len(value.data).to_bytes(4, "big") + value.data if isinstance(value.data, bytes) else b"\xff" * 4
        for value in values
    )


def _counted(entries: Sequence[tuple[Value, ...]]) -> bytes:
    return len(entries).to_bytes(4, "big") + b"".join(map(_sized, entries))


def or_null(pick: random.Random, kind: Kind, share: float) -> Value:
    return NULL if pick.random() < share else kind.value(pick)


def written(pick: random.Random, kind: Kind, *, can_be_unset: bool = False) -> Value:
    """A value as a statement sets it: sometimes null, sometimes empty; of a bound one sometimes unset."""
    chance = pick.random()
    if chance < 0.03 and kind.name in EMPTY:
        return EMPTY[kind.name]
    if can_be_unset and chance < 0.15:
        return UNSET
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


INT, TEXT, BLOB, DOUBLE, BIGINT = (native(name) for name in ("int", "text", "blob", "double", "bigint"))
