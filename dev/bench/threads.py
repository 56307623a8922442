"""CPU seconds of the threads of running processes, by their names: what a JVM or a worker spends, and on what."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_TICKS = os.sysconf("SC_CLK_TCK")
_UTIME, _STIME = 11, 12  # of the fields after the name in /proc/<pid>/stat; see proc(5)


def by_thread(pids: Iterable[int]) -> dict[str, float]:
    """CPU seconds of each group of threads that run now. Numbers at the end of a name do not count."""
    found: dict[str, float] = {}
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").glob("*/stat"):
            try:
                head, _, tail = task.read_text(encoding="utf-8", errors="replace").rpartition(")")
            except (FileNotFoundError, ProcessLookupError):  # it has ended
                continue
            fields = tail.split()
            name = re.sub(r"[-#: ]*\d*$", "", head.partition("(")[2])
            found[name] = found.get(name, 0.0) + (int(fields[_UTIME]) + int(fields[_STIME])) / _TICKS
    return found
