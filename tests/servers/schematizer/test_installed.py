"""The registry as it is installed: the wheel in a clean environment, and the archive that brings its Python along."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tarfile
import urllib.request
from typing import TYPE_CHECKING

import pytest

from dev.tools import distribution
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.exhaustive, pytest.mark.servers, pytest.mark.timeout(1800)]
PROGRAM = "cassandra-schematizer"
RECORD = {"type": "record", "name": "Row", "fields": [{"name": "amount", "type": "int", "doc": "how many"}]}


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter of the environment that builds."""
    return distribution.make_environment(distribution.read_project())


@pytest.fixture(scope="module")
def wheel(python: Path) -> Path:
    distribution.OUT.mkdir(exist_ok=True)
    return distribution.make_wheel(python, platform.machine())


@pytest.fixture(scope="module")
def from_wheel(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    environment = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    requirement = f"{wheel}[schematizer,postgresql]"
    subprocess.run([environment / "bin" / "pip", "install", "--quiet", requirement], check=True)
    return environment / "bin" / PROGRAM


@pytest.fixture(scope="module")
def from_archive(python: Path, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    distribution.install(python, wheel)
    archive = distribution.make_archive(python, PROGRAM, distribution.read_project())
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    [program] = folder.glob(f"*/{PROGRAM}")
    return program


def works(program: Path, folder: Path, database_url: str = "") -> None:
    """It makes its tables, registers, searches, and serves its pages and their files."""
    registry = Registry(folder / "registry.db", database_url=database_url, program=[str(program)]).start()
    try:
        made = registry.register("cdc.shop.orders-value", RECORD)
        assert made.status == 200, made.body
        for path, content in (
            (f"/schemas/ids/{made.body['id']}/schema", b'"doc":"how many"'),
            ("/watson/", b"cdc.shop"),
            ("/watson/sources/cdc.shop/orders", b"how many"),
            ("/watson/search?q=amount", b"how many"),
            ("/watson/static/watson.css", b"color-scheme"),
            ("/watson/static/htmx.min.js", b"htmx"),
            ("/api/v1/openapi.json", b'"/producers"'),
            ("/sign-in/", b"API key id"),
        ):
            with urllib.request.urlopen(registry.url + path, timeout=60) as answer:  # noqa: S310 - http
                assert content in answer.read(), path
        sql = {"format": "postgresql", "text": "CREATE TABLE t (id int PRIMARY KEY, name text)", "source": "t"}
        registered = registry.call("POST", "/api/v1/namespaces/cdc.shop/schemas", sql)
        assert registered.status == 200, registered.body
        plan = registry.call("GET", f"/api/v1/plans/snowflake?table=t&schema_id={registered.body['schema_id']}")
        assert "CREATE TABLE" in json.dumps(plan.body)
    finally:
        assert registry.stop() == 0, registry.log


def test_the_wheel_on_sqlite(from_wheel: Path, tmp_path: Path) -> None:
    works(from_wheel, tmp_path)


def test_the_wheel_on_postgresql(from_wheel: Path, tmp_path: Path, url: str) -> None:
    works(from_wheel, tmp_path, url)


def test_the_archive_on_sqlite(from_archive: Path, tmp_path: Path) -> None:
    works(from_archive, tmp_path)


def test_the_archive_on_postgresql(from_archive: Path, tmp_path: Path, url: str) -> None:
    works(from_archive, tmp_path, url)
