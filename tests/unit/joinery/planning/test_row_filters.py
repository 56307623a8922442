"""Filters pass the rows that DuckDB selects with the same text, in the Python code and in the core."""

from __future__ import annotations

import math
import re
from array import array
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cdc_native
from cdc_common.messages import wire
from joinery.definition import Join
from joinery.filters import parse_filter
from joinery.job.native_routes import native_routes
from joinery.planning.errors import PlanError
from joinery.planning.input_schema import InputSchema
from joinery.planning.plan import plan_join
from joinery.planning.row_filters import plan_filters
from joinery.routing.rows import RowCutter
from tests.support.joinery import tables
from tests.support.joinery.tables import encode, envelope

if TYPE_CHECKING:
    from collections.abc import Sequence

INT = ["null", "int"]
TEXT_VALUES = ["", "a", "a ", "ab", "ä", "b", "it's", "\U0001f600", "\uffff"]
COLUMNS: dict[str, tuple[Any, str, st.SearchStrategy[Any]]] = {
    "i": (INT, "INTEGER", st.integers(-3, 3) | st.integers(-(2**31), 2**31 - 1)),
    "l": (["long", "null"], "BIGINT", st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)),
    "f": (["null", "float"], "FLOAT", st.sampled_from([-2.5, -0.0, 0.0, 0.5, 1.0, math.inf, math.nan])),
    "d": (["null", "double"], "DOUBLE", st.sampled_from([-2.5, -0.0, 0.0, 0.1, 1.0, -math.inf, math.nan])),
    "s": (["null", "string"], "VARCHAR", st.sampled_from(TEXT_VALUES)),
    "b": (["null", "boolean"], "BOOLEAN", st.booleans()),
    "y": (["null", "bytes"], "BLOB", st.binary(max_size=2)),
    "day": (
        ["null", {"type": "int", "logicalType": "date"}],
        "DATE",
        st.dates(date(1969, 12, 30), date(1970, 1, 3)),
    ),
    "ts": (
        ["null", {"type": "long", "logicalType": "timestamp-millis"}],
        "TIMESTAMP",
        st.integers(-2_000, 2_000).map(lambda ms: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)),
    ),
}
NUMBERS = st.sampled_from(["-2.5", "-1", "0", "0.1", "0.5", "1", "1.5", "2", "99999999999999999999", "-1e400"])
TEXTS = st.sampled_from(["''", "'a'", "'ab'", "'it''s'", "'ä'", "'\U0001f600'"])
LITERALS = {
    **dict.fromkeys("il", NUMBERS.filter(lambda text: "e" not in text)),
    **dict.fromkeys("fd", NUMBERS.filter(lambda text: text not in ("0.1", "-1e400"))),
    "s": TEXTS,
    "b": st.sampled_from(["true", "FALSE"]),
    "y": st.sampled_from(["x''", "x'00'", "X'ff'", "x'00FF'"]),
    "day": st.sampled_from(["'1969-12-31'", "'1970-01-01'", "'1970-01-02'"]),
    "ts": st.sampled_from(["'1970-01-01 00:00:00'", "'1970-01-01 00:00:00.001'", "'1969-12-31T23:59:59.5'"]),
}


@st.composite
def conditions(draw: st.DrawFn) -> tuple[str, str]:
    """A filter, and what DuckDB takes for it."""
    column = draw(st.sampled_from(list(COLUMNS)))
    if draw(st.integers(0, 4)) == 0:
        text = f"{column} {draw(st.sampled_from(['is null', 'IS NOT NULL', 'is  not  null']))}"
        return text, text
    literals = draw(st.lists(LITERALS[column], min_size=1, max_size=3))
    operator = draw(st.sampled_from(["=", "!=", "<>", "<", "<=", ">", ">=", "in", "NOT IN"]))
    sql = [f"from_hex('{text[2:-1]}')" if column == "y" else _number(column, text) for text in literals]
    if operator.lower().endswith("in"):
        return f"{column} {operator} ({', '.join(literals)})", f"{column} {operator} ({', '.join(sql)})"
    return f"{column}{operator} {literals[0]}", f"{column} {operator} {sql[0]}"


def _number(column: str, text: str) -> str:
    return f"{text}::DOUBLE" if column in ("f", "d") else f"{text}::DECIMAL(38, 4)" if column in ("i", "l") else text


ROW = st.fixed_dictionaries({column: st.none() | values for column, (_, _, values) in COLUMNS.items()})
SCHEMA = tables.value_schema("things", {"id": "int", **{column: tree for column, (tree, _, _) in COLUMNS.items()}})
INPUT = InputSchema.of("cdc.shop.things", tables.key_schema("things", {"id": "int"}), SCHEMA)


def join_with(filters: Sequence[str]) -> Join:
    things = {"namespace": "shop", "source": "things"}
    given = {"a": {**things, "where": list(filters)}, "b": {**things, "optional": True}}
    target = {"namespace": "shop", "source": "joined"}
    content = {"name": "j", "input": given, "on": ["a.id = b.id"], "select": ["a.i"], "target": target}
    return Join.model_validate(content)


@settings(max_examples=100, deadline=None)
@given(st.lists(conditions(), min_size=1, max_size=2), st.lists(ROW, min_size=1, max_size=8))
def test_filters_pass_what_duckdb_selects(found: list[tuple[str, str]], rows: list[dict[str, Any]]) -> None:
    plan = plan_join(join_with([text for text, _ in found]), {"a": INPUT, "b": INPUT})
    cutter = RowCutter(plan, 0, SCHEMA)
    values = [encode(SCHEMA, envelope(None, {"id": number, **row})) for number, row in enumerate(rows)]
    passed = [number for number, value in enumerate(values) if cutter.change(value, 0, number).after is not None]
    assert passed == selected(rows, [sql for _, sql in found])
    if cdc_native.is_enabled():
        assert passed == by_core(plan, cutter, values)


def by_core(plan: Any, cutter: RowCutter, values: list[bytes]) -> list[int]:  # noqa: ANN401 - a JoinPlan
    from cdc_native.avro.messages import Messages  # noqa: PLC0415 - the core may be missing

    routes = native_routes(plan, 0, SCHEMA, cutter)
    assert routes is not None
    messages = Messages.of([wire.header(1) + value for value in values])
    made = routes.apply(messages, array("q", range(len(values))), 0, 1, None, wire.HEADER_SIZE)
    ids = [encode({"type": "int"}, number) for number in range(len(values))]
    return [ids.index(key) for _, keys, _ in made for key in keys.to_list() if key is not None]


def selected(rows: list[dict[str, Any]], where: list[str]) -> list[int]:
    with duckdb.connect() as database:
        columns = ", ".join(f"{column} {kind}" for column, (_, kind, _) in COLUMNS.items())
        database.execute(f"CREATE TABLE things (id INTEGER, {columns})")
        for number, row in enumerate(rows):
            values = [_naive(row[column]) for column in COLUMNS]
            database.execute(f"INSERT INTO things VALUES (?{', ?' * len(COLUMNS)})", [number, *values])
        found = database.execute(f"SELECT id FROM things WHERE {' AND '.join(where)} ORDER BY id").fetchall()
    return [number for (number,) in found]


def _naive(value: Any) -> Any:  # noqa: ANN401 - of any column
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


@pytest.mark.parametrize(
    "text",
    ["", "i", "i == 1", "i = null", 'i = "a"', "i = a", "i in ()", "i in (1, null)", "a.i = 1", "i = 1 or l = 2"],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not of the form `column >= 10`"):
        parse_filter(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 1", r"names a\.x, and the columns of cdc\.shop\.things are id, i, l"),
        ("i = 'a'", r"does not fit a\.i: write a number"),
        ("s = 1", r"does not fit a\.s: write 'text'"),
        ("y = 'a'", r"does not fit a\.y: write x'00ff'"),
        ("b = 1", r"does not fit a\.b: write true or false"),
        ("day = 3", r"does not fit a\.day: write a date, such as '2026-11-27'"),
        ("day = 'monday'", r"does not fit a\.day: Invalid isoformat string"),
        ("ts = '25:00'", r"does not fit a\.ts: Invalid isoformat string"),
    ],
)
def test_filters_that_do_not_fit(text: str, reason: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan_filters("a", INPUT, [parse_filter(text)])
    assert re.search(reason, caught.value.reason)


def test_types_that_are_not_compared_take_null_tests_only() -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    schema = tables.value_schema("things", {"id": "int", "price": ["null", decimal]})
    found = InputSchema.of("cdc.shop.things", tables.key_schema("things", {"id": "int"}), schema)
    assert plan_filters("a", found, [parse_filter("price is not null")])[0].column == "price"
    with pytest.raises(PlanError) as caught:
        plan_filters("a", found, [parse_filter("price > 1")])
    assert "compares a.price, which is decimal: filters compare numbers" in caught.value.reason
