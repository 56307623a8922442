"""Types as Java class names, as SSTables' headers have them (org.apache.cassandra.db.marshal.TypeParser).

`org.apache.cassandra.db.marshal.MapType(org.apache.cassandra.db.marshal.UTF8Type,…Int32Type)`: names of user types and
fields are hexadecimal. Only a column's own type can be multi-cell: what is inside another type is frozen.
"""

from __future__ import annotations

import re
from typing import NamedTuple

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
from cassandra_storage.formats.types.type_tokens import DEEPEST, LARGEST_DIMENSION, TypeTokens, frozen

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


class NamedType(NamedTuple):
    """A type as a header has it."""

    # The type.
    type: CqlType
    # Whether the clustering order is DESC.
    is_reversed: bool = False
    # The types of a partition key of several columns (CompositeType); empty for any other type.
    columns: tuple[CqlType, ...] = ()

    @property
    def key_types(self) -> tuple[CqlType, ...]:
        return self.columns or (self.type,)


def parse_type_name(text: str) -> NamedType:
    """The type that the text names. A class that is not Cassandra's own is a CustomType, whose values stay bytes.

    FormatError if the text is none.
    """
    return _Parser(text).read_whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = TypeTokens(text, _TOKEN, "not the name of a type")
        self._frozen = 0  # how many FrozenTypes are around the type: they are no types of their own

    def read_whole(self) -> NamedType:
        found = self.read(0)
        self._tokens.expect_end()
        return found

    def read(self, depth: int) -> NamedType:
        if depth > DEEPEST or self._frozen > DEEPEST + 1:
            raise FormatError(f"a type nested more than {DEEPEST} deep")
        start = self._tokens.at
        name = self._tokens.next_of("name")
        short = name.removeprefix(_PACKAGE)
        if short in _NATIVE:
            self._skip_parameters()
            return NamedType(NativeType(_NATIVE[short]))
        if short == "UserType":
            return NamedType(self._user_type(depth))
        if short == "VectorType":
            return NamedType(self._vector(depth))
        if short in _PARAMETERS or short in ("TupleType", "CompositeType"):
            is_frozen = short == "FrozenType"
            self._frozen += is_frozen
            inner = self._types(depth - is_frozen)
            self._frozen -= is_frozen
            if len(inner) != _PARAMETERS.get(short, len(inner)) or not inner:
                raise self._tokens.error()
            return self._made(short, inner, start)
        self._skip_parameters()
        return NamedType(CustomType(self._full_name(start)))

    def _made(self, name: str, inner: list[NamedType], start: int) -> NamedType:
        types = tuple(frozen(inner_type.type) for inner_type in inner)
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
        self._tokens.expect("(")
        found: list[NamedType] = []
        while not self._tokens.follows(")"):
            if found:
                self._tokens.expect(",")
            found.append(self.read(depth + 1))
        self._tokens.expect(")")
        return found

    def _vector(self, depth: int) -> VectorType:
        self._tokens.expect("(")
        elements = frozen(self.read(depth + 1).type)
        self._tokens.expect(",")
        dimension = self._tokens.next_of("name")
        if not (dimension.isascii() and dimension.isdigit()) or not 0 < int(dimension[:11]) <= LARGEST_DIMENSION:
            raise self._tokens.error()
        self._tokens.expect(")")
        return VectorType(elements, int(dimension))

    def _user_type(self, depth: int) -> UserType:
        self._tokens.expect("(")
        keyspace = self._tokens.next_of("name")
        self._tokens.expect(",")
        name = self._hexadecimal()
        fields: list[tuple[str, CqlType]] = []
        while self._tokens.follows(","):
            self._tokens.expect(",")
            field = self._hexadecimal()
            self._tokens.expect(":")
            fields.append((field, frozen(self.read(depth + 1).type)))
        self._tokens.expect(")")
        names, types = tuple(field for field, _ in fields), tuple(type_ for _, type_ in fields)
        return UserType(keyspace, name, names, types, is_multi_cell=True)

    def _skip_parameters(self) -> None:
        """Skips the parameters of any other class, such as DynamicCompositeType(b=>BytesType)."""
        if not self._tokens.follows("("):
            return
        depth = 0
        while True:
            _, content = self._tokens.next()
            depth += (content == "(") - (content == ")")
            if not depth:
                return

    def _full_name(self, start: int) -> str:
        text = "".join(token for _, token in self._tokens.tokens[start : self._tokens.at])
        return text if "." in text.partition("(")[0] else _PACKAGE + text

    def _hexadecimal(self) -> str:
        try:
            return bytes.fromhex(self._tokens.next_of("name")).decode()
        except ValueError:
            raise self._tokens.error() from None
