"""Five differences that somebody plants in a table: the audit finds these and nothing else, and repairs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_runtime.records import SourcePartition
from tests.support.warehouse.load_checks import check_equal
from tests.support.warehouse.scene import TOPIC
from warehouse.loading.rows import RowMaker
from warehouse.tables.schemas import Schemas
from warehouse.targets.audit import TableAudit
from warehouse.targets.statements import full_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.warehouse.scene import Shop, Warehouse
    from warehouse.targets.audit import Difference

_KEY = "'6ba7b810-9dad-41d1-80b4-00c04fd430c8'"
_COMMON = (
    "UPDATE {table} SET name = 'planted' WHERE id = 10",
    "UPDATE {table} SET name = NULL, qty = 99 WHERE id = 11",
    "DELETE FROM {table} WHERE id = 13",
)
PLANTED = {
    "current": (
        "UPDATE {table} SET _sequence = _sequence + 1 WHERE id = 12",
        f"INSERT INTO {{table}} (_key, _sequence, id) VALUES ({_KEY}, 1, 99)",
    ),
    "changes": (
        "UPDATE {table} SET _sequence = _sequence + 1, _op = 'c' WHERE id = 12",
        (
            "INSERT INTO {table} (_key, _sequence, _op, _partition, _offset, _changed_at, id) "
            f"VALUES ({_KEY}, 1, 'c', 0, 100000, now(), 99)"
        ),
    ),
    "history": (
        "UPDATE {table} SET valid_to = valid_from, is_current = FALSE WHERE id = 12",
        f"INSERT INTO {{table}} (_key, _sequence, valid_from, is_current, id) VALUES ({_KEY}, 1, now(), TRUE, 99)",
    ),
}
"""By form: what somebody does to the table, beside _COMMON."""
_OWN = {"current": ("_sequence",), "changes": ("_sequence", "_op"), "history": ("valid_to", "is_current")}


def wanted(form: str) -> list[tuple[str, tuple[str, ...]]]:
    """The differences that the audit finds, sorted."""
    return sorted(
        [
            ("different", _OWN[form]),
            ("different", ("name",)),
            ("different", ("name", "qty")),
            ("missing", ()),
            ("surplus", ()),
        ]
    )


def check_audit(shop: Shop, warehouse: Warehouse, *, loads_beside: bool = False) -> None:
    """More is sent after the load: the audit must stop at the table's offsets. loads_beside: whether it is loaded while
    the audit runs.
    """
    for key in range(40):
        shop.put(key, 11, name=f"Ada {key}", qty=key)
    for key in range(5):
        shop.delete(key, 11)
        shop.put(key + 20, 11, name=f"Bob {key}", qty=None)
    warehouse.run()
    shop.put(30, 11, name="later", qty=1)
    beside: Callable[[], None] = warehouse.run if loads_beside else _nothing
    assert audit(warehouse, beside=beside) == []
    table = full_name(warehouse.table)
    for statement in (*_COMMON, *PLANTED[warehouse.form.name]):
        warehouse.loader.connection.run(statement.format(table=table))
    shop.put(31, 11, name="later", qty=1)
    found = audit(warehouse, beside=beside)
    assert sorted((difference.kind, difference.columns) for difference in found) == wanted(warehouse.form.name)
    assert audit(warehouse, repairs=True) == found
    check_equal(shop, warehouse)
    assert audit(warehouse) == []
    warehouse.run()
    check_equal(shop, warehouse)


def check_before(shop: Shop, warehouse: Warehouse) -> None:
    """Changes whose `before` is not the version before them are found, and no others: a schema may lack a column. The
    sequences of the key 0 are consecutive, as those of change topics are.
    """
    shop.put(0, 11, name="Ada", qty=1)
    shop.put_after({"title": "Ada", "qty": 1}, 0, 13, title="Eve", qty=1)
    shop.put_after({"name": "Eve"}, 0, 10, name="Bob")
    shop.put(0, 11, name="Bob", qty=2)
    shop.delete(0, 11)
    shop.put(0, 11, name="Ada", qty=3)
    warehouse.run()
    assert audit(warehouse) == []
    shop.put_after({"name": "Bob", "qty": 3}, 0, 11, name="Ada", qty=4)
    shop.put_after(None, 0, 11, name="Ada", qty=5)
    warehouse.run()
    found = audit(warehouse)
    assert [(difference.kind, difference.columns) for difference in found] == [
        ("broken", ("title",)),
        ("broken", ("the row before",)),
    ]


def audit(warehouse: Warehouse, *, repairs: bool = False, beside: Callable[[], None] | None = None) -> list[Difference]:
    """The rows that differ. beside: what happens while the audit reads the topic."""
    table = TableAudit(warehouse.loader, warehouse.table)
    form = warehouse.form
    maker = RowMaker(
        Schemas(warehouse.topic.registry, TOPIC), shows_deleted=form.shows_deleted, keeps_before=form.keeps_all
    )
    with table.snapshot(repairs=repairs) as state:
        (beside or _nothing)()
        for number, offset in state.offsets.items():
            partition, first = SourcePartition(TOPIC, number), 0
            while first < offset:
                batch, first = warehouse.topic.read(partition, first, 7)
                made = [] if batch is None else maker.make(partition, batch.before(offset), deletes_by_tombstone=False)
                table.add([rows.rows for rows in made])
                for schema, _, before in made:
                    if schema is not None and before is not None:
                        table.add_before(schema.schema_id, before.rows, before.is_there)
        count = table.compare()
        found = table.differences(100)
        broken = table.broken()
        if repairs:
            table.repair()
    warehouse.loader.connection.release()
    assert count == len(found)
    return [*found, *broken]


def _nothing() -> None:
    """Nothing happens."""
