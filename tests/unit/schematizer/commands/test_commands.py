"""The commands, against a running service: documentation files, models, unused, backup."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from typing import TYPE_CHECKING, NamedTuple

import pytest
from click.testing import CliRunner

from schematizer.cli import main
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
namespace = "docs.shop"
source = "users"
doc = "people"
owner = "accounts"

[fields.id]
doc = "a number"

[fields.email]
doc = "as they gave it"
pii = true
"""
YAML = """
namespace: docs.shop
source: users
owner: accounts
fields:
  id: {doc: a number}
  email: {doc: x, pii: true}
"""
MODELS = """
from sqlalchemy import Column, Integer, MetaData, String, Table
metadata = MetaData()
Table("people", metadata, Column("id", Integer, primary_key=True, comment="a number"),
      Column("email", String(50), doc="as given", info={"pii": True}), comment="who buys", info={"owner": "accounts"})
bare = MetaData()
Table("things", bare, Column("id", Integer, primary_key=True))
"""
OLD, LONG_AGO = "2020-01-02", 1577923200000000
SCHEMAS_OF_B = "/api/v1/topics/new.shop.b/schemas"


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run(folder: Path, *arguments: str) -> Done:
    """Run the command in this process: each Python that starts costs a second."""
    with contextlib.chdir(folder):
        result = CliRunner().invoke(main, arguments)
    return Done(result.exit_code, result.stdout, result.stderr)


@pytest.fixture(scope="module")
def users(registry: Registry) -> Registry:
    """Return the registry with a source of two fields."""
    fields = [{"name": "id", "type": "int"}, {"name": "email", "type": ["null", "string"], "default": None}]
    schema = {"type": "record", "name": "users", "primaryKey": ["id"], "fields": fields}
    made = registry.call("POST", "/api/v1/namespaces/docs.shop/schemas", {"format": "avro", "text": json.dumps(schema)})
    assert made.status == 200, made.body
    return registry


def test_docs_check_offline(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    good = tmp_path / "docs" / "users.toml"
    good.write_text(GOOD)
    checked = run(tmp_path, "docs", "check", "--offline", "docs")
    assert (checked.returncode, checked.stdout) == (0, "ok: 1 documentation files\n")
    (tmp_path / "empty").mkdir()
    checked = run(tmp_path, "docs", "check", "--offline", "empty")
    assert (checked.returncode, "empty: no file ends in .toml, .yaml, .yml" in checked.stderr) == (1, True)
    (tmp_path / "docs" / "bad.yaml").write_text("namespace: a\nsource: b\nfields: {x: {}, y: {doc: y, colour: red}}\n")
    (tmp_path / "docs" / "bare.yaml").write_text("namespace: a\nsource: b\nfields: {x: {}}\n")
    (tmp_path / "docs" / "twice.yaml").write_text(YAML)
    checked = run(tmp_path, "docs", "check", "--offline", "docs")
    assert checked.returncode == 1
    for problem in ("colour", "a/b has no owner", "the field x has no doc", "docs.shop/users is in", "CDC-034"):
        assert problem in checked.stderr


def test_docs_check_and_apply(tmp_path: Path, users: Registry) -> None:
    file = tmp_path / "users.toml"
    file.write_text(GOOD.replace("[fields.email]", "[fields.mail]"))
    checked = run(tmp_path, "docs", "check", "--url", users.url, str(file))
    assert checked.returncode == 1
    assert "docs.shop/users has no field mail" in checked.stderr
    assert "the field email of docs.shop/users has no doc" in checked.stderr
    file.write_text(GOOD)
    assert run(tmp_path, "docs", "check", "--url", users.url, str(file)).returncode == 0
    assert run(tmp_path, "docs", "apply", "--url", users.url, str(file)).returncode == 0
    elements = users.call("GET", "/api/v1/namespaces/docs.shop/sources/users/elements").body
    assert [(element["path"], element["doc"], element["is_pii"]) for element in elements] == [
        ("id", "a number", False),
        ("email", "as they gave it", True),
    ]
    source = users.call("GET", "/api/v1/namespaces/docs.shop/sources/users").body
    assert (source["doc"], source["owner"]) == ("people", "accounts")
    other = tmp_path / "users.yaml"
    other.write_text(YAML)  # without a doc of the source: what the catalogue has stays
    assert run(tmp_path, "docs", "apply", "--url", users.url, str(other)).returncode == 0
    assert users.call("GET", "/api/v1/namespaces/docs.shop/sources/users").body["doc"] == "people"


def test_the_gate_for_models(tmp_path: Path, users: Registry) -> None:
    (tmp_path / "models_of_the_gate.py").write_text(MODELS)
    checked = run(tmp_path, "models", "check", "models_of_the_gate:metadata")
    assert (checked.returncode, checked.stdout) == (0, "ok: 1 tables\n")
    bare = run(tmp_path, "models", "check", "models_of_the_gate:bare")
    assert bare.returncode == 1
    for problem in ("things: the table has no comment", "things: the table has no info['owner']", "things.id"):
        assert problem in bare.stderr
    assert run(tmp_path, "models", "check", "models_of_the_gate:nothing").returncode == 1
    common = ("models", "register", "--url", users.url, "--namespace", "models.shop", "--dialect", "postgresql")
    made = run(tmp_path, *common, "models_of_the_gate:metadata")
    assert made.returncode == 0, made.stderr
    assert "people: schema" in made.stdout
    assert "pii-models.shop.people" in made.stdout
    elements = users.call("GET", "/api/v1/namespaces/models.shop/sources/people/elements").body
    assert [
        (element["path"], element["source_type"], element["doc"], element["is_key"], element["is_pii"])
        for element in elements
    ] == [
        ("id", "serial", "a number", True, False),
        ("email", "varchar(50)", "as given", False, True),
    ]


def test_what_is_unused_is_disabled_by_command(tmp_path: Path) -> None:
    """A topic as a whole, and one schema of a topic that is in use."""
    registry = Registry(tmp_path / "registry.db").start()
    try:
        for subject, schemas in (("old.shop.a-value", ('"string"',)), ("new.shop.b-value", ('"int"', '"long"'))):
            for schema in schemas:
                assert registry.register(subject, json.loads(schema)).status == 200
        assert run(tmp_path, "unused", "--url", registry.url, "--days", "30").stdout == "0 in 30 days\n"
        with contextlib.closing(sqlite3.connect(registry.database)) as database, database:
            database.execute("UPDATE topics SET last_used_at = ? WHERE name = 'old.shop.a'", (LONG_AGO,))
            database.execute("UPDATE topic_schemas SET last_used_at = ? WHERE schema_id < 3", (LONG_AGO,))
        what = [f"old.shop.a, last used {OLD}", f"new.shop.b, schema 2, last used {OLD}"]
        listed = run(tmp_path, "unused", "--url", registry.url, "--days", "30")
        assert sorted(listed.stdout.splitlines()) == sorted([*(f"unused: {line}" for line in what), "2 in 30 days"])
        assert registry.call("GET", "/api/v1/topics/old.shop.a").body["status"] == "read-write", "a list"
        disabled = run(tmp_path, "unused", "--url", registry.url, "--days", "30", "--disable")
        assert sorted(disabled.stdout.splitlines()) == sorted([*(f"disabled: {line}" for line in what), "2 in 30 days"])
        assert registry.call("GET", "/api/v1/topics/old.shop.a").body["status"] == "disabled"
        assert registry.call("GET", "/api/v1/topics/new.shop.b").body["status"] == "read-write"
        statuses = {schema["schema_id"]: schema["status"] for schema in registry.call("GET", SCHEMAS_OF_B).body}
        assert statuses == {2: "disabled", 3: "read-write"}
        assert run(tmp_path, "unused", "--url", registry.url, "--days", "30").stdout == "0 in 30 days\n"
    finally:
        assert registry.stop() == 0


def test_backup_and_restore_beside_the_service(tmp_path: Path, users: Registry) -> None:
    backup = run(tmp_path, "backup", "--database-url", f"sqlite:///{users.database}", "copy")
    assert backup.returncode == 0, backup.stderr
    restored = run(tmp_path, "restore", "--database-url", f"sqlite:///{tmp_path / 'new.db'}", "copy")
    assert restored.returncode == 0, restored.stderr
    other = Registry(tmp_path / "new.db").start()
    try:
        for path in ("/api/v1/sources", "/api/v1/topics", "/subjects", "/api/v1/changes"):
            assert other.call("GET", path).body == users.call("GET", path).body
    finally:
        assert other.stop() == 0
    again = run(tmp_path, "restore", "--database-url", f"sqlite:///{tmp_path / 'new.db'}", "copy")
    assert again.returncode == 3
    assert "CDC-033" in again.stderr


def test_a_service_that_is_away(tmp_path: Path) -> None:
    failed = run(tmp_path, "unused", "--url", "http://127.0.0.1:9")
    assert failed.returncode == 3
    assert "CDC-030" in failed.stderr
    assert "registry.url" in failed.stderr


@pytest.mark.parametrize("command", [("backup", "copy"), ("keys", "list"), ("keys", "revoke", "id"), ("audit",)])
def test_a_database_that_is_not_there_is_not_made(tmp_path: Path, command: tuple[str, ...]) -> None:
    failed = run(tmp_path, *command, "--database-url", f"sqlite:///{tmp_path / 'new' / 'registry.db'}")
    assert failed.returncode == 3
    assert "CDC-032: There is no database" in failed.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_is_not_there(tmp_path: Path, users: Registry) -> None:
    failed = run(tmp_path, "keys", "revoke", "nope", "--database-url", f"sqlite:///{users.database}")
    assert (failed.returncode, "cassandra-schematizer keys list" in failed.stderr) == (2, True)
