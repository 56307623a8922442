"""A table that is loaded again beside itself, and swapped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.warehouse.load_checks import check_equal
from warehouse.targets.connection import LoadTakenError
from warehouse.targets.reload import beside, drop, swap

if TYPE_CHECKING:
    from tests.support.warehouse.scene import Shop, Warehouse


def check_reload(shop: Shop, warehouse: Warehouse) -> None:
    """A damaged table is whole after it. A load that began before it changes nothing. A table with fewer messages is
    not swapped.
    """
    name, loader = warehouse.table, warehouse.loader
    for key in range(6):
        shop.put(key, 11, name=f"Ada {key}", qty=key)
    shop.delete(2, 11)
    warehouse.run()
    loader.connection.run("UPDATE shop.orders SET name = 'damaged'")
    loader.connection.release()
    shop.put(1, 11, name="Bob", qty=1)
    slow = warehouse.open()
    warehouse.take(slow, 10)
    warehouse.table = beside(name)
    warehouse.run(2)
    warehouse.table = name
    assert swap(loader, name)
    loader.connection.release()
    check_equal(shop, warehouse)
    with pytest.raises(LoadTakenError):
        slow.load_due()
    slow.close()
    assert loader.read_state(beside(name)) is None
    shop.put(3, 11, name="Eve", qty=None)
    warehouse.table = beside(name)
    warehouse.run()
    warehouse.table = name
    shop.put(5, 11, name="Joe", qty=None)
    warehouse.run()
    check_equal(shop, warehouse)
    assert not swap(loader, name), "the table has more than the one beside it"
    drop(loader, beside(name))
    loader.connection.release()
    assert loader.read_state(beside(name)) is None
    warehouse.run()
    check_equal(shop, warehouse)
