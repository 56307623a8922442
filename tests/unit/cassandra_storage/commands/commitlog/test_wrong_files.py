"""A wrong file for any option of the two commands is named in words for people, without a parser's own."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from cassandra_storage.commands.commitlog.cli import group as commitlog
from cassandra_storage.commands.sstable.cli import group as sstable
from cassandra_storage.formats.rows.deletion import DeletionTime
from cassandra_storage.formats.rows.header import SerializationHeader
from cassandra_storage.formats.rows.partition import PartitionUpdate
from cassandra_storage.formats.schema.cql_schema import parse_schema
from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.process.paths import project_root
from publisher.cli import main as publisher
from publisher.tables.stored_tables import read_known_tables
from tests.support.cassandra_storage.segment_builder import NAME, segment
from tests.support.cassandra_storage.update_builder import write_update
from tests.support.vectors import index_sstables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEGMENTS = project_root() / "docs" / "example-segment"
ALL = project_root() / "docs" / "example-sstable"
CONTENTS = {
    "empty": b"",
    "blank": b" \n\n",
    "binary": bytes(range(256)),
    "zeros": bytes(100),
    "words": b"buy milk and bread",
    "statement": b"SELECT * FROM t;",
    "torn": b"CREATE TABLE ks.t (a int",
    "without a key": b"CREATE TABLE ks.t (a int, b int);",
    "without an id": b"CREATE TABLE ks.t (a int PRIMARY KEY);",
    "unknown type": b"CREATE TABLE ks.t (a int PRIMARY KEY, b other) WITH ID = 034cd490-e923-11f1-9ff3-11eb50455fa5;",
    "torn JSON": b'{"tables": [',
    "other JSON": b'{"a": 1}',
    "JSON list": b"[1, 2]",
    "JSON number lines": b'{"table": 1}\n5\n',
    "JSON null": b"null\n",
    "JSON tables of another kind": b'{"tables": {"a": 1}}',
    "deep JSON": b'{"tables": ' + b"[" * 100_000,
    "Latin-1": "CREATE TABLE ks.größe (a int PRIMARY KEY);".encode("latin-1"),
}
PARSERS = (
    "Expecting",
    "codec",
    "Traceback",
    "Errno",
    "JSONDecode",
    "not subscriptable",
    "KeyError",
    "line 1 column",
    "object",
)


def check(result: Result, *said: str) -> None:
    assert result.exit_code in (1, 2), result.output
    assert isinstance(result.exception, SystemExit), result.exception
    assert not [word for word in PARSERS if word in result.output], result.output
    for word in said:
        assert word in result.output.replace("\n", " "), result.output


def wrong_files(folder: Path) -> Iterator[Path]:
    for name, content in CONTENTS.items():
        path = folder / name.replace(" ", "-")
        path.write_bytes(content)
        yield path


def test_schemas_of_segments(tmp_path: Path) -> None:
    for path in wrong_files(tmp_path):
        check(CliRunner().invoke(commitlog, ["info", str(SEGMENTS), "--schema", str(path)]), path.name)


def test_schemas_of_sstables(tmp_path: Path) -> None:
    for path in wrong_files(tmp_path):
        if path.name not in ("without-an-id", "unknown-type"):
            check(CliRunner().invoke(sstable, ["info", str(ALL), "--schema", str(path)]), path.name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("empty", "the file is empty"),
        ("binary", "not text: the file is not CQL"),
        ("other JSON", "the file is JSON, but not CQL"),
        ("torn JSON", "begins like JSON and is not whole"),
        ("words", "no table found: the file is not CQL"),
        ("without an id", "ks.t has no ID: take a snapshot's schema.cql"),
        ("unknown type", "unknown user type ks.other"),
    ],
)
def test_what_is_said(tmp_path: Path, name: str, said: str) -> None:
    path = tmp_path / "x.cql"
    path.write_bytes(CONTENTS[name])
    check(CliRunner().invoke(commitlog, ["dump", str(SEGMENTS), "--schema", str(path)]), said, "x.cql")


@pytest.mark.parametrize("option", ["--keystore", "--keystore-password-file", "--key-password-file"])
def test_keystores_and_passwords(tmp_path: Path, option: str) -> None:
    vectors = project_root() / "tests" / "vectors" / "segments" / "3.11"
    password = tmp_path / "password"
    password.write_text("wrong")
    for path in wrong_files(tmp_path):
        given = {"--keystore": vectors / "keystore.jceks", "--keystore-password-file": password, option: path}
        arguments = [str(word) for pair in given.items() for word in pair]
        check(CliRunner().invoke(commitlog, ["info", str(SEGMENTS), *arguments]))


def test_folders(tmp_path: Path) -> None:
    for option in ("--schema", "--keystore", "--keystore-password-file", "--key-password-file"):
        check(CliRunner().invoke(commitlog, ["info", str(SEGMENTS), option, str(tmp_path)]), "is a directory")
    check(CliRunner().invoke(sstable, ["info", str(ALL), "--schema", str(tmp_path)]), "is a directory")
    check(CliRunner().invoke(sstable, ["info", str(ALL), "--data", str(tmp_path)]), "no data directory of a node")


def test_paths(tmp_path: Path) -> None:
    for path in wrong_files(tmp_path):
        for command in (commitlog, sstable):
            check(CliRunner().invoke(command, ["verify", str(path)]), path.name)


def test_contents_under_the_names_of_segments_and_sstables(tmp_path: Path) -> None:
    for name, content in CONTENTS.items():
        segment = tmp_path / "CommitLog-7-1795262705372.log"
        segment.write_bytes(content)
        result = CliRunner().invoke(commitlog, ["verify", str(segment)])
        assert result.exception is None or isinstance(result.exception, SystemExit), name
        for component in ("Data.db", "Statistics.db"):
            (tmp_path / f"nb-1-big-{component}").write_bytes(content)
        check(CliRunner().invoke(sstable, ["verify", str(tmp_path / "nb-1-big-Data.db")]), "nb-1-big-Statistics.db")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "x.cql"
    path.write_text("CREATE TABLE ks.t (a int PRIMARY KEY);")
    path.chmod(0)
    for command, place in ((commitlog, SEGMENTS), (sstable, ALL)):
        check(CliRunner().invoke(command, ["info", str(place), "--schema", str(path)]), "x.cql")


def test_cql_is_a_schema_of_segments(tmp_path: Path) -> None:
    """The schema.cql of a snapshot, with the id of a table whose CREATE is not in the segments."""
    statement = "CREATE TABLE ks.t (a int PRIMARY KEY) WITH ID = 034cd490-e923-11f1-9ff3-11eb50455fa5;"
    [table] = parse_schema(statement)
    update = PartitionUpdate(table, (7).to_bytes(4, "big"), DeletionTime(5, 6), None, ())
    folder = tmp_path / "segments"
    folder.mkdir()
    (folder / NAME).write_bytes(segment([[b"\x01" + write_update(update, [], SerializationHeader.of_table(table))]]))
    path = tmp_path / "schema.cql"
    path.write_text(statement)
    assert "unknown table" in CliRunner().invoke(commitlog, ["dump", str(folder)]).output
    done = CliRunner().invoke(commitlog, ["dump", "--values", str(folder), "--schema", str(path)])
    assert done.exit_code == 0, done.output
    (shown,) = map(json.loads, done.stdout.splitlines())
    assert (shown["updates"][0]["table"], shown["updates"][0]["partition_key"]) == ("t", {"a": 7})


def test_the_schema_of_a_snapshot_without_its_types(tmp_path: Path) -> None:
    """No header tells the types of a segment: another file does."""
    (folder,) = (index_sstables.load() / "s").glob("p-*")
    schema = folder / "snapshots" / index_sstables.SNAPSHOT / "schema.cql"
    check(
        CliRunner().invoke(commitlog, ["info", str(SEGMENTS), "--schema", str(schema)]),
        "unknown user type s.addr",
        "DESCRIBE",
    )
    types = tmp_path / "types.cql"
    types.write_text("CREATE TYPE s.addr (street text, zip int);")
    done = CliRunner().invoke(commitlog, ["info", str(SEGMENTS), "--schema", str(schema), "--schema", str(types)])
    assert done.exit_code == 0, done.output


def test_the_schema_of_a_replay(tmp_path: Path) -> None:
    """`cassandra-publisher quarantine replay --schema`."""
    for path in (*wrong_files(tmp_path), tmp_path, tmp_path / "missing"):
        with pytest.raises(CdcError, match="is not a publisher's schema file") as raised:
            read_known_tables(path)
        assert raised.value.code is Code.CONFIG_INVALID


def test_settings_files(tmp_path: Path) -> None:
    """`--config` of all programs."""
    for path in (*wrong_files(tmp_path), tmp_path, tmp_path / "missing"):
        if path.name in ("empty", "blank"):
            continue
        result = CliRunner().invoke(publisher, ["config", "check", "--config", str(path)])
        assert result.exit_code, path
        assert isinstance(result.exception, SystemExit), (path, result.exception)
        assert not [word for word in ("Traceback", "codec", "Errno") if word in result.output], result.output
