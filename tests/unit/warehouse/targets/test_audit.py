"""The audit of a table in DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.warehouse.audit_checks import check_audit
from tests.support.warehouse.scene import Shop, Warehouse
from warehouse.tables.forms import CURRENT, MARKED, Form
from warehouse.targets.duckdb import DuckDbConnection

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("form", [CURRENT, MARKED], ids=["current", "marked"])
def test_planted_differences_are_found_and_repaired(tmp_path: Path, form: Form) -> None:
    shop = Shop()
    warehouse = Warehouse(shop.topic, lambda: DuckDbConnection(tmp_path / "w.duckdb", 1.0), form)
    check_audit(shop, warehouse)
    warehouse.close()
