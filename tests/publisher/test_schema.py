"""The schema followed through a node that answers by rote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest

from cdc_program.errors import CdcError, Code
from publisher.schema import VERSION_QUERY, Schema

if TYPE_CHECKING:
    from pathlib import Path


class Node:
    """system_schema as its rows."""

    def __init__(self) -> None:
        self.version = uuid4()
        self.tables: dict[tuple[str, str], dict[str, Any]] = {}
        self.columns: list[dict[str, Any]] = []
        self.questions: list[str] = []
        self.changes_while_read = 0

    def create(self, keyspace: str, name: str, *, cdc: bool | None) -> bytes:
        table_id = uuid4()
        self.tables[keyspace, name] = {
            "keyspace_name": keyspace,
            "table_name": name,
            "id": table_id,
            "flags": {"compound"},
            "gc_grace_seconds": 1,
            "cdc": cdc,
        }
        self.columns.append(
            {
                "keyspace_name": keyspace,
                "table_name": name,
                "column_name": "id",
                "kind": "partition_key",
                "position": 0,
                "type": "int",
                "clustering_order": "none",
            }
        )
        self.version = uuid4()
        return table_id.bytes

    def drop(self, keyspace: str, name: str) -> None:
        del self.tables[keyspace, name]
        self.version = uuid4()

    def ask(self, query: str) -> list[dict[str, Any]]:
        self.questions.append(query)
        if query == VERSION_QUERY:
            return [{"schema_version": self.version}]
        if "system_schema.tables" in query:
            rows = list(self.tables.values())
            if self.changes_while_read:
                self.changes_while_read -= 1
                self.create("ks", f"t{len(self.tables)}", cdc=True)
            return rows
        if "system_schema.columns" in query:
            return [row for row in self.columns if (row["keyspace_name"], row["table_name"]) in self.tables]
        return []


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def schema(node: Node, tmp_path: Path) -> Schema:
    return Schema(tmp_path / "schema.json", node.ask, ("cdc_filler", "filler"))


def test_tables_are_sorted_into_published_filler_and_ignored(node: Node, schema: Schema) -> None:
    published = node.create("ks", "a", cdc=True)
    ignored = {node.create("ks", "b", cdc=False), node.create("ks", "c", cdc=None)}
    filler = node.create("cdc_filler", "filler", cdc=True)
    assert schema.refresh()
    assert set(schema.published) == {published}
    assert schema.filler_ids == {filler}
    assert schema.ignored == ignored
    assert [table.id for table in schema.current()] == [published]


def test_nothing_but_the_version_is_asked_while_nothing_changes(node: Node, schema: Schema) -> None:
    schema.refresh()
    node.questions.clear()
    assert not schema.refresh()
    assert node.questions == [VERSION_QUERY]
    schema.forget_version()
    assert not schema.refresh()
    assert len(node.questions) > 2


def test_a_change_while_the_schema_is_read_makes_it_be_read_again(node: Node, schema: Schema) -> None:
    node.changes_while_read = 3
    schema.refresh()
    assert len(schema.tables) == 3


def test_a_dropped_table_stays_known_also_after_a_restart(node: Node, schema: Schema, tmp_path: Path) -> None:
    dropped, plain = node.create("ks", "a", cdc=True), node.create("ks", "b", cdc=False)
    schema.refresh()
    node.drop("ks", "a")
    node.drop("ks", "b")
    again = Schema(tmp_path / "schema.json", node.ask, ("cdc_filler", "filler"))
    again.load()
    again.refresh()
    assert set(again.published) == {dropped}
    assert again.ignored == {plain}
    assert again.current() == []


def test_what_did_not_change_stays_the_same_object(node: Node, schema: Schema) -> None:
    table_id = node.create("ks", "a", cdc=True)
    schema.refresh()
    before = schema.published[table_id]
    node.create("ks", "b", cdc=True)
    schema.refresh()
    assert schema.published[table_id] is before
    node.tables["ks", "a"]["gc_grace_seconds"] = 2
    node.version = UUID(int=1)
    assert schema.refresh()
    assert schema.published[table_id] is not before
    assert schema.published[table_id].digest == before.digest


def test_a_damaged_history_is_refused(schema: Schema, tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"format_version": 1, "tables": [{"cdc": true, "table": "{}"}]}')
    with pytest.raises(CdcError) as caught:
        schema.load()
    assert caught.value.code is Code.POSITION_FILE
