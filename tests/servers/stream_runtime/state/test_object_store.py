"""Files of the checkpoint location, on local disk and on an S3 server."""

from __future__ import annotations

import os
import threading
import time
from io import BytesIO
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from pyarrow import fs
from structlog.testing import capture_logs

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.servers.s3 import BUCKET
from stream_runtime.state.download import Download
from stream_runtime.state.object_store import MissingFileError, ObjectStore, _fix_of

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.servers.s3 import S3Server

LARGE = 12 * 1024 * 1024 + 1  # several parts of S3's multipart upload


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.servers)])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return str(tmp_path)
    server: S3Server = request.getfixturevalue("s3")
    return server.location(tmp_path.name)


@pytest.fixture
def store(location: str) -> ObjectStore:
    return ObjectStore(location)


@pytest.mark.parametrize("size", [0, 1, LARGE])
def test_what_is_written_is_read(store: ObjectStore, tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    store.write("a/b/file", data)
    assert store.read("a/b/file") == data
    file = Download("a/b/file", tmp_path / "target", size)
    assert list(store.download([file])) == [file]
    assert (tmp_path / "target").read_bytes() == data
    assert (store.traffic.written, store.traffic.read) == (size, 2 * size)


def test_a_file_that_has_become_shorter_arrives_short(store: ObjectStore, tmp_path: Path) -> None:
    store.write("a/file", b"short")
    file = Download("a/file", tmp_path / "target", LARGE)
    assert list(store.download([file])) == [file]
    assert (tmp_path / "target").read_bytes() == b"short"


def test_a_file_is_replaced(store: ObjectStore) -> None:
    store.write("a/file", b"one")
    store.write("a/file", b"two")
    assert store.read("a/file") == b"two"


def test_what_is_missing_is_an_answer(store: ObjectStore, tmp_path: Path) -> None:
    assert store.read("a/none") is None
    with pytest.raises(MissingFileError):
        list(store.download([Download("a/none", tmp_path / "target", 1)]))
    assert not store.copy("a/none", "a/copy")
    assert store.list("a") == []
    store.delete(["a/none"])


def test_a_copy_outlives_its_source(store: ObjectStore) -> None:
    data = os.urandom(LARGE)
    store.write("a/file", data)
    written = store.traffic.written
    assert store.copy("a/file", "b/copy")
    store.delete(["a/file"])
    assert store.read("a/file") is None
    assert store.read("b/copy") == data
    assert store.traffic.written == written


def test_more_than_a_page_is_listed(store: ObjectStore, location: str) -> None:
    names = {f"file-{number:04d}" for number in range(1005 if location.startswith("s3") else 5)}
    before = time.time()
    for name in names:
        store.write(f"many/{name}", b"x")
    store.write("many/folder/file", b"x")
    assert set(store.list("many")) == names
    assert store.folders("many") == ["folder"]
    entries = store.entries("many")
    assert {entry.size for entry in entries} == {1}
    assert all(before - 2 < entry.written < time.time() + 2 for entry in entries)


def test_a_name_is_listed_whole_or_not_at_all(store: ObjectStore) -> None:
    data = os.urandom(LARGE)
    writer = threading.Thread(target=store.write, args=("a/file", data))
    writer.start()
    while not (found := store.list("a")):
        assert store.read("a/file") in (None, data)
    assert found == ["file"]
    assert store.read("a/file") == data
    writer.join()


def test_a_folder_that_comes_while_it_is_looked_at_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow's error then is that of a folder that is missing, although it may be."""
    store = ObjectStore(str(tmp_path))
    store.write("a/file", b"x")
    real, misses = fs.LocalFileSystem(), [2]

    def list_late(selector: fs.FileSelector) -> list[fs.FileInfo]:
        misses[0] -= 1
        if misses[0] >= 0:
            raise FileNotFoundError(2, "Cannot list directory", selector.base_dir)
        found: list[fs.FileInfo] = real.get_file_info(selector)
        return found

    monkeypatch.setattr(store, "_files", SimpleNamespace(get_file_info=list_late))
    assert store.list("a") == ["file"]
    misses[0] = 100  # it is another problem
    with pytest.raises(CdcError, match="refuses to list"):
        store.list("a")


@pytest.mark.servers
def test_an_upload_that_breaks_off_leaves_nothing(s3: S3Server, tmp_path: Path) -> None:
    store = ObjectStore(s3.location(tmp_path.name))
    store.write("a/first", b"x")
    broken: list[CdcError] = []

    def write() -> None:
        try:
            store.write("a/file", os.urandom(60 * 1024 * 1024))
        except CdcError as error:
            broken.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(0.2)
    s3.kill()
    try:
        writer.join()
    finally:
        s3.start()
    assert [error.code for error in broken] == [Code.CHECKPOINT_LOCATION]
    assert store.list("a") == ["first"]
    assert store.read("a/file") is None
    store.write("a/file", b"again")
    assert store.read("a/file") == b"again"


@pytest.mark.servers
def test_wrong_credentials_are_no_missing_file(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    store = ObjectStore(s3.location(tmp_path.name))
    for attempt in (store.check, lambda: store.read("none"), lambda: store.list("a"), lambda: store.copy("a", "b")):
        with pytest.raises(CdcError) as raised:
            attempt()
        assert raised.value.code is Code.CHECKPOINT_LOCATION
        assert "spark.executorEnv.AWS_ACCESS_KEY_ID" in raised.value.fix


@pytest.mark.parametrize(
    ("location", "words", "is_login"),
    [
        ("s3://bucket/cdc", "AWS Error ACCESS_DENIED during PutObject: AWS authentication requires a valid Date", True),
        ("s3://bucket/cdc", "AWS Error INVALID_ACCESS_KEY_ID during HeadObject operation: unknown key", True),
        ("s3://bucket/cdc", "AWS Error UNKNOWN (HTTP status 403) during ListObjectsV2 operation", True),
        ("s3://bucket/cdc", "AWS Error NETWORK_CONNECTION during PutObject operation: curlCode: 7", False),
        ("/var/lib/cdc", "[Errno 13] Permission denied: ACCESS_DENIED", False),
    ],
)
def test_the_fix_names_the_executors_credentials_where_they_are_the_cause(
    location: str, words: str, *, is_login: bool
) -> None:
    """The driver has its environment's, so the check at its start passes."""
    assert ("spark.executorEnv.AWS_ACCESS_KEY_ID" in _fix_of(location, words)) is is_login


def test_credentials_are_refused_in_the_location() -> None:
    with pytest.raises(CdcError) as raised:
        ObjectStore("s3://someone:secret@bucket/folder")
    assert raised.value.code is Code.CONFIG_INVALID
    assert "secret" not in str(raised.value)


def test_errors_name_the_path_without_the_options() -> None:
    assert ObjectStore(f"s3://{BUCKET}/folder/?region=us-east-1").full_path("a/b") == f"s3://{BUCKET}/folder/a/b"


def test_another_file_system_is_untested(tmp_path: Path) -> None:
    store = ObjectStore(str(tmp_path))
    with capture_logs() as logs:
        store.check()
    assert logs == []
    store = ObjectStore("mock:///folder")
    with capture_logs() as logs:
        store.check()
    assert [entry["event"] for entry in logs] == ["untested file system"]
    store.write("a/file", b"x")
    assert store.read("a/file") == b"x"


def test_a_location_that_hangs_is_away(tmp_path: Path) -> None:
    """A pipe without a writer hangs, as a file of an unreachable file server does."""
    os.mkfifo(tmp_path / "file")
    try:
        with pytest.raises(CdcError, match="does not answer: reading") as raised:
            ObjectStore(str(tmp_path), answer_seconds=0.2).read("file")
        assert raised.value.code is Code.CHECKPOINT_LOCATION
    finally:
        (tmp_path / "file").open("wb").close()


def test_a_file_that_comes_slowly_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            time.sleep(0.2)
            return super().read(size)

    data = os.urandom(5 * 1024 * 1024)
    store = ObjectStore(str(tmp_path), answer_seconds=0.5)
    store.write("file", data)
    monkeypatch.setattr(store, "_files", SimpleNamespace(open_input_file=lambda _path: Slow(data)))
    assert store.read("file") == data


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ObjectStore(str(tmp_path))

    def full(_handle: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CdcError, match="no space left") as raised:
        store.write("file", b"x" * 1000)
    assert raised.value.code is Code.CHECKPOINT_LOCATION
    assert list(tmp_path.iterdir()) == []


def test_a_location_without_links_takes_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> None:
        raise PermissionError("operation not permitted")

    monkeypatch.setattr("pathlib.Path.hardlink_to", unsupported)
    store = ObjectStore(str(tmp_path))
    store.write("a/file", b"x")
    assert store.copy("a/file", "b/file")
    assert store.read("b/file") == b"x"
    assert fs.LocalFileSystem().get_file_info(str(tmp_path / "b/file")).is_file
