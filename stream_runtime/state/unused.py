"""Deletes local states that no worker of this machine uses any more, and measures what all of them take.

A worker that gets a source partition back after a short time needs only the changelogs since. If no task has opened a
state for longer, its source partition has moved away, or its topic is gone. The state can be restored at any time.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import structlog

from stream_runtime.state.rocksdb import LOCK, SLOT, clear_slot, folder_size, is_in_use, lock_slot

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_logger = structlog.get_logger(__name__)
_USED_SECONDS = 300.0  # since its last use in which a state counts as used: workers mark theirs more often


class UnusedLimits(NamedTuple):
    """The limits for states that are not used."""

    # A state that was not used for so long is deleted.
    seconds: float
    # The longest unused states beyond so many bytes in all are deleted.
    bytes: int


class DiskUse(NamedTuple):
    """The disk space of a group's local states on a machine, in bytes."""

    # The machine's name.
    machine: str
    # The states of source partitions that have not moved away.
    used: int
    # The states of source partitions that have moved away.
    unused: int
    # The bytes that the file system has left.
    free: int


class _Slot(NamedTuple):
    """used_at: when it was last opened, closed or marked (s since 1970)."""

    path: Path
    used_at: float
    size: int


def delete_unused(folder: Path, own: Collection[str], limits: UnusedLimits, now: float) -> DiskUse:
    """Delete unused states in the group's folder. `own`: the source partitions that this process works on, as their
    folders are called. It may close their states and open them again later, so these are marked as used.
    """
    used = unused = 0
    found: list[_Slot] = []
    own_slots = {slot for partition in own for slot in _needed(_slots_of(folder / partition))}
    for slot in _slots(folder):
        if slot.path in own_slots:
            with suppress(FileNotFoundError):
                os.utime(slot.path / LOCK, (now, now))
        if slot.path in own_slots or now - slot.used_at < _USED_SECONDS:
            used += slot.size
        else:
            found.append(slot)
    for slot in sorted(found, key=lambda unused: unused.used_at, reverse=True):
        is_kept = now - slot.used_at < limits.seconds and unused + slot.size <= limits.bytes
        if is_kept or not _delete(slot):
            unused += slot.size
    return DiskUse(f"{os.uname().nodename}:{folder}", used, unused, shutil.disk_usage(folder).free)


def _needed(slots: list[Path]) -> set[Path]:
    """The slots of a source partition that are in use; if none is, the first one, which the next task opens. An attempt
    that ran beside a newer one has left any other slot.
    """
    if len(slots) < 2:
        return set(slots)
    return {slot for slot in slots if is_in_use(slot)} or set(slots[:1])


def _slots(folder: Path) -> Iterator[_Slot]:
    for partition in sorted(folder.iterdir()):
        for slot in _slots_of(partition):
            with suppress(OSError):  # deleted since
                yield _Slot(slot, (slot / LOCK).stat().st_mtime, folder_size(slot))


def _slots_of(partition: Path) -> list[Path]:
    """None if the folder is deleted by now, or is no folder."""
    try:
        return sorted(path for path in partition.iterdir() if path.name.startswith(SLOT))
    except OSError:
        return []


def _delete(slot: _Slot) -> bool:
    """Whether it was unused. The lock is held, and goes last, so that no task opens what is being deleted."""
    lock = lock_slot(slot.path)
    if lock is None:
        return False
    try:
        _logger.info("unused state deleted", state=str(slot.path), bytes=slot.size)
        clear_slot(slot.path)
        (slot.path / LOCK).unlink()
    finally:
        os.close(lock)
    with suppress(OSError):  # opened again just now
        slot.path.rmdir()
        slot.path.parent.rmdir()
    return True
