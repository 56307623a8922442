"""The local RocksDB: atomic, one process a slot, replaced as a whole, and thrown away when it is damaged."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.rocksdb import DamagedLocalStoreError, LocalStore, open_local_store
from stream_runtime.state.versions import NOTHING, next_version


def step(state: LocalStore, writes: dict[bytes, bytes | None]) -> Changelog:
    version = next_version(state.version)
    return Changelog(Head(version, 10, 1000, 4), state.version, 0, writes)


def test_reads_what_was_applied(tmp_path: Path) -> None:
    state = open_local_store(tmp_path)
    assert state.version == NOTHING
    entry = step(state, {b"a": b"1", b"b\x00": b"", b"c": b"3", b"d": None})
    state.apply(entry)
    assert state.get(b"a") == b"1"
    assert state.get(b"b\x00") == b""
    assert state.get_many([b"c", b"z", b"a"]) == [b"3", None, b"1"]
    assert state.get_many([]) == []
    assert list(state.scan(b"a", b"c")) == [(b"a", b"1"), (b"b\x00", b"")]
    state.close()
    again = open_local_store(tmp_path)
    assert again.head == entry.head
    with pytest.raises(AssertionError):
        again.apply(entry)
    again.close()


@pytest.mark.parametrize("later", [None, b"later"])
def test_files_lose_what_was_replaced(tmp_path: Path, later: bytes | None) -> None:
    """Also what RocksDB has moved to its last level long ago, when hardly anything changes; and after a restore."""

    def files_with_it(folder: Path) -> list[str]:
        return [path.name for path in folder.iterdir() if b"a person" in path.read_bytes()]

    def restore(folder: Path) -> None:
        shutil.copytree(copy.folder, folder, dirs_exist_ok=True)

    def snapshot() -> list[str]:
        copy = state.copy()
        found = files_with_it(copy.folder)
        copy.remove()
        return found

    state = open_local_store(tmp_path, old_value_seconds=1)
    rows: dict[bytes, bytes | None] = {b"k%d" % number: os.urandom(100) for number in range(2000)}
    state.apply(step(state, rows | {b"k1000": b"a person"}))
    for number in range(8):
        state.apply(step(state, {b"k%d" % number: b"changed"}))
        assert snapshot()
    state.apply(step(state, {b"k1000": later}))
    copy = state.copy()
    state.replace(restore)
    copy.remove()
    assert state.get(b"k1000") == later
    deadline = time.monotonic() + 60
    while snapshot() or files_with_it(tmp_path / "slot-0" / "db"):
        assert time.monotonic() < deadline
        time.sleep(0.2)
        state.apply(step(state, {b"heartbeat": b"%f" % time.monotonic()}))
    state.close()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.dictionaries(st.binary(min_size=1, max_size=3), st.none() | st.binary(max_size=9)), max_size=5))
def test_is_a_sorted_map(steps: list[dict[bytes, bytes | None]]) -> None:
    model: dict[bytes, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        state = open_local_store(Path(folder))
        for writes in steps:
            ours = {b"p" + key: value for key, value in writes.items()}
            state.apply(step(state, ours))
            for key, value in ours.items():
                model.pop(key, None)
                if value is not None:
                    model[key] = value
        assert list(state.scan(b"p", b"q")) == sorted(model.items())
        state.close()


def test_a_slot_in_use_is_left_alone(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from stream_runtime.state.rocksdb import open_local_store; "
        "state = open_local_store(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "open\n"
    state = open_local_store(tmp_path)
    state.apply(step(state, {b"a": b"1"}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["slot-0", "slot-1"]
    child.kill()
    child.communicate()
    third = open_local_store(tmp_path)
    assert third.version == NOTHING  # slot 0 again
    third.close()
    state.close()


def test_a_slot_is_free_again_after_its_state_could_not_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = open_local_store(tmp_path)
    entry = step(state, {b"a": b"1"})
    state.apply(entry)
    state.close()
    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "_open", Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
        for _ in range(20):
            with pytest.raises(OSError, match="No space left"):
                open_local_store(tmp_path)
    state = open_local_store(tmp_path)
    assert state.head == entry.head
    state.close()


def test_survives_the_death_of_the_process(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; sys.path.insert(0, sys.argv[2]); import test_rocksdb;"
        "state = test_rocksdb.open_local_store(Path(sys.argv[1]));"
        "[state.apply(test_rocksdb.step(state, {b'n': b'%d' % n})) for n in range(5)]; os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path), str(Path(__file__).parent)], check=False)
    assert done.returncode == -9
    state = open_local_store(tmp_path)
    assert state.get(b"n") == b"4"
    assert state.version.startswith("0000000005-")
    state.close()


@pytest.mark.parametrize("damage", ["CURRENT", "MANIFEST-*", "*.sst"])
def test_a_damaged_one_is_thrown_away(tmp_path: Path, damage: str) -> None:
    state = open_local_store(tmp_path)
    state.apply(step(state, {b"a": os.urandom(1000)}))
    state.copy().remove()  # flushes
    state.close()
    for path in (tmp_path / "slot-0" / "db").glob(damage):
        path.write_bytes(b"damaged")
    again = open_local_store(tmp_path)
    assert again.version == NOTHING
    assert again.get(b"a") is None
    again.close()


def filled(folder: Path) -> Path:
    """A state of 20,000 rows, closed; its only SST file."""
    state = open_local_store(folder)
    state.apply(step(state, {b"p%06d" % number: os.urandom(100) for number in range(20_000)}))
    state.copy().remove()  # which flushes
    state.close()
    (found,) = (folder / "slot-0" / "db").glob("*.sst")
    return found


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)


def test_a_damaged_block_is_never_the_end_of_a_scan(tmp_path: Path) -> None:
    flip(filled(tmp_path))
    state = open_local_store(tmp_path)
    assert state.head is not None
    with pytest.raises(DamagedLocalStoreError, match="Corruption"):
        list(state.scan(b"p", b"q"))
    with pytest.raises(DamagedLocalStoreError, match="Corruption"):
        list(state.scan_back(b"p", b"q"))
    with pytest.raises(DamagedLocalStoreError, match="Corruption"):
        state.get_many([b"p%06d" % number for number in range(20_000)])
    state.close()
    again = open_local_store(tmp_path)
    assert again.version == NOTHING  # to be restored
    again.close()


def test_what_was_restored_damaged_names_its_snapshot(tmp_path: Path) -> None:
    source = filled(tmp_path / "source").parent
    state = open_local_store(tmp_path / "target")

    def fill(folder: Path) -> None:
        shutil.copytree(source, folder, dirs_exist_ok=True)
        flip(next(folder.glob("*.sst")))

    state.replace(fill, "location/snapshots/1.json")
    with pytest.raises(CdcError, match=r"location/snapshots/1\.json") as raised:
        list(state.scan(b"p", b"q"))
    assert raised.value.code is Code.STATE_DAMAGED
    state.close()
