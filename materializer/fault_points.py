"""The places where a crash is tried: the one list that tests and the tables of docs/crashes.md are made from.

`reach(point)` does nothing, unless the environment named the point when the process began:

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
from typing import NamedTuple, TypeAlias


class FaultPoint(Enum):
    """A place in a task's protocol, in the order of its steps; the value tells what is true if the process dies there,
    and what the partition's next task does.
    """

    BEFORE_INIT = "Nothing has happened."
    AFTER_INIT = "The producer is initialised, which fenced the partition's former task; nothing else has happened."
    AFTER_POSITION = "The committed position has been read; nothing has been done."
    AFTER_ADOPT = "A new partition's first offset is committed; there is no state yet."
    IN_FETCH = "Some files of a snapshot lie beside the local state; the next task throws them away."
    BEFORE_RESTORE_SWAP = "A snapshot lies beside the local state, which it has not replaced yet."
    IN_RESTORE_SWAP = "The local state is deleted; the next task fetches the snapshot again."
    IN_RESTORE = "The local state is an ancestor of the committed version; the next task applies the changelogs left."
    AFTER_RESTORE = "The local state is at the committed version."
    AFTER_FOLD = "A chunk is folded in memory only."
    AFTER_PART_FOLD = "A part of a chunk, such as some rows of a partition's deletion, is folded in memory only."
    IN_PRODUCE = "Some of a chunk's messages lie in an open transaction, which the next task aborts."
    AFTER_PRODUCE = "All of a chunk's messages lie in an open transaction, which the next task aborts."
    IN_WRITE = "A file of the checkpoint location lies under a temporary name, which nobody reads."
    AFTER_CHANGELOG = "A changelog is stored that no commit names; the next task writes another one."
    AFTER_SEND_OFFSETS = "The position is part of the open transaction, which the next task aborts."
    AFTER_COMMIT = "Messages, position and version are true; the next task applies the changelog to the local state."
    AFTER_APPLY = "The local state is at the committed version; the chunk is done."
    AFTER_PART = "A part of a chunk is done; the next task goes on behind it, within a message if it stands there."
    BEFORE_UPLOAD = "A copy of the local state lies beside it; the next snapshot makes another one."
    IN_UPLOAD = "Some of a snapshot's files are stored without a manifest: nobody sees them."
    AFTER_UPLOAD = "All of a snapshot's files are stored without a manifest: nobody sees them."
    AFTER_SNAPSHOT = "A snapshot is stored; what it replaces has not been deleted."
    IN_CLEANUP = "Old changelogs have been deleted, old snapshots have not."
    AFTER_MANIFESTS = "Old snapshots' manifests have been deleted, their files have not."
    AFTER_CLEANUP = "What nothing refers to has been deleted."


class ReshardPoint(Enum):
    """As FaultPoint, of `state reshard`, which is run again."""

    AFTER_CATCH_UP = (
        "The old partitions stand at the first message that needs the new ones, which the next run finds again; "
        "nothing else has changed."
    )
    AFTER_MARK = "Some positions are marked, which keeps the job away; the state is as it was. The next run marks all."
    IN_REDISTRIBUTION = "Some new states are stored that no position names; the next run stores others."
    BEFORE_SWITCH = "All new states are stored that no position names; the next run stores others."
    IN_COMMIT = "All positions lie in an open transaction, which the next run aborts."
    AFTER_SWITCH = "The new states are true; the next run folds their backlog."
    IN_FOLD = "A fold's messages, its changelog and its position lie in an open transaction, which the next run aborts."
    IN_BACKLOG = "Some of the backlog is folded; the next run folds all of it again, which changes nothing twice."
    AFTER_FINISH = "All is done; the next run has nothing to do."


class RebuildPoint(Enum):
    """As ReshardPoint, of `rebuild`."""

    POSITION_MARKED = (
        "Some positions are set behind all raw messages and marked, which keeps the job away; the next run keeps these "
        "and sets the others."
    )
    ROWS_SENT = "The ends of some rows lie in an open transaction, which the next run aborts; it ends them again."
    ROWS_ENDED = "Readers of the change topic have no rows; the next run finds none to be ended."
    STATE_DELETED = "Some states are deleted; the next run deletes the rest."
    STATE_BEGUN = "Some new states are stored; the next run deletes and stores them again."
    POSITIONS_SENT = "The positions without their marks lie in an open transaction, which the next run aborts."
    REBUILD_DONE = "All is done. Another run starts the table over once more."


AnyPoint: TypeAlias = FaultPoint | ReshardPoint | RebuildPoint


class InjectedFaultError(Exception):
    """What `reach` raises where the environment says `raise`."""


class Fault(NamedTuple):
    """The `nth` time that `point` is reached, `action` (kill, stop or raise); 0 only counts what is reached."""

    point: AnyPoint
    nth: int
    action: str


def parse(text: str) -> Fault:
    """A fault as CDC_FAULT gives it."""
    name, _, rest = text.partition(":")
    count, _, action = rest.partition(":")
    points = next(each for each in (FaultPoint, ReshardPoint, RebuildPoint) if name.upper() in each.__members__)
    return Fault(points[name.upper()], int(count or "1"), action or "kill")


armed = parse(os.environ["CDC_FAULT"]) if "CDC_FAULT" in os.environ else None
reached: Counter[AnyPoint] = Counter()


def reach(point: AnyPoint) -> None:
    """Called where `point` is, at some for each message; see the module's text."""
    if armed is None:
        return
    reached[point] += 1
    if point is not armed.point or reached[point] != armed.nth or not _is_first():
        return
    if armed.action == "raise":
        raise InjectedFaultError(point.name)
    os.kill(os.getpid(), signal.SIGSTOP if armed.action == "stop" else signal.SIGKILL)


def _is_first() -> bool:
    once = os.environ.get("CDC_FAULT_ONCE")
    if once is None:
        return True
    try:
        Path(once).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
