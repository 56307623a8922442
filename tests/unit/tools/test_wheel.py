"""The wheel holds the programs and libraries, and nothing of a checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

from local_stack.process.paths import project_root

if TYPE_CHECKING:
    from pathlib import Path

IMPORT_NAMES = {
    "cassandra_commitlog",
    "cassandra_files",
    "cassandra_storage",
    "cdc_messages",
    "cdc_program",
    "filler",
    "materializer",
    "publisher",
    "schematizer",
}
SOURCES = (*sorted(IMPORT_NAMES), "local_stack", "bench", "tools", "verify")


def test_the_wheel_adds_these_import_names(tmp_path: Path) -> None:
    root, source = project_root(), tmp_path / "source"
    for name in SOURCES:
        shutil.copytree(root / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(root / file, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run(command, check=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        files = packed.namelist()
    assert {file.split("/")[0] for file in files if ".dist-info/" not in file} == IMPORT_NAMES
    assert "materializer/job/log4j2.properties" in files
    assert {f"materializer/{room}/__init__.py" for room in ("fold", "job", "store", "commands/reshard")} <= set(files)
