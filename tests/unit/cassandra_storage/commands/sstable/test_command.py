"""cassandra-sstable on SSTables of real nodes."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.commands.sstable.schemas import read_data_folder
from cassandra_storage.formats.sstable.file_name import DATA
from tests.support.cassandra_storage.sstable.command import lines, sstable
from tests.support.vectors import indexed_sstables, sstables
from tests.support.workload.tables import tables

if TYPE_CHECKING:
    from pathlib import Path

    from cassandra_storage.files.sstables import SSTableFile


def one(form: str, table: str) -> SSTableFile:
    return next(file for file, of, _ in sstables.load(form).files() if of.name == table)


@pytest.mark.parametrize("form", sstables.FORMS_MADE)
def test_verify(form: str) -> None:
    vectors = sstables.load(form)
    tables = ["--schema", vectors.data.parent / "schema.json"]
    output = sstable("verify", *tables, vectors.data / "ks").stdout
    rows = [line for _, _, said in vectors.files() for line in said]
    counts = [sum(line.startswith(f'{{"{kind}"') for line in rows) for kind in ("key", "row", "marker")]
    said = re.search(r", (\d+) partitions, (\d+) rows, (\d+) range tombstone markers, 0 problems", output)
    assert said is not None
    found = [int(count) for count in said.groups()]
    assert found[::2] == counts[::2]
    assert counts[1] <= found[1] <= counts[1] + 5  # rows whose columns were all dropped


def test_verify_names_file_and_place(tmp_path: Path) -> None:
    file = one("4.0", "natives")
    shutil.copytree(file.folder, tmp_path / "t")
    path = tmp_path / "t" / file.descriptor.file_name(DATA)
    data = bytearray(path.read_bytes())
    data[9] ^= 1
    path.write_bytes(data)
    (tmp_path / "t" / file.descriptor.file_name("Digest.crc32")).unlink()
    toc = tmp_path / "t" / file.descriptor.file_name("TOC.txt")
    toc.write_text(toc.read_text().replace("Digest.crc32\n", ""))
    output = sstable("verify", path, status=1).stdout
    assert f"{path}:0: the checksum of a chunk does not match: bytes 0 to " in output
    assert "1 problems" in output
    dumped = sstable("dump", path, status=1)
    assert f"{path}:0:" in dumped.stderr


@pytest.mark.parametrize("form", sstables.WITH_SYSTEM_SCHEMA)
def test_tables_of_the_node(form: str) -> None:
    """system_schema's own SSTables tell the same tables as the node told the publisher."""
    vectors = sstables.load(form)
    found = {table.id: table for table in read_data_folder(vectors.data)}
    own = {table.id: table for table in vectors.tables.values() if table.keyspace == "ks"}
    assert {table.name for table in own.values()} >= {"natives", "altered", "compact_static"}
    for table_id, table in own.items():
        assert (found[table_id].columns, found[table_id].flags) == (table.columns, table.flags)
        assert found[table_id].dropped_columns == table.dropped_columns


@pytest.mark.parametrize("form", sstables.WITH_SYSTEM_SCHEMA)
def test_dump_finds_the_table_by_itself(form: str) -> None:
    shown = lines(sstable("dump", "--values", one(form, "keys").data_path))
    rows = [line for line in shown if "row" in line]
    assert rows
    assert set(rows[0]["partition_key"]) == set(
        next(table for table in tables(sstables.line_of(form), sstables.SEED) if table.name == "keys").partition_key
    )
    assert [line["token"] for line in shown if "token" in line] == sorted(
        line["token"] for line in shown if "token" in line
    )


def test_dump_without_a_schema() -> None:
    shown = lines(sstable("dump", "--values", one("4.1", "collections").data_path))
    first = next(line for line in shown if "row" in line)
    assert list(first["partition_key"]) == ["key0"]
    assert list(first["row"]["clustering"]) == ["clustering0"]
    assert any(name.startswith("v_") for line in shown if "row" in line for name in line["row"]["columns"])


def test_dump_hides_values() -> None:
    shown = lines(sstable("dump", one("4.1", "collections").data_path))
    assert all(set(line["partition_key"]["key0"]) == {"length"} for line in shown)


def test_dump_shows_markers_and_dropped_columns(tmp_path: Path) -> None:
    vectors = sstables.load("4.0")
    schema = vectors.data.parent / "schema.json"
    shown = lines(sstable("dump", "--schema", schema, vectors.data))
    kinds = {frozenset(line["range_tombstone_marker"]) for line in shown if "range_tombstone_marker" in line}
    assert kinds == {frozenset({"open"}), frozenset({"close"}), frozenset({"open", "close"})}
    columns = [column for line in shown if "row" in line for column in line["row"]["columns"].values()]
    assert any(column.get("dropped") for column in columns)
    assert tmp_path


def test_key() -> None:
    file = one("4.1", "collections")
    keys = [line["partition_key"]["key0"] for line in lines(sstable("dump", "--values", file.data_path))]
    chosen = lines(sstable("dump", "--values", "--key", keys[0], file.data_path))
    assert len(chosen) == keys.count(keys[0])


def test_snapshot_with_its_schema(tmp_path: Path) -> None:
    file = one("4.0", "only_keys")
    folder = tmp_path / "ks" / file.folder.name / "snapshots" / "s1"
    shutil.copytree(file.folder, folder)
    (folder / "schema.cql").write_text(
        f"CREATE TABLE ks.only_keys (id int, c int, PRIMARY KEY (id, c)) WITH ID = {file.table_name[2]};"
    )
    assert lines(sstable("dump", tmp_path / "ks" / file.folder.name / "snapshots"))[0]["partition_key"].keys() == {"id"}


def indexed(tmp_path: Path) -> tuple[Path, Path]:
    """(a file of the schema, a directory of two SSTables that have partitions in common)."""
    vectors = indexed_sstables.load("5.0-bti")
    schema = tmp_path / "schema.cql"
    schema.write_text("CREATE TABLE ks.indexed (id int, c int, v text, PRIMARY KEY (id, c));")
    shutil.copytree(vectors.data, tmp_path / "data")
    return schema, tmp_path / "data"


def test_merge(tmp_path: Path) -> None:
    schema, data = indexed(tmp_path)
    merged = lines(sstable("merge", "--schema", schema, data))
    tokens = [line["token"] for line in merged if "token" in line]
    assert tokens == sorted(set(tokens))
    dumped = [line["token"] for line in lines(sstable("dump", "--schema", schema, data)) if "token" in line]
    assert set(dumped) == set(tokens)
    assert len(dumped) > len(tokens)
    partition, row = lines(sstable("merge", "--values", "--key", "6", "--schema", schema, data))
    shared = {"partition_key": {"id": 6}}
    assert partition == {"keyspace": "ks", "table": "indexed", **shared, "token": partition["token"]}
    assert row["row"]["columns"]["v"]["value"] == "3"  # written after the 2 of the other SSTable


def test_merge_of_several_directories(tmp_path: Path) -> None:
    """Each directory of a snapshot may have a schema.cql of its own."""
    schema, data = indexed(tmp_path)
    expected = sstable("merge", "--schema", schema, data).stdout
    (folder,) = (data / "ks").iterdir()
    other = tmp_path / "other" / "ks" / folder.name
    other.mkdir(parents=True)
    for path in folder.glob("da-2-*"):
        path.rename(other / path.name)
    for path in (folder, other):
        shutil.copy(schema, path / "schema.cql")
    assert sstable("merge", folder, other).stdout == expected


def test_merge_needs_the_table(tmp_path: Path) -> None:
    schema, data = indexed(tmp_path)
    assert "no schema has the table that its folders name (ks.indexed)" in sstable("merge", data, status=1).stderr
    flat = tmp_path / "flat"
    shutil.copytree(next(data.rglob("*-Data.db")).parent, flat)
    assert "keep the folders KEYSPACE/TABLE-ID/" in sstable("merge", "--schema", schema, flat, status=1).stderr


def test_merge_names_damage(tmp_path: Path) -> None:
    schema, data = indexed(tmp_path)
    path = next(data.rglob(f"*-{DATA}"))
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    result = sstable("merge", "--schema", schema, data, status=1)
    assert lines(result)
    assert re.search(
        rf"{path}:\d+: the checksum of a chunk .* of ks.indexed what has tokens above -?\d+", result.stderr
    )
    path.with_name(path.name.replace(DATA, "Statistics.db")).unlink()
    result = sstable("merge", "--schema", schema, data, status=1)
    assert "the file is not there; of ks.indexed none of it can be merged" in result.stderr


def test_info() -> None:
    file = one("5.0-bti", "natives")
    [shown] = lines(sstable("info", "--json", file.data_path))
    assert (shown["keyspace"], shown["table"], shown["version"], shown["format"]) == ("ks", "natives", "da", "bti")
    assert (shown["compression"], shown["chunk_length"], shown["has_checksums"]) == ("LZ4Compressor", 4096, True)
    assert (shown["repaired_at"], shown["pending_repair"], shown["is_transient"]) == (None, None, False)
    assert {column["kind"] for column in shown["columns"]} == {"partition_key", "clustering", "static", "regular"}
    text = sstable("info", file.data_path).stdout
    for said in ("ks.natives", "da (bti), written by Cassandra 5.0", "LZ4Compressor, chunks of 4,096 bytes"):
        assert said in text


@pytest.mark.parametrize(
    ("name", "message"),
    [("la-1-big-Data.db", "upgradesstables"), ("nb-1-big-Index.db", "name the Data.db"), ("other", "no SSTable found")],
)
def test_what_is_no_sstable(tmp_path: Path, name: str, message: str) -> None:
    path = tmp_path / name
    if name == "other":
        path.mkdir()
    else:
        path.touch()
    assert message in sstable("verify", path, status=2).stderr.replace("\n", " ")


def test_missing_statistics(tmp_path: Path) -> None:
    path = tmp_path / "nb-1-big-Data.db"
    path.touch()
    output = sstable("verify", path, status=1).stdout
    assert "nb-1-big-Statistics.db: cannot be read: No such file or directory" in output


def test_damaged_schema(tmp_path: Path) -> None:
    (tmp_path / "a.cql").write_text("CREATE TABLE t (")
    (tmp_path / "b.json").write_text("{")
    for name in ("a.cql", "b.json"):
        assert name in sstable("info", "--schema", tmp_path / name, one("4.0", "keys").data_path, status=2).stderr


def test_a_key_that_is_not_there_is_named() -> None:
    vectors = sstables.load("5.0")
    tables = ["--schema", vectors.data.parent / "schema.json"]
    for command in ("dump", "merge"):
        done = sstable(command, *tables, "--key", "no-key", vectors.data / "ks")
        assert (done.stdout, "no partition with the key no-key" in done.stderr) == ("", True)


def test_files_without_tables_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.cql"
    text.write_text("-- nothing")
    folder = sstables.load("5.0").data
    refused = sstable("dump", "--schema", text, folder, status=2).stderr
    assert "no table found" in refused
    assert "(notes.cql)" in refused
    refused = sstable("dump", "--data", tmp_path, folder, status=2).stderr
    assert "no data directory of a node: it has no system_schema" in refused
