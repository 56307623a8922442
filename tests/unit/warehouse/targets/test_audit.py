"""The audit of a table in DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.warehouse.audit_checks import check_audit
from tests.support.warehouse.scene import Shop, Warehouse
from warehouse.targets.duckdb import DuckDbConnection

if TYPE_CHECKING:
    from pathlib import Path


def test_planted_differences_are_found_and_repaired(tmp_path: Path) -> None:
    shop = Shop()
    warehouse = Warehouse(shop.topic, lambda: DuckDbConnection(tmp_path / "w.duckdb", 1.0))
    check_audit(shop, warehouse)
    warehouse.close()
