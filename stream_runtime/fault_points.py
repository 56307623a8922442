"""Fault points: where tests crash a process. Tests and the tables of fault-points.md are made from this list.

`reach(point)` does nothing unless the environment named the point when the process started:

    CDC_FAULT=after_commit          kill -9 of the process when the point is reached
    CDC_FAULT=after_commit:3        … the third time
    CDC_FAULT=after_commit:3:raise  … raise InjectedFaultError instead
    CDC_FAULT=after_commit:3:stop   … SIGSTOP instead: a process that continues after its successor has started
    CDC_FAULT_ONCE=<file>           … and only if that file could be created: once for all processes
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from enum import Enum
from pathlib import Path
from typing import NamedTuple


class Point(Enum):
    """A kind of fault points is a subclass. No two kinds share a name."""


class FaultPoint(Point):
    """A point in the protocol of a task with a state, in the order of its steps. The value says what holds if the
    process dies there, and what the source partition's next task does.
    """

    BEFORE_INIT = "Nothing has happened."
    AFTER_INIT = (
        "The producer is initialised, which fenced the source partition's former task. Nothing more has happened."
    )
    AFTER_POSITION = "The committed position has been read. Nothing has been done."
    AFTER_ADOPT = "A new source partition's first offset is committed. There is no state yet."
    IN_FETCH = "Some files of a snapshot are stored beside the local state. The next task deletes them."
    BEFORE_RESTORE_SWAP = "A snapshot is stored beside the local state, which it has not replaced yet."
    IN_RESTORE_SWAP = "The local state is deleted. The next task fetches the snapshot again."
    IN_RESTORE = "The local state is an ancestor of the committed version. The next task applies the other changelogs."
    AFTER_RESTORE = "The local state is at the committed version."
    AFTER_FOLD = "A chunk is folded in memory only."
    AFTER_PART_FOLD = "A part of a chunk, such as some rows of a partition deletion, is folded in memory only."
    IN_PRODUCE = "Some of a chunk's messages are in an open transaction, which the next task aborts."
    AFTER_PRODUCE = "All of a chunk's messages are in an open transaction, which the next task aborts."
    IN_WRITE = "A file of the checkpoint location has a temporary name, which is never read."
    AFTER_CHANGELOG = "A changelog is stored that no commit names. The next task writes another one."
    AFTER_SEND_OFFSETS = "The position is part of the open transaction, which the next task aborts."
    AFTER_COMMIT = (
        "Messages, position and version are committed. The next task applies the changelog to the local state."
    )
    AFTER_APPLY = "The local state is at the committed version. The chunk is done."
    AFTER_PART = "A part of a chunk is done. The next task continues after it, within a message if necessary."
    BEFORE_UPLOAD = "A copy of the local state is stored beside it. The next snapshot makes another copy."
    IN_UPLOAD = "Some of a snapshot's files are stored without a manifest: they are not used."
    AFTER_UPLOAD = "All of a snapshot's files are stored without a manifest: they are not used."
    AFTER_SNAPSHOT = "A snapshot is stored. The files that it replaces are not deleted yet."
    IN_CLEANUP = "Old changelogs are deleted, old snapshots are not."
    AFTER_MANIFESTS = "The manifests of old snapshots are deleted, their files are not."
    AFTER_CLEANUP = "All unreferenced files are deleted."


class StatelessPoint(Point):
    """A point in the protocol of a task without a state, in the order of its steps. The value
    says what holds if the process dies there, and what the partition's next task does.
    """

    TASK_OPENING = "Nothing has happened."
    TASK_FENCED = "The producer is initialised, which fenced the partition's former task. Nothing more has happened."
    OFFSET_READ = "The committed offset has been read. Nothing has been done."
    POLLED = "Messages are read, and nothing else has happened. The next task reads them again."
    SCHEMAS_REGISTERED = (
        "The target's schemas are registered. Its topic may not exist yet. The next task gets the same ids."
    )
    TRANSFORMED = "A chunk's messages are transformed in memory only."
    SOME_SENT = "Some of a chunk's messages are in an open transaction, which the next task aborts."
    ALL_SENT = "All of a chunk's messages are in an open transaction, which the next task aborts."
    OFFSET_SENT = "The offset is part of the open transaction, which the next task aborts."
    CHUNK_COMMITTED = "Messages and offset are committed. The next task continues after them."


class InjectedFaultError(Exception):
    """Raised by `reach` if the environment says `raise`."""


class Fault(NamedTuple):
    """The order to fail at a point of the code."""

    # The point. The environment gives a name: the module of its kind may not be imported yet.
    point: Point | str
    # Fail when the point is reached for this time, from 1; 0 only counts the points.
    nth: int
    # The action: kill, stop or raise.
    action: str

    @property
    def name(self) -> str:
        return self.point if isinstance(self.point, str) else self.point.name


def parse(text: str) -> Fault:
    """A fault from the value of CDC_FAULT."""
    name, _, rest = text.partition(":")
    count, _, action = rest.partition(":")
    return Fault(name.upper(), int(count or "1"), action or "kill")


def point_named(name: str) -> Point:
    """The point, of a kind whose module is imported."""
    kind = next(kind for kind in Point.__subclasses__() if name in kind.__members__)
    return kind[name]


armed = parse(os.environ["CDC_FAULT"]) if "CDC_FAULT" in os.environ else None
reached: Counter[Point] = Counter()


def reach(point: Point) -> None:
    """Do what the armed fault says at this point. Called at each fault point, at some for each message. See the
    module's docstring.
    """
    if armed is None:
        return
    reached[point] += 1
    if point.name != armed.name or reached[point] != armed.nth or not _is_first():
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
