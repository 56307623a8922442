"""Migration plans as text: every statement is one of the warehouse's dialect. PostgreSQL's are run elsewhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from schematizer.avro_schemas.parsing import parse
from schematizer.catalogue.rules import Rules
from schematizer.model.database import opened
from schematizer.plans import planners
from schematizer.plans.columns import PlanError, columns_of, require_same_key
from schematizer.plans.planners import all_planners
from schematizer.registration.register import Description
from schematizer.service import Catalogue

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from schematizer.plans.columns import PlanColumn

DIALECTS = {"redshift": "redshift", "postgresql": "postgres", "snowflake": "snowflake"}
PLANNERS = all_planners()
TYPES: list[Any] = [
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "bytes",
    "string",
    {"type": "string", "logicalType": "uuid"},
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3},
    {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 3},
    {"type": "enum", "name": "E", "symbols": ["a"]},
    {"type": "fixed", "name": "F", "size": 4},
    {"type": "array", "items": "int"},
    {"type": "map", "values": "int"},
    {"type": "record", "name": "R", "fields": []},
    {"type": "long", "logicalType": "somebody's own"},
]
DOCS = ["it's", "a\\b", 'a "quoted" one']
NAMES = ["a", "b", "Order", "select", "x_1"]


@st.composite
def columns(draw: st.DrawFn) -> str:
    fields: list[Any] = [{"name": "id", "type": "int", "doc": draw(st.sampled_from(DOCS))}]
    named: set[str] = set()
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
        type_ = draw(
            st.sampled_from([candidate for candidate in TYPES if named.isdisjoint(json.dumps(candidate).split('"'))])
        )
        named |= {"E", "F", "R"} & set(json.dumps(type_).split('"'))
        is_nullable = draw(st.booleans())
        field = {"name": name, "type": ["null", type_] if is_nullable else type_}
        aliases = draw(st.lists(st.sampled_from(NAMES), max_size=2, unique=True))
        fields.append(field | ({"aliases": aliases} if aliases else {}))
    return parse(json.dumps({"type": "record", "name": "users", "fields": fields})).canonical


def statements(planner: str, plan: list[str]) -> list[Any]:
    """Each parsed as what it is: sqlglot takes what it does not know as a Command."""
    found = [sqlglot.parse_one(statement, read=DIALECTS[planner]) for statement in plan]
    assert not [statement.sql() for statement in found if isinstance(statement, exp.Command)]
    return found


@pytest.mark.parametrize("planner", DIALECTS)
@given(columns(), columns())
def test_every_plan_is_of_its_dialect(planner: str, old: str, new: str) -> None:
    before, after = columns_of(old), columns_of(new)
    [create, *_] = statements(planner, PLANNERS[planner].create_table("shop.users", after, ["id"]))
    assert isinstance(create, exp.Create)
    assert [expression.name for expression in create.this.expressions if isinstance(expression, exp.ColumnDef)] == [
        column.name for column in after
    ]
    statements(planner, PLANNERS[planner].steps("shop.users", before, after))
    assert PLANNERS[planner].steps("shop.users", after, after) == []


@pytest.mark.parametrize("planner", DIALECTS)
@given(columns(), columns())
def test_steps_lead_to_the_columns_of_the_new_schema(planner: str, old: str, new: str) -> None:
    """Applied to a list of names: what is dropped, added and renamed."""
    before, after = columns_of(old), columns_of(new)
    names = [column.name for column in before]
    for step in statements(planner, PLANNERS[planner].steps("users", before, after)):
        if not isinstance(step, exp.Alter):
            continue
        for action in step.args["actions"]:
            match action:
                case exp.ColumnDef():
                    assert action.name not in names
                    names.append(action.name)
                case exp.Drop():
                    [dropped] = action.find_all(exp.Identifier)
                    names.remove(dropped.name)
                case exp.RenameColumn():
                    names[names.index(action.this.name)] = action.args["to"].name
                case exp.AlterColumn():
                    assert action.this.name in names
                case _:
                    pytest.fail(repr(action))
    assert sorted(names) == sorted(column.name for column in after)


def record(*fields: object) -> list[Any]:
    return columns_of(parse(json.dumps({"type": "record", "name": "r", "fields": list(fields)})).canonical)


def test_an_alias_renames() -> None:
    old, new = record({"name": "a", "type": "int"}), record({"name": "b", "aliases": ["a"], "type": "int"})
    assert PLANNERS["redshift"].steps("t", old, new) == ['ALTER TABLE "t" RENAME COLUMN "a" TO "b"']


def test_redshift_fills_a_new_column_where_a_type_changes() -> None:
    old, new = record({"name": "a", "type": "int"}), record({"name": "a", "type": "string"})
    assert PLANNERS["redshift"].steps("t", old, new) == [
        'ALTER TABLE "t" ADD COLUMN "a__new" VARCHAR(65535)',
        'UPDATE "t" SET "a__new" = CAST("a" AS VARCHAR(65535))',
        'ALTER TABLE "t" DROP COLUMN "a"',
        'ALTER TABLE "t" RENAME COLUMN "a__new" TO "a"',
    ]


def test_what_has_no_plan() -> None:
    with pytest.raises(PlanError, match="no record"):
        columns_of('"string"')
    with pytest.raises(PlanError, match="names x"):
        PLANNERS["postgresql"].create_table("t", record(), ["x"])
    with pytest.raises(PlanError, match="not the name"):
        PLANNERS["postgresql"].create_table("a..b", record(), [])
    with pytest.raises(PlanError, match="make a new table"):
        require_same_key(["a"], ["a", "b"])


@pytest.mark.parametrize("planner", DIALECTS)
@pytest.mark.parametrize("doc", ["'; DROP TABLE t; --", "\\'; DROP TABLE t; --", "\\", "'\\"])
def test_names_and_docs_cannot_leave_their_quotes(planner: str, doc: str) -> None:
    """Redshift and Snowflake read a backslash in a text as the beginning of an escape."""
    column = record({"name": "a", "type": "int", "doc": doc})
    plan = PLANNERS[planner].create_table('t"; DROP TABLE x; --', column, [])
    create, comment = sqlglot.parse(";".join(plan), read=DIALECTS[planner])
    assert isinstance(create, exp.Create)
    assert isinstance(comment, exp.Comment)
    assert comment.expression.name == doc


@pytest.mark.parametrize(
    "wrong",
    [
        {"precision": 5, "scale": "0); DROP TABLE t; --"},
        {"precision": "5); DROP TABLE t; --"},
        {"precision": 5, "scale": 6},
        {"precision": True},
        {"scale": 1},
        {"logicalType": ["decimal"]},
    ],
)
def test_a_decimal_that_is_none_is_bytes(wrong: dict[str, object]) -> None:
    """As Avro says. A schema's properties may be any JSON."""
    [plan] = PLANNERS["snowflake"].create_table(
        "t", record({"name": "a", "type": {"type": "bytes", "logicalType": "decimal", **wrong}}), []
    )
    assert plan == 'CREATE TABLE "t" (\n    "a" BINARY NOT NULL\n)'


class Duck:
    """A warehouse of a package's own."""

    name = "duckdb"

    def load(self) -> Duck:
        return self

    def create_table(self, table: str, columns: Sequence[PlanColumn], key: Sequence[str]) -> list[str]:
        return [f"CREATE TABLE {table} ({', '.join(each.name for each in columns)}) -- key: {', '.join(key)}"]

    def steps(self, table: str, old: Sequence[PlanColumn], new: Sequence[PlanColumn]) -> list[str]:
        return [f"-- {table}: {len(old)} to {len(new)} columns"]


def test_a_package_adds_a_warehouse(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def entry_points(*, group: str) -> list[Duck]:
        return [Duck()] if group == "cassandra_schematizer.planners" else []

    monkeypatch.setattr(planners, "entry_points", entry_points)
    with opened(f"sqlite:///{tmp_path / 'registry.db'}") as database:
        catalogue = Catalogue(database, Rules())
        assert catalogue.plans.planners() == ["duckdb", "postgresql", "redshift", "snowflake"]
        first, second = (registered(catalogue, *names) for names in (("id",), ("id", "more")))
        assert catalogue.plans.make("duckdb", "t", second) == ["CREATE TABLE t (id, more) -- key: id"]
        assert catalogue.plans.make("duckdb", "t", second, first) == ["-- t: 1 to 2 columns"]


def registered(catalogue: Catalogue, *names: str) -> int:
    fields = [{"name": name, "type": "int", "default": 0} for name in names]
    schema = {"type": "record", "name": "users", "primaryKey": ["id"], "fields": fields}
    return catalogue.registering.register(Description("a.b", "avro", json.dumps(schema)), by="test").schema_id
