"""A paused table is loaded by no job until it is resumed."""

from __future__ import annotations

import pytest

from cdc_common.errors.codes import CdcError, Code
from tests.support.warehouse.load_checks import check_equal
from tests.support.warehouse.scene import TABLE, Shop, Warehouse
from warehouse.commands.pause import mark_paused
from warehouse.targets.connection import LoadTakenError
from warehouse.targets.reload import beside, swap

SINCE = "2026-11-27T01:00:00+00:00"


def test_a_load_that_has_begun_changes_nothing(shop: Shop, warehouse: Warehouse) -> None:
    shop.put(1, 11, name="Ada", qty=1)
    warehouse.run()
    shop.put(1, 11, name="Bob", qty=2)
    task = warehouse.open()
    warehouse.take(task, 10)
    mark_paused(warehouse.loader, TABLE, SINCE)
    with pytest.raises(LoadTakenError):
        task.load_due()
    task.close()
    with pytest.raises(CdcError) as caught:
        warehouse.open()
    assert caught.value.code is Code.WAREHOUSE_PAUSED
    assert SINCE in caught.value.problem
    assert [row["name"] for row in warehouse.rows()] == ["Ada"]
    mark_paused(warehouse.loader, TABLE, "")
    warehouse.run()
    check_equal(shop, warehouse)
    assert [row["name"] for row in warehouse.rows()] == ["Bob"]


def test_a_second_pause_keeps_the_time_of_the_first(shop: Shop, warehouse: Warehouse) -> None:
    shop.put(1, 11, name="Ada", qty=1)
    warehouse.run()
    mark_paused(warehouse.loader, TABLE, SINCE)
    mark_paused(warehouse.loader, TABLE, "later")
    state = warehouse.loader.read_state(TABLE)
    assert state is not None
    assert state.paused == SINCE


def test_a_table_that_was_never_loaded(warehouse: Warehouse) -> None:
    with pytest.raises(CdcError, match="was never loaded"):
        mark_paused(warehouse.loader, TABLE, SINCE)


def test_a_reload_leaves_it_paused(shop: Shop, warehouse: Warehouse) -> None:
    shop.put(1, 11, name="Ada", qty=1)
    warehouse.run()
    mark_paused(warehouse.loader, TABLE, SINCE)
    warehouse.table = beside(TABLE)
    warehouse.run()
    warehouse.table = TABLE
    assert swap(warehouse.loader, TABLE)
    state = warehouse.loader.read_state(TABLE)
    assert state is not None
    assert state.paused == SINCE
