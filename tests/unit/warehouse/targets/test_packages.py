"""A target that another package has, installed as packages are: a folder of the path with its metadata."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from tests.support.warehouse.load_checks import check_equal
from tests.support.warehouse.scene import Shop, Warehouse
from warehouse.settings import WarehouseSettings
from warehouse.targets.open import open_loader

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = '''
from pathlib import Path

from warehouse.tables.types import DUCKDB
from warehouse.targets.duckdb import DuckDbConnection

opened = []


class Lake(DuckDbConnection):
    """Has no texts with U+0000, and fewer dates."""

    dialect = DUCKDB._replace(holds_nul=False)


def open_target(target, password, lock_seconds):
    opened.append((target, password, lock_seconds))
    return Lake(Path(target.removeprefix("dummylake://")), lock_seconds)
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "installed"
    metadata = folder / "dummylake-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / "dummylake.py").write_text(PACKAGE)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: dummylake\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[cassandra_warehouse.targets]\ndummylake = dummylake:open_target\n")
    monkeypatch.syspath_prepend(str(folder))
    return f"dummylake://{tmp_path}/w.duckdb"


def test_a_package_adds_a_target(package: str) -> None:
    settings = WarehouseSettings(target=package, password="secret", lock_seconds=2.0)  # type: ignore[arg-type] # a secret
    loader = open_loader(settings)
    assert sys.modules["dummylake"].opened == [(package, "secret", 2.0)]
    shop = Shop()
    warehouse = Warehouse(shop.topic, lambda: open_loader(settings).connection)
    shop.put(1, 11, name="Ada", qty=1)
    warehouse.run()
    check_equal(shop, warehouse)
    shop.put(1, 11, name="a\0b", qty=1)
    with pytest.raises(CdcError) as caught:
        warehouse.run()
    assert caught.value.code is Code.WAREHOUSE_VALUE, "the limits are those of its dialect"
    warehouse.close()
    loader.connection.close()


def test_a_target_that_no_package_has(package: str) -> None:
    with pytest.raises(CdcError) as caught:
        open_loader(WarehouseSettings(target="elsewhere://host/database"))
    assert caught.value.code is Code.WAREHOUSE_SETTING
    assert "elsewhere:// (known are duckdb, dummylake, postgresql, redshift)" in caught.value.problem
    assert package.startswith("dummylake:")
