"""The order and identity of our keys against every version's comparators; `make verify WHAT=oracle-types` is longer."""

from __future__ import annotations

import os

import pytest

from dev.local_stack.servers.cassandra_versions import VERSIONS
from dev.verify.oracle.order_check import compare_orders, compared

ROUNDS = int(os.environ.get("CDC_ORACLE_ROUNDS", "1")) * 8
SEED = int(os.environ.get("CDC_ORACLE_SEED", "0"))
LINES = [line if line == "5.0" else pytest.param(line, marks=pytest.mark.exhaustive) for line in VERSIONS]


@pytest.mark.servers
@pytest.mark.parametrize("version", LINES)
def test_orders(version: str) -> None:
    """Values, clusterings with bounds (reversed ones, empty ones, nulls) and cell paths."""
    results = list(compare_orders(version, ROUNDS, SEED))
    assert [difference for one in results for difference in one.differences] == []
    assert all(one.pairs for one in results)


def test_another_order_is_noticed() -> None:
    assert compared("int", [b"a", b"b"], ["=<", ">="]).differences == []
    assert len(compared("int", [b"b", b"a"], ["=<", ">="]).differences) == 2
    assert len(compared("int", [b"a", b"a"], ["=<", ">="]).differences) == 2
    assert compared("int", [b"b", b"a"], ["=?", "?="]).pairs == 2
