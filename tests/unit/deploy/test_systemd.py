"""The units: systemd takes them, what they start exists, and it may write where its settings say and nowhere else."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tomllib
from configparser import RawConfigParser
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdc_common.settings.tables import all_tables
from stream_runtime.query.spark_session import END_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[3]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
BIN = "/opt/cassandra-cdc/bin/"
STATE = Path("/var/lib")  # where systemd makes each StateDirectory
DEFAULTS: Any = all_tables()()
each_unit = pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)


def service(unit: Path) -> Mapping[str, str]:
    parser = RawConfigParser(strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # the documented way to keep capitals
    parser.read_string(unit.read_text())
    return parser["Service"]


def complaints(unit: Path, folder: Path) -> str:
    """Return the output of `systemd-analyze verify` for the unit, with its program in `folder`."""
    if (analyze := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd-analyze is not on the PATH")
    program = folder / unit.stem
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    copy = folder / unit.name
    copy.write_text(unit.read_text().replace(BIN, f"{folder}/"))
    done = subprocess.run([analyze, "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr + ("" if done.returncode == 0 else f"exit status {done.returncode}")


@each_unit
def test_systemd_takes_it(unit: Path, tmp_path: Path) -> None:
    assert complaints(unit, tmp_path) == ""


def test_a_wrong_line_would_be_noticed(tmp_path: Path) -> None:
    wrong = tmp_path / "cassandra-wrong.service"
    wrong.write_text(UNITS[0].read_text().replace("NoNewPrivileges=", "NoNewPrivilege="))
    folder = tmp_path / "checked"
    folder.mkdir()
    assert "NoNewPrivilege" in complaints(wrong, folder)


@each_unit
def test_what_it_starts_exists(unit: Path) -> None:
    path, command = shlex.split(service(unit)["ExecStart"])
    assert path == BIN + unit.stem
    with (ROOT / "pyproject.toml").open("rb") as file:
        module, _, name = tomllib.load(file)["project"]["scripts"][unit.stem].partition(":")
    assert command in getattr(import_module(module), name).commands


@each_unit
def test_it_starts_again_but_for_what_only_a_person_mends(unit: Path) -> None:
    found = service(unit)
    assert (found["Restart"], found["RestartPreventExitStatus"]) == ("on-failure", "2")
    assert found["NoNewPrivileges"] == "yes"


@each_unit
def test_it_reads_its_own_logins(unit: Path) -> None:
    """As docs/guides/install.md says; the file need not be there."""
    program = unit.stem.removeprefix("cassandra-")
    assert service(unit)["EnvironmentFile"] == f"-/etc/cdc/{program}.env"


@each_unit
def test_no_core_holds_what_it_had_in_memory(unit: Path) -> None:
    assert service(unit)["LimitCORE"] == "0"


@pytest.mark.parametrize("job", ["materializer", "transformer", "archive", "warehouse", "joinery"])
def test_a_driver_has_time_to_end_its_batch(job: str) -> None:
    """By default systemd ends Spark's own processes at the same time."""
    unit = service(ROOT / "deploy" / "systemd" / f"cassandra-{job}.service")
    assert unit["KillMode"] == "mixed"
    assert float(unit["TimeoutStopSec"]) > END_SECONDS


def test_they_may_write_where_the_settings_say() -> None:
    publisher, filler, materializer, schematizer, archive, warehouse, joinery = (
        service(ROOT / "deploy" / "systemd" / f"cassandra-{name}.service")
        for name in ("publisher", "filler", "materializer", "schematizer", "archive", "warehouse", "joinery")
    )
    assert publisher["ReadWritePaths"] == str(DEFAULTS.node.cdc_raw_directory)
    assert STATE / publisher["StateDirectory"] == DEFAULTS.publisher.state_directory
    for strict in (publisher, filler, schematizer):
        assert strict["ProtectSystem"] == "strict"
    assert not {"ReadWritePaths", "StateDirectory"} & filler.keys()
    for unit, own in ((materializer, DEFAULTS.materializer), (joinery, DEFAULTS.joinery)):
        for path in (own.state_directory, Path(own.checkpoint_location)):
            assert path.is_relative_to(STATE / unit["StateDirectory"])
    file = Path(DEFAULTS.warehouse.target.removeprefix("duckdb:///"))
    assert file.is_relative_to(STATE / warehouse["StateDirectory"])
    for path in (DEFAULTS.archive.spool_directory, Path(DEFAULTS.archive.location)):
        assert path.is_relative_to(STATE / archive["StateDirectory"])
    assert f"//{STATE / schematizer['StateDirectory']}/" in DEFAULTS.schematizer.database_url
    assert publisher["User"] == filler["User"] == "cassandra"
