"""A table for each CQL type, with ordinary, empty and extreme values, and how PostgreSQL shows them as text."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from cassandra_storage.formats.primitives.vint import write_vint
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.cql_types import UserTypeDefinition, parse_type
from cdc_common.messages.avro.form_values import shortest
from cdc_common.messages.changes import ColumnImage

if TYPE_CHECKING:
    from cassandra_storage.formats.types.marshal import CqlType

KEYSPACE = "types"
USER_TYPES = {"address": UserTypeDefinition(KEYSPACE, "address", ("street", "zip"), ("text", "int"))}
TEXT_64K = "x" * 70_000


class Typed(NamedTuple):
    """A type, and its values with the text of each in PostgreSQL, in the default forms."""

    name: str
    values: tuple[tuple[ColumnImage, str], ...]

    @property
    def type(self) -> CqlType:
        return parse_type(self.name, KEYSPACE, USER_TYPES)


def number(value: int, size: int) -> bytes:
    return value.to_bytes(size, "big", signed=True)


def decimal(unscaled: int, scale: int) -> bytes:
    return number(scale, 4) + shortest(unscaled)


def sized(*values: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(value)) + value for value in values)


def frozen(*values: bytes, per: int = 1) -> bytes:
    return number(len(values) // per, 4) + sized(*values)


def duration(*parts: int) -> bytes:
    return b"".join(map(write_vint, parts))


_UUID = UUID("6ba7b810-9dad-41d1-80b4-00c04fd430c8")
_TIMEUUID = UUID("50554d6e-29bb-11e5-b345-feff819cdc9f")
_PATH = _TIMEUUID.bytes
_BIG = 10**40 + 7

TYPES: tuple[Typed, ...] = (
    Typed("text", ((b"tea", "tea"), (b"", ""), ("größe ✓".encode(), "größe ✓"), (TEXT_64K.encode(), TEXT_64K))),
    Typed("ascii", ((b"tea", "tea"), (b"", ""))),
    Typed("tinyint", ((number(7, 1), "7"), (number(-128, 1), "-128"), (number(127, 1), "127"))),
    Typed("smallint", ((number(7, 2), "7"), (number(-32768, 2), "-32768"))),
    Typed("int", ((number(7, 4), "7"), (number(-(2**31), 4), "-2147483648"))),
    Typed("bigint", ((number(7, 8), "7"), (number(2**63 - 1, 8), "9223372036854775807"))),
    Typed("boolean", ((b"\1", "true"), (b"\0", "false"))),
    Typed(
        "float",
        (
            (struct.pack(">f", 1.5), "1.5"),
            (struct.pack(">f", float("nan")), "NaN"),
            (struct.pack(">f", float("-inf")), "-Infinity"),
        ),
    ),
    Typed(
        "double",
        (
            (struct.pack(">d", 0.1), "0.1"),
            (struct.pack(">d", float("nan")), "NaN"),
            (struct.pack(">d", float("inf")), "Infinity"),
            (struct.pack(">d", 5e-324), "5e-324"),
        ),
    ),
    Typed("blob", ((b"\n\xbc", "\\x0abc"), (b"", "\\x"))),
    Typed("varint", ((shortest(2997), "2997"), (shortest(-_BIG), str(-_BIG)), (shortest(0), "0"))),
    Typed(
        "decimal",
        (
            (decimal(2997, 2), "29.97"),
            (decimal(100, 2), "1.00"),
            (decimal(_BIG, 20), "100000000000000000000.00000000000000000007"),
            (decimal(-1, -3), "-1E+3"),
            (decimal(1, 2**31 - 1), "1E-2147483647"),
        ),
    ),
    Typed("uuid", ((_UUID.bytes, str(_UUID)), (bytes(16), str(UUID(int=0))))),
    Typed("timeuuid", ((_TIMEUUID.bytes, str(_TIMEUUID)),)),
    Typed(
        "timestamp",
        (
            (number(1_795_000_000_123, 8), "2026-11-18 11:06:40.123"),
            (number(-62_135_596_800_000, 8), "0001-01-01 00:00:00"),
            (number(253_402_300_799_999, 8), "9999-12-31 23:59:59.999"),
        ),
    ),
    Typed(
        "date",
        (
            ((2**31 + 1).to_bytes(4, "big"), "1970-01-02"),
            ((2**31 - 719_162).to_bytes(4, "big"), "0001-01-01"),
            ((2**31 + 2_932_896).to_bytes(4, "big"), "9999-12-31"),
        ),
    ),
    Typed("time", ((number(10**9, 8), "00:00:01"), (number(86_399_999_999_000, 8), "23:59:59.999999"))),
    Typed(
        "duration",
        (
            (duration(1, 2, 3), "P1M2DT0.000000003S"),
            (duration(-1, -2, -3_500_000_000), "P-1M-2DT-3.5S"),
            (duration(0, 0, 0), "PT0S"),
        ),
    ),
    Typed("inet", ((bytes((192, 0, 2, 1)), "192.0.2.1"), (bytes(15) + b"\1", "::1"))),
    Typed("list<int>", ((((_PATH, number(2, 4)), (_PATH, number(1, 4))), "{2,1}"),)),
    Typed("frozen<list<text>>", ((frozen(b"a", b'b"c'), '{a,"b\\"c"}'), (frozen(), "{}"))),
    Typed("set<text>", ((((b"a", b""), (b"b", b"")), "{a,b}"),)),
    Typed("list<bigint>", ((((_PATH, number(2**62, 8)),), f"{{{2**62}}}"),)),
    Typed("list<double>", ((((_PATH, struct.pack(">d", 1.5)),), "{1.5}"),)),
    Typed("list<boolean>", ((((_PATH, b"\1"),), "{t}"),)),
    Typed("list<blob>", ((((_PATH, b"\n"),), '["0x0a"]'),)),
    Typed("list<decimal>", ((((_PATH, decimal(2997, 2)),), "{29.97}"),)),
    Typed("list<varint>", ((((_PATH, shortest(7)),), "{7}"),)),
    Typed("list<uuid>", ((((_PATH, _UUID.bytes),), f"{{{_UUID}}}"),)),
    Typed("list<timestamp>", ((((_PATH, number(1_795_000_000_000, 8)),), "[1795000000000]"),)),
    Typed("list<date>", ((((_PATH, (2**31 + 1).to_bytes(4, "big")),), "{1970-01-02}"),)),
    Typed("list<time>", ((((_PATH, number(10**9, 8)),), "{1000000000}"),)),
    Typed("list<smallint>", ((((_PATH, number(7, 2)),), "{7}"),)),
    Typed("list<tinyint>", ((((_PATH, number(7, 1)),), "{7}"),)),
    Typed("list<float>", ((((_PATH, struct.pack(">f", 1.5)),), "{1.5}"),)),
    Typed("list<duration>", ((((_PATH, duration(1, 2, 0)),), "{P1M2D}"),)),
    Typed("list<inet>", ((((_PATH, bytes((192, 0, 2, 1))),), "{192.0.2.1}"),)),
    Typed("vector<float, 2>", ((struct.pack(">ff", 1.5, -2.5), "{1.5,-2.5}"),)),
    Typed("map<text, int>", ((((b"a", number(1, 4)), (b'b"', number(2, 4))), '{"a":1,"b\\"":2}'),)),
    Typed("map<int, text>", ((((number(1, 4), b"a"),), '{"1":"a"}'),)),
    Typed("map<timestamp, decimal>", ((((number(5, 8), decimal(25, 1)),), '{"5":"2.5"}'),)),
    Typed("frozen<tuple<int, text>>", ((sized(number(1, 4), b"a"), '[1,"a"]'), (sized(number(1, 4)), "[1,null]"))),
    Typed("address", ((((b"\0\0", b"Elm 1"),), '{"street":"Elm 1"}'),)),
    Typed("frozen<address>", ((sized(b"Elm 1", number(7, 4)), '{"street":"Elm 1","zip":7}'),)),
    Typed("list<frozen<address>>", ((((_PATH, sized(b"Elm 1")),), '[{"street":"Elm 1"}]'),)),
    Typed("list<frozen<list<int>>>", ((((_PATH, frozen(number(1, 4))),), "[[1]]"),)),
)


POSTGRESQL = {
    "text": "text",
    "ascii": "text",
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "boolean": "boolean",
    "float": "real",
    "double": "double precision",
    "blob": "bytea",
    "varint": "text",
    "decimal": "text",
    "uuid": "uuid",
    "timeuuid": "uuid",
    "timestamp": "timestamp without time zone",
    "date": "date",
    "time": "time without time zone",
    "duration": "text",
    "inet": "text",
    "list<int>": "integer[]",
    "frozen<list<text>>": "text[]",
    "set<text>": "text[]",
    "list<bigint>": "bigint[]",
    "list<double>": "double precision[]",
    "list<boolean>": "boolean[]",
    "list<blob>": "json",
    "list<decimal>": "text[]",
    "list<varint>": "text[]",
    "list<uuid>": "text[]",
    "list<timestamp>": "json",
    "list<date>": "date[]",
    "list<time>": "bigint[]",
    "list<smallint>": "integer[]",
    "list<tinyint>": "integer[]",
    "list<float>": "real[]",
    "list<duration>": "text[]",
    "list<inet>": "text[]",
    "vector<float, 2>": "real[]",
    "map<text, int>": "json",
    "map<int, text>": "json",
    "map<timestamp, decimal>": "json",
    "frozen<tuple<int, text>>": "json",
    "address": "json",
    "frozen<address>": "json",
    "list<frozen<address>>": "json",
    "list<frozen<list<int>>>": "json",
}
"""The type of the column that Debezium's JDBC sink makes, in the default forms."""

STOPPED = (
    "decimal",
    "duration",
    "list<decimal>",
    "map<int, text>",
    "map<text, int>",
    "frozen<tuple<int, text>>",
    "address",
    "list<frozen<address>>",
    "list<timestamp>",
    "list<frozen<list<int>>>",
    "frozen<address>",
    "list<duration>",
    "map<timestamp, decimal>",
)
"""The types at which the JDBC sink stops in the exact forms."""


def column(name: str, cql_type: CqlType, kind: ColumnKind = ColumnKind.REGULAR, position: int = -1) -> ColumnMetadata:
    return ColumnMetadata(name, cql_type, kind, position)


def typed_table(name: str, of: Typed) -> TableMetadata:
    """A table with the key `id int` and the column `v` of the type."""
    return table_of(name, (column("v", of.type),))


def table_of(
    name: str,
    regular: tuple[ColumnMetadata, ...],
    *,
    clustering: tuple[ColumnMetadata, ...] = (),
    static: tuple[ColumnMetadata, ...] = (),
) -> TableMetadata:
    key = column("id", parse_type("int", KEYSPACE, {}), ColumnKind.PARTITION_KEY, 0)
    return TableMetadata(
        KEYSPACE,
        name,
        UUID(int=1),
        partition_key=(key,),
        clustering=clustering,
        static_columns=static,
        regular_columns=regular,
    )
