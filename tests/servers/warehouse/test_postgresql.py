"""A table in PostgreSQL equals the fold of its topic; its values are those of the messages, bit by bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cdc_common.errors.codes import CdcError, Code
from tests.support.warehouse.audit_checks import check_audit, check_before
from tests.support.warehouse.load_checks import STEPS, check_equal, play
from tests.support.warehouse.reload_checks import check_reload
from tests.support.warehouse.scene import Shop, Warehouse
from tests.support.warehouse.types_checks import (
    INT_MAX,
    LONG_MAX,
    POSTGRESQL_QUERIES,
    TYPES,
    check_types,
    shop_of_types,
)
from warehouse.tables.forms import CHANGES, CURRENT, HISTORY, MARKED
from warehouse.targets.postgresql import PostgreSqlConnection

if TYPE_CHECKING:
    from tests.support.schematizer.postgresql import PostgreSQL
    from tests.support.warehouse.load_checks import Step
    from warehouse.tables.forms import Form

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]


def connect(url: str) -> PostgreSqlConnection:
    return PostgreSqlConnection(url, "", 10.0)


@example(steps=[("put", (0, 12, None, None, None)), ("put", (0, 11, None, 7, None))], form=CURRENT)  # narrower again
@given(steps=st.lists(STEPS, max_size=30), form=st.sampled_from([CURRENT, CHANGES, HISTORY, MARKED]))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow], report_multiple_bugs=False)
def test_any_changes_and_failures(postgresql: PostgreSQL, steps: list[Step], form: Form) -> None:
    url = postgresql.new_database().replace("+psycopg", "")
    shop = Shop()
    play(shop, Warehouse(shop.topic, lambda: connect(url), form), steps)


def test_each_type(postgresql_url: str) -> None:
    check_types(lambda: connect(postgresql_url), POSTGRESQL_QUERIES)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("string", "a\0b"),
        ("day", INT_MAX),
        ("day", -2_440_589),
        ("at", LONG_MAX),
        ("at", -(2**63)),
        ("at", 106_751_983 * 86_400_000),
        ("uuid", "none"),
    ],
    ids=["nul", "day-late", "day-early", "time-late", "time-early", "time-next", "uuid"],
)
def test_a_value_that_does_not_fit(postgresql_url: str, name: str, value: Any) -> None:  # noqa: ANN401 - of any type
    """The table stops, without the value in the error; or the value becomes null, and is counted."""
    shop = shop_of_types()
    warehouse = Warehouse(shop.topic, lambda: connect(postgresql_url))
    row: dict[str, Any] = dict.fromkeys(TYPES)
    shop.put(1, 10, **row)
    shop.put(3, 10, **{**row, name: value})
    with pytest.raises(CdcError) as caught:
        warehouse.run()
    assert caught.value.code is Code.WAREHOUSE_VALUE
    assert name in caught.value.problem
    assert "offset 1 of cdc.shop.orders-1" in caught.value.problem
    assert str(value) not in caught.value.problem
    warehouse.settings = warehouse.settings._replace(nulls_refused=True)
    warehouse.run()
    assert len(warehouse.rows()) == 2
    assert all(found[name] is None for found in warehouse.rows())
    warehouse.close()


def test_a_table_that_was_there_before(postgresql_url: str) -> None:
    shop = Shop()
    warehouse = Warehouse(shop.topic, lambda: connect(postgresql_url))
    with psycopg.connect(postgresql_url, autocommit=True) as other:
        other.execute("CREATE SCHEMA shop")
        other.execute("CREATE TABLE shop.orders (mine int)")
    shop.put(1, 10, name="Ada")
    with pytest.raises(CdcError) as caught:
        warehouse.run()
    assert caught.value.code is Code.WAREHOUSE_TABLE
    assert "already exists" in caught.value.problem
    with psycopg.connect(postgresql_url, autocommit=True) as other:
        other.execute("DROP TABLE shop.orders")
    warehouse.run()
    check_equal(shop, warehouse)
    warehouse.close()


def test_columns_and_rights_of_others_stay(postgresql_url: str) -> None:
    """A column that somebody has added, and what was granted on the table, outlive loads and migrations."""
    shop = Shop()
    warehouse = Warehouse(shop.topic, lambda: connect(postgresql_url))
    shop.put(1, 10, name="Ada")
    warehouse.run()
    with psycopg.connect(postgresql_url, autocommit=True) as other:
        other.execute("ALTER TABLE shop.orders ADD COLUMN note text DEFAULT 'theirs'")
        other.execute("GRANT SELECT ON shop.orders TO PUBLIC")
    shop.put(3, 11, name="Bob", qty=1)
    warehouse.run()
    check_equal(shop, warehouse)
    notes = warehouse.loader.connection.run("SELECT note FROM shop.orders ORDER BY id")
    assert [tuple(row) for row in notes] == [("theirs",), ("theirs",)]
    [(granted,)] = warehouse.loader.connection.run(
        "SELECT relacl::text FROM pg_class WHERE oid = 'shop.orders'::regclass"
    )
    assert "=r/" in granted
    warehouse.close()


def test_a_connection_that_is_cut_in_a_load(postgresql_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server ends the connection after COPY: nothing is loaded, and the next task loads all."""
    shop = Shop()
    warehouse = Warehouse(shop.topic, lambda: connect(postgresql_url))
    shop.put(1, 10, name="Ada")
    warehouse.run()
    shop.put(1, 10, name="Bob")
    task = warehouse.open()
    warehouse.take(task, 10)
    loader = task.loader
    staged = loader.connection.stage

    def stage_and_cut(*values: Any) -> None:  # noqa: ANN401 - those of stage
        staged(*values)
        [(process,)] = loader.connection.run("SELECT pg_backend_pid()")
        with psycopg.connect(postgresql_url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [process])

    monkeypatch.setattr(loader.connection, "stage", stage_and_cut)
    with pytest.raises(CdcError) as caught:
        task.load_due()
    assert caught.value.code is Code.WAREHOUSE_AWAY
    check_equal(shop, warehouse)
    assert [row["name"] for row in warehouse.rows()] == ["Ada"]
    warehouse.run()
    assert [row["name"] for row in warehouse.rows()] == ["Bob"]
    warehouse.close()


def test_a_table_is_swapped_with_its_rights(postgresql_url: str) -> None:
    shop = Shop()
    warehouse = Warehouse(shop.topic, lambda: connect(postgresql_url))
    shop.put(9, 10, name="Ada")
    warehouse.run()
    warehouse.loader.connection.run("GRANT SELECT ON shop.orders TO PUBLIC")
    check_reload(shop, warehouse)
    [(granted,)] = warehouse.loader.connection.run(
        "SELECT relacl::text FROM pg_class WHERE oid = 'shop.orders'::regclass"
    )
    assert "=r/" in granted
    warehouse.close()


@pytest.mark.parametrize("form", [CURRENT, CHANGES, HISTORY], ids=lambda form: form.name)
def test_planted_differences_are_found_while_loads_go_on(postgresql_url: str, form: Form) -> None:
    shop = Shop()
    warehouse = Warehouse(shop.topic, lambda: connect(postgresql_url), form)
    check_audit(shop, warehouse, loads_beside=True)
    warehouse.close()


@pytest.mark.parametrize("form", [CHANGES, HISTORY], ids=lambda form: form.name)
def test_a_change_that_does_not_follow_is_found(postgresql_url: str, form: Form) -> None:
    shop = Shop()
    warehouse = Warehouse(shop.topic, lambda: connect(postgresql_url), form)
    check_before(shop, warehouse)
    warehouse.close()
