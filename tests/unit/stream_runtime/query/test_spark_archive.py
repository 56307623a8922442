"""The archive for executors: what is in it, and that it works wherever it is unpacked."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from importlib.metadata import distribution
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.process.paths import project_root
from stream_runtime.query import spark_archive

if TYPE_CHECKING:
    from pathlib import Path

IMPORTED = """
import importlib, importlib.metadata, json, pkgutil, sys
program, *workers = sys.argv[1:]
files = [importlib.import_module(name).__file__ for name in workers]
missing = set()
for module in pkgutil.walk_packages(importlib.import_module(program).__path__, f"{program}."):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        missing.add(error.name)
print(json.dumps([importlib.metadata.version("cassandra-cdc-materializer"), sorted(missing), *files]))
"""
"""Imports what workers do, and all that the program has: the driver's modules need PySpark, nothing else is missing."""
LIBRARIES = ("confluent_kafka", "pyarrow", "rocksdict", "structlog", "cdc_common.messages.envelope")
WORKERS = {
    "materializer": (*LIBRARIES, "cassandra_storage", "materializer.worker.open_partitions"),
    "transformer": (*LIBRARIES, "transformer.job.worker_loop", "cdc_common.clients.registry.schematizer"),
}


def test_it_needs_what_a_worker_imports_and_nothing_of_spark_or_of_developers() -> None:
    needed = spark_archive.needed_distributions("materializer").keys()
    assert needed >= {"rocksdict", "pyarrow", "confluent-kafka", "fastavro", "pydantic", "structlog"}
    assert not needed & {"pyspark", "py4j", "pytest", "mypy", "ruff", spark_archive.OWN}


def test_a_job_needs_the_client_of_the_registry_and_nothing_of_its_service() -> None:
    for program in WORKERS:
        needed = spark_archive.needed_distributions(program).keys()
        assert needed >= {"httpx", "cachetools"}
        assert not needed & {"fastapi", "alembic", "sqlglot", "sqlalchemy"}


def test_it_has_all_our_packages() -> None:
    with (project_root() / "pyproject.toml").open("rb") as file:
        found = tomllib.load(file)["tool"]["setuptools"]["packages"]["find"]["include"]
    packages = {pattern.removesuffix("*") for pattern in found} - {"cassandra_cdc_testcontainers"}  # no job needs it
    assert set(spark_archive.OWN_PACKAGES) == packages


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_archive, "_requirements", lambda *_: [("no-such-package", frozenset())])
    with pytest.raises(CdcError, match="no-such-package") as caught:
        spark_archive.write_archive(None, "materializer")  # type: ignore[arg-type]  # it fails before
    assert caught.value.code is Code.CONFIG_INVALID


def test_an_archive_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CdcError, match="nowhere") as caught:
        spark_archive.write_archive(tmp_path / "nowhere" / "archive.tar.gz", "materializer")
    assert caught.value.code is Code.CONFIG_INVALID


@pytest.mark.exhaustive
@pytest.mark.parametrize("program", WORKERS)
def test_it_works_wherever_it_is_unpacked(program: str, tmp_path: Path) -> None:
    target = tmp_path / "archive.tar.gz"
    assert spark_archive.write_archive(target, program) == target.stat().st_size
    assert list(tmp_path.iterdir()) == [target]
    for name in ("here", "there"):
        folder = tmp_path / name
        shutil.unpack_archive(target, folder, filter="fully_trusted")
        python = [str(folder / "bin" / "python"), "-I"]
        version, missing, *files = json.loads(said(*python, "-c", IMPORTED, program, *WORKERS[program]))
        assert version == distribution(spark_archive.OWN).version
        assert missing == ["pyspark"]
        assert all(file.startswith(f"{folder}/lib") for file in files)
        helped = said(*python, "-m", program, "--help")
        assert helped.startswith(f"Usage: python -m {program} ")
        assert " run " in helped


def said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
