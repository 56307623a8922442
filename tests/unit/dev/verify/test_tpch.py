"""The check of TPC-H's joins: no difference on small tables, and a seeded defect is found."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from dev.verify.tpch.check import Check
from dev.verify.tpch.data import SEGMENTS, Tables
from joinery.job.join_processor import JoinProcessor
from joinery.joining.overlay import Overlay

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def tables(random: Random) -> Tables:
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


def differences(folder: Path) -> tuple[int, int]:
    """Of the loaded tables, and after changes."""
    check = Check(folder, tables(Random(1)))
    try:
        check.load()
        loaded = sum(check.differences().values())
        check.change(1, 300)
        assert all(run.rows() for run in check.runs.values())
        return loaded, sum(check.differences().values())
    finally:
        check.close()


def test_no_row_differs(tmp_path: Path) -> None:
    assert differences(tmp_path) == (0, 0)


def test_a_seeded_defect_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are not deleted from the states."""
    defaults = JoinProcessor.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "in_core", False)
    monkeypatch.setattr(Overlay, "delete_row", lambda *_: None)
    loaded, changed = differences(tmp_path)
    assert loaded == 0
    assert changed > 0
