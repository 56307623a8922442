"""Gives up a snapshot's SSTables before their links fill the node's disk: compaction cannot free what is linked."""

from __future__ import annotations

import shutil
from time import monotonic
from typing import TYPE_CHECKING

from publisher.interval import Interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from cassandra_storage.files.sstables import SSTableFile

CHECK_SECONDS = 5.0
MORE_PERCENT = 1.0  # than the bound must be free before SSTables are linked again


class LowDiskError(Exception):
    """The links must go; `str` names the file system."""


class DiskSpace:
    """The file systems of the node's data directories. `least_percent`: of each, must be free; 0: no bound."""

    def __init__(self, folders: Sequence[Path], least_percent: float) -> None:
        self._folders = folders
        self._least = least_percent
        self._interval = Interval(CHECK_SECONDS, monotonic())

    def is_due(self) -> bool:
        """Return whether it is time to check again."""
        return self._interval.is_due(monotonic())

    def shortage(self, more: float = 0.0) -> str:
        """The directory whose file system has less free than the bound and so many percent more; empty if none has."""
        for folder in self._folders if self._least else ():
            space = shutil.disk_usage(folder)
            if 100 * space.free < (self._least + more) * space.total:
                return f"less than {self._least + more:g} % of the disk of {folder} is free"
        return ""


def linked_only_here(files: Iterable[SSTableFile]) -> int:
    """The bytes of Data.db that no directory but the snapshot's has: removing the links frees them."""
    found = [file.data_path.stat() for file in files]
    return sum(status.st_size for status in found if status.st_nlink == 1)
