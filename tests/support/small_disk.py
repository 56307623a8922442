"""A file system of its own, a few MiB large."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def small_disk(folder: Path, mib: int) -> Iterator[Path]:
    """Mounted at `folder`, which is made; the test is skipped where this user may not mount."""
    folder.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    command = [mount or "mount", "-t", "tmpfs", "-o", f"size={mib}m", "none", str(folder)]
    if mount is None or umount is None or subprocess.run(command, check=False).returncode:
        pytest.skip("a file system of its own takes the right to mount one")
    try:
        yield folder
    finally:
        subprocess.run([umount, "--lazy", str(folder)], check=True)


def fill(folder: Path, but_bytes: int) -> Path:
    """Leave so many bytes free in the file system of `folder`; gives the file to remove."""
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(max(shutil.disk_usage(folder).free - but_bytes, 0)))
    return ballast
