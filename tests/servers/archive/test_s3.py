"""An archive in a bucket of S3: S3Proxy, which knows If-None-Match for files that are stored in one request.

It looks and then stores, so of requests at the same time several may win. That one wins is not tested here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from pyiceberg.catalog import load_catalog

from archive.fault_points import ArchivePoint
from archive.files import check_store, open_store
from archive.registrar.thread import RegistrarThread
from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.process.network import LOCALHOST
from dev.local_stack.servers.s3 import BUCKET, S3Server
from stream_runtime import fault_points
from stream_runtime.fault_points import Fault, InjectedFaultError
from stream_runtime.stores import s3 as s3_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stream_runtime.stores.s3 import S3Store
    from tests.support.archive.archive_run import ArchiveSetup

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with S3Server(has_conditions=True) as running:
        yield running


@pytest.fixture
def store(server: S3Server, topic_prefix: str) -> S3Store:
    return cast("S3Store", open_store(server.location(topic_prefix)))


def test_of_several_calls_the_first_stores_the_file(store: S3Store) -> None:
    won = [store.put_new_bytes("a/b/file", b"%d" % number) for number in range(4)]
    assert won == [True, False, False, False]
    assert store.read("a/b/file") == b"0"
    store.put("a/b/file", b"new")
    assert store.read("a/b/file") == b"new"
    assert store.list("a/b") == ["file"]
    check_store(store)


def test_a_copy(store: S3Store, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"abc")
    assert store.put_new("x/y=1/file", source)
    assert not store.put_new("x/y=1/file", source)
    assert store.size("x/y=1/file") == 3
    assert store.size("x/none") is None
    assert store.read("x/none") is None
    assert store.list("none") == []
    assert store.list("x") == []  # folders are no files
    with store.open("x/y=1/file") as file:
        assert file.read() == b"abc"


def test_a_large_file_is_stored_in_parts(store: S3Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_store, "PART_BYTES", 5 * 1024 * 1024)
    source = tmp_path / "source"
    source.write_bytes(bytes(range(256)) * 50_000)
    fault_points.reached.clear()
    monkeypatch.setattr(fault_points, "armed", Fault(ArchivePoint.IN_STORE, 1, "raise"))
    with pytest.raises(InjectedFaultError):
        store.put_new("large/file", source)
    assert store.size("large/file") is None
    monkeypatch.setattr(fault_points, "armed", None)
    assert store.put_new("large/file", source)
    assert not store.put_new("large/file", source)
    assert store.read("large/file") == source.read_bytes()


def test_a_store_that_stores_a_file_twice_is_refused(store: S3Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_store, "_NEW", {})
    with pytest.raises(CdcError, match="If-None-Match") as raised:
        check_store(store)
    assert raised.value.code is Code.ARCHIVE_LOCATION


@pytest.mark.parametrize(
    ("location", "words", "code"),
    [
        ("s3://key:secret@bucket/lake", "holds credentials", Code.ARCHIVE_LOCATION),
        (
            f"s3://bucket/lake?region=x&scheme=http&endpoint_override={LOCALHOST}:1",
            "does not answer",
            Code.ARCHIVE_STORE_AWAY,
        ),
    ],
)
def test_refusals(location: str, words: str, code: Code) -> None:
    with pytest.raises(CdcError, match=words) as raised:
        check_store(open_store(location))
    assert raised.value.code is code
    assert "secret" not in str(raised.value)


def test_a_bucket_that_is_not_there(server: S3Server) -> None:
    with pytest.raises(CdcError, match="NoSuchBucket"):
        check_store(open_store(server.location("lake").replace(BUCKET, "another")))


@pytest.mark.parametrize(
    "point",
    [
        ArchivePoint.IN_STORE,
        pytest.param(ArchivePoint.FILE_STORED, marks=pytest.mark.exhaustive),
        pytest.param(ArchivePoint.EVENT_SENT, marks=pytest.mark.exhaustive),
    ],
)
def test_a_task_that_dies_archives_each_message_once(
    setup: ArchiveSetup, server: S3Server, point: ArchivePoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = f"lake-{setup.prefix}"
    setup = setup._replace(location=server.location(lake), files=str(server.data / lake))
    setup.send(0, 120)
    fault_points.reached.clear()
    monkeypatch.setattr(fault_points, "armed", Fault(point, 2, "raise"))
    with pytest.raises(InjectedFaultError):
        setup.run()
    monkeypatch.setattr(fault_points, "armed", None)
    setup.run()
    setup.check(120)


def test_its_tables_are_registered_and_read(setup: ArchiveSetup, server: S3Server, tmp_path: Path) -> None:
    lake = f"lake-{setup.prefix}"
    setup = setup._replace(location=server.location(lake), files=str(server.data / lake))
    setup.send(0, 50)
    setup.run()
    catalog = {"catalog_type": "sql", "catalog_uri": f"sqlite:///{tmp_path}/catalog.db"}
    settings = setup.settings(**catalog)
    registrar = RegistrarThread(settings.kafka, settings.archive)
    registrar.run_once()
    assert registrar.registrar is not None
    assert registrar.registrar.errors == {}
    properties = open_store(setup.location).catalog_properties()
    found = load_catalog("lake", type="sql", uri=catalog["catalog_uri"], **properties)
    assert found.load_table(setup.table).scan().to_arrow().num_rows == 45
