"""Files are downloaded in ranges, several at once, within a bound of memory that all downloads of a process share."""

from __future__ import annotations

import errno
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.state.download import RANGE_BYTES, Download, ReadLimit, download_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

SIZES = [0, 1, RANGE_BYTES - 1, RANGE_BYTES, RANGE_BYTES + 1, 5 * RANGE_BYTES + 7]


class MemoryLocation:
    """Files in memory. `running` counts reads, `most` the most at any time. A read of `hangs` waits for `over`."""

    def __init__(self, files: dict[str, bytes], seconds: float = 0.0) -> None:
        self._files, self._seconds = files, seconds
        self._lock = threading.Lock()
        self.running = self.most = 0
        self.hangs = ""
        self.over = threading.Event()

    def full_path(self, path: str) -> str:
        return f"memory://{path}"

    def open(self, path: str) -> MemoryFile:
        return MemoryFile(self, path, self._files[path])

    def read(self, path: str, data: bytes) -> bytes:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        if path == self.hangs:
            self.over.wait()
        time.sleep(self._seconds)
        with self._lock:
            self.running -= 1
        return data


class MemoryFile:
    def __init__(self, location: MemoryLocation, path: str, data: bytes) -> None:
        self._location, self._path, self._data = location, path, data

    def read_at(self, nbytes: int, offset: int, /) -> bytes:
        return self._location.read(self._path, self._data[offset : offset + nbytes])


def files_of(sizes: Iterable[int]) -> dict[str, bytes]:
    return {f"file-{number}": os.urandom(size) for number, size in enumerate(sizes)}


def downloads(files: dict[str, bytes], folder: Path) -> list[Download]:
    return [Download(path, folder / path, len(data)) for path, data in files.items()]


@pytest.mark.parametrize("most", [1, 2, 16])
def test_every_file_is_as_it_was_and_memory_is_bounded(tmp_path: Path, most: int) -> None:
    files = files_of(SIZES)
    location = MemoryLocation(files, 0.002)
    found = list(download_all(location, downloads(files, tmp_path), ReadLimit(most), 10.0))
    assert {download.path for _, download in found if download is not None} == files.keys()
    assert {path: (tmp_path / path).read_bytes() for path in files} == files
    assert sum(size for size, _ in found) == sum(SIZES)
    assert location.most <= most
    assert most == 1 or location.most > 1


def test_two_downloads_share_the_limit(tmp_path: Path) -> None:
    """The second one gets its share although the first one has taken everything."""
    limit = ReadLimit(4)
    first, second = files_of([40 * RANGE_BYTES]), files_of([4 * RANGE_BYTES])
    location = MemoryLocation(first, 0.02)
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    ended: list[str] = []

    def run(name: str, files: dict[str, bytes], own: MemoryLocation) -> None:
        list(download_all(own, downloads(files, tmp_path / name), limit, 10.0))
        ended.append(name)

    threads = [
        threading.Thread(target=run, args=("first", first, location)),
        threading.Thread(target=run, args=("second", second, MemoryLocation(second, 0.02))),
    ]
    for thread in threads:
        thread.start()
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    assert ended == ["second", "first"]
    assert location.most == 4


def test_a_read_that_hangs_is_given_up_and_keeps_its_memory(tmp_path: Path) -> None:
    files = files_of([RANGE_BYTES] * 3)
    location, limit = MemoryLocation(files), ReadLimit(2)
    location.hangs = "file-1"
    with pytest.raises(CdcError, match="reading memory://file-1 has taken longer") as raised:
        list(download_all(location, downloads(files, tmp_path), limit, 0.2))
    assert raised.value.code is Code.CHECKPOINT_LOCATION
    with limit.download():
        assert limit.take(0, 0.1)  # one is left
        assert not limit.take(0, 0.1)
    with pytest.raises(CdcError, match="for other source partitions"):
        list(download_all(MemoryLocation(files), downloads(files, tmp_path), limit, 0.1))
    location.over.set()
    limit.give_back()
    assert sum(1 for _ in download_all(MemoryLocation(files), downloads(files, tmp_path), limit, 5.0)) == 3


def test_an_error_ends_the_download_and_gives_everything_back(tmp_path: Path) -> None:
    files = files_of([RANGE_BYTES] * 6)
    limit = ReadLimit(3)
    wanted = [*downloads(files, tmp_path), Download("none", tmp_path / "none", 1)]
    with pytest.raises(KeyError):
        list(download_all(MemoryLocation(files, 0.01), wanted, limit, 5.0))
    with limit.download():
        assert [limit.take(number, 2.0) for number in range(3)] == [True] * 3


def test_a_full_disk_of_this_machine_gives_everything_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, limit = files_of([RANGE_BYTES] * 4), ReadLimit(4)

    def fail(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fail)
        for _ in range(5):
            with pytest.raises(OSError, match="No space left"):
                list(download_all(MemoryLocation(files), downloads(files, tmp_path), limit, 5.0))
    assert sum(1 for _ in download_all(MemoryLocation(files), downloads(files, tmp_path), limit, 0.5)) == 4


def test_a_download_that_is_left_early_gives_everything_back(tmp_path: Path) -> None:
    def left(found: Iterator[tuple[int, Download | None]]) -> None:
        next(found)
        found.close()  # type: ignore[attr-defined]

    files, limit = files_of([RANGE_BYTES] * 6), ReadLimit(2)
    left(download_all(MemoryLocation(files, 0.01), downloads(files, tmp_path), limit, 5.0))
    assert sum(1 for _ in download_all(MemoryLocation(files), downloads(files, tmp_path), limit, 5.0)) == 6
