"""The commands check and plan, with a running Schematizer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from cdc_common.settings import RegistrySettings
from joinery.catalogue import open_catalogue
from joinery.cli import main
from joinery.definition import Input
from tests.support.joinery import tables
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE = """[[join]]
name = "orders-of-users"
target = { namespace = "cdc.shop", source = "orders_of_users" }
on = ["o.user_id = u.id"]
select = ["o.id as order_id", "o.total", "u.name"]

[join.input.o]
namespace = "cdc.shop"
source = "orders"

[join.input.u]
namespace = "cdc.shop"
source = "users"
optional = true
"""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    running = Registry(tmp_path_factory.mktemp("registry") / "registry.db").start()
    for table in ("orders", "users"):
        register(running, table, *tables.TABLES[table])
    yield running
    assert running.stop() == 0, running.log


def register(registry: Registry, table: str, columns: dict[str, Any], keys: tuple[str, ...]) -> None:
    body = {
        "format": "avro",
        "text": json.dumps(tables.value_schema(table, columns)),
        "key": json.dumps(tables.key_schema(table, {name: columns[name] for name in keys})),
        "source": table,
        "fields": {"name": {"pii": True}} if "name" in columns else {},
    }
    made = registry.call("POST", "/api/v1/namespaces/cdc.shop/schemas", body)
    assert made.status == 200, made.body


def run(registry: Registry, folder: Path, *arguments: str, text: str = FILE) -> tuple[int, str]:
    file = folder / "joins.toml"
    file.write_text(text)
    done = CliRunner().invoke(main, [*arguments, str(file), "--set", f"registry.url={registry.url}"])
    return done.exit_code, done.output


def test_check(registry: Registry, tmp_path: Path) -> None:
    assert run(registry, tmp_path, "check") == (0, "orders-of-users: ok, one-to-many, into cdc.shop.orders_of_users\n")


def test_plan(registry: Registry, tmp_path: Path) -> None:
    (topics_of_orders,) = registry.call("GET", "/api/v1/namespaces/cdc.shop/sources/orders/topics").body
    (topics_of_users,) = registry.call("GET", "/api/v1/namespaces/cdc.shop/sources/users/topics").body
    status, output = run(registry, tmp_path, "plan")
    assert status == 0, output
    assert output.splitlines() == [
        "orders-of-users: one-to-many, into cdc.shop.orders_of_users",
        "  key: user_id long or null, order_id int",
        "  row: user_id long or null, order_id int, total double or null, name string or null",
        f"  o: {topics_of_orders['name']}, many rows for each join key; the state keeps user_id, id, total",
        f"  u: {topics_of_users['name']}, optional, at most one row for each join key; the state keeps id, name",
    ]


def test_a_join_that_does_not_fit(registry: Registry, tmp_path: Path) -> None:
    status, output = run(registry, tmp_path, "check", text=FILE.replace("o.total", "o.totals"))
    assert status == 4
    assert 'CDC-120: join "orders-of-users" does not fit the schemas of its inputs: o.totals does not exist' in output


def test_an_input_that_is_not_there_yet(registry: Registry, tmp_path: Path) -> None:
    status, output = run(registry, tmp_path, "check", text=FILE.replace('source = "users"', 'source = "people"'))
    waits = "orders-of-users: not checked, because the registry has no schema of cdc.shop.people yet\n"
    assert (status, output) == (0, waits)


def test_personal_columns_come_from_the_catalogue(registry: Registry) -> None:
    catalogue = open_catalogue(RegistrySettings(url=registry.url))
    schema = catalogue.input_schema(Input(namespace="cdc.shop", source="users"))
    catalogue.close()
    assert schema is not None
    assert schema.pii == {"name"}
    assert (list(schema.columns), schema.keys) == (["id", "name", "city"], ("id",))


def test_an_input_with_several_topics(registry: Registry, tmp_path: Path) -> None:
    for kind in ("int", "string"):
        register(registry, "moved", {"id": kind, "name": ["null", "string"]}, ("id",))
    status, output = run(registry, tmp_path, "check", text=FILE.replace('source = "users"', 'source = "moved"'))
    assert status == 4
    assert "CDC-121: cdc.shop.moved has several topics" in output
