"""The folder of one server in `.run`: fresh, and gone afterwards unless something failed."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from local_stack.paths import run_folder

# What is removed even where the rest is kept to be read.
BULKY = ("data", "commitlog", "cdc_raw", "hints", "saved_caches")


class ServerFolder:
    """`path` is `given`, which is nobody's to remove here, or a fresh folder in `.run`."""

    def __init__(self, name: str, given: Path | None = None) -> None:
        self._is_own = given is None
        if given is None:
            run_folder().mkdir(parents=True, exist_ok=True)
            given = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=run_folder()))
        self.path = given.resolve()
        self.path.mkdir(parents=True, exist_ok=True)

    def close(self, *, keep: bool = False) -> None:
        """Remove it if it is ours; with `keep` the logs and settings stay."""
        if not self._is_own:
            return
        doomed = [found for name in BULKY for found in self.path.rglob(name)] if keep else [self.path]
        for folder in doomed:
            shutil.rmtree(folder, ignore_errors=True)
