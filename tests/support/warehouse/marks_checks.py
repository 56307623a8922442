"""Docs and personal data of fields, by a catalogue in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from tests.support.warehouse.load_checks import check_equal
from warehouse.tables.marks import Mark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.support.warehouse.scene import Shop, Warehouse

DOC = "The customer's name; it's \"shown\"."
MARKS = {
    11: {"name": Mark(DOC, is_personal=True), "qty": Mark("Pieces.", is_personal=False)},
    13: {"title": Mark("", is_personal=True), "qty": Mark("", is_personal=False)},
}


class MemoryCatalogue:
    """warehouse.tables.marks.Catalogue."""

    def __init__(self, marks: Mapping[int, Mapping[str, Mark]] = MARKS) -> None:
        self._marks = marks

    def marks(self, schema_id: int, _topic: str) -> Mapping[str, Mark]:
        return self._marks.get(schema_id, {})


def check_marks(shop: Shop, warehouse: Warehouse, read: Callable[[], dict[str, str | None]]) -> None:
    """Personal fields are refused, left out or loaded, as the settings say. Columns get their docs as comments. read:
    the comments of the table's columns, by name.
    """
    warehouse.catalogue = MemoryCatalogue()
    shop.put(1, 11, name="Ada", qty=1)
    with pytest.raises(CdcError) as caught:
        warehouse.run()
    assert caught.value.code is Code.WAREHOUSE_PERSONAL
    assert caught.value.problem.endswith("may not have them: name.")
    assert warehouse.loader.read_state(warehouse.table) is None
    warehouse.settings = warehouse.settings._replace(personal_data="leave_out")
    warehouse.run()
    assert warehouse.rows() == [{"id": 1, "qty": 1}]
    shop.put(1, 13, title="Eve", qty=2**40)
    warehouse.run()
    assert warehouse.rows() == [{"id": 1, "qty": 2**40}]
    assert read() == {"id": None, "qty": "Pieces."}
    warehouse.settings = warehouse.settings._replace(personal_data="load")
    shop.put(2, 11, name="Bob", qty=2)
    warehouse.run()
    assert read() == {"id": None, "qty": "Pieces.", "name": None}, "the comments are those of the newest schema"
    warehouse.settings = warehouse.settings._replace(personal_data="leave_out")
    with pytest.raises(CdcError) as caught:
        warehouse.open()
    assert caught.value.code is Code.WAREHOUSE_PERSONAL
    assert "cassandra-warehouse reload" in caught.value.fix


def check_comments(shop: Shop, warehouse: Warehouse, read: Callable[[], dict[str, str | None]]) -> None:
    """A comment says that a column is personal, and what the field's docs say. It follows a rename."""
    warehouse.catalogue = MemoryCatalogue()
    warehouse.settings = warehouse.settings._replace(personal_data="load")
    shop.put(1, 10, name="Ada")
    warehouse.run()
    assert read() == {"id": None, "name": None}
    shop.put(1, 11, name="Ada", qty=1)
    warehouse.run()
    assert read() == {"id": None, "name": f"Personal data. {DOC}", "qty": "Pieces."}
    shop.put(1, 13, title="Eve", qty=2)
    warehouse.run()
    assert read() == {"id": None, "title": "Personal data.", "qty": "Pieces."}
    check_equal(shop, warehouse)
