"""The program's commands beside `run`, on a broker, with a file of DuckDB that was loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from cdc_common.errors.codes import CdcError
from warehouse.cli import main
from warehouse.targets.open import open_loader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.warehouse.warehouse_run import WarehouseSetup

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

MESSAGES = 120


def test_each_command(make_setup: Callable[[str], WarehouseSetup], tmp_path: Path) -> None:
    setup = make_setup(f"duckdb:///{tmp_path}/w.duckdb")
    setup.send(0, MESSAGES)
    flags = setup.flags()
    assert _said(flags, "check") == "ok: 1 topics\n"
    planned = _said(flags, "plan")
    assert planned.startswith(f"{setup.topic} → shop.orders: not loaded yet; schema ")
    assert 'CREATE TABLE "shop"."orders" (_key UUID NOT NULL, _sequence BIGINT NOT NULL, "id" INTEGER' in planned
    setup.run()
    setup.check(MESSAGES)
    assert "needs 0 statements" in _said(flags, "plan")
    assert _said(flags, "audit").endswith("messages: 0 rows differ\n")
    loader = open_loader(setup.settings().warehouse)
    loader.connection.run("UPDATE shop.orders SET name = 'planted' WHERE id = 3")
    loader.connection.close()
    audited = CliRunner().invoke(main, [*flags, "audit"])
    assert audited.exit_code == 4, audited.output
    assert " different in name\n" in audited.stdout
    assert "CDC-137: 1 rows" in audited.stderr
    assert _said(flags, "audit", "--repair").endswith("messages: 1 rows repaired\n")
    setup.check(MESSAGES)
    assert _said(flags, "pause", setup.topic) == "shop.orders is paused\n"
    setup.send(MESSAGES, 2 * MESSAGES)
    with pytest.raises(CdcError, match="CDC-152"):
        setup.run()
    setup.check(MESSAGES)
    assert _said(flags, "resume", setup.topic) == "shop.orders is loaded again\n"
    setup.run()
    setup.check(2 * MESSAGES)
    loader.connection.run("UPDATE shop.orders SET name = 'planted'")
    loader.connection.close()
    assert _said(flags, "reload", setup.topic).startswith("shop.orders: swapped at ")
    setup.check(2 * MESSAGES)


def _said(flags: list[str], *arguments: str) -> str:
    done = CliRunner().invoke(main, [*flags, *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout
