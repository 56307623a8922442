"""A folder as a store: a file is there once, and whole."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from archive.fault_points import ArchivePoint
from archive.files import check_store, open_store
from cdc_common.errors.codes import CdcError, Code
from stream_runtime import fault_points
from stream_runtime.fault_points import Fault, InjectedFaultError


def test_of_many_calls_one_stores_the_file(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda number: store.put_new_bytes("a/b/file", b"%d" % number), range(40)))
    assert won.count(True) == 1
    assert store.read("a/b/file") == b"%d" % won.index(True)
    assert store.list("a/b") == ["file"]
    assert [path.name for path in Path(tmp_path, "a/b").iterdir()] == ["file"]


def test_a_copy(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/lake")
    source = tmp_path / "source"
    source.write_bytes(b"abc")
    assert store.put_new("x/y=1/file", source)
    assert not store.put_new("x/y=1/file", source)
    assert store.size("x/y=1/file") == 3
    assert store.size("x/none") is None
    assert store.read("x/none") is None
    assert store.list("none") == []
    with store.open("x/y=1/file") as file:
        assert file.read() == b"abc"
    assert Path(store.uri("x/y=1/file").removeprefix("file://")).read_bytes() == b"abc"
    check_store(store)
    assert list(Path(tmp_path, "lake", "_check").iterdir()) == []


def test_a_file_that_is_not_whole_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(str(tmp_path))
    monkeypatch.setattr(fault_points, "armed", Fault(ArchivePoint.IN_STORE, 1, "raise"))
    fault_points.reached.clear()
    with pytest.raises(InjectedFaultError):
        store.put_new_bytes("file", b"abc")
    assert store.read("file") is None


def test_refusals(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(CdcError) as raised:
        open_store(str(tmp_path / "file")).put_new_bytes("a", b"")
    assert raised.value.code is Code.ARCHIVE_LOCATION
    with pytest.raises(CdcError, match="only folders"):
        open_store("gs://bucket/lake")


def test_a_small_file_is_replaced(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.put("a/b", b"1")
    store.put("a/b", b"22")
    assert store.read("a/b") == b"22"
    assert store.list("a") == ["b"]
