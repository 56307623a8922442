"""Rows that are cut out of messages: their groups, and the bytes of joined rows."""

from __future__ import annotations

from typing import Any

import pytest

from joinery.joining.records import Kind
from joinery.planning.plan import plan_join
from joinery.routing.errors import RouteError
from joinery.routing.route import route
from joinery.routing.rows import RowCutter
from tests.support.joinery import tables
from tests.support.joinery.tables import encode, envelope, join_of, plan_of, schema_of

VALUE = tables.value_schema("orders", tables.ORDERS)
ORDER = {"id": 1, "user_id": 7, "total": 2.5, "note": "x"}
LEFT = {
    "o": {"namespace": "shop", "source": "orders"},
    "u": {"namespace": "shop", "source": "users", "optional": True},
}


def change_of(before: Any, after: Any, schema: Any = VALUE, number: int = 0, **changes: Any) -> Any:  # noqa: ANN401
    cutter = RowCutter(plan_of(**changes), number, schema)
    return cutter.change(encode(schema, envelope(before, after, sequence=3)), partition=4, offset=9)


def kinds(before: Any, after: Any, **changes: Any) -> list[Kind]:  # noqa: ANN401
    return [routed.kind for routed in route(change_of(before, after, **changes))]


def test_an_int_meets_a_bigint() -> None:
    order = change_of(None, ORDER)
    user = change_of(None, {"id": 7, "name": "Ada", "city": None}, tables.value_schema("users", tables.USERS), number=1)
    assert order.after.group == user.after.group
    assert order.after.ident == encode("int", 1)
    assert order.after.columns == encode(["null", "double"], 2.5)
    assert user.after.ident == b""
    assert user.after.columns == encode(["null", "string"], "Ada")
    assert (order.origin.partition, order.origin.offset, order.origin.sequence) == (4, 9, 3)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, ORDER, [Kind.PUT]),
        (ORDER, None, [Kind.RETRACT]),
        (ORDER, {**ORDER, "total": 3.0}, [Kind.UPDATE]),
        (ORDER, {**ORDER, "note": "y"}, []),
        (ORDER, {**ORDER, "user_id": 8}, [Kind.RETRACT, Kind.PUT]),
        (ORDER, {**ORDER, "user_id": None}, [Kind.RETRACT]),
        ({**ORDER, "user_id": None}, ORDER, [Kind.PUT]),
        (None, {**ORDER, "user_id": None}, []),
    ],
    ids=["insert", "delete", "update", "not selected", "key move", "to null", "from null", "null"],
)
def test_messages_of_a_change(before: Any, after: Any, expected: list[Kind]) -> None:  # noqa: ANN401 - rows
    assert kinds(before, after) == expected


def test_a_row_without_a_join_key_is_alone_in_a_left_join() -> None:
    lonely, other = ({**ORDER, "id": row_id, "user_id": None} for row_id in (1, 2))
    assert kinds(ORDER, lonely, input=LEFT) == [Kind.RETRACT, Kind.PUT]
    groups = [change_of(None, row, input=LEFT).after.group for row in (lonely, other)]
    assert groups[0].key == groups[1].key
    assert groups[0].alone != groups[1].alone


def test_older_schemas() -> None:
    older = {"id": "int", "user_id": ["int", "null"]}
    change = change_of(None, {"id": 1, "user_id": 7}, tables.value_schema("orders", older))
    assert change.after == change_of(None, {**ORDER, "total": None}).after
    with pytest.raises(RouteError, match="another type for the column total"):
        change_of(None, None, tables.value_schema("orders", {**tables.ORDERS, "total": ["null", "string"]}))


def test_messages_that_do_not_fit() -> None:
    cutter = RowCutter(plan_of(), 0, VALUE)
    good = encode(VALUE, envelope(None, ORDER))
    for bad in (good[:-1], good + b"\x00", b"", b"\x04" + good[1:]):
        with pytest.raises(RouteError, match="it does not have the schema"):
            cutter.change(bad, 0, 0)
    left_out = envelope(None, ORDER)
    left_out["source"]["left_out"] = ["before"]
    with pytest.raises(RouteError, match="its row before the change is left out"):
        cutter.change(encode(VALUE, left_out), 0, 0)


def test_a_key_that_must_be_there() -> None:
    schemas = {"o": schema_of("orders"), "u": schema_of("users")}
    plan = plan_join(join_of(input=LEFT), schemas)
    without = tables.value_schema("orders", {"id": "int"})
    change = RowCutter(plan, 0, without).change(encode(without, envelope(None, {"id": 1})), 0, 0)
    assert change.after is not None
    assert change.after.group.alone
    broken = tables.value_schema("orders", {"user_id": ["null", "int"]})
    with pytest.raises(RouteError, match="its column id is null or missing"):
        RowCutter(plan, 0, broken).change(encode(broken, envelope(None, {"user_id": 1})), 0, 0)
