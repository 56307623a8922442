"""The comparison can fail: each kind of difference is planted and must be named."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import pytest

from dev.local_stack.clients.change import Change
from dev.local_stack.clients.compare import compare, from_avro, from_driver, has_empty_key, key_of, plain_row
from dev.local_stack.clients.cql import EMPTY, TableColumns
from dev.local_stack.clients.history import History

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dev.local_stack.clients.cql import CqlClient


def kind(name: str, *parts: Any, cassname: str = "") -> Any:  # noqa: ANN401
    """Return an object like the driver's type classes: `cassname` is the class, a user type's `name` its own."""
    return SimpleNamespace(typename=name, cassname=cassname, subtypes=parts, fieldnames=None)


INT, TEXT = kind("int"), kind("text")
ROWS: list[dict[str, Any]] = [{"id": 1, "a": "x", "tags": {"p", "q"}}, {"id": 2, "a": None, "tags": None}]


class FakeClient:
    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    def columns(self, _keyspace: str, _table: str) -> TableColumns:
        return TableColumns(("id",), {"id": INT, "a": TEXT, "tags": kind("set", TEXT)})

    def rows(self, _keyspace: str, _table: str) -> list[dict[str, Any]]:
        return self._rows


def differences(afters: list[dict[str, Any]], rows: list[dict[str, Any]], empty: Sequence[str] = ()) -> list[str]:
    """`empty` is in the last one's source."""
    history = History()
    for after in afters:
        source = {"row_sequence": 1, "ts_us": 0, "empty": empty if after is afters[-1] else []}
        value = {"op": "c", "before": None, "after": after, "source": source}
        history.add([Change("ks", "t", 0, 0, {"id": after["id"]}, value, 0.0)])
    result = compare(cast("CqlClient", FakeClient(rows)), history, [("ks", "t")])
    assert result.tables == {"ks.t": len(rows)}
    return result.differences


def afters() -> list[dict[str, Any]]:
    return [{"id": 1, "a": "x", "tags": ["p", "q"]}, {"id": 2, "a": None, "tags": None}]


def test_equal_tables_have_no_difference() -> None:
    assert differences(afters(), ROWS) == []


def test_a_key_that_only_one_side_has_is_named() -> None:
    assert differences(afters()[:1], ROWS) == ["ks.t (2,): in Cassandra, but not in Kafka"]
    assert differences(afters(), ROWS[1:]) == ["ks.t (1,): in Kafka, but not in Cassandra"]


@pytest.mark.parametrize(("column", "value"), [("a", "y"), ("a", None), ("tags", ["p"]), ("tags", None), ("other", 1)])
def test_a_column_that_differs_is_named(column: str, value: object) -> None:
    [line] = differences([afters()[0] | {column: value}, afters()[1]], ROWS)
    assert f"{column}: Cassandra" in line


def test_an_empty_value_is_not_null() -> None:
    """Whole or deep inside a column: the envelope names the column in `source.empty`."""
    rows = [ROWS[0], ROWS[1] | {"a": EMPTY}]
    assert "a: Cassandra" in differences(afters(), rows)[0]
    assert differences(afters(), rows, empty=["before.tags", "after.a"]) == []
    assert "a: Cassandra" in differences(afters(), ROWS, empty=["after.a"])[0]
    assert differences(afters(), [ROWS[0], ROWS[1] | {"tags": [(EMPTY,)]}], empty=["after.tags"]) == []


def test_a_clustering_has_one_spelling_and_its_value_does_not_count() -> None:
    kinds = {"id": kind("decimal")}
    columns = TableColumns(("id",), kinds, partition_columns=0)
    one, other = {"id": Decimal("1.00")}, {"id": {"value": b"\x01", "scale": 0}}
    assert key_of(columns, one, from_driver) == key_of(columns, other, from_avro)
    assert key_of(columns, one, from_driver) != key_of(columns, {"id": Decimal("1.01")}, from_driver)
    assert plain_row(columns, one, from_driver) == {}


VECTOR = SimpleNamespace(
    typename="org.apache.cassandra.db.marshal.VectorType", cassname="VectorType", subtypes=(), subtype=INT
)
UDT = kind("pair", INT, TEXT, cassname="UserType")
JSON_UDT = SimpleNamespace(**{**vars(UDT), "fieldnames": ("n", "t")})
MOMENT = dt.datetime(2026, 1, 2, 3, 4, 5, 678000, dt.UTC)
IDENTIFIER = UUID("12345678-1234-5678-1234-567812345678")


@pytest.mark.parametrize(
    ("of", "driver", "avro", "other"),
    [
        (kind("timestamp"), MOMENT.replace(tzinfo=None), MOMENT, MOMENT + dt.timedelta(milliseconds=1)),
        (kind("date"), SimpleNamespace(days_from_epoch=1), dt.date(1970, 1, 2), dt.date(1970, 1, 3)),
        (kind("time"), SimpleNamespace(nanosecond_time=5), 5, 6),
        (
            kind("duration"),
            SimpleNamespace(months=1, days=2, nanoseconds=3),
            {"months": 1, "days": 2, "nanos": 3},
            {"months": 1, "days": 2, "nanos": 4},
        ),
        (kind("decimal"), Decimal("1.50"), {"value": b"\x00\x96", "scale": 2}, {"value": b"\x0f", "scale": 1}),
        (kind("decimal"), Decimal("1.50"), "1.50", "1.5"),
        (kind("decimal"), Decimal("-1E+3"), "-1E+3", "-1000"),
        (kind("varint"), -129, "-129", "129"),
        (kind("duration"), SimpleNamespace(months=1, days=2, nanoseconds=3), "P1M2DT0.000000003S", "P1M2D"),
        (
            kind("duration"),
            SimpleNamespace(months=-1, days=0, nanoseconds=-3_661_500_000_000),
            "P-1MT-1H-1M-1.5S",
            "P-1MT1H1M1.5S",
        ),
        (kind("map", TEXT, INT), {"a": 1}, '{"a":1}', '{"a":2}'),
        (kind("map", INT, kind("blob")), {1: b"a"}, '{"1":"0x61"}', '{"2":"0x61"}'),
        (kind("map", kind("double"), INT), {float("nan"): 1}, '{"NaN":1}', '{"1.5":1}'),
        (JSON_UDT, (1, None), '{"n":1}', '{"n":1,"t":""}'),
        (kind("list", kind("date")), [SimpleNamespace(days_from_epoch=1)], "[1]", "[2]"),
        (kind("tuple", INT, TEXT, cassname="TupleType"), (1, None), "[1,null]", '[1,"a"]'),
        (kind("inet"), "::1", "0:0:0:0:0:0:0:1", "::2"),
        (kind("uuid"), IDENTIFIER, IDENTIFIER, UUID(int=1)),
        (kind("varint"), -129, b"\xff\x7f", b"\x7f"),
        (VECTOR, [1, 2], [1, 2], [2, 1]),
        (kind("double"), float("nan"), float("nan"), 0.0),
        (kind("float"), 0.0, 0.0, -0.0),
        (kind("list", INT), [1, 2], [1, 2], [2, 1]),
        (kind("map", TEXT, INT), {"a": 1}, {"a": 1}, {"a": 2}),
        (kind("map", INT, TEXT), {1: "a"}, [{"key": 1, "value": "a"}], [{"key": 2, "value": "a"}]),
        (UDT, (1, None), {"n": 1, "t": None}, {"n": None, "t": None}),
        (kind("tuple", INT, TEXT, cassname="TupleType"), (1, "a"), {"f0": 1, "f1": "a"}, {"f0": 1, "f1": "b"}),
    ],
    ids=lambda value: getattr(value, "typename", None),
)
def test_both_sides_of_a_type_meet_in_one_form(of: Any, driver: object, avro: object, other: object) -> None:  # noqa: ANN401
    assert from_driver(of, driver) == from_avro(of, avro)
    assert from_driver(of, driver) != from_avro(of, other)


def test_partition_keys_are_compared_by_their_spelling() -> None:
    """Cassandra compares them by their bytes: 1.0 and 1.00 are two partitions."""
    columns = TableColumns(("id", "c"), {"id": kind("decimal"), "c": kind("decimal")}, partition_columns=1)

    def key(partition: str, clustering: str) -> object:
        return key_of(columns, {"id": Decimal(partition), "c": Decimal(clustering)}, from_driver)

    assert key("1.0", "1") != key("1.00", "1")
    assert key("1.0", "1") == key("1.0", "1.00")


def test_a_clustering_has_one_spelling_at_whatever_depth() -> None:
    decimal = kind("decimal")
    for of, one, other in (
        (kind("list", decimal), [Decimal("1.0")], [Decimal(1)]),
        (kind("set", decimal), {Decimal("1.0")}, {Decimal(1)}),
        (kind("map", TEXT, decimal), {"a": Decimal("1.0")}, {"a": Decimal(1)}),
        (kind("tuple", INT, decimal, cassname="TupleType"), (1, Decimal("1.0")), (1, Decimal("1.000"))),
        (kind("pair", decimal, TEXT, cassname="UserType"), (Decimal("0.0"), None), (Decimal(0), None)),
    ):
        columns = TableColumns(("c",), {"c": of}, partition_columns=0)
        assert key_of(columns, {"c": one}, from_driver) == key_of(columns, {"c": other}, from_driver), of.typename


def test_a_row_whose_key_avro_cannot_say_must_not_be_in_kafka() -> None:
    rows: list[dict[str, Any]] = [*ROWS, {"id": EMPTY, "a": "x", "tags": None}]
    columns = FakeClient(rows).columns("ks", "t")
    assert [has_empty_key(columns, row) for row in rows] == [False, False, True]
    history = History()
    result = compare(cast("CqlClient", FakeClient(rows[2:])), history, [("ks", "t")])
    assert (result.rows, result.differences) == (0, [])
