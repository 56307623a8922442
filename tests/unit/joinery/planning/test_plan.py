"""The plan of a join: its fields and their types, its kind, and what does not fit."""

from __future__ import annotations

from typing import Any

import fastavro
import pytest

from joinery.planning.errors import PlanError
from joinery.planning.input_schema import InputSchema
from joinery.planning.joined_schema import key_schema, value_schema
from joinery.planning.plan import plan_join
from tests.support.joinery import tables
from tests.support.joinery.tables import join_of, plan_of, schema_of

ORDERS = {"namespace": "shop", "source": "orders"}
USERS = {"namespace": "shop", "source": "users"}


def types(fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {field["name"]: field["type"] for field in fields}


def test_an_inner_join_has_the_join_key_once() -> None:
    plan = plan_of()
    assert types(plan.key_fields) == {"user_id": "long", "order_id": "int"}
    assert types(plan.row_fields) == {
        "user_id": "long",
        "order_id": "int",
        "total": ["null", "double"],
        "user_name": ["null", "string"],
    }
    assert plan.kind == "one-to-many"
    assert [given.is_unique for given in plan.inputs] == [False, True]


def test_a_left_join_keeps_rows_without_a_join_key() -> None:
    plan = plan_of(input={"o": ORDERS, "u": {**USERS, "optional": True}})
    assert types(plan.key_fields) == {"user_id": ["null", "long"], "order_id": "int"}
    assert plan.rule.keeps_alone(0)
    assert not plan.rule.keeps_alone(1)


def test_a_full_join_may_lack_each_input() -> None:
    optional = {"o": {**ORDERS, "optional": True}, "u": {**USERS, "optional": True}}
    plan = plan_of(input=optional)
    assert types(plan.key_fields) == {"user_id": ["null", "long"], "order_id": ["null", "int"]}


def test_kinds() -> None:
    other = {"namespace": "shop", "source": "users"}
    assert plan_of(input={"a": USERS, "b": other}, on=["a.id = b.id"], select=["a.name"]).kind == "one-to-one"
    orders = {"a": ORDERS, "b": ORDERS}
    select = ["a.id as a_id", "b.id as b_id"]
    assert plan_of(input=orders, on=["a.user_id = b.user_id"], select=select).kind == "many-to-many"


def test_all_columns_by_default() -> None:
    plan = plan_of(select=["o.*", "o.id as order_id", "u.*"])
    assert list(types(plan.row_fields)) == ["user_id", "order_id", "total", "note", "name", "city"]


def test_personal_columns_stay_personal() -> None:
    schemas = {"o": schema_of("orders"), "u": schema_of("users", frozenset({"name", "id"}))}
    assert plan_join(join_of(), schemas).personal == {"user_name", "user_id"}


def test_fastavro_reads_the_schemas() -> None:
    plan = plan_of()
    fastavro.parse_schema(value_schema(plan))
    fastavro.parse_schema(key_schema(plan))
    assert [schema(plan)["name"] for schema in (key_schema, value_schema)] == ["Key", "Envelope"]
    assert value_schema(plan)["namespace"] == key_schema(plan)["namespace"] == "shop.orders_of_users"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"on": ["o.user = u.id"]},
            "o.user does not exist; the columns of cdc.shop.orders are id, user_id, total, note",
        ),
        ({"on": ["o.note = u.id"]}, "o.note (string) and u.id (long) are never equal"),
        ({"on": ["o.total = u.id"]}, "o.total is double: a join key is int, long, string, bytes, boolean"),
        ({"select": ["o.tota", "u.name"]}, "o.tota does not exist"),
        (
            {"select": ["o.note", "u.name as note"]},
            "o.note and u.name are both 'note' in joined rows: give one of them another name in select, as in \"u.name",
        ),
        (
            {"on": ["o.note = u.name"], "select": ["o.total"]},
            "o.id and u.id are both 'id' in joined rows: give one of them another name in select, as in \"u.id",
        ),
        (
            {"select": ["o.user_id as a", "u.id as b"]},
            "o.user_id = u.id is one column, and select gives it several names",
        ),
    ],
)
def test_what_does_not_fit(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan_of(**changes)
    assert reason in caught.value.reason


def test_topics_that_are_not_joined() -> None:
    value = tables.value_schema("orders", tables.ORDERS)
    key = tables.key_schema("orders", {"id": "int"})
    plain = tables.key_schema("orders", tables.ORDERS)
    for schemas, reason in (
        ((None, value), "t has no schema of keys"),
        (("string", value), "the keys of t are no records"),
        ((key, plain), "the values of t are no change envelopes"),
        ((tables.key_schema("orders", {"nr": "int"}), value), "the key of t has nr, which its rows do not have"),
    ):
        with pytest.raises(PlanError) as caught:
            InputSchema.of("t", *schemas)
        assert reason in caught.value.reason


def test_a_date_meets_no_int() -> None:
    date = {"type": "int", "logicalType": "date"}
    columns = {"id": date}
    schema = InputSchema.of("t", tables.key_schema("t", columns), tables.value_schema("t", columns))
    with pytest.raises(PlanError) as caught:
        plan_join(join_of(), {"o": schema_of("orders"), "u": schema})
    assert "u.name does not exist" in caught.value.reason
    with pytest.raises(PlanError) as caught:
        plan_join(join_of(select=["o.total"]), {"o": schema_of("orders"), "u": schema})
    assert caught.value.reason == "o.user_id (int) and u.id (date as int) are never equal"


def test_the_number_of_a_definition_is_that_of_its_columns_types_and_filters() -> None:
    """Documentation, limits and a wider integer leave it as it is."""
    number = plan_of().rule.definition
    wider = {**tables.ORDERS, "user_id": ["null", "long"]}
    documented = tables.value_schema("orders", wider)
    documented["doc"] = "Orders."
    key = tables.key_schema("orders", {"id": "int"})
    orders = InputSchema.of("cdc.shop.orders", key, documented)
    same = plan_join(join_of(most_rows=5), {"o": orders, "u": schema_of("users")})
    assert same.rule.definition == number != 0
    optional = {"o": ORDERS, "u": {**USERS, "optional": True}}
    others = [
        plan_of(select=["o.id as order_id", "o.total", "u.name as user_name", "o.note"]),
        plan_of(select=["o.id as order_id", "o.total", "u.name as called"]),
        plan_of(input={"o": {**ORDERS, "where": ["total > 1"]}, "u": USERS}),
        plan_of(input={"o": {**ORDERS, "where": ["total > 2"]}, "u": USERS}),
        plan_of(input=optional),
    ]
    assert len({number, *(plan.rule.definition for plan in others)}) == 6


def test_a_star_keeps_the_columns_that_joined_rows_have() -> None:
    """A column that an input gets later is taken by a rebuild."""
    join = join_of(select=["o.id as order_id", "o.*", "u.name as user_name"])
    schemas = {"o": schema_of("orders"), "u": schema_of("users")}
    kept = ["user_id", "order_id", "total", "user_name"]
    assert list(types(plan_join(join, schemas, kept).row_fields)) == kept
    assert list(types(plan_join(join, schemas).row_fields)) == ["user_id", "order_id", "total", "note", "user_name"]
