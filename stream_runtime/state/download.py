"""Downloads files from the checkpoint location, several ranges of them at once.

A store on the network answers a request only after a while, and sends each answer at the rate of one connection. Many
requests at once hide both.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol

from stream_runtime.state.deadline import in_thread, no_answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Future

RANGE_BYTES = 4 * 1024 * 1024
_FILES_AHEAD = 4  # that are opened before their first range is read: opening is a request too


class Download(NamedTuple):
    """A file to copy from the location to this machine."""

    # The file of the location.
    path: str
    # The file of this machine.
    target: Path
    # Its size, in bytes.
    size: int


class RemoteFile(Protocol):
    """pyarrow's NativeFile. Several threads may read from it."""

    def read_at(self, nbytes: int, offset: int, /) -> bytes: ...


class Location(Protocol):
    """stream_runtime.state.object_store.ObjectStore."""

    def open(self, path: str) -> RemoteFile: ...
    def full_path(self, path: str) -> str: ...


class ReadLimit:
    """Limits the ranges that all downloads of a process hold in memory together. Each download gets the same share."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used = 0
        self._downloads = 0
        self._changed = threading.Condition()

    @contextmanager
    def download(self) -> Iterator[None]:
        """Count one download for as long as it takes ranges."""
        self._change(downloads=1)
        try:
            yield
        finally:
            self._change(downloads=-1)

    def take(self, own: int, seconds: float) -> bool:
        """Whether a download that has `own` ranges may have another one. One that has none waits for its first."""
        with self._changed:
            is_free = self._changed.wait_for(lambda: self._is_free(own), 0 if own else seconds)
            self._used += is_free
            return is_free

    def give_back(self) -> None:
        self._change(used=-1)

    def _is_free(self, own: int) -> bool:
        return self._used < self._most and own < max(1, self._most // self._downloads)

    def _change(self, downloads: int = 0, used: int = 0) -> None:
        with self._changed:
            self._downloads += downloads
            self._used += used
            self._changed.notify_all()


class _Opened:
    """A file that is being downloaded."""

    def __init__(self, file: Download, remote: Future[RemoteFile]) -> None:
        self.file = file
        self._ranges_left = max(1, -(-file.size // RANGE_BYTES))  # an empty file has one
        self._remote = remote
        self._target: BinaryIO | None = None

    def read(self, offset: int) -> bytes:
        """Read one range, in another thread. It writes nothing to this machine, because it may hang and continue later,
        when another attempt uses the same names.
        """
        return self._remote.result().read_at(RANGE_BYTES, offset)

    def write(self, offset: int, data: bytes) -> bool:
        """Whether the file is complete now."""
        if self._target is None:
            self._target = self.file.target.open("wb")
        written = 0
        while written < len(data):
            written += os.pwrite(self._target.fileno(), memoryview(data)[written:], offset + written)
        self._ranges_left -= 1
        return not self._ranges_left

    def close(self) -> None:
        if self._target is not None:
            self._target.close()


class _Range(NamedTuple):
    """A range that is being read. ends_at: when it is too late, of the monotonic clock."""

    file: _Opened
    offset: int
    ends_at: float


def download_all(
    location: Location, files: Iterable[Download], limit: ReadLimit, answer_seconds: float
) -> Iterator[tuple[int, Download | None]]:
    """Copy the files to this machine: the size of each range, and the file that it has completed.

    Files are opened and read in other threads; all the rest is done in the caller's. Their errors are raised here.
    CdcError(CHECKPOINT_LOCATION) for a read without an answer.
    """
    opened: set[_Opened] = set()
    running: dict[Future[bytes], _Range] = {}
    todo = _ranges(location, files)
    following = next(todo, None)
    with limit.download():
        try:
            while following is not None or running:
                while following is not None and _take(limit, len(running), answer_seconds):
                    file, offset = following
                    opened.add(file)
                    future = in_thread(partial(file.read, offset))
                    running[future] = _Range(file, offset, time.monotonic() + answer_seconds)
                    following = next(todo, None)
                for future in _first_done(location, running, answer_seconds):
                    data = future.result()
                    file, offset, _ = running[future]
                    is_complete = file.write(offset, data)
                    del running[future]
                    limit.give_back()
                    if is_complete:
                        file.close()
                        opened.discard(file)
                    yield len(data), file.file if is_complete else None
                    del future, data
        finally:
            for future in running:  # the bytes that are on their way still take memory
                future.add_done_callback(lambda _: limit.give_back())
            for file in opened:
                file.close()


def _ranges(location: Location, files: Iterable[Download]) -> Iterator[tuple[_Opened, int]]:
    """The ranges of all files, in order."""
    left = iter(files)
    ahead = deque[_Opened]()
    while True:
        for file in islice(left, 1 + _FILES_AHEAD - len(ahead)):
            ahead.append(_Opened(file, in_thread(partial(location.open, file.path))))
        if not ahead:
            return
        current = ahead.popleft()
        for offset in range(0, max(1, current.file.size), RANGE_BYTES):
            yield current, offset


def _take(limit: ReadLimit, own: int, seconds: float) -> bool:
    if not limit.take(own, seconds):
        if not own:
            raise no_answer(seconds, "reading for other source partitions")
        return False
    return True


def _first_done(location: Location, running: dict[Future[bytes], _Range], seconds: float) -> set[Future[bytes]]:
    late = min(running.values(), key=lambda read: read.ends_at)
    done, _ = wait(running, max(0.0, late.ends_at - time.monotonic()), FIRST_COMPLETED)
    if not done:
        raise no_answer(seconds, f"reading {location.full_path(late.file.file.path)}")
    return done
