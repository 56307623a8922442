"""A local cluster starts from an installation that its user cannot write."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stream_runtime.query import spark_home
from stream_runtime.query.spark_home import delete_home, make_home, work_folder, writable_home

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Spark as it is installed, with the folder of an earlier start."""
    home = tmp_path / "installed"
    for folder in ("bin", "jars", "work/app-1"):
        (home / folder).mkdir(parents=True)
    (home / "bin" / "spark-submit").write_text("#!/bin/sh")
    return home


def test_it_has_all_of_the_installation_and_a_folder_of_its_own(installed: Path, tmp_path: Path) -> None:
    home = make_home(installed, tmp_path)
    assert (home / "bin" / "spark-submit").read_text() == "#!/bin/sh"
    assert {entry.name for entry in home.iterdir()} == {"bin", "jars", "work"}
    assert list((home / "work").iterdir()) == []
    (home / "work" / "app-2").mkdir()
    assert not (installed / "work" / "app-2").exists()


def test_it_is_deleted_and_the_installation_is_not(installed: Path, tmp_path: Path) -> None:
    home = make_home(installed, tmp_path)
    delete_home(home)
    assert not home.exists()
    assert (installed / "bin" / "spark-submit").exists()


def test_logs_of_executors_outlive_it(installed: Path, tmp_path: Path) -> None:
    home = make_home(installed, tmp_path)
    log = home / "work" / "app-2" / "0" / "stderr"
    log.parent.mkdir(parents=True)
    log.write_text("no room")
    delete_home(home)
    assert log.read_text() == "no room"


@pytest.mark.parametrize("is_set", [True, False])
def test_only_the_jvm_has_it(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_set: bool) -> None:
    homes: list[Path] = []
    monkeypatch.setattr(spark_home, "_homes", homes)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert work_folder("app-3") is None
    if is_set:
        monkeypatch.setenv("SPARK_HOME", str(installed))
    else:
        monkeypatch.delenv("SPARK_HOME", raising=False)
    before = os.environ.get("SPARK_HOME")
    with writable_home():
        [home] = homes
        assert os.environ["SPARK_HOME"] == str(home)
        assert home.parent == tmp_path
        assert (home / "bin" / "spark-submit").exists(), "of pyspark, if none is set"
    assert os.environ.get("SPARK_HOME") == before
    assert work_folder("app-3") == home / "work" / "app-3"
