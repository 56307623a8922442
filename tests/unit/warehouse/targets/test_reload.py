"""A table in DuckDB that is loaded again beside itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.warehouse.load_checks import check_equal
from tests.support.warehouse.reload_checks import check_reload
from tests.support.warehouse.scene import Shop, Warehouse
from warehouse.tables.forms import CURRENT, MARKED, Form
from warehouse.targets.duckdb import DuckDbConnection
from warehouse.targets.reload import beside, swap

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("form", [CURRENT, MARKED], ids=["current", "marked"])
def test_a_table_is_swapped(tmp_path: Path, form: Form) -> None:
    shop = Shop()
    warehouse = Warehouse(shop.topic, lambda: DuckDbConnection(tmp_path / "w.duckdb", 1.0), form)
    check_reload(shop, warehouse)
    warehouse.close()


def test_a_topic_that_was_created_again(tmp_path: Path) -> None:
    """Its offsets begin at 0 again: they are not compared with those of the topic before it."""
    shop, again = Shop(), Shop()
    again.topic.shape = again.topic.shape._replace(topic_id="another")
    for key in range(5):
        shop.put(key, 10, name="Ada")
    again.put(7, 10, name="Bob")
    again.put(8, 10, name="Bob")

    def connect() -> DuckDbConnection:
        return DuckDbConnection(tmp_path / "w.duckdb", 1.0)

    former, latter = Warehouse(shop.topic, connect), Warehouse(again.topic, connect)
    former.run()
    latter.table = beside(former.table)
    latter.run()
    assert swap(latter.loader, former.table)
    latter.loader.connection.release()
    latter.table = former.table
    check_equal(again, latter)
    again.put(7, 11, name="Eve", qty=1)
    latter.run()
    check_equal(again, latter)
    latter.close()
    former.close()
