"""Types as Java class names, as SSTables' headers have them (org.apache.cassandra.db.marshal.TypeParser).

`org.apache.cassandra.db.marshal.MapType(org.apache.cassandra.db.marshal.UTF8Type,…Int32Type)`: names of user types and
fields are hexadecimal. Only a column's own type can be multi-cell: what is inside another type is frozen.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

from cassandra_storage.errors import FormatError
from cassandra_storage.marshal import (
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

_PACKAGE = "org.apache.cassandra.db.marshal."
_NATIVE = {
    "AsciiType": "ascii",
    "BooleanType": "boolean",
    "ByteType": "tinyint",
    "BytesType": "blob",
    "CounterColumnType": "counter",
    "DateType": "timestamp",
    "DecimalType": "decimal",
    "DoubleType": "double",
    "DurationType": "duration",
    "EmptyType": "empty",
    "FloatType": "float",
    "InetAddressType": "inet",
    "Int32Type": "int",
    "IntegerType": "varint",
    "LegacyTimeUUIDType": "timeuuid",
    "LongType": "bigint",
    "ShortType": "smallint",
    "SimpleDateType": "date",
    "TimeType": "time",
    "TimeUUIDType": "timeuuid",
    "TimestampType": "timestamp",
    "UTF8Type": "text",
    "UUIDType": "uuid",
}
_PARAMETERS = {"ReversedType": 1, "FrozenType": 1, "ListType": 1, "SetType": 1, "MapType": 2}
_TOKEN = re.compile(r"\s*(?:(?P<name>[\w.+&-]+)|(?P<mark>=>|[(),:=]))", re.ASCII)
_DEEPEST = 100  # types within types: readers of values recurse as deep
_LARGEST = 2**31 - 1  # of a vector's dimension


class NamedType(NamedTuple):
    """A type as a header has it: `columns` are those of a partition key of several columns (CompositeType)."""

    type: CqlType
    is_reversed: bool = False
    columns: tuple[CqlType, ...] = ()

    @property
    def key_types(self) -> tuple[CqlType, ...]:
        return self.columns or (self.type,)


def parse_type_name(text: str) -> NamedType:
    """The type that the text names. A class that is not Cassandra's own is a CustomType, whose values stay bytes.

    FormatError if the text is none.
    """
    parser = _Parser(text)
    found = parser.read(0)
    parser.expect_end()
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0

    def expect_end(self) -> None:
        if self._at != len(self._tokens):
            raise self._error()

    def read(self, depth: int) -> NamedType:
        if depth > _DEEPEST:
            raise FormatError(f"a type nested more than {_DEEPEST} deep")
        start = self._at
        name = self._name()
        short = name.removeprefix(_PACKAGE)
        if short in _NATIVE:
            self._skip_parameters()
            return NamedType(NativeType(_NATIVE[short]))
        if short == "UserType":
            return NamedType(self._user_type(depth))
        if short == "VectorType":
            return NamedType(self._vector(depth))
        if short in _PARAMETERS or short in ("TupleType", "CompositeType"):
            inner = self._types(depth)
            if len(inner) != _PARAMETERS.get(short, len(inner)) or not inner:
                raise self._error()
            return self._made(short, inner, start)
        self._skip_parameters()
        return NamedType(CustomType(self._full_name(start)))

    def _made(self, name: str, inner: list[NamedType], start: int) -> NamedType:
        types = tuple(_frozen(each.type) for each in inner)
        type_: CqlType = types[0]  # FrozenType
        match name:
            case "ReversedType":
                return inner[0]._replace(is_reversed=True)
            case "CompositeType":
                return NamedType(CustomType(self._full_name(start)), columns=types)
            case "ListType":
                type_ = ListType(types[0], is_multi_cell=True)
            case "SetType":
                type_ = SetType(types[0], is_multi_cell=True)
            case "MapType":
                type_ = MapType(types[0], types[1], is_multi_cell=True)
            case "TupleType":
                type_ = TupleType(types)
        return NamedType(type_)

    def _types(self, depth: int) -> list[NamedType]:
        self._expect("(")
        found: list[NamedType] = []
        while not self._follows(")"):
            if found:
                self._expect(",")
            found.append(self.read(depth + 1))
        self._expect(")")
        return found

    def _vector(self, depth: int) -> VectorType:
        self._expect("(")
        elements = _frozen(self.read(depth + 1).type)
        self._expect(",")
        dimension = self._name()
        if not (dimension.isascii() and dimension.isdigit()) or not 0 < int(dimension[:11]) <= _LARGEST:
            raise self._error()
        self._expect(")")
        return VectorType(elements, int(dimension))

    def _user_type(self, depth: int) -> UserType:
        self._expect("(")
        keyspace = self._name()
        self._expect(",")
        name = self._hexadecimal()
        fields: list[tuple[str, CqlType]] = []
        while self._follows(","):
            self._expect(",")
            field = self._hexadecimal()
            self._expect(":")
            fields.append((field, _frozen(self.read(depth + 1).type)))
        self._expect(")")
        names, types = tuple(field for field, _ in fields), tuple(type_ for _, type_ in fields)
        return UserType(keyspace, name, names, types, is_multi_cell=True)

    def _skip_parameters(self) -> None:
        """Of a class of other kinds, such as DynamicCompositeType(b=>BytesType)."""
        if not self._follows("("):
            return
        depth = 0
        while True:
            _, content = self._next()
            depth += (content == "(") - (content == ")")
            if not depth:
                return

    def _full_name(self, start: int) -> str:
        text = "".join(token for _, token in self._tokens[start : self._at])
        return text if "." in text.partition("(")[0] else _PACKAGE + text

    def _hexadecimal(self) -> str:
        try:
            return bytes.fromhex(self._name()).decode()
        except ValueError:
            raise self._error() from None

    def _name(self) -> str:
        kind, token = self._next()
        if kind != "name":
            raise self._error()
        return token

    def _next(self) -> tuple[str, str]:
        if self._at == len(self._tokens):
            raise self._error()
        self._at += 1
        return self._tokens[self._at - 1]

    def _follows(self, mark: str) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at] == ("mark", mark)

    def _expect(self, mark: str) -> None:
        if not self._follows(mark):
            raise self._error()
        self._at += 1

    def _error(self) -> FormatError:
        return FormatError(f"not the name of a type: {self._text[:200]!r}")


def _frozen(type_: CqlType) -> CqlType:
    if isinstance(type_, ListType | SetType | MapType | UserType):
        return replace(type_, is_multi_cell=False)
    return type_


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens = []
    text = text.rstrip()
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise FormatError(f"not the name of a type: {text[:200]!r}")
        tokens.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return tokens
