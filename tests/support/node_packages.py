"""Packages of Node.js that tests run: what tests/support/node/package-lock.json names, installed into `.local/node`."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from dev.local_stack.process.locks import locked
from dev.local_stack.process.paths import local_folder

SOURCE = Path(__file__).with_name("node")
LOCK = SOURCE / "package-lock.json"
MISSING = "Node.js is not installed: apt-get install nodejs npm"


def node() -> str:
    """The program. Skips the test where there is none; in continuous integration it fails."""
    program, installer = shutil.which("node"), shutil.which("npm")
    if program is None or installer is None:
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    return program


def script(name: str) -> Path:
    """tests/support/node/NAME, where it finds its packages."""
    folder = local_folder() / "node" / hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]
    with locked(folder):
        if not (folder / "complete").exists():
            _install(folder)
        target = folder / name
        fresh = target.with_name(f".{name}.{os.getpid()}")
        shutil.copyfile(SOURCE / name, fresh)
        fresh.rename(target)
    return target


def _install(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in (LOCK, SOURCE / "package.json"):
        shutil.copy(file, folder)
    # No package's own script is run: none of these needs one.
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (folder / "complete").touch()
