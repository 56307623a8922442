"""Secondary indexes, and snapshots of Cassandra 5.0 whose schema.cql lacks user types: SSTables of a real node."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.commands.sstable.schemas import Schemas
from cassandra_storage.files.schema_file import SchemaFiles
from cassandra_storage.files.sstables import SSTable, find_sstables
from cassandra_storage.files.table_sstables import TableSSTables
from cassandra_storage.formats.errors import FormatError, UnsupportedError
from cassandra_storage.formats.types.marshal import user_types
from tests.support.cassandra_storage.sstable.command import lines, sstable
from tests.support.vectors import index_sstables

if TYPE_CHECKING:
    from pathlib import Path


def table_folder(keyspace: str, table: str) -> Path:
    (folder,) = (index_sstables.load() / keyspace).glob(f"{table}-*")
    return folder


def copied_snapshot(tmp_path: Path, table: str) -> Path:
    """A snapshot alone, without the node's system_schema."""
    folder = table_folder("s", table)
    copy = tmp_path / "s" / folder.name / "snapshots" / index_sstables.SNAPSHOT
    shutil.copytree(folder / "snapshots" / index_sstables.SNAPSHOT, copy)
    return copy


@pytest.mark.parametrize("command", ["dump", "merge"])
def test_a_snapshot_without_its_types_is_read(tmp_path: Path, command: str) -> None:
    expected = {"street": "Elm 1", "zip": 5}
    for folder in (table_folder("s", "p") / "snapshots", copied_snapshot(tmp_path, "p")):
        assert "CREATE TYPE" not in next(folder.rglob("schema.cql")).read_text()
        row = lines(sstable(command, "--values", folder))[1]
        assert row["partition_key"] == {"k": 1}
        assert [cell["value"] for cell in row["row"]["columns"]["a"]["cells"]] == [expected]


def with_unknown_type(folder: Path) -> Path:
    """The column `never`, which was not written, has a type that no header has."""
    schema = folder / "schema.cql"
    schema.write_text(schema.read_text().replace("never set<frozen<addr>>", "never set<frozen<other>>"))
    return folder


def test_types_come_from_keys_and_nested_types_of_the_headers(tmp_path: Path) -> None:
    row = lines(sstable("dump", "--values", with_unknown_type(copied_snapshot(tmp_path, "deep"))))[1]
    assert row["partition_key"] == {"k": [1, {"street": "Oak 2", "zip": 6}]}
    (cell,) = row["row"]["columns"]["p"]["cells"]
    assert (cell["path"], cell["value"]) == (7, {"name": "home", "at": {"street": "Fir 3", "zip": None}})


def test_a_snapshot_without_its_types_is_verified(tmp_path: Path) -> None:
    assert (
        "1 partitions, 1 rows, 0 range tombstone markers, 0 problems"
        in sstable("verify", copied_snapshot(tmp_path, "p")).stdout
    )


def test_a_complete_source_comes_before_one_without_types(tmp_path: Path) -> None:
    """schema.cql is asked before system_schema, which knows a type that no header has."""
    folder = table_folder("s", "deep") / "snapshots" / index_sstables.SNAPSHOT
    (file,) = find_sstables(folder)
    whole = Schemas().table_of(file)
    assert whole is not None
    assert [column.name for column in whole.regular_columns] == ["never", "p"]
    (file,) = find_sstables(with_unknown_type(copied_snapshot(tmp_path, "deep")))
    from_header = Schemas().table_of(file)
    assert from_header is not None
    assert [column.name for column in from_header.regular_columns] == ["p"]


def test_files_share_their_types(tmp_path: Path) -> None:
    types = tmp_path / "types.cql"
    types.write_text("CREATE TYPE s.addr (street text, zip int, added text);")
    table = tmp_path / "table.cql"
    table.write_text("CREATE TABLE s.p (k int PRIMARY KEY, a list<frozen<addr>>);")
    given = SchemaFiles()
    for path in (table, types):
        given.read(path)
    (file,) = find_sstables(copied_snapshot(tmp_path, "p"))
    found = Schemas(given).table_of(file)
    assert found is not None
    (type_,) = user_types(found.regular_columns[0].type)
    assert type_.field_names == ("street", "zip", "added")
    row = lines(sstable("dump", "--values", "--schema", table, "--schema", types, file.folder))[1]
    assert row["row"]["columns"]["a"]["cells"][0]["value"] == {"street": "Elm 1", "zip": 5}


def test_a_type_that_nothing_has_is_named(tmp_path: Path) -> None:
    folder = copied_snapshot(tmp_path, "p")
    schema = folder / "schema.cql"
    schema.write_text(schema.read_text().replace("addr", "other"))
    assert "unknown user type s.other" in sstable("dump", folder, status=1).stderr


@pytest.mark.parametrize(
    ("table", "index", "value"),
    [("t", "by_ck", 2), ("t", "by_v", "x"), ("t", "by_m", None), ("pair", "by_a", 4), ("pair", "by_st", 7)],
)
def test_an_index_is_named_as_such(table: str, index: str, value: object) -> None:
    folder = table_folder("ix", table) / f".{index}"
    partition, *_, row = lines(sstable("dump", "--values", folder))
    assert (partition["keyspace"], partition["table"], partition["index"]) == ("ix", table, index)
    assert set(partition["partition_key"]) == {"indexed_value"}
    assert value is None or partition["partition_key"]["indexed_value"] == value
    assert next(iter(row["row"]["clustering"])) == "partition_key"
    [shown] = lines(sstable("info", "--json", folder))
    assert (shown["table"], shown["is_index"], shown["index"]) == (table, True, index)
    assert f"index           {index}" in sstable("info", folder).stdout
    assert " 0 problems" in sstable("verify", folder).stdout


def test_an_index_is_not_merged() -> None:
    refused = sstable("merge", table_folder("ix", "t") / ".by_ck", status=1).stderr
    assert "the secondary index by_ck of ix.t is no table: dump and verify read it" in refused


def test_an_index_is_known_by_its_header_too(tmp_path: Path) -> None:
    """A copy in the folder of the base table, whose key has as many columns."""
    folder = table_folder("ix", "t")
    copy = tmp_path / "ix" / folder.name
    shutil.copytree(folder / ".by_ck", copy)
    schema = tmp_path / "t.cql"
    schema.write_text("CREATE TABLE ix.t (pk int, ck int, v text, m map<text, int>, PRIMARY KEY (pk, ck));")
    assert lines(sstable("dump", "--schema", schema, copy))[0]["partition_key"].keys() == {"indexed_value"}
    assert "a secondary index of ix.t is no table" in sstable("merge", "--schema", schema, copy, status=1).stderr
    (file,) = find_sstables(copy)
    table = Schemas().table_of(next(find_sstables(folder / next(folder.glob("*-Data.db")).name)))
    assert table is not None
    with pytest.raises(FormatError, match="those of a secondary index"):
        SSTable(file, table)
    with pytest.raises(UnsupportedError, match="LocalPartitioner"):
        TableSSTables(table, [file])


def test_the_component_of_an_attached_index_is_named() -> None:
    folder = table_folder("ix", "t")
    (path,) = folder.glob("*SAI+*+attached+Meta.db")
    said = sstable("dump", path, status=2).stderr.replace("\n", " ")
    assert "the file belongs to the index attached, which has no rows of its own" in said


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("(pk int, ck text, v text, m map<text, int>, PRIMARY KEY (pk, ck))", "'ck' is text in the table and int in"),
        ("(pk bigint, ck int, v text, m map<text, int>, PRIMARY KEY (pk, ck))", "'pk' is bigint in the table and int"),
        ("(pk int, ck int, v int, m map<text, int>, PRIMARY KEY (pk, ck))", "'v' is int in the table and text in the"),
        ("(pk int, ck int, v text, m list<text>, PRIMARY KEY (pk, ck))", "'m' is list<text> in the table and map<"),
        ("(pk int, ck int, v text, PRIMARY KEY (pk, ck))", "unknown column 'm' of ix.t"),
        ("(pk int, ck int, v text, m map<text, int>, PRIMARY KEY ((pk, ck)))", "1 partition key columns, the table 2"),
        (
            "(pk int, ck int, v text, m map<text, int>, PRIMARY KEY (pk, ck)) WITH CLUSTERING ORDER BY (ck DESC)",
            "ascending values of 'ck'",
        ),
    ],
)
def test_a_wrong_schema_is_refused(tmp_path: Path, statement: str, said: str) -> None:
    schema = tmp_path / "wrong.cql"
    schema.write_text(f"CREATE TABLE ix.t {statement};")
    for command in ("dump", "verify", "info"):
        result = sstable(command, "--schema", schema, table_folder("ix", "t"), status=1)
        assert said in result.output
