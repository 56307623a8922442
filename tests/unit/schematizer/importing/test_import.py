"""Another registry is copied with its ids. It is a registry of this kind, or the answers of one that keeps more."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest
from click.testing import CliRunner

from schematizer.avro_schemas.compatibility import Level
from schematizer.cli import main
from schematizer.confluent.errors import RegistryError
from schematizer.confluent.store import Given, Store
from schematizer.importing import copy as copying
from schematizer.model.database import Database, opened
from schematizer.model.registry_tables import GLOBAL
from schematizer.registration.mirror import Mirror
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUBJECT = "cdc.shop.orders-value"


def record(*names: str) -> str:
    return json.dumps({"type": "record", "name": "V", "fields": [{"name": name, "type": "string"} for name in names]})


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Registry]:
    """A registry with gaps in ids and versions, deletions of both kinds, settings, and one schema under two ids."""
    file = tmp_path / "other.db"
    with opened(f"sqlite:///{file}") as database:
        store = Store(database, Mirror())
        store.set_mode(GLOBAL, "IMPORT")
        store.register(SUBJECT, record("a"), Given(11, 1))
        store.register(SUBJECT, record("b"), Given(40, 3))
        store.register(SUBJECT, record("a"), Given(41, 7))
        store.register("a/b c%-value", record("c"), Given(20, 1))
        store.register("gone-value", record("d"), Given(21, 1))
        store.register("purged-value", record("e"), Given(22, 1))
        store.delete_version(SUBJECT, "3", permanent=False)
        store.delete_subject("gone-value", permanent=False)
        store.delete_subject("purged-value", permanent=False)
        store.delete_subject("purged-value", permanent=True)
        store.set_level(GLOBAL, Level.FULL)
        store.set_level(SUBJECT, Level.NONE)
        store.set_mode("a/b c%-value", "READONLY")
        store.set_mode(SUBJECT, "READWRITE")
        store.set_mode(GLOBAL, "READONLY")
    running = Registry(file).start()
    yield running
    assert running.stop() == 0, running.log


def run(target: Path, url: str, *more: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["import", url, "--database-url", f"sqlite:///{target}", *more])
    return result.exit_code, result.output


def test_a_registry_is_copied_as_it_is(other: Registry, tmp_path: Path) -> None:
    target = tmp_path / "new.db"
    status, said = run(target, other.url, "--dry-run")
    assert (status, said.splitlines()) == (
        0,
        ["there: 5 versions of 3 subjects", "to copy: 5 versions, 0 deletions, 3 settings"],
    )
    with opened(f"sqlite:///{target}") as database:
        assert Store(database, Mirror()).counts().schemas == 0
    status, said = run(target, other.url)
    assert (status, said.splitlines()[-1]) == (0, "equal: 5 versions, their ids, deletions and settings")
    copied = Registry(target).start()
    paths = [
        "/subjects",
        "/subjects?deleted=true",
        "/schemas?deleted=true",
        "/schemas",
        "/config",
        f"/config/{SUBJECT}",
    ]
    paths += [f"/mode/{SUBJECT}", "/mode/a%2Fb%20c%25-value", f"/subjects/{SUBJECT}/versions/3?deleted=true"]
    paths += [f"/schemas/ids/{number}" for number in (11, 20, 21, 40, 41)]
    paths += [f"/schemas/ids/{number}/versions?deleted=true" for number in (11, 41)]
    for path in paths:
        assert copied.call("GET", path).body == other.call("GET", path).body, path
    assert copied.call("GET", "/mode").body == {"mode": "READWRITE"}
    assert copied.register("new-value", {"type": "enum", "name": "E", "symbols": ["A"]}).body["id"] == 42
    topic = copied.call("GET", "/api/v1/topics/cdc.shop.orders/schemas").body
    assert sorted(schema["schema_id"] for schema in topic) == [11, 41]
    assert copied.stop() == 0
    assert run(target, other.url)[1].splitlines()[1:3] == [
        "to copy: 0 versions, 0 deletions, 0 settings",
        "only here: 1 versions, which stay",
    ]


def test_a_copy_goes_on_where_it_was_stopped(other: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run also takes a deletion that has come in between."""
    target, write = tmp_path / "new.db", Database.write
    calls: list[object] = []

    def fail(database: Database, transaction: Any) -> Any:  # noqa: ANN401 - as Database.write
        calls.append(transaction)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return write(database, transaction)

    monkeypatch.setattr(copying, "_AT_ONCE", 2)
    monkeypatch.setattr(Database, "write", fail)
    assert run(target, other.url)[0] != 0
    monkeypatch.undo()
    with opened(f"sqlite:///{target}") as database:
        assert len(Store(database, Mirror()).every_version(list, "", deleted=True)) == 4
    assert other.call("DELETE", f"/subjects/{SUBJECT}/versions/1").body == 1
    status, said = run(target, other.url)
    assert (status, said.splitlines()[1]) == (0, "to copy: 1 versions, 1 deletions, 3 settings")
    with opened(f"sqlite:///{target}") as database:
        assert Store(database, Mirror()).versions(SUBJECT, deleted=True, only_deleted=True) == [1, 3]


def test_a_change_during_the_copy_is_found(other: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = copying.copy

    def change(*arguments: Any) -> None:  # noqa: ANN401 - as copy
        copied(*arguments)
        other.call("DELETE", f"/subjects/{SUBJECT}/versions/7")

    monkeypatch.setattr("schematizer.commands.imports.copy", change)
    status, said = run(tmp_path / "new.db", other.url)
    assert status == 3
    assert "has changed while it was copied: 0 versions, 1 deletions, 0 settings" in said


def test_another_schema_under_the_same_id_stops_it(other: Registry, tmp_path: Path) -> None:
    target = tmp_path / "new.db"
    with opened(f"sqlite:///{target}") as database:
        store = Store(database, Mirror())
        store.set_mode(GLOBAL, "IMPORT")
        store.register(SUBJECT, record("z"), Given(20, 2))
        store.register(SUBJECT, record("b"), Given(40, 1))
    status, said = run(target, other.url)
    assert status == 3
    assert "The id 20, which version 1 of subject a/b c%-value has, is another schema here." in said
    assert f"Version 1 of subject {SUBJECT} has the id 11 there, and 40 here." in said
    with opened(f"sqlite:///{target}") as database, pytest.raises(RegistryError):
        Store(database, Mirror()).schema(11)


MORE: dict[str, Any] = {
    "/subjects": ["good", "proto", "refs", "rules", ":.ctx:x"],
    "/config": {"compatibilityLevel": "BACKWARD", "alias": "other"},
    "/config/good": {"compatibilityLevel": "ODD"},
    "/mode/good": {"mode": "READONLY_OVERRIDE"},
    **{f"/subjects/{subject}/versions": [1] for subject in ("good", "proto", "refs", "rules")},
    "/subjects/good/versions/1": {"id": 1, "schema": '"int"'},
    "/subjects/proto/versions/1": {"id": 2, "schema": "message A {}", "schemaType": "PROTOBUF"},
    "/subjects/refs/versions/1": {"id": 3, "schema": '"int"', "references": [{"name": "x"}]},
    "/subjects/rules/versions/1": {"id": 4, "schema": '"int"', "metadata": {"tags": 1}, "ruleSet": {"domainRules": 1}},
}
"""The answers of a registry that keeps more than this one."""


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        content = MORE.get(unquote(urlsplit(self.path).path))
        body = json.dumps({"error_code": 40401} if content is None else content).encode()
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def another_kind() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_what_cannot_be_kept_is_named(tmp_path: Path) -> None:
    with another_kind() as url:
        status, said = run(tmp_path / "new.db", url)
        assert status == 3
        assert said.splitlines()[2:-2] == [
            "The subject :.ctx:x is in a context, and this registry has only the default one.",
            "Version 1 of subject proto has the type PROTOBUF, and this registry keeps AVRO.",
            "Version 1 of subject refs has references, which this registry does not keep.",
            "Version 1 of subject rules has metadata and a rule set, which this registry does not keep.",
            "The alias of the registry is not supported.",
            "The compatibility level ODD of subject good is not supported.",
            "The mode READONLY_OVERRIDE of subject good is not copied.",
        ]
        with opened(f"sqlite:///{tmp_path / 'new.db'}") as database:
            assert Store(database, Mirror()).counts().schemas == 0
        status, said = run(tmp_path / "new.db", url, "--skip-unsupported")
        assert (status, said.splitlines()[-1]) == (0, "equal: 1 versions, their ids, deletions and settings")
