"""The audit of a table in DuckDB."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from stream_runtime import fault_points
from tests.support.warehouse.audit_checks import audit, check_audit, check_before
from tests.support.warehouse.load_checks import play, random_steps
from tests.support.warehouse.scene import Shop, Warehouse
from warehouse.tables.forms import CHANGES, CURRENT, HISTORY, MARKED, Form
from warehouse.targets.duckdb import DuckDbConnection
from warehouse.targets.statements import full_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.warehouse.load_checks import Step

ALL = pytest.mark.parametrize("form", [CURRENT, CHANGES, HISTORY], ids=lambda form: form.name)
KEEPING = pytest.mark.parametrize("form", [CHANGES, HISTORY], ids=lambda form: form.name)


def open_warehouse(shop: Shop, folder: Path, form: Form) -> Warehouse:
    return Warehouse(shop.topic, lambda: DuckDbConnection(folder / "w.duckdb", 1.0), form)


def without_second_deletions(steps: list[Step]) -> Iterator[Step]:
    """Change topics have no deletion of a row that is not there. After compaction no row tells when it was."""
    living: set[int] = set()
    for act, value in steps:
        if act == "put":
            living.add(value[0])
        elif act == "delete":
            if value[0] not in living:
                continue
            living.remove(value[0])
        yield act, value


@pytest.mark.parametrize("form", [CURRENT, MARKED, CHANGES, HISTORY], ids=["current", "marked", "changes", "history"])
def test_planted_differences_are_found_and_repaired(tmp_path: Path, form: Form) -> None:
    shop = Shop()
    warehouse = open_warehouse(shop, tmp_path, form)
    check_audit(shop, warehouse)
    warehouse.close()


@KEEPING
def test_a_change_that_does_not_follow_is_found(tmp_path: Path, form: Form) -> None:
    shop = Shop()
    warehouse = open_warehouse(shop, tmp_path, form)
    check_before(shop, warehouse)
    warehouse.close()


@ALL
def test_a_row_that_is_there_twice_is_found(tmp_path: Path, form: Form) -> None:
    shop = Shop()
    warehouse = open_warehouse(shop, tmp_path, form)
    shop.put(1, 11, name="Ada", qty=1)
    shop.put(2, 11, name="Bob", qty=2)
    warehouse.run()
    table = full_name(warehouse.table)
    warehouse.loader.connection.run(f"INSERT INTO {table} SELECT * FROM {table} WHERE id = 1")
    assert [(found.kind, found.columns) for found in audit(warehouse, repairs=True)] == [("surplus", ())]
    assert audit(warehouse) == []
    assert len(warehouse.rows()) == 2
    warehouse.close()


@ALL
@pytest.mark.parametrize("seed", range(4))
def test_lives_of_a_table_have_no_differences(tmp_path: Path, form: Form, seed: int) -> None:
    """Also when the topic has been compacted since. A row that no message has is found then, too."""
    fault_points.reached.clear()
    shop = Shop()
    warehouse = open_warehouse(shop, tmp_path, form)
    play(shop, warehouse, [*without_second_deletions(random_steps(Random(seed))), ("put", (0, 11, "last", 1, None))])
    assert audit(warehouse) == []
    shop.topic.compact()
    assert audit(warehouse) == []
    name = full_name(warehouse.table)
    before = warehouse.loader.connection.run(f"SELECT COUNT(*) FROM {name}")
    changed = "_sequence = _sequence + 1000" + (", _offset = _offset + 1000" if form is CHANGES else "")
    warehouse.loader.connection.run(f"UPDATE {name} SET {changed} WHERE id = 0 AND name = 'last'")
    found = audit(warehouse, repairs=True)
    assert {difference.kind for difference in found} == ({"different"} if form is CURRENT else {"missing", "surplus"})
    assert audit(warehouse) == []
    assert warehouse.loader.connection.run(f"SELECT COUNT(*) FROM {name}") == before
    warehouse.close()


def test_a_deletion_is_forgotten_again_by_a_repair(tmp_path: Path) -> None:
    """The keys of deleted rows are those of the topic after it: the next version begins where the deletion was."""
    shop = Shop()
    warehouse = open_warehouse(shop, tmp_path, HISTORY)
    shop.put(1, 11, name="Ada", qty=1)
    shop.delete(1, 11)
    warehouse.run()
    run = warehouse.loader.connection.run
    [deleted] = run("SELECT * FROM shop.orders__history__deleted")
    run("UPDATE shop.orders__history SET valid_to = NULL, is_current = TRUE")
    run("DELETE FROM shop.orders__history__deleted")
    assert len(audit(warehouse, repairs=True)) == 1
    assert run("SELECT * FROM shop.orders__history__deleted") == [deleted]
    warehouse.close()
