"""Five differences that somebody plants in a table: the audit finds these and nothing else, and repairs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_runtime.records import SourcePartition
from tests.support.warehouse.load_checks import check_equal
from tests.support.warehouse.scene import TABLE, TOPIC
from warehouse.loading.rows import RowMaker
from warehouse.tables.schemas import Schemas
from warehouse.targets.audit import TableAudit

if TYPE_CHECKING:
    from tests.support.warehouse.scene import Shop, Warehouse
    from warehouse.targets.audit import Difference

PLANTED = (
    "UPDATE shop.orders SET name = 'planted' WHERE id = 10",
    "UPDATE shop.orders SET name = NULL, qty = 99 WHERE id = 11",
    "UPDATE shop.orders SET _sequence = _sequence + 1 WHERE id = 12",
    "DELETE FROM shop.orders WHERE id = 13",
    "INSERT INTO shop.orders (_key, _sequence, id) VALUES ('6ba7b810-9dad-41d1-80b4-00c04fd430c8', 1, 99)",
)
WANTED = [
    ("different", ("_sequence",)),
    ("different", ("name",)),
    ("different", ("name", "qty")),
    ("missing", ()),
    ("surplus", ()),
]


def check_audit(shop: Shop, warehouse: Warehouse) -> None:
    """More is sent after the load: the audit must stop at the table's offsets."""
    for key in range(40):
        shop.put(key, 11, name=f"Ada {key}", qty=key)
    for key in range(5):
        shop.delete(key, 11)
        shop.put(key + 20, 11, name=f"Bob {key}", qty=None)
    warehouse.run()
    shop.put(30, 11, name="later", qty=1)
    assert audit(warehouse) == []
    for statement in PLANTED:
        warehouse.loader.connection.run(statement)
    found = audit(warehouse)
    assert sorted((difference.kind, difference.columns) for difference in found) == WANTED
    assert audit(warehouse, repairs=True) == found
    check_equal(shop, warehouse)
    assert audit(warehouse) == []
    warehouse.run()
    check_equal(shop, warehouse)


def audit(warehouse: Warehouse, *, repairs: bool = False) -> list[Difference]:
    """The rows that differ."""
    table = TableAudit(warehouse.loader, TABLE)
    maker = RowMaker(Schemas(warehouse.topic.registry, TOPIC), shows_deleted=warehouse.form.shows_deleted)
    with table.snapshot(repairs=repairs) as state:
        for number, offset in state.offsets.items():
            partition, first = SourcePartition(TOPIC, number), 0
            while first < offset:
                batch, following = warehouse.topic.read(partition, first, 7)
                assert batch is not None
                made = maker.make(partition, batch.before(offset), deletes_by_tombstone=False)
                table.add([rows.rows for rows in made])
                first = following
        count = table.compare()
        found = table.differences(100)
        if repairs:
            table.repair()
    warehouse.loader.connection.release()
    assert count == len(found)
    return found
