"""Fixtures of the warehouse's tests: a topic of orders, and a loader of it into DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.warehouse.scene import Shop, Warehouse
from warehouse.targets.duckdb import DuckDbConnection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def warehouse(shop: Shop, tmp_path: Path) -> Iterator[Warehouse]:
    made = Warehouse(shop.topic, lambda: DuckDbConnection(tmp_path / "w.duckdb", 1.0))
    yield made
    made.close()
