"""The executors' Python on the driver's machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.query.planning_python import planning_python

PACKED = f"./environment/{Path(sys.executable).relative_to(sys.prefix)}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_driver_s_environment_stands_in_for_the_archive() -> None:
    with planning_python(PACKED):
        shown = subprocess.run([PACKED, "-c", "import structlog"], capture_output=True, text=True, check=False)
        assert shown.returncode == 0, shown.stderr
        with planning_python(PACKED):  # of another job in this folder
            pass
        assert Path(PACKED).exists()
    assert not Path("environment").is_symlink()


def test_a_link_that_leads_nowhere_is_made_again() -> None:
    Path("environment").symlink_to("gone")
    with planning_python(PACKED):
        assert Path(PACKED).exists()


@pytest.mark.parametrize("executable", ["python3", sys.executable])
def test_a_python_that_is_there_is_left_alone(executable: str, folder: Path) -> None:
    with planning_python(executable):
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("executable", ["/no/such/python", "./environment/no/such", "../environment/bin/python"])
def test_a_python_that_is_nowhere_is_refused(executable: str) -> None:
    with pytest.raises(CdcError, match="PYSPARK_PYTHON") as caught, planning_python(executable):
        raise AssertionError("it was taken")
    assert caught.value.code is Code.SPARK_SETTING


def test_a_folder_in_the_way_stays(folder: Path) -> None:
    (folder / "environment").mkdir()
    with pytest.raises(CdcError, match="cannot be made"), planning_python(PACKED):
        raise AssertionError("it was taken")
    assert (folder / "environment").is_dir()
