"""The joins of TPC-H's tables, and their SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from joinery.definition import Join

if TYPE_CHECKING:
    from joinery.planning.plan import JoinPlan

SPACE = "tpch"


def _join(name: str, on: list[str], select: list[str], **given: dict[str, Any]) -> Join:
    inputs = {alias: {"namespace": SPACE, **table} for alias, table in given.items()}
    target = {"namespace": SPACE, "source": name}
    return Join.model_validate({"name": name, "input": inputs, "on": on, "select": select, "target": target})


JOINS = (
    _join(
        "orders_of_segments",
        ["o.o_custkey = c.c_custkey"],
        ["o.o_orderkey", "o.o_totalprice", "c.c_name", "c.c_mktsegment"],
        o={"source": "orders", "where": ["o_totalprice > 1000"]},
        c={"source": "customer", "where": ["c_mktsegment in ('BUILDING', 'MACHINERY')"]},
    ),
    _join(  # a chain: it reads the target of the first one
        "lines_of_segments",
        ["l.l_orderkey = j.o_orderkey"],
        ["l.l_linenumber", "l.l_extendedprice", "j.o_custkey", "j.c_name", "j.o_totalprice"],
        l={"source": "lineitem", "where": ["l_shipmode <> 'AIR'"]},
        j={"source": "orders_of_segments"},
    ),
    _join(
        "urgent_orders_of_customers",
        ["c.c_custkey = o.o_custkey"],
        ["c.c_name", "o.o_orderkey", "o.o_orderpriority"],
        c={"source": "customer"},
        o={"source": "orders", "optional": True, "where": ["o_orderpriority in ('1-URGENT', '2-HIGH')"]},
    ),
    _join(
        "supplies_of_lines",
        ["p.p_partkey = s.ps_partkey", "p.p_partkey = l.l_partkey"],
        ["p.p_brand", "s.ps_suppkey", "s.ps_availqty", "l.l_orderkey", "l.l_linenumber", "l.l_extendedprice"],
        p={"source": "part", "where": ["p_size >= 10"]},
        s={"source": "partsupp"},
        l={"source": "lineitem", "optional": True, "where": ["l_extendedprice >= 40000"]},
    ),
)


def sql_of(plan: JoinPlan) -> str:
    """The SELECT of a join, with the fields of joined rows in their order."""
    inputs = plan.join.input
    columns = [
        f"coalesce({', '.join(f'{of}.{name}' for of, name in columns.items())})" for columns in plan.join.columns()
    ]
    columns += [f"{given.name}.{target.column}" for given in plan.inputs for target in given.ident]
    columns += [f"{given.name}.{target.column}" for given in plan.inputs for target in given.columns]
    tables = [
        f"(SELECT * FROM {given.source} WHERE {' AND '.join(given.where) or 'true'}) {name}"
        for name, given in inputs.items()
    ]
    first, *others = inputs
    made = tables[0]
    for name, table in zip(others, tables[1:], strict=True):
        on = " AND ".join(f"{first}.{columns[first]} = {name}.{columns[name]}" for columns in plan.join.columns())
        made += f" {'LEFT JOIN' if inputs[name].optional else 'JOIN'} {table} ON {on}"
    return f"SELECT {', '.join(columns)} FROM {made}"
