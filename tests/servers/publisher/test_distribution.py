"""`make dist` makes programs that need no Python and no network, and a wheel that does what the checkout does."""

from __future__ import annotations

import gzip
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dev.tools import distribution
from tests.support.publisher.sent import at_least

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra.cluster import Session

    from tests.support.publisher.publisher_process import PublisherProcess
    from tests.support.publisher.sent import Sent

pytestmark = [pytest.mark.exhaustive, pytest.mark.servers, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[3]
ROWS = 100


@pytest.fixture(scope="module")
def made() -> Path:
    """The folder of what has been made just now."""
    shutil.rmtree(distribution.OUT, ignore_errors=True)
    assert distribution.main() == 0
    return distribution.OUT


@pytest.fixture(scope="module")
def programs(made: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The unpacked programs by name."""
    folder = tmp_path_factory.mktemp("programs")
    for archive in made.glob("*.tar.gz"):
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
    return {path.name.rpartition("-")[0]: path / path.name.rpartition("-")[0] for path in folder.iterdir()}


def alone(*command: object) -> str:
    """The output of a program in an empty environment, where there is no network and no Python to be found."""
    away = ["unshare", "--net", "--map-root-user"] if shutil.which("unshare") else []
    return subprocess.run(
        [*away, "env", "-i", *map(str, command)], capture_output=True, text=True, check=True, timeout=120
    ).stdout


def test_the_programs_need_nothing(programs: dict[str, Path]) -> None:
    assert sorted(programs) == sorted(distribution.PROGRAMS)
    for name, program in programs.items():
        assert alone(program, "--version").startswith(name)
        assert "CDC-" not in alone(program, "--help")


def test_a_log_is_read_alike(programs: dict[str, Path], tmp_path: Path) -> None:
    [packed] = (ROOT / "tests/vectors/segments/5.0/Zstd").glob("*.log.gz")
    segment = tmp_path / packed.stem
    segment.write_bytes(gzip.decompress(packed.read_bytes()))
    shown = alone(programs["cassandra-commitlog"], "dump", segment)
    assert shown.count("\n") > ROWS
    plain = [sys.executable, "-m", "cassandra_storage.commands.commitlog", "dump", str(segment)]
    assert shown == subprocess.run(plain, capture_output=True, text=True, check=True).stdout


def test_a_publisher_sends_what_is_written(
    publisher: PublisherProcess,
    programs: dict[str, Path],
    cql: Session,
    fresh_keyspace: str,
    sent: Callable[..., list[Sent]],
) -> None:
    cql.execute(f"CREATE TABLE {fresh_keyspace}.t (p int PRIMARY KEY, v text) WITH cdc = true")
    publisher.program = ["env", "-i", str(programs["cassandra-publisher"])]
    publisher.start()
    for p in range(ROWS):
        cql.execute(f"INSERT INTO {fresh_keyspace}.t (p, v) VALUES ({p}, 'v')")
    sent(fresh_keyspace, "t", at_least(ROWS))
    families = text_string_to_metric_families(publisher.get("/metrics")[1])
    assert {family.name: family.samples[0].value for family in families if family.samples}["cdc_compiled"] == 1
    assert publisher.stop() == 0
    assert "CDC-007" not in publisher.log()


@pytest.mark.parametrize("is_enabled", [True, False], ids=["core", "plain"])
def test_the_wheel_does_the_same(made: Path, tmp_path: Path, is_enabled: bool) -> None:  # noqa: FBT001  the parameter
    """The tests of the formats, the messages and the fold, with its core and without."""
    [wheel] = made.glob(f"*{platform.machine()}.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path)  # noqa: S202  our own, made a moment ago
    for folder in ("tests", "docs", "dev"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / file, tmp_path)
    packages = ("cassandra_storage", "cdc_common", "cdc_native", "materializer", "stream_runtime")
    tests = [f"tests/unit/{package}" for package in packages]
    command = [sys.executable, "-m", "pytest", "-m", "not servers", "-x", *tests, "-k", "not mutant"]
    environment = {name: value for name, value in os.environ.items() if name != "CDC_EXHAUSTIVE"}  # as many as each run
    environment |= {"CDC_NATIVE": str(int(is_enabled)), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=1500
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert f"native core {'in use' if is_enabled else 'off'}" in done.stdout
