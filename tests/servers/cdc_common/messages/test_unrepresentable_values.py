"""Empty and unreadable values: Cassandra's own types have them, Avro does not (docs/reference/data-types.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.types.cql_types import type_text
from cassandra_storage.formats.types.marshal import ListType, MapType, NativeType, SetType, TupleType, VectorType
from cdc_common.messages.avro.cql_types import AvroTypes
from cdc_common.messages.avro.cql_values import EmptyValueError
from cdc_common.messages.avro.type_forms import EXACT
from dev.verify.oracle.cassandra_types import CassandraTypes, hexes
from tests.support.cdc_common.messages.strategies import NATIVE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cassandra_storage.formats.types.marshal import CqlType

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

INT = NativeType("int")
TYPES: tuple[CqlType, ...] = (
    *map(NativeType, NATIVE),
    ListType(INT, is_multi_cell=False),
    SetType(INT, is_multi_cell=False),
    MapType(INT, INT, is_multi_cell=False),
    TupleType((INT,)),
    VectorType(INT, 2),
)
NEVER_EMPTY = {"tinyint", "smallint", "date", "time", "duration"}
EMPTY_IS_A_VALUE = {"text", "ascii", "blob"}


@pytest.fixture(scope="module")
def cassandra() -> Iterator[CassandraTypes]:
    with CassandraTypes({}) as types:
        yield types


def takes(cassandra: CassandraTypes, cql_type: CqlType, values: Sequence[bytes]) -> list[bool]:
    valid: list[bool] = cassandra.request("valid", type=type_text(cql_type), values=hexes(values))["valid"]
    return valid


@pytest.mark.parametrize("cql_type", TYPES, ids=type_text)
def test_empty_values(cassandra: CassandraTypes, cql_type: CqlType) -> None:
    (is_taken,) = takes(cassandra, cql_type, [b""])
    is_never_empty = isinstance(cql_type, ListType | SetType | MapType | VectorType)
    name = cql_type.name if isinstance(cql_type, NativeType) else ""
    assert is_taken == (not is_never_empty and name not in NEVER_EMPTY)
    encode = AvroTypes("t", EXACT).column("c", cql_type).encode
    if name in EMPTY_IS_A_VALUE:
        assert encode(b"") == b"\0"
    elif is_taken:
        with pytest.raises(EmptyValueError):
            encode(b"")


def test_unreadable_values(cassandra: CassandraTypes) -> None:
    """A surrogate, Java's zero, a code point beyond the last, a first byte without its second; no digits."""
    odd = {
        "text": [b"\xed\xa0\x80", b"\xc0\x80", b"\xf7\xbf\xbf\xbf", b"\xe0A\x80"],
        "decimal": [b"\0\0\0\2"],
    }
    for name, values in odd.items():
        assert all(takes(cassandra, NativeType(name), values))
        for value in values:
            with pytest.raises(FormatError):
                AvroTypes("t", EXACT).column("c", NativeType(name)).encode(value)
    assert not any(takes(cassandra, NativeType("text"), [b"\xff", b"\xc3", b"\x80"]))
    assert not any(takes(cassandra, NativeType("ascii"), [b"\x80"]))
