"""The text of CQL types as system_schema holds it (org.apache.cassandra.cql3.CQL3Type, schema.CQLTypeParser).

Only a column's own type can be multi-cell: all that is inside another type is frozen, whether the text says so (as
Cassandra writes it) or not (as it is in a user type's fields).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.types.marshal import (
    CqlType,
    CustomType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
)
from cassandra_storage.formats.types.serializers import NATIVE_DECODERS
from cassandra_storage.formats.types.type_tokens import DEEPEST, LARGEST_DIMENSION, TypeTokens, frozen

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<name>[A-Za-z][A-Za-z0-9_]*)
      | "(?P<quoted>(?:[^"]|"")+)"
      | '(?P<custom>(?:[^']|'')*)'
      | (?P<number>[0-9]+)
      | (?P<mark>[<>,.])
    )""",
    re.VERBOSE,
)
_MOST = 100_000  # types within a type, each use of a user type counted: names alone could stand for 2**100 of them
_UNQUOTED = re.compile(r"[a-z][a-z0-9_]*")  # ColumnIdentifier.UNQUOTED_IDENTIFIER
_EMPTY_TYPE = "org.apache.cassandra.db.marshal.EmptyType"
_NATIVE_NAMES = frozenset(NATIVE_DECODERS) | {"varchar"}
# org/apache/cassandra/cql3/reserved_keywords.txt
_RESERVED = frozenset(
    """
    add allow alter and apply asc authorize batch begin by columnfamily create delete desc describe drop entries execute
    from full grant if in index infinity insert into is keyspace limit materialized modify nan norecursive not null of
    on or order primary rename revoke schema select set table to token truncate unlogged update use using view where
    with
    """.split()  # noqa: SIM905  a line for each word would hide what it is
)


@dataclass(frozen=True, slots=True)
class UserTypeDefinition:
    """One row of system_schema.types."""

    # The name of the keyspace.
    keyspace: str
    # The name of the type.
    name: str
    # The names of the fields, in order.
    field_names: tuple[str, ...]
    # The types of the fields as text. They are resolved in the keyspace's other types.
    field_types: tuple[str, ...]


def parse_type(text: str, keyspace: str, user_types: Mapping[str, UserTypeDefinition]) -> CqlType:
    """The type that the text stands for in the keyspace, whose user types are given by their names; FormatError if it
    is none, or names a user type that is not there.
    """
    return _parse(text, _Names(keyspace, user_types), (), 0)


def type_text(type_: CqlType) -> str:
    """The canonical text, Cassandra's own: parse_type's inverse (a user type is only named)."""
    match type_:
        case NativeType(name):
            return name
        case VectorType(of, dimension):
            return f"vector<{type_text(of)}, {dimension}>"
        case CustomType(class_name):
            return "'" + class_name.replace("'", "''") + "'"
        case TupleType(types):
            return f"frozen<tuple<{', '.join(map(type_text, types))}>>"
        case UserType():
            text = quoted_if_needed(type_.name)
        case ListType(of, _):
            text = f"list<{type_text(of)}>"
        case SetType(of, _):
            text = f"set<{type_text(of)}>"
        case MapType(keys, values, _):
            text = f"map<{type_text(keys)}, {type_text(values)}>"
    return text if type_.is_multi_cell else f"frozen<{text}>"


def quoted_if_needed(name: str) -> str:
    """ColumnIdentifier.maybeQuote; the names of native types are quoted too."""
    if _UNQUOTED.fullmatch(name) and name not in _RESERVED and name not in _NATIVE_NAMES:
        return name
    return '"' + name.replace('"', '""') + '"'


@dataclass(slots=True)
class _Names:
    """The names that a text may use, and the number of types that were read for it so far."""

    keyspace: str
    user_types: Mapping[str, UserTypeDefinition]
    count: int = 0


def _parse(text: str, names: _Names, within: tuple[str, ...], depth: int) -> CqlType:
    return _Parser(text, names, within, depth).read_whole()


class _Parser:
    """CqlParser.comparatorType over the tokens of one text; `within` are the user types being resolved, `depth` the
    types around it.
    """

    def __init__(self, text: str, names: _Names, within: tuple[str, ...], depth: int) -> None:
        self._tokens = TypeTokens(text, _TOKEN, "no CQL type")
        self._names = names
        self._within = within
        self._depth = depth
        self._frozen = 0  # how many `frozen` are around the type: they are no types of their own

    def read_whole(self) -> CqlType:
        type_ = self.read_type()
        self._tokens.expect_end()
        return type_

    def read_type(self) -> CqlType:
        self._names.count += 1
        if self._depth > DEEPEST or self._frozen > DEEPEST + 1 or self._names.count > _MOST:
            raise FormatError(f"a CQL type nested more than {DEEPEST} deep or of more than {_MOST} types")
        self._depth += 1
        type_ = self._read_type()
        self._depth -= 1
        return type_

    def _read_type(self) -> CqlType:
        kind, token = self._tokens.next()
        if kind == "custom":
            class_name = token.replace("''", "'")
            return NativeType("empty") if class_name == _EMPTY_TYPE else CustomType(class_name)
        if kind == "name":
            lower = token.lower()
            if self._tokens.follows("<"):
                return self._read_parametric(lower)
            if lower in _NATIVE_NAMES:
                return NativeType("text" if lower == "varchar" else lower)
            return self._read_user_type(lower)
        if kind == "quoted":
            return self._read_user_type(_unquoted(token))
        raise self._tokens.error()

    def _read_parametric(self, name: str) -> CqlType:
        self._tokens.expect("<")
        is_frozen = name == "frozen"
        self._depth -= is_frozen
        self._frozen += is_frozen
        first = self.read_type()
        self._depth += is_frozen
        self._frozen -= is_frozen
        match name:
            case "frozen":
                if isinstance(first, NativeType | CustomType):
                    raise self._tokens.error()
                type_ = frozen(first)
            case "list":
                type_ = ListType(frozen(first), is_multi_cell=True)
            case "set":
                type_ = SetType(frozen(first), is_multi_cell=True)
            case "map":
                self._tokens.expect(",")
                type_ = MapType(frozen(first), frozen(self.read_type()), is_multi_cell=True)
            case "tuple":
                type_ = self._read_tuple(first)
            case "vector":
                self._tokens.expect(",")
                type_ = VectorType(frozen(first), self._read_dimension())
            case _:
                raise self._tokens.error()
        self._tokens.expect(">")
        return type_

    def _read_tuple(self, first: CqlType) -> TupleType:
        types = [frozen(first)]
        while self._tokens.follows(","):
            self._tokens.expect(",")
            types.append(frozen(self.read_type()))
        return TupleType(tuple(types))

    def _read_dimension(self) -> int:
        kind, token = self._tokens.next()
        if kind != "number" or len(token) > 10 or not 0 < int(token) <= LARGEST_DIMENSION:
            raise self._tokens.error()
        return int(token)

    def _read_user_type(self, name: str) -> UserType:
        keyspace = self._names.keyspace
        if self._tokens.follows("."):
            if name != keyspace:
                raise self._tokens.error()
            self._tokens.expect(".")
            kind, token = self._tokens.next()
            name = token.lower() if kind == "name" else _unquoted(token)
        definition = self._names.user_types.get(name)
        if definition is None:
            raise FormatError(f"unknown user type {keyspace}.{name} in {self._tokens.text!r}")
        if name in self._within:
            raise FormatError(f"user type {keyspace}.{name} contains itself")
        within = (*self._within, name)
        field_types = [frozen(_parse(text, self._names, within, self._depth)) for text in definition.field_types]
        return UserType(keyspace, name, definition.field_names, tuple(field_types), is_multi_cell=True)


def _unquoted(token: str) -> str:
    return token.replace('""', '"')
