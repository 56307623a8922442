"""A table in DuckDB equals the fold of its topic, whatever is loaded together, fails in between or runs beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdc_common.errors.codes import CdcError, Code
from stream_runtime import fault_points
from stream_runtime.fault_points import Fault
from tests.support.warehouse.load_checks import STEPS, check_equal, play
from tests.support.warehouse.scene import TABLE, Shop, Warehouse
from warehouse.fault_points import WarehousePoint
from warehouse.tables.forms import CHANGES, CURRENT, HISTORY, MARKED
from warehouse.targets.connection import LoadTakenError
from warehouse.targets.duckdb import DuckDbConnection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.warehouse.load_checks import Step
    from warehouse.tables.forms import Form


@pytest.fixture(autouse=True)
def _unarmed() -> Iterator[None]:
    fault_points.reached.clear()
    yield
    fault_points.armed = None
    fault_points.reached.clear()


@given(steps=st.lists(STEPS, max_size=30), form=st.sampled_from([CURRENT, CHANGES, HISTORY, MARKED]))
@settings(max_examples=20, report_multiple_bugs=False, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_changes_and_failures(tmp_path_factory: pytest.TempPathFactory, steps: list[Step], form: Form) -> None:
    file = tmp_path_factory.mktemp("duckdb") / "w.duckdb"
    shop = Shop()
    play(shop, Warehouse(shop.topic, lambda: DuckDbConnection(file, 1.0), form), steps)


@pytest.mark.parametrize("form", [CHANGES, HISTORY, MARKED], ids=["changes", "history", "marked"])
def test_forms_with_all_versions(shop: Shop, tmp_path: Path, form: Form) -> None:
    warehouse = Warehouse(shop.topic, lambda: DuckDbConnection(tmp_path / "f.duckdb", 1.0), form)
    for number in range(12):
        shop.put(number % 3, 11, name=f"Ada {number}", qty=number)
        if number % 4 == 3:
            shop.delete(number % 3, 11)
        if number % 5 == 4:
            warehouse.run(2)
            check_equal(shop, warehouse)
    warehouse.run()
    check_equal(shop, warehouse)
    warehouse.close()


@pytest.mark.parametrize("point", WarehousePoint)
def test_a_task_that_fails_at_a_point(shop: Shop, warehouse: Warehouse, point: WarehousePoint) -> None:
    for key in range(4):
        shop.put(key, 10, name="Ada")
    warehouse.run()
    shop.put(1, 11, name="Bob", qty=3)
    shop.delete(2, 11)
    fault_points.reached.clear()
    fault_points.armed = Fault(point, 1, "raise")
    with pytest.raises(fault_points.InjectedFaultError):
        warehouse.run()
    fault_points.armed = None
    check_equal(shop, warehouse)
    warehouse.run()
    check_equal(shop, warehouse)
    assert sorted(row["id"] for row in warehouse.rows()) == [0, 1, 3]


def test_the_slower_of_two_loaders_changes_nothing(shop: Shop, warehouse: Warehouse) -> None:
    shop.put(1, 10, name="first")
    slow, fast = warehouse.open(), warehouse.open()
    warehouse.take(slow, 10)
    shop.put(1, 10, name="second")
    warehouse.take(fast, 10)
    assert fast.load_due() is not None
    fast.close()
    with pytest.raises(LoadTakenError):
        slow.load_due()
    slow.close()
    check_equal(shop, warehouse)
    assert [row["name"] for row in warehouse.rows()] == ["second"]


def test_a_state_that_was_moved_stops_the_table(shop: Shop, warehouse: Warehouse) -> None:
    """A gap, and a step back."""
    for key in range(4):
        shop.put(key, 10, name="Ada")
    warehouse.run()
    for moved in (0, 3):
        task = warehouse.open()
        assert task.state is not None
        task.state = task.state._replace(offsets={0: moved, 1: 2})
        shop.put(0, 10, name=f"Bob {moved}")
        warehouse.take(task, 10)
        with pytest.raises(CdcError) as caught:
            task.load_due()
        task.close()
        assert caught.value.code is Code.WAREHOUSE_STATE
        check_equal(shop, warehouse)


def test_a_topic_that_was_created_again(shop: Shop, warehouse: Warehouse) -> None:
    shop.put(1, 10, name="Ada")
    warehouse.run()
    shop.topic.shape = shop.topic.shape._replace(topic_id="another")
    with pytest.raises(CdcError) as caught:
        warehouse.open()
    assert caught.value.code is Code.STATE_MISMATCH


def test_an_older_version_never_comes_back(shop: Shop, warehouse: Warehouse) -> None:
    """A message that another partition has, as where a source's topic was replaced."""
    shop.put(2, 10, name="Ada")
    shop.put(2, 10, name="Bob")
    shop.put(4, 10, name="Eve")
    shop.delete(4, 10)
    warehouse.run()
    first, _, living, *_ = shop.topic.messages[0]
    for key, value, *_ in (first, living):
        shop.topic.send(1, value, key)
        shop.changes[1].append((9, None))
    warehouse.run()
    assert [(row["id"], row["name"]) for row in warehouse.rows()] == [(2, "Bob")]
    assert warehouse.offsets()[1] == 2


def test_keys_of_deleted_rows_are_forgotten(shop: Shop, warehouse: Warehouse) -> None:
    shop.put(1, 10, name="Ada")
    shop.delete(1, 10)
    shop.delete(2, 10)
    warehouse.run()
    run = warehouse.loader.connection.run
    assert run("SELECT COUNT(*) FROM shop.orders__deleted") == [(2,)]
    run("UPDATE shop.orders__deleted SET deleted_at = deleted_at - INTERVAL '1 day' WHERE _sequence > 3")
    warehouse.loader.connection.release()
    warehouse.deleted_days = 0.5
    shop.put(4, 10, name="Bob")
    warehouse.run()
    assert run("SELECT _sequence FROM shop.orders__deleted") == [(3,)]
    check_equal(shop, warehouse)


def test_names_of_tables_and_columns(shop: Shop, warehouse: Warehouse) -> None:
    assert str(TABLE) == "shop.orders"
    shop.put(1, 12, qty=2**40, tags=["a", "ü"])
    shop.put(1, 13, title="T", qty=1)
    shop.put(3, 10, name="N")
    warehouse.run()
    check_equal(shop, warehouse)
