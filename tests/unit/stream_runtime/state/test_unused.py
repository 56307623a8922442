"""Local states that no task uses are deleted within a bound, and never under someone who uses them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.rocksdb import LOCK, folder_size, lock_slot, open_local_store
from stream_runtime.state.unused import UnusedLimits, delete_unused
from stream_runtime.state.versions import next_version

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HOUR = 3600.0
NOW = 1_800_000_000.0
PLENTY = 10**12


def fill(folder: Path, name: str, used_at: float, size: int = 1000) -> Path:
    """A state of about so many bytes that was last used then; its slot."""
    with closing(open_local_store(folder / name)) as state:
        head = Head(next_version(state.version), 1, 0, 1)
        state.apply(Changelog(head, state.version, 0, {b"key": os.urandom(size)}))
    slot = folder / name / "slot-0"
    os.utime(slot / LOCK, (used_at, used_at))
    return slot


def test_what_was_not_used_for_long_is_deleted_and_the_rest_is_measured(tmp_path: Path) -> None:
    old, recent = fill(tmp_path, "t-0", NOW - HOUR), fill(tmp_path, "t-1", NOW - HOUR + 1)
    own, used = fill(tmp_path, "t-2", NOW - 9 * HOUR), fill(tmp_path, "t-3", NOW - 10)
    sizes = folder_size(recent), folder_size(own) + folder_size(used)
    disk = delete_unused(tmp_path, {"t-2"}, UnusedLimits(HOUR, PLENTY), NOW)
    assert not old.parent.exists()
    assert recent.exists()
    assert own.exists()
    assert used.exists()
    assert (disk.unused, disk.used) == sizes
    assert disk.free > 0
    assert delete_unused(tmp_path, set(), UnusedLimits(HOUR, PLENTY), NOW).used > folder_size(used)  # own was marked


def test_a_second_slot_that_an_attempt_has_left_is_no_own_one(tmp_path: Path) -> None:
    """Whichever of the two is in use; the first, if none is."""
    first = fill(tmp_path, "t-0", NOW - 9 * HOUR)
    second = first.with_name("slot-1")
    limits = UnusedLimits(HOUR, PLENTY)

    def copy() -> None:
        shutil.copytree(first, second)
        os.utime(second / LOCK, (NOW - 9 * HOUR, NOW - 9 * HOUR))

    copy()
    assert delete_unused(tmp_path, {"t-0"}, limits, NOW).unused == 0
    assert (first.exists(), second.exists()) == (True, False)
    copy()
    lock = lock_slot(second)
    assert lock is not None
    for slot in (first, second):
        os.utime(slot / LOCK, (NOW - 9 * HOUR, NOW - 9 * HOUR))
    assert delete_unused(tmp_path, {"t-0"}, limits, NOW).unused == 0
    assert (first.exists(), second.exists()) == (False, True)
    os.close(lock)


def test_beyond_the_bound_the_longest_unused_are_deleted_first(tmp_path: Path) -> None:
    slots = [fill(tmp_path, f"t-{number}", NOW - 1000 + number, 100_000) for number in range(4)]
    size = folder_size(slots[0])
    disk = delete_unused(tmp_path, set(), UnusedLimits(HOUR, 2 * size + size // 2), NOW)
    assert [slot.exists() for slot in slots] == [False, False, True, True]
    assert disk.unused == sum(folder_size(slot) for slot in slots[2:])


def test_what_another_process_has_open_stays(tmp_path: Path) -> None:
    slot = fill(tmp_path, "t-0", NOW)
    code = (
        "import sys; from pathlib import Path; from stream_runtime.state.rocksdb import open_local_store; "
        "state = open_local_store(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "t-0")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        os.utime(slot / LOCK, (0, 0))
        assert delete_unused(tmp_path, set(), UnusedLimits(0, 0), NOW).unused > 0
        assert (slot / "db").exists()
        process.communicate("")
    os.utime(slot / LOCK, (0, 0))
    assert delete_unused(tmp_path, set(), UnusedLimits(0, 0), NOW).unused == 0
    assert list(tmp_path.iterdir()) == []


class Contest:
    """Threads that lock and delete one slot. Whoever has the lock has the file that others see, and is alone."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._slot = folder, folder / "t-0" / "slot-0"
        self._holders = 0
        self.locked = 0
        self.over = threading.Event()
        self.failures = list[str]()

    def use(self) -> None:
        lock = lock_slot(self._slot)
        if lock is None:
            return
        self._holders += 1
        self.locked += 1
        if self._holders != 1 or os.fstat(lock).st_ino != (self._slot / LOCK).stat().st_ino:
            self.failures.append("two have the lock")
        (self._slot / "db").mkdir(exist_ok=True)
        os.utime(lock, (0, 0))
        self._holders -= 1
        os.close(lock)

    def delete(self) -> None:
        delete_unused(self._folder, set(), UnusedLimits(0, 0), NOW)

    def run(self, step: Callable[[], None]) -> None:
        try:
            while not self.over.is_set():
                step()
        except Exception as error:  # noqa: BLE001 - shown by the test
            self.failures.append(repr(error))


def test_nobody_gets_a_lock_that_is_being_deleted(tmp_path: Path) -> None:
    contest = Contest(tmp_path)
    steps = (contest.use, contest.use, contest.delete, contest.delete)
    threads = [threading.Thread(target=contest.run, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    contest.over.wait(0.7)
    contest.over.set()
    for thread in threads:
        thread.join()
    assert contest.failures == []
    assert contest.locked > 10


def test_what_a_crash_leaves_in_a_slot_goes_with_the_next_start(tmp_path: Path) -> None:
    slot = fill(tmp_path, "t-0", NOW)
    for name in ("incoming", "outgoing-1", "outgoing-2"):
        (slot / name).mkdir()
        (slot / name / "000001.sst").write_bytes(b"x")
    with closing(open_local_store(tmp_path / "t-0")) as state:
        assert state.get(b"key") is not None
        assert sorted(path.name for path in slot.iterdir()) == ["db", LOCK]


@pytest.mark.parametrize("folder", ["none", "empty"])
def test_without_states_nothing_is_used(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "none").mkdir()
    disk = delete_unused(tmp_path / folder, {"t-0"}, UnusedLimits(0, 0), NOW)
    assert (disk.used, disk.unused) == (0, 0)
