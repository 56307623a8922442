"""A few rows of TPC-H's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dev.verify.tpch.data import SEGMENTS, Tables

if TYPE_CHECKING:
    from random import Random


def small_tables(random: Random) -> Tables:
    """A few rows of each table, with values on both sides of the filters."""
    rows: dict[str, list[dict[str, Any]]] = {
        "customer": [
            {"c_custkey": number, "c_name": f"c{number}", "c_mktsegment": random.choice(SEGMENTS), "c_acctbal": 1.0}
            for number in range(1, 9)
        ],
        "orders": [
            {
                "o_orderkey": number,
                "o_custkey": random.randrange(1, 10),
                "o_orderpriority": random.choice(("1-URGENT", "5-LOW")),
                "o_totalprice": random.choice((500.0, 2000.0)),
            }
            for number in range(1, 30)
        ],
        "part": [{"p_partkey": number, "p_brand": f"b{number}", "p_size": 5 * number} for number in range(1, 6)],
        "partsupp": [
            {"ps_partkey": part, "ps_suppkey": supplier, "ps_availqty": 1, "ps_supplycost": 1.0}
            for part in range(1, 6)
            for supplier in range(3)
        ],
    }
    rows["lineitem"] = [
        {
            "l_orderkey": number % 30,
            "l_linenumber": number // 30,
            "l_partkey": random.randrange(1, 7),
            "l_suppkey": 1,
            "l_shipmode": random.choice(("AIR", "RAIL")),
            "l_extendedprice": random.choice((100.0, 50_000.0)),
        }
        for number in range(90)
    ]
    return Tables(rows)
