"""Redshift's statements, executed by a stand-in: its driver talks to PostgreSQL through a proxy that executes COPY."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import sqlglot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from cdc_common.errors.codes import CdcError, Code
from tests.support.warehouse.load_checks import STEPS, check_equal, play
from tests.support.warehouse.object_scene import ObjectWarehouse
from tests.support.warehouse.redshift_stand_in import RedshiftStandIn, prepare_database
from tests.support.warehouse.scene import Shop
from tests.support.warehouse.types_checks import (
    POSTGRESQL_QUERIES,
    TYPES,
    Types,
    check_values,
    check_wider,
    shop_of_types,
    shop_of_widened,
)
from tests.support.warehouse.writer_scene import Writer
from warehouse.tables.forms import CHANGES, CURRENT, HISTORY, MARKED
from warehouse.tables.types import REDSHIFT
from warehouse.targets.redshift import RedshiftConnection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.schematizer.postgresql import PostgreSQL
    from tests.support.warehouse.load_checks import Step
    from warehouse.tables.forms import Form

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]
ROLE = "arn:aws:iam::123456789012:role/load"
MIXED: dict[int, dict[str, Any]] = {10: {"name": "a"}, 11: {"name": "b", "qty": 1}, 12: {"qty": 2, "tags": ["x", ""]}}
"""A row of each schema."""
KNOWN: Types = {
    **TYPES,
    "day": (TYPES["day"][0], [0, -1, 20_000, -719_162, 2_932_896]),
    "at": (TYPES["at"][0], [0, -1, 1_795_000_000_123, -62_135_596_800_000, 253_402_300_799_999]),
}
"""The values of each type that Redshift has for sure."""
FORMS = [CURRENT, CHANGES, HISTORY, MARKED]


class Scene:
    """A topic, its writers, and the stand-in with an empty database."""

    def __init__(self, postgresql: PostgreSQL, folder: Path, form: Form, shop: Shop | None = None) -> None:
        database = postgresql.new_database().replace("+psycopg", "")
        prepare_database(database)
        self.shop = shop or Shop()
        self.writer = Writer(self.shop.topic, folder, REDSHIFT, form)
        self.stand_in = RedshiftStandIn(f"{postgresql.folder}/.s.PGSQL.5432", self.writer.store)
        self.url = self.stand_in.url(f"test{postgresql.databases}")
        self.warehouse = ObjectWarehouse(self.writer, self.connect)

    def connect(self) -> RedshiftConnection:
        return RedshiftConnection(self.url, "", self.writer.store, ROLE)


@contextmanager
def open_scene(postgresql: PostgreSQL, folder: Path, form: Form = CURRENT, shop: Shop | None = None) -> Iterator[Scene]:
    scene = Scene(postgresql, folder, form, shop)
    with scene.stand_in:
        yield scene
        scene.warehouse.close()


@given(steps=st.lists(STEPS, max_size=25), form=st.sampled_from(FORMS))
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), report_multiple_bugs=False)
def test_any_changes_and_failures(
    postgresql: PostgreSQL, tmp_path_factory: pytest.TempPathFactory, steps: list[Step], form: Form
) -> None:
    with open_scene(postgresql, tmp_path_factory.mktemp("redshift"), form) as scene:
        play(scene.shop, scene.warehouse, steps)


@pytest.mark.parametrize("form", FORMS, ids=["current", "changes", "history", "marked"])
def test_mixed_schemas_are_loaded_together(postgresql: PostgreSQL, tmp_path: Path, form: Form) -> None:
    with open_scene(postgresql, tmp_path, form) as scene:
        shop, warehouse = scene.shop, scene.warehouse
        for number, schema_id in enumerate((10, 11, 10, 12, 11, 10)):
            shop.put(number % 3, schema_id, **MIXED[schema_id])
        shop.delete(1, 11)
        warehouse.run(2)
        check_equal(shop, warehouse)
        assert scene.stand_in.copies == 3, "a COPY for each schema"
        shop.put(1, 13, title="c", qty=3)
        warehouse.run()
        check_equal(shop, warehouse)


def test_a_column_becomes_wider(postgresql: PostgreSQL, tmp_path: Path) -> None:
    """Redshift cannot alter the type of a column: it is replaced, and what others have added stays."""
    with open_scene(postgresql, tmp_path) as scene:
        shop, warehouse = scene.shop, scene.warehouse
        run = warehouse.loader.connection.run
        shop.put(1, 11, name="Ada", qty=2**31 - 1)
        warehouse.run()
        run("ALTER TABLE shop.orders ADD COLUMN note VARCHAR(20) DEFAULT 'theirs'")
        run("GRANT SELECT ON shop.orders TO PUBLIC")
        shop.put(2, 12, qty=2**31)
        warehouse.run()
        check_equal(shop, warehouse)
        assert not any("ALTER COLUMN" in statement for statement in scene.stand_in.statements)
        assert run("SELECT note FROM shop.orders ORDER BY id") == [("theirs",), ("theirs",)]
        assert run("SELECT has_table_privilege('public', 'shop.orders', 'SELECT')")[0][0] is True


def test_each_statement_is_one_of_redshift(postgresql: PostgreSQL, tmp_path: Path) -> None:
    """sqlglot parses what the driver sent, in all forms, by its dialect of Redshift."""
    sent: set[str] = set()
    for form in FORMS:
        with open_scene(postgresql, tmp_path / f"{form.name}{form.marks_deleted}", form) as scene:
            scene.warehouse.deleted_days = 1.0
            for schema_id in (10, 11, 12, 13):
                values = {"name": "a", "title": "b", "qty": 1, "tags": ["x"]}
                fields = {10: ["name"], 11: ["name", "qty"], 12: ["qty", "tags"], 13: ["title", "qty"]}[schema_id]
                scene.shop.put(1, schema_id, **{name: values[name] for name in fields})
                scene.warehouse.run()
            scene.shop.delete(1, 13)
            scene.warehouse.run()
            sent |= set(scene.stand_in.statements)
    kinds = {type(sqlglot.parse_one(statement, read="redshift")).__name__ for statement in sent}
    assert {"Copy", "Create", "Delete", "Insert", "Update", "Alter", "Select"} <= kinds
    commands = [
        statement for statement in sent if isinstance(sqlglot.parse_one(statement, read="redshift"), exp.Command)
    ]
    assert all(statement.startswith("LOCK TABLE ") for statement in commands), commands


def test_each_type(postgresql: PostgreSQL, tmp_path: Path) -> None:
    shop = shop_of_types(KNOWN)
    with open_scene(postgresql, tmp_path, CURRENT, shop) as scene:
        check_values(shop, scene.warehouse, POSTGRESQL_QUERIES, KNOWN)


@pytest.mark.parametrize("form", [CURRENT, CHANGES], ids=["current", "changes"])
def test_types_become_wider(postgresql: PostgreSQL, tmp_path: Path, form: Form) -> None:
    shop = shop_of_widened()
    with open_scene(postgresql, tmp_path, form, shop) as scene:
        check_wider(shop, scene.warehouse)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("string", "a\0b"),
        ("string", "é" * 32_768),
        ("bytes", b"x" * 32_768),
        ("items", [2**62] * 4000),
        ("day", 2_932_897),
        ("day", -719_163),
        ("at", 253_402_300_800_000),
    ],
    ids=["nul", "long-text", "long-bytes", "long-json", "day-late", "day-early", "time-late"],
)
def test_a_value_that_does_not_fit(postgresql: PostgreSQL, tmp_path: Path, name: str, value: Any) -> None:  # noqa: ANN401 - of any type
    """The writer stops without the value in its error, and nothing is stored; or it becomes null."""
    shop = shop_of_types(KNOWN)
    with open_scene(postgresql, tmp_path, CURRENT, shop) as scene:
        shop.put(1, 10, **{**dict.fromkeys(KNOWN), name: value})
        with pytest.raises(CdcError) as caught:
            scene.warehouse.run()
        assert caught.value.code is Code.WAREHOUSE_VALUE
        assert name in caught.value.problem
        assert str(value) not in caught.value.problem
        assert scene.writer.signals(1) == []
        scene.writer.nulls_refused = True
        scene.warehouse.run()
        assert [row[name] for row in scene.warehouse.rows()] == [None]


def test_a_gap_and_a_step_back_stop_the_table(postgresql: PostgreSQL, tmp_path: Path) -> None:
    with open_scene(postgresql, tmp_path) as scene:
        shop, warehouse = scene.shop, scene.warehouse
        for _ in range(6):
            shop.put(1, 10, name="Ada")
        warehouse.writer.run(2)
        first, second, third = warehouse.writer.signals(1)
        for found, known in (([first, third], 2), ([first, second._replace(start=1)], 2)):
            task = warehouse.open()
            task._take(found[0])
            with pytest.raises(CdcError, match=f"up to offset {known}") as caught:
                task._take(found[1])
            assert caught.value.code is Code.WAREHOUSE_STATE
            task.close()
        warehouse.run()
        check_equal(shop, warehouse)


def test_a_topic_of_signals_that_is_made_again_is_read_from_its_beginning(
    postgresql: PostgreSQL, tmp_path: Path
) -> None:
    with open_scene(postgresql, tmp_path, CHANGES) as scene:
        shop, warehouse = scene.shop, scene.warehouse
        shop.put(1, 10, name="Ada")
        warehouse.run()
        shop.put(1, 10, name="Bob")
        warehouse.signals_id = "another"
        warehouse.run()
        check_equal(shop, warehouse)
        assert len(warehouse.rows()) == 2, "what is loaded is skipped"


def test_a_connection_that_is_cut(postgresql: PostgreSQL, tmp_path: Path) -> None:
    with open_scene(postgresql, tmp_path) as scene:
        shop, warehouse = scene.shop, scene.warehouse
        shop.put(1, 10, name="Ada")
        warehouse.run()
        task = warehouse.open()
        scene.stand_in.cut()
        shop.put(1, 10, name="Bob")
        warehouse.take(task, 10)
        with pytest.raises(CdcError) as caught:
            task.load_due()
        assert caught.value.code is Code.WAREHOUSE_AWAY
        task.close()
        with pytest.raises(CdcError):
            warehouse.offsets()
        warehouse.run()
        check_equal(shop, warehouse)


def test_a_server_that_is_away(tmp_path: Path) -> None:
    store = Writer(Shop().topic, tmp_path).store
    connection = RedshiftConnection("redshift://me:secret@127.0.0.1:1/db?sslmode=disable", "", store, ROLE)
    with pytest.raises(CdcError, match=r"redshift://127\.0\.0\.1:1/db") as caught:
        connection.run("SELECT 1")
    assert caught.value.code is Code.WAREHOUSE_AWAY
    assert "secret" not in str(caught.value)
