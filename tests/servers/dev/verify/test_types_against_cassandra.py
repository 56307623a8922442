"""Types, keys, columns' order and counters against Cassandra 5.0's own classes.

`CDC_ORACLE_ROUNDS` multiplies the few rounds of the normal run, `CDC_ORACLE_SEED` starts another series;
`--log-cli-level=info` tells how much was compared.
"""

from __future__ import annotations

import logging
import math
import os
import random
import struct
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.byte_comparable import value_encoder
from cassandra_storage.formats.schema.schema_rows import in_order
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata
from cassandra_storage.formats.types.counter import merge_contexts, total
from cassandra_storage.formats.types.cql_types import parse_type, type_text
from cassandra_storage.formats.types.marshal import LEXICAL_UUID_TYPE, BigDecimal, Duration, decoder, fixed_length
from dev.verify.oracle.cassandra_types import CassandraTypes, hexes
from dev.verify.oracle.order_check import keys_of, random_clusterings
from dev.verify.oracle.type_values import COMPARABLE, KEYSPACE, USER_TYPES, TypeValues

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.servers

LOG = logging.getLogger(__name__)
ROUNDS = range(int(os.environ.get("CDC_ORACLE_ROUNDS", "1")) * 8)
SEED = int(os.environ.get("CDC_ORACLE_SEED", "0"))
VALUES = 24


@pytest.fixture(scope="module")
def cassandra() -> Iterator[CassandraTypes]:
    with CassandraTypes(USER_TYPES) as types:
        yield types


def draws(of: str) -> Iterator[TypeValues]:
    """One source of values a round, every other one plain."""
    for number in ROUNDS:
        yield TypeValues(random.Random(f"{SEED} {of} {number}"), is_plain=number % 2 == 0)


def test_a_types_text_length_and_kind(cassandra: CassandraTypes) -> None:
    for values in draws("type"):
        for type_ in (values.type(), values.multi_cell_type()):
            text = type_text(type_)
            length = fixed_length(type_)
            answer = cassandra.request("type", type=text)
            assert answer == {
                "text": text,
                "is_multi_cell": getattr(type_, "is_multi_cell", False),
                "fixed_length": -1 if length is None else length,
            }
            assert parse_type(text, KEYSPACE, USER_TYPES) == type_


def test_keys_of_values(cassandra: CassandraTypes) -> None:
    """Byte for byte, where Cassandra's own keys have its comparators' order (test_orders_against_cassandra.py)."""
    for values in draws("values"):
        if values.is_plain:
            type_ = values.type(COMPARABLE)
            drawn = [values.value(type_) for _ in range(VALUES)]
            answer = cassandra.request("values", type=type_text(type_), values=hexes(drawn))
            assert hexes(list(map(value_encoder(type_), drawn))) == answer["keys"]


def test_keys_of_clusterings_and_bounds(cassandra: CassandraTypes) -> None:
    for values in draws("clusterings"):
        if values.is_plain:
            columns, prefixes = random_clusterings(values)
            answer = cassandra.request(
                "clusterings",
                columns=[{"type": type_text(one.type), "is_reversed": one.is_reversed} for one in columns],
                prefixes=[{"kind": prefix.kind.name, "values": hexes(prefix.values)} for prefix in prefixes],
            )
            assert hexes(keys_of(columns, prefixes)) == answer["keys"]


def test_decoded_values(cassandra: CassandraTypes) -> None:
    decoded = 0
    for values in draws("decode"):
        type_ = values.type()
        drawn = [values.value(type_) for _ in range(VALUES)]
        drawn += [_damaged(values.rng, value) for value in drawn]
        answer = cassandra.request("decode", type=type_text(type_), values=hexes(drawn))
        decode = decoder(type_)
        for value, expected in zip(drawn, answer["decoded"], strict=True):
            try:
                ours: list[object] | None = [_plain(decode(value))]
            except FormatError:
                ours = None
            if LEXICAL_UUID_TYPE not in type_text(type_):  # whose values stay bytes here
                assert ours == expected, (type_text(type_), value.hex())
                decoded += 1
    LOG.info("%d values", decoded)


def _damaged(rng: random.Random, value: bytes) -> bytes:
    at = rng.randint(0, len(value))
    return rng.choice((value[:at], value[:at] + rng.randbytes(1) + value[at:], value[:at] + b"\xc0" + value[at + 1 :]))


def _plain(value: object) -> object:  # noqa: PLR0911  one for each kind of value
    """Return the value as CassandraTypes.java prints it."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case float():
            return "7ff8000000000000" if math.isnan(value) else f"{struct.unpack('>Q', struct.pack('>d', value))[0]:x}"
        case BigDecimal() | Duration():
            return "/".join(map(str, value))
        case list() | tuple():
            return [_plain(one) for one in value]
        case bytes():
            return value.hex()
        case str() | int() | UUID():
            return str(value)
        case IPv4Address() | IPv6Address():
            return value.packed.hex()
    raise AssertionError(value)


def test_the_order_of_columns(cassandra: CassandraTypes) -> None:
    for values in draws("columns"):
        names = {
            "".join(values.rng.choices("aZ0_\u00e9\u0800\U0001f600", k=values.rng.randint(1, 10))) for _ in range(12)
        }
        columns = [
            ColumnMetadata(name, values.rng.choice((values.type(), values.multi_cell_type())), ColumnKind.REGULAR)
            for name in names
        ]
        described = [{"name": column.name, "type": type_text(column.type)} for column in columns]
        assert [column.name for column in in_order(columns)] == cassandra.request("columns", columns=described)["names"]


def test_merged_counters(cassandra: CassandraTypes) -> None:
    pairs = 0
    for values in draws("counters"):
        contexts = [_context(values.rng) for _ in range(VALUES)]
        answer = cassandra.request("counters", contexts=hexes(contexts))
        assert list(map(total, contexts)) == answer["totals"]
        for left, row in zip(contexts, answer["merged"], strict=True):
            assert [merge_contexts(left, right).hex() for right in contexts] == row
            pairs += len(row)
    LOG.info("%d pairs", pairs)


def _context(rng: random.Random) -> bytes:
    """Shards of few ids, clocks and counts, of all kinds, some marked as to be cleared."""
    ids = sorted(rng.sample(range(6), rng.randint(0, 4)))
    shards, header = b"", b""
    for index, shard in enumerate(ids):
        kind = rng.choice(("global", "global", "local", "remote"))
        if kind != "remote":
            header += struct.pack(">h", index if kind == "local" else index - 2**15)
        numbers = [rng.choice((-(2**63), -2, -1, 0, 1, 2, 3, 2**63 - 1)) for _ in range(2)]
        shards += struct.pack(">16sqq", bytes([shard]) * 16, *numbers)
    count = len(header) // 2 * rng.choice((1, 1, -1))
    return struct.pack(">h", count) + header + shards
