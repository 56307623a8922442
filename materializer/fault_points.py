"""The places where a crash is tried: the one list that tests and docs/operations.md's crash table are made from.

`reach(point)` does nothing, unless the environment names the point:

    CDC_FAULT=after_commit          kill -9 of the process when it is reached
    CDC_FAULT=after_commit:3        … the third time
    CDC_FAULT=after_commit:3:raise  … raise InjectedFaultError instead
    CDC_FAULT=after_commit:3:stop   … SIGSTOP instead: a process that comes back after its successor
    CDC_FAULT_ONCE=<file>           … and only if that file could be made: once for all processes
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from enum import Enum
from pathlib import Path


class FaultPoint(Enum):
    """A place in a task's protocol; the value tells what is true if the process dies there."""

    AFTER_INIT = "The producer is initialised, which fenced the partition's former task; nothing else has happened."
    AFTER_POSITION = "The committed position has been read; nothing has been done."
    AFTER_ADOPT = "A new partition's first offset is committed; there is no state yet."
    BEFORE_RESTORE_SWAP = "A snapshot lies beside the local state, which it has not replaced yet."
    AFTER_RESTORE = "The local state is at the committed version."
    AFTER_FOLD = "A chunk is folded in memory only."
    AFTER_PRODUCE = "Messages lie in an open transaction, which the next task aborts."
    AFTER_CHANGELOG = "A changelog is stored that no commit names; the next task writes another one."
    AFTER_SEND_OFFSETS = "The position is part of the open transaction, which the next task aborts."
    AFTER_COMMIT = "Messages, position and version are true; the next task applies the changelog to the local state."
    AFTER_APPLY = "The local state is at the committed version; the chunk is done."
    AFTER_UPLOAD = "A snapshot's files are stored without a manifest: nobody sees them."
    AFTER_SNAPSHOT = "A snapshot is stored; what it replaces has not been deleted."
    IN_CLEANUP = "Some of what nothing refers to has been deleted."


class InjectedFaultError(Exception):
    """What `reach` raises where the environment says `raise`."""


_reached: Counter[FaultPoint] = Counter()


def reach(point: FaultPoint) -> None:
    """Called where `point` is; see the module's text."""
    fault = os.environ.get("CDC_FAULT")
    if fault is None:
        return
    name, _, rest = fault.partition(":")
    count, _, action = rest.partition(":")
    if name.upper() != point.name:
        return
    _reached[point] += 1
    if _reached[point] != int(count or "1") or not _is_first():
        return
    if action == "raise":
        raise InjectedFaultError(point.name)
    os.kill(os.getpid(), signal.SIGSTOP if action == "stop" else signal.SIGKILL)


def _is_first() -> bool:
    once = os.environ.get("CDC_FAULT_ONCE")
    if once is None:
        return True
    try:
        Path(once).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
