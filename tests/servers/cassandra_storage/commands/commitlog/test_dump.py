"""`dump` of what real nodes wrote: what it shows, what it hides, and that it says the same as SELECT."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from cdc_common.messages import tables as table_messages
from tests.support.cassandra_storage.commitlog.fixtures import CdcRaw, commitlog, json_lines
from tests.support.cassandra_storage.commitlog.json_values import serialized
from tests.support.vectors import workload
from tests.support.vectors.load import tables_of
from tests.support.vectors.make_vectors import connect, make_schema, run, schema_rows, select, wait_synced

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cassandra_storage.formats.schema.tables import TableMetadata
    from dev.local_stack.servers.cassandra import CassandraCluster

VALUES = {"value", "path", "partition_key", "clustering"}


@pytest.fixture(scope="module")
def shown(cdc_raw: CdcRaw) -> list[dict[str, Any]]:
    """All lines, with values."""
    return json_lines(commitlog("dump", "--values", cdc_raw.folder))


def updates_of(lines: list[dict[str, Any]], table: str) -> Iterator[dict[str, Any]]:
    return (update for line in lines for update in line["updates"] if update["table"] == table)


def named(value: Any, names: set[str]) -> Iterator[Any]:  # noqa: ANN401  any JSON
    """All that has one of these names, at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in names:
                yield inner
            else:
                yield from named(inner, names)
    elif isinstance(value, list):
        for inner in value:
            yield from named(inner, names)


def leaves(value: Any) -> Iterator[Any]:  # noqa: ANN401  any JSON
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from leaves(inner)
    else:
        yield value


def test_each_mutation_is_a_line(cdc_raw: CdcRaw, shown: list[dict[str, Any]]) -> None:
    """The tables are learned from the segments: nothing else is given."""
    places = {(line["segment"], line["position"], line["size"]) for line in shown}
    for segment in cdc_raw.vectors.segments:
        assert {(segment.name, entry.end_position, len(entry.mutation)) for entry in segment.entries()} <= places
    assert all("updates" in line for line in shown)


def test_every_kind_is_there(shown: list[dict[str, Any]]) -> None:
    text = json.dumps(shown)
    for kind in (
        *("partition_deletion", "static_row", "range_tombstones", "liveness", "deletion", "complex_deletion"),
        *("shards", "field", "ttl", "local_expiration_time", "dropped"),
    ):
        assert f'"{kind}":' in text, kind
    for kind in ("live", "expiring", "tombstone", "INCL_START_BOUND", "EXCL_END_BOUND"):
        assert f'"{kind}"' in text, kind


def check_natives(shown: list[dict[str, Any]], table: TableMetadata, select: dict[str, Any]) -> int:
    """Table natives has one row a partition and no deletions: the newest cell of a column is its value. How many are
    compared with SELECT's, whose values and timestamps are serialized.
    """
    types = {column.name: column.type for column in table.columns}
    newest: dict[tuple[bytes, str], tuple[int, bool, bytes]] = {}
    for update in updates_of(shown, table.name):
        key = serialized(types["id"], update["partition_key"]["id"])
        for row in update.get("rows", []):
            for name, cell in row["columns"].items():
                is_live = cell["kind"] == "live"
                found = (cell["timestamp"], not is_live, serialized(types[name], cell["value"]) if is_live else b"")
                newest[key, name] = max(newest.get((key, name), found), found)
    compared = 0
    for row in select["rows"]:
        values = dict(zip(select["columns"], row, strict=True))
        for name in types.keys() - {"id"}:
            if values[f"{name} ttl"] is None and values[f"{name} written"] is not None:
                timestamp, _, value = newest[bytes.fromhex(values["id"]), name]
                written = int.from_bytes(bytes.fromhex(values[f"{name} written"]), "big", signed=True)
                assert (timestamp, value.hex()) == (written, values[name])
                compared += 1
    return compared


def test_the_newest_cells_are_what_select_says(cdc_raw: CdcRaw, shown: list[dict[str, Any]]) -> None:
    assert check_natives(shown, cdc_raw.vectors.table("natives"), cdc_raw.vectors.select["natives"]) > 100


@pytest.mark.servers
def test_a_node_that_runs(cassandra: CassandraCluster) -> None:
    """The live cdc_raw of a node: what SELECT says now is in it."""
    node = cassandra.nodes[0]
    cluster, session = connect(node)
    try:
        make_schema(session)
        run(session, workload.fixed())
        wait_synced(node, session)
        schema = schema_rows(session)
        shown = json_lines(commitlog("dump", "--values", "--table", "vectors.natives", node.cdc_raw))
        selected = select(session, schema)["natives"]
    finally:
        cluster.shutdown()
    (table,) = (table for table in tables_of(schema).values() if table.qualified_name == "vectors.natives")
    assert check_natives(shown, table, selected) > 30


def test_values_are_hidden_unless_asked_for(cdc_raw: CdcRaw, shown: list[dict[str, Any]]) -> None:
    masked = commitlog("dump", cdc_raw.folder)
    lines = json_lines(masked)
    assert len(lines) == len(shown)
    assert not list(named(lines, {"value", "shards"}))
    for value in named(lines, VALUES):
        assert all(isinstance(leaf, int) for leaf in leaves(value)), value
    own = [update for line in shown for update in line["updates"] if update["keyspace"] == "vectors"]
    secrets = {leaf for value in named(own, VALUES) for leaf in leaves(value) if isinstance(leaf, str)}
    telling = {secret for secret in secrets if len(secret) > 5}
    assert len(telling) > 50
    assert not [secret for secret in telling if json.dumps(secret, ensure_ascii=False) in masked.stdout]


def test_a_table(cdc_raw: CdcRaw, shown: list[dict[str, Any]]) -> None:
    lines = json_lines(commitlog("dump", "--values", "--table", "vectors.counters", cdc_raw.folder))
    assert [update for line in lines for update in line["updates"]] == list(updates_of(shown, "counters"))
    two = ("--table", "vectors.counters", "--table", "vectors.wide")
    tables = {
        update["table"] for line in json_lines(commitlog("dump", *two, cdc_raw.folder)) for update in line["updates"]
    }
    assert tables == {"counters", "wide"}


def test_a_partition(cdc_raw: CdcRaw, shown: list[dict[str, Any]]) -> None:
    table = ("--table", "vectors.natives", "--values")
    expected = [update for update in updates_of(shown, "natives") if update["partition_key"] == {"id": 1}]
    assert expected
    for key in ("1", "0x00000001"):
        lines = json_lines(commitlog("dump", *table, "--key", key, cdc_raw.folder))
        assert [update for line in lines for update in line["updates"]] == expected


def test_positions(cdc_raw: CdcRaw, shown: list[dict[str, Any]]) -> None:
    first = shown[0]["segment"]
    of_first = [line for line in shown if line["segment"] == first]
    begin, end = of_first[2]["position"], of_first[4]["position"]
    lines = json_lines(commitlog("dump", "--values", "--from", begin, "--to", end, cdc_raw.folder / first))
    assert lines == of_first[2:5]
    segment_id = first.removesuffix(".log").split("-")[-1]
    lines = json_lines(commitlog("dump", "--values", "--from", f"{segment_id}:{end}", cdc_raw.folder))
    assert lines == shown[4:]


def test_without_the_schema_a_mutation_is_named_and_not_guessed(cdc_raw: CdcRaw, tmp_path: Path) -> None:
    """The second segment alone has no CREATE."""
    segment = cdc_raw.vectors.segments[1]
    (tmp_path / segment.name).write_bytes(segment.data)
    result = commitlog("dump", tmp_path)
    entries = segment.entries()
    assert f"{len(entries)} mutations of unknown tables or columns" in result.stderr
    for line, entry in zip(json_lines(result), entries, strict=True):
        assert line.keys() == {"segment", "position", "size", "not_decoded"}
        assert (line["position"], line["size"]) == (entry.end_position, len(entry.mutation))
    table = cdc_raw.vectors.table("wide")
    unknown = f"unknown table id {table.id.hex}"
    assert unknown in result.stdout
    assert len(json_lines(commitlog("dump", "--table", table.id, tmp_path))) == result.stdout.count(unknown)


@pytest.mark.parametrize("form", ["schema.json", "message", "lines"])
def test_the_schema_from_a_file(cdc_raw: CdcRaw, shown: list[dict[str, Any]], tmp_path: Path, form: str) -> None:
    segment = cdc_raw.vectors.segments[1]
    (tmp_path / segment.name).write_bytes(segment.data)
    messages = [table_messages.to_json(table).decode() for table in cdc_raw.vectors.tables.values()]
    file = tmp_path / "schema"
    if form == "schema.json":
        file.write_text(
            json.dumps({"format_version": 1, "tables": [{"cdc": True, "table": text} for text in messages]})
        )
    elif form == "lines":
        mark = json.dumps({"format_version": 1, "needs_snapshot_since_us": 5})
        file.write_text("\n".join([mark, "null", *messages]) + "\n")
    else:
        file.write_text(table_messages.to_json(cdc_raw.vectors.table("wide")).decode())
    lines = json_lines(commitlog("dump", "--values", "--schema", file, tmp_path / segment.name))
    if form == "message":
        lines = [line for line in lines if "updates" in line]
        assert {update["table"] for line in lines for update in line["updates"]} == {"wide"}
        shown = [line for line in shown if {"wide"} == {update["table"] for update in line["updates"]}]
    assert lines == [line for line in shown if line["segment"] == segment.name]


def test_ids_are_of_the_tables(cdc_raw: CdcRaw, shown: list[dict[str, Any]]) -> None:
    for update in (update for line in shown for update in line["updates"]):
        table = cdc_raw.vectors.tables[UUID(update["table_id"]).bytes]
        assert (update["keyspace"], update["table"]) == (table.keyspace, table.name)
