"""TPC-H's tables, by PyPI's tpchgen-cli, and changes of them: new and deleted orders, key moves, other values."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb

from cdc_common.errors.codes import CdcError, Code
from dev.verify.tpch.judges import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from random import Random

COLUMNS: dict[str, dict[str, str]] = {
    "customer": {"c_custkey": "long", "c_name": "string", "c_mktsegment": "string", "c_acctbal": "double"},
    "orders": {"o_orderkey": "long", "o_custkey": "long", "o_orderpriority": "string", "o_totalprice": "double"},
    "lineitem": {
        "l_orderkey": "long",
        "l_linenumber": "long",
        "l_partkey": "long",
        "l_suppkey": "long",
        "l_shipmode": "string",
        "l_extendedprice": "double",
    },
    "part": {"p_partkey": "long", "p_brand": "string", "p_size": "long"},
    "partsupp": {"ps_partkey": "long", "ps_suppkey": "long", "ps_availqty": "long", "ps_supplycost": "double"},
}
KEYS = {
    "customer": ("c_custkey",),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
}
SEGMENTS = ("BUILDING", "MACHINERY", "AUTOMOBILE")
PROGRAM = "tpchgen-cli"


class Change(NamedTuple):
    """A change of a row."""

    # The table.
    table: str
    # The row before it; None if it is new.
    before: dict[str, Any] | None
    # The row after it; None if it is deleted.
    after: dict[str, Any] | None


class Tables:
    """The rows of the tables by their primary keys. They change."""

    def __init__(self, rows: Mapping[str, Iterable[dict[str, Any]]]) -> None:
        self.rows = {table: {self.key(table, row): row for row in found} for table, found in rows.items()}

    def key(self, table: str, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in KEYS[table])

    def all(self) -> Iterator[Change]:
        """Each row as a new one."""
        for table, rows in self.rows.items():
            for row in rows.values():
                yield Change(table, None, row)

    def changes(self, random: Random, count: int) -> Iterator[Change]:
        """Refreshes: orders with their lines come and go, rows get other keys of other tables, and other values."""
        orders, lines = self.rows["orders"], self.rows["lineitem"]
        customers, parts = [*self.rows["customer"], (0,)], [*self.rows["part"]]  # no customer has the key 0
        known, known_lines = list(orders), list(lines)
        for number in range(count):
            order, line = orders.get(random.choice(known)), lines.get(random.choice(known_lines))
            if order is None or line is None:
                continue
            match random.randrange(7):
                case 0:
                    yield from self._new_order(order, line, known[-1][0] + 1 + number, random.randrange(1, 5))
                case 1:
                    yield from self._delete_order(order["o_orderkey"])
                case 2:
                    yield self._put("orders", {**order, "o_custkey": random.choice(customers)[0]})
                case 3:
                    yield self._put("lineitem", {**line, "l_partkey": random.choice(parts)[0]})
                case 4:
                    yield self._put("orders", {**order, "o_totalprice": float(number)})
                case 5:
                    customer = self.rows["customer"][random.choice(customers[:-1])]
                    yield self._put("customer", {**customer, "c_mktsegment": random.choice(SEGMENTS)})
                case _:
                    supply = self.rows["partsupp"][random.choice([*self.rows["partsupp"]][:100])]
                    yield self._put("partsupp", {**supply, "ps_availqty": number})

    def _new_order(self, order: dict[str, Any], line: dict[str, Any], key: int, lines: int) -> Iterator[Change]:
        yield self._put("orders", {**order, "o_orderkey": key})
        for number in range(lines):
            yield self._put("lineitem", {**line, "l_orderkey": key, "l_linenumber": number})

    def _delete_order(self, key: int) -> Iterator[Change]:
        """An order with its lines, which have up to seven numbers."""
        for number in range(8):
            line = self.rows["lineitem"].pop((key, number), None)
            if line is not None:
                yield Change("lineitem", line, None)
        yield Change("orders", self.rows["orders"].pop((key,)), None)

    def _put(self, table: str, row: dict[str, Any]) -> Change:
        key = self.key(table, row)
        before = self.rows[table].get(key)
        self.rows[table][key] = row
        return Change(table, before, row)


def generate(folder: Path, scale: float) -> Tables:
    """The tables of a scale factor. CdcError CONFIG_INVALID if the generator is not installed."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise CdcError(Code.CONFIG_INVALID, f"{PROGRAM} is not on the PATH.", f"Install it: pip install {PROGRAM}")
    made = [program, "parquet", "-s", str(scale), "--output-dir", str(folder), "--tables", ",".join(COLUMNS)]
    subprocess.run(made, check=True, capture_output=True)
    rows = {}
    for table, columns in COLUMNS.items():
        casts = ", ".join(f"CAST({name} AS {KINDS[kind]})" for name, kind in columns.items())
        found = duckdb.execute(f"SELECT {casts} FROM '{folder}/{table}.parquet'").fetchall()
        rows[table] = [dict(zip(columns, row, strict=True)) for row in found]
    return Tables(rows)
