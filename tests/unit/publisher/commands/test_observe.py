"""`observe` prints totals, and the rate since the last report."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

from publisher.commands.observe import Observer
from publisher.log.space import SpaceWatch


def test_totals_and_rates_are_told_apart() -> None:
    nothing = cast("Any", None)
    observer = Observer(nothing, nothing, nothing)
    space = SpaceWatch(64 << 20, 1 << 20).update(0.0, {1: 1 << 20})
    observer._rows = Counter({"shop.orders": 1000})
    first = observer.report(space, 10.0)
    assert "1,000 rows" in first
    assert "rows/s" not in first, "they were written before"
    observer._rows = Counter({"shop.orders": 1500, "shop.new": 20})
    second = observer.report(space, 20.0)
    assert "1,500 rows" in second
    assert "50.0 rows/s" in second
    assert "2.0 rows/s" in second
