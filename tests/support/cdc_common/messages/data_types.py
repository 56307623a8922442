"""The rows of docs/reference/data-types.md, with the values of its examples in Cassandra's serialization."""

from __future__ import annotations

import re
import struct
from uuid import UUID

from cassandra_storage.formats.primitives.vint import write_vint
from cassandra_storage.formats.types.cql_types import parse_type
from cassandra_storage.formats.types.marshal import CqlType, NativeType, UserType
from dev.local_stack.process.paths import project_root

PAGE = (project_root() / "docs" / "reference" / "data-types.md").read_text()
ROWS = {
    row[0]: tuple(cell.strip("`") for cell in row[1:4])
    for row in (line.strip("| ").split(" | ") for line in PAGE.splitlines() if re.match(r"\| [a-z].* \| ", line))
    if len(row) > 2 and row[2].startswith("`")
}
FORMS = [
    (*(cell.strip("`") for cell in (setting, value)), avro, *of.strip("`").split(" `"), as_json.strip("`"))
    for setting, value, avro, of, as_json, _ in (
        line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| `") and line.count(" | ") == 5
    )
]
ADDRESS = UserType("shop", "address", ("street", "zip"), (NativeType("text"), NativeType("text")), is_multi_cell=False)


def sized(*values: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(value)) + value for value in values)


def number(value: int, size: int = 4) -> bytes:
    return value.to_bytes(size, "big", signed=True)


# CQL type and literal of the page: the value in Cassandra's serialization, of a frozen collection.
SERIALIZED = {
    ("text, varchar", "'tea'"): b"tea",
    ("ascii", "'tea'"): b"tea",
    ("tinyint", "7"): b"\x07",
    ("smallint", "7"): b"\0\x07",
    ("int", "7"): number(7),
    ("bigint", "7"): number(7, 8),
    ("counter", "7"): number(7, 8),
    ("boolean", "true"): b"\x01",
    ("float", "1.5"): struct.pack(">f", 1.5),
    ("double", "1.5"): struct.pack(">d", 1.5),
    ("blob", "0x0abc"): b"\x0a\xbc",
    ("varint", "2997"): number(2997, 2),
    ("decimal", "29.97"): number(2) + number(2997, 2),
    ("uuid", "6ba7b810-9dad-41d1-80b4-00c04fd430c8"): UUID("6ba7b810-9dad-41d1-80b4-00c04fd430c8").bytes,
    ("timeuuid", "50554d6e-29bb-11e5-b345-feff819cdc9f"): UUID("50554d6e-29bb-11e5-b345-feff819cdc9f").bytes,
    ("timestamp", "'2026-11-18T11:06:40Z'"): number(1_795_000_000_000, 8),
    ("date", "'1970-01-02'"): (2**31 + 1).to_bytes(4, "big"),
    ("time", "'00:00:01'"): number(10**9, 8),
    ("duration", "1mo2d3ns"): b"".join(map(write_vint, (1, 2, 3))),
    ("inet", "'192.0.2.1'"): bytes((192, 0, 2, 1)),
    ("list<int>", "[2, 1]"): number(2) + sized(number(2), number(1)),
    ("set<int>", "{1, 2}"): number(2) + sized(number(1), number(2)),
    ("vector<int, 2>", "[2, 1]"): number(2) + number(1),
    ("map<text, int>", "{'a': 1}"): number(1) + sized(b"a", number(1)),
    ("map<int, int>", "{1: 2}"): number(1) + sized(number(1), number(2)),
    ("tuple<int, text>", "(1, 'a')"): sized(number(1), b"a"),
    ("user type", "{street: 'Elm 1'}"): sized(b"Elm 1"),
}

ONLY_IN_FORMS = {("duration", "2d3ns"): b"".join(map(write_vint, (0, 2, 3)))}


def cql_type_of(name: str) -> CqlType:
    """The type of a row of the page."""
    if name == "user type":
        return ADDRESS
    name = name if "<" in name else name.partition(", ")[0]
    return parse_type(f"frozen<{name}>" if "<" in name and "vector" not in name else name, "shop", {})
