"""Hard links of the segments that a node hands over, so that they outlive their publisher."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.servers.cassandra import CassandraNode

LINK_SECONDS = 0.1


class LinkedSegments(threading.Thread):
    """Hard links of all segments that a node hands over, so that they outlive their publisher; a context manager."""

    def __init__(self, node: CassandraNode, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder = folder
        self._cdc_raw = node.cdc_raw
        self._end = threading.Event()
        folder.mkdir()

    def run(self) -> None:
        while not self._end.wait(LINK_SECONDS):
            self._link()

    def _link(self) -> None:
        for path in self._cdc_raw.glob("CommitLog-*.log"):
            with suppress(FileExistsError, FileNotFoundError):
                os.link(path, self.folder / path.name)

    def end(self) -> list[Path]:
        """All segments, the one that is being written too."""
        self._end.set()
        self.join()
        self._link()
        return sorted(self.folder.iterdir())
