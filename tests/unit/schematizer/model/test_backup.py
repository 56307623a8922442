"""Backup and restore: everything, of one moment, or nothing."""

from __future__ import annotations

import errno
import gzip
import json
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from cdc_common.clients.registry.kinds import About
from cdc_common.clients.registry.views import DataSource
from cdc_common.errors.codes import CdcError, Code
from schematizer.access import EVERYTHING
from schematizer.catalogue.rules import Rules
from schematizer.confluent.store import Store
from schematizer.converters.converted import FieldDocumentation
from schematizer.model.backup import restore_backup, write_backup
from schematizer.model.database import Database, opened
from schematizer.model.security_tables import Result
from schematizer.registration.mirror import Mirror
from schematizer.registration.register import Description
from schematizer.security.audit import AuditEvent, AuditLog
from schematizer.security.keys import ApiKeys
from schematizer.security.sessions import Sessions
from schematizer.service import Catalogue
from tests.support.schematizer.consistency import problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schematizer.security.keys import NewApiKey


def record(number: int) -> str:
    fields = [{"name": f"f{number}", "type": ["null", "string"], "default": None, "doc": "Zeile\nzwei"}]
    return json.dumps({"type": "record", "name": "users", "fields": fields})


def fill(database: Database) -> NewApiKey:
    catalogue, store = Catalogue(database, Rules()), Store(database, Mirror())
    store.set_mode("some-value", "READONLY")
    for number in range(3):
        description = Description("cdc.shop", "avro", record(number), fields={"f1": FieldDocumentation(is_pii=True)})
        catalogue.registering.register(description, by="test")
        store.register(f"plain{number}-value", record(number))
    store.delete_subject("plain1-value", permanent=False)
    catalogue.data_targets.put("warehouse", "redshift", "cluster", None, None, by="test")
    catalogue.data_targets.put_group("warehouse", "loader", [DataSource(namespace="cdc.shop", source=None)], by="test")
    catalogue.notes.add(About.SOURCE, 1, "a *note*", by="test")
    catalogue.tags.put("important", About.SOURCE, 1, by="test")
    key = ApiKeys(database).create("publisher", ["writer:cdc.shop"], None, by="test")
    Sessions(database, 3600).start("eve", EVERYTHING, None)
    AuditLog(database, 1).record(
        AuditEvent(actor="eve", address="192.0.2.1", action="PUT /config", about="/config", result=Result.DONE)
    )
    return key


def dump(database: Database) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables but those of search, which follow from the others."""
    tables = (
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'search_%'"
    )
    names = database.read(lambda connection: connection.execute(text(tables)).scalars().all())
    return {
        name: database.read(lambda c, name=name: sorted(map(tuple, c.execute(text(f"SELECT * FROM {name}")))))  # type: ignore[misc]
        for name in names
    }


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with opened(f"sqlite:///{tmp_path / 'first.db'}") as first:
        yield first


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Database]:
    with opened(f"sqlite:///{tmp_path / 'second.db'}") as second:
        yield second


def test_what_is_restored_is_what_was_there(tmp_path: Path, database: Database, empty: Database) -> None:
    key = fill(database)
    written = write_backup(database, tmp_path / "backup")
    assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o600
    assert restore_backup(empty, tmp_path / "backup") == written
    assert dump(empty) == dump(database)
    assert ApiKeys(empty).verify(key.key.key_id, key.secret) is not None
    assert key.secret.encode() not in gzip.decompress((tmp_path / "backup").read_bytes())
    Catalogue(empty, Rules()).search.build()
    found = [Catalogue(copy, Rules()).search.find("zwei") for copy in (database, empty)]
    assert found[0] == found[1] != []
    ids = [Store(copy, Mirror()).register("new-value", '"bytes"').schema_id for copy in (database, empty)]
    assert ids[0] == ids[1] > 3
    assert empty.read(problems) == []


def test_a_backup_of_a_running_registry_is_of_one_moment(tmp_path: Path, database: Database, empty: Database) -> None:
    catalogue, stop = Catalogue(database, Rules()), threading.Event()

    def register() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            catalogue.registering.register(Description(f"n{number % 5}.s", "avro", record(number)), by="test")

    writer = threading.Thread(target=register)
    writer.start()
    try:
        counts = [write_backup(database, tmp_path / "backup")]
        deadline = time.monotonic() + 60
        while len(set(counts)) < 4 and time.monotonic() < deadline:
            counts.append(write_backup(database, tmp_path / "backup"))
    finally:
        stop.set()
        writer.join()
    assert counts == sorted(counts)
    assert len(set(counts)) >= 4, "nothing was registered between two backups"
    restore_backup(empty, tmp_path / "backup")
    assert empty.read(problems) == []


def test_a_backup_is_on_the_disk_and_so_is_its_name(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(str(Path(f"/proc/self/fd/{handle}").readlink())))
    (tmp_path / "backups").mkdir()
    write_backup(database, tmp_path / "backups" / "registry.gz")
    assert [name.removeprefix(f"{tmp_path}/") for name in synced] == ["backups/registry.gz.part", "backups"]


def test_a_full_disk_keeps_nothing_of_a_backup(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    (tmp_path / "backups").mkdir()
    with pytest.raises(CdcError, match="No space left") as caught:
        write_backup(database, tmp_path / "backups" / "registry.gz")
    assert caught.value.code is Code.BACKUP
    assert list((tmp_path / "backups").iterdir()) == []


def test_a_database_in_use_is_not_filled(tmp_path: Path, database: Database, empty: Database) -> None:
    fill(database)
    write_backup(database, tmp_path / "backup")
    Catalogue(empty, Rules()).namespaces.add("a", None, None, by="test")
    before = dump(empty)
    with pytest.raises(CdcError, match=r"namespaces.*empty") as caught:
        restore_backup(empty, tmp_path / "backup")
    assert caught.value.code is Code.BACKUP
    assert dump(empty) == before


def damaged(content: bytes) -> Iterator[bytes]:
    lines = content.splitlines(keepends=True)
    yield b""
    yield b"\n".join(lines[:1])
    yield b"".join(lines[:-1])  # no end
    yield b"".join(lines[:2] + lines[3:])  # a row less
    yield content.replace(b"important", b"unimportant")
    yield content + lines[1]
    yield content.replace(b'"version":1', b'"version":2')
    yield content.replace(b"cassandra-schematizer backup", b"something")
    yield b"not JSON\n"
    yield b"[" * 100_000 + b"\n"


def test_a_damaged_file_changes_nothing(tmp_path: Path, database: Database, empty: Database) -> None:
    fill(database)
    file, bad = tmp_path / "backup", tmp_path / "bad"
    write_backup(database, file)
    before = dump(empty)
    for content in damaged(gzip.decompress(file.read_bytes())):
        bad.write_bytes(gzip.compress(content))
        with pytest.raises(CdcError, match="bad"):
            restore_backup(empty, bad)
    whole = file.read_bytes()
    flipped = [whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :] for at in range(10, len(whole), 97)]
    for raw in (b"", whole[:-9], b"plain text", *flipped):
        bad.write_bytes(raw)
        with pytest.raises(CdcError, match="bad"):
            restore_backup(empty, bad)
    assert dump(empty) == before
