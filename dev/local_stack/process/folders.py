"""The folder of one server in `.run`: fresh, and gone afterwards unless something failed."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil

from dev.local_stack.process.paths import run_folder

# What is removed even where the rest is kept to be read.
OWNER = "owner.pid"
BULKY = ("data", "commitlog", "cdc_raw", "hints", "saved_caches")


class ServerFolder:
    """`path` is `given`, which `close` leaves alone, or a fresh folder in `.run`."""

    def __init__(self, name: str, given: Path | None = None) -> None:
        self._is_own = given is None
        if given is None:
            run_folder().mkdir(parents=True, exist_ok=True)
            _thin_out()
            given = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=run_folder()))
        self.path = given.resolve()
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / OWNER).write_text(str(os.getpid()))

    def close(self, *, keep: bool = False) -> None:
        """Remove it if it is ours; with `keep` the logs and settings stay."""
        if not self._is_own:
            return
        if keep:
            _remove_bulk(self.path)
        else:
            shutil.rmtree(self.path, ignore_errors=True)


def _thin_out() -> None:
    """Remove the bulk of what a killed process left: its logs stay, its data do not."""
    for owner in run_folder().glob(f"*/{OWNER}"):
        with suppress(OSError, ValueError):
            if not psutil.pid_exists(int(owner.read_text())):
                _remove_bulk(owner.parent)


def _remove_bulk(folder: Path) -> None:
    for found in [found for name in BULKY for found in folder.rglob(name)]:
        shutil.rmtree(found, ignore_errors=True)
