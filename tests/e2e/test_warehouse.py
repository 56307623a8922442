"""Random statements and schema changes on a real node, loaded into PostgreSQL and DuckDB while they are written.

`current` equals `SELECT *`, `history` has each version of each row without a gap or an overlap, and `changes` has each
change once.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from cdc_common.errors.codes import CdcError
from dev.local_stack.clients import query
from dev.local_stack.demo import shop
from dev.local_stack.demo.loaded_tables import loaded_tables
from dev.verify.model.check import SINGLE, Run, Seed, programs_of
from tests.support.warehouse.beside_writes import LoadedBeside
from tests.support.warehouse.select_checks import SelectChecks
from warehouse.commands.audit import audit_tables
from warehouse.targets.statements import full_name

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.addresses import Servers
    from dev.local_stack.servers.stack import Stack
    from tests.support.schematizer.postgresql import PostgreSQL
    from tests.support.warehouse.beside_writes import LoadedWarehouse

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(1500)]

STATEMENTS = 2400
PARTS = 4
PAUSE_SECONDS = 3.0
SHOWN = 60
LOADED_SECONDS = 180.0
PLANTED = {
    "current": "DELETE FROM {table} WHERE _key IN (SELECT _key FROM {table} LIMIT 1)",
    "changes": "UPDATE {table} SET _op = 'x' WHERE _key IN (SELECT _key FROM {table} LIMIT 1)",
    "history": "UPDATE {table} SET valid_to = valid_from WHERE _key IN (SELECT _key FROM {table} LIMIT 1)",
}
"""By form: what damages a table."""


@pytest.mark.parametrize("seed", [21, 22])
def test_tables_equal_select(
    seed: int, client: CqlClient, servers: Servers, stack: Stack, postgresql: PostgreSQL, tmp_path: Path
) -> None:
    steady = Run(client, client, servers, "5.0", SINGLE)
    run = replace(steady, evolves=True, pause_seconds=PAUSE_SECONDS, programs=programs_of(stack))
    keyspace = f"warehouse_{seed}"
    targets = (f"duckdb:///{tmp_path}/w.duckdb", postgresql.new_database().replace("+psycopg", ""))
    with Seed(run, seed, keyspace) as one, LoadedBeside(servers, keyspace, targets) as loaded:
        one.write(STATEMENTS, PARTS, loaded.wait_for_loads)
        one.read_all_rows()
        one.catch_up()
        checks = SelectChecks(client, keyspace, servers.topic_prefix, one.history)
        loaded.load_all(checks.ends())
        topics, damaged = sorted(checks.ends()), f"{servers.topic_prefix}.{keyspace}.plain"
        problems = [line for warehouse in loaded.warehouses for line in checks.problems(warehouse)]
        assert not problems, "\n".join(problems[:SHOWN])
        for warehouse in loaded.warehouses:
            assert warehouse.loads > warehouse.migrations > 0
            audit_tables(warehouse.settings, topics, repairs=False)
        assert checks.rows > STATEMENTS
        for warehouse in loaded.warehouses:
            damage(warehouse, damaged)
            assert checks.problems(warehouse) != []
            with pytest.raises(CdcError, match="CDC-137"):
                audit_tables(warehouse.settings, [damaged], repairs=False)
            audit_tables(warehouse.settings, [damaged], repairs=True)
            assert checks.problems(warehouse) == []


def damage(warehouse: LoadedWarehouse, topic: str) -> None:
    """Damage a table."""
    loader = warehouse.loader()
    loader.connection.run(PLANTED[warehouse.form.name].format(table=full_name(warehouse.table(topic))))
    loader.connection.close()


def test_make_stack_loads_the_demo(client: CqlClient, servers: Servers) -> None:
    """The program of `make stack`, and the command that it prints."""
    shop.create(client)
    with loaded_tables(servers, print) as warehouse:
        client.execute("INSERT INTO shop.orders (id, customer, status, total) VALUES (77, 'ada', 'new', 9.99)")
        deadline = time.monotonic() + LOADED_SECONDS
        while "9.99" not in (said := queried("SELECT id, customer, total FROM shop.orders WHERE id = 77")):
            assert time.monotonic() < deadline, said + warehouse.output()
            warehouse.check()
            time.sleep(1.0)
    refused = CliRunner().invoke(query.main, ["SELECT * FROM shop.elsewhere"])
    assert "does not exist" in refused.stderr
    assert "its first row" in refused.stderr


def queried(statement: str) -> str:
    done = CliRunner().invoke(query.main, [statement])
    return done.stdout + done.stderr
