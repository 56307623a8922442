"""The node's schema as it changes; the node is a fake that answers the queries."""

from __future__ import annotations

from dataclasses import replace
from time import time_ns
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from cassandra_storage.formats.rows.mutation import read_mutation
from cassandra_storage.formats.versions import VERSION_40, VERSION_3014
from cdc_common.errors.codes import CdcError, Code
from publisher.tables.half_read import HALF_READ_SECONDS
from publisher.tables.node_schema import NodeSchema
from publisher.tables.system_schema import VERSION_QUERY
from tests.support.cassandra_storage.dropped_user_type import AGAIN, BEFORE, DROPPED_AT, insert
from tests.support.publisher.schema_rows import SchemaRows

if TYPE_CHECKING:
    from pathlib import Path

OLDER = DROPPED_AT - 1_000_000
SECOND = 1_000_000  # µs


class Clock:
    """A clock like time_ns, in steps of a second."""

    def __init__(self) -> None:
        self._us = 1_700_000_000 * SECOND

    def advance(self, seconds: int = 1) -> int:
        """The time then, µs."""
        self._us += seconds * SECOND
        return self._us

    def __call__(self) -> int:
        return self._us * 1000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The publisher's."""
    made = Clock()
    monkeypatch.setattr("publisher.tables.node_schema.time_ns", made)
    return made


@pytest.fixture
def node() -> SchemaRows:
    return SchemaRows()


@pytest.fixture
def schema(node: SchemaRows, tmp_path: Path) -> NodeSchema:
    return NodeSchema(tmp_path / "schema.json", node.run_query, ("cdc_filler", "filler"))


def test_tables_are_sorted_into_published_filler_and_ignored(node: SchemaRows, schema: NodeSchema) -> None:
    published = node.create("ks", "a", cdc=True)
    ignored = {node.create("ks", "b", cdc=False), node.create("ks", "c", cdc=None)}
    filler = node.create("cdc_filler", "filler", cdc=True)
    assert schema.refresh()
    assert set(schema.published) == {published}
    assert schema.roles.filler_ids == {filler}
    assert schema.ignored == ignored
    assert [table.id for table in schema.current_tables()] == [published]


def test_nothing_but_the_version_is_asked_while_nothing_changes(node: SchemaRows, schema: NodeSchema) -> None:
    schema.refresh()
    node.questions.clear()
    assert not schema.refresh()
    assert node.questions == [VERSION_QUERY]
    schema.forget_version()
    assert not schema.refresh()
    assert len(node.questions) > 2


def test_a_change_while_the_schema_is_read_makes_it_be_read_again(node: SchemaRows, schema: NodeSchema) -> None:
    node.changes_while_read = 3
    schema.refresh()
    assert len(schema.tables) == 3


def test_a_change_that_is_half_written_under_the_old_version_is_read_again(
    node: SchemaRows, schema: NodeSchema
) -> None:
    node.create("ks", "t", cdc=True)
    node.reads_without_columns = 2
    assert schema.refresh()
    assert len(schema.published) == 1


def test_a_table_that_is_never_understood_hides_no_other_one(
    node: SchemaRows, schema: NodeSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("publisher.tables.node_schema.sleep", pauses.append)
    monkeypatch.setattr("publisher.tables.half_read.monotonic", lambda: sum(pauses))
    good = node.create("ks", "good", cdc=True)
    bad = node.create("ks", "bad", cdc=True)
    [column] = [row for row in node.columns if row["table_name"] == "bad"]
    node.columns.remove(column)
    schema.refresh()
    assert [table.id for table in schema.current_tables()] == [good]
    assert "no partition key among the columns of ks.bad" in schema.unreadable_tables()[bad].reason
    assert HALF_READ_SECONDS <= sum(pauses) < HALF_READ_SECONDS + 0.2
    before = len(pauses)
    node.create("ks", "other", cdc=True)  # what is known to be unreadable delays nothing
    schema.refresh()
    assert len(pauses) == before
    node.columns.append(column)
    schema.forget_version()
    schema.refresh()
    assert bad in {table.id for table in schema.current_tables()}
    assert schema.unreadable_tables() == {}
    assert schema.names_needing_snapshot() == []  # its mutations were held


def test_a_table_in_doubt_stays_as_it_was_and_all_others_are_followed(
    node: SchemaRows, schema: NodeSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing pauses, and the table does not count as dropped."""
    now = [100.0]
    monkeypatch.setattr("publisher.tables.half_read.monotonic", lambda: now[0])
    monkeypatch.setattr("publisher.tables.node_schema.sleep", lambda _: pytest.fail("it pauses"))
    known = node.create("ks", "known", cdc=True)
    schema.read_changes()
    before = schema.published[known]
    hidden, node.columns = node.columns, []
    new = node.create("ks", "new", cdc=True)
    node.columns, missing = [], node.columns
    good = node.create("ks", "good", cdc=True)
    assert schema.read_changes()
    assert schema.published[known] is before
    assert [table.id for table in schema.current_tables()] == [known, good]
    assert not schema.row_ends.pending
    assert not schema.unreadable_tables()
    now[0] += HALF_READ_SECONDS / 2
    node.columns += hidden
    schema.read_changes()  # the version is the same
    assert new not in schema.unreadable_tables()
    now[0] += HALF_READ_SECONDS
    assert schema.read_changes()
    assert schema.unreadable_tables().keys() == {new}
    assert schema.published[known] is before
    node.columns += missing
    schema.forget_version()
    assert schema.read_changes()
    assert not schema.unreadable_tables()
    questions = len(node.questions)
    assert not schema.read_changes()
    assert len(node.questions) == questions + 1


DEEP = "frozen<list<" * 120 + "int" + ">>" * 120


def test_a_table_with_a_type_that_is_too_deep(node: SchemaRows, schema: NodeSchema, tmp_path: Path) -> None:
    """With cdc it waits; without cdc it is like any other: its updates are stepped over."""
    good = node.create("ks", "good", cdc=True)
    node.add_column("ks", "good", "v", "frozen<list<" * 60 + "int" + ">>" * 60)
    plain, deep = node.create("ks", "plain", cdc=False), node.create("ks", "deep", cdc=True)
    for name in ("plain", "deep"):
        node.add_column("ks", name, "v", DEEP)
        node.add_column("ks", name, "m", f"map<int, {DEEP}>")
    schema.refresh()
    assert [table.id for table in schema.current_tables()] == [good]
    assert schema.refusals() == {}
    [(table_id, unreadable)] = schema.unreadable_tables().items()
    assert table_id == deep
    assert "the type of the column v of ks.deep cannot be read" in unreadable.reason
    assert plain in schema.ignored
    assert deep not in schema.ignored
    assert {column.name: column.is_complex for column in schema.tables[plain].columns} == {
        "id": False,
        "v": False,
        "m": True,
    }
    again = NodeSchema(tmp_path / "schema.json", node.run_query, ("cdc_filler", "filler"))
    again.load()
    again.refresh()
    assert again.unreadable_tables().keys() == {deep}
    node.drop("ks", "deep")
    again.refresh()
    assert again.unreadable_tables() == {}
    assert deep in again.ignored  # what the log has of it cannot be sent


def test_a_dropped_table_stays_known_also_after_a_restart(node: SchemaRows, schema: NodeSchema, tmp_path: Path) -> None:
    dropped, plain = node.create("ks", "a", cdc=True), node.create("ks", "b", cdc=False)
    schema.refresh()
    node.drop("ks", "a")
    node.drop("ks", "b")
    again = NodeSchema(tmp_path / "schema.json", node.run_query, ("cdc_filler", "filler"))
    again.load()
    again.refresh()
    assert set(again.published) == {dropped}
    assert again.ignored == {plain}
    assert again.current_tables() == []


def test_what_did_not_change_stays_the_same_object(node: SchemaRows, schema: NodeSchema) -> None:
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


def test_a_damaged_history_is_refused(schema: NodeSchema, tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"format_version": 1, "tables": [{"cdc": true, "table": "{}"}]}')
    with pytest.raises(CdcError) as caught:
        schema.load()
    assert caught.value.code is Code.POSITION_FILE


def test_cdc_that_was_off_leaves_a_mark_which_a_restart_keeps(
    node: SchemaRows, schema: NodeSchema, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table_id = node.create("ks", "a", cdc=True)
    schema.refresh()
    assert schema.published[table_id].needs_snapshot_since == 0
    node.alter("ks", "a", cdc=False)
    schema.refresh()
    assert schema.current_tables() == []
    before = time_ns() // 1000
    node.alter("ks", "a", cdc=True, altered_at=1234)
    schema.refresh()
    since = schema.published[table_id].needs_snapshot_since
    assert before - 10 * SECOND < since <= before
    again = NodeSchema(tmp_path / "schema.json", node.run_query, ("cdc_filler", "filler"))
    again.load()
    assert again.published[table_id].needs_snapshot_since == since
    said = capsys.readouterr().out
    assert [said.count(code.text) for code in (Code.TABLE_CDC_DISABLED, Code.NEEDS_SNAPSHOT)] == [1, 1]


@pytest.mark.parametrize("clock_error", [-10, 0, 10])
def test_a_snapshot_clears_the_mark_if_it_was_asked_for_when_cdc_was_off_no_more(
    node: SchemaRows, schema: NodeSchema, clock: Clock, clock_error: int
) -> None:
    """Whatever the clock of the coordinator that runs ALTER, and however short the time."""
    table_id = node.create("ks", "a", cdc=True)
    schema.refresh()
    before = clock.advance()
    clock.advance()
    node.alter("ks", "a", cdc=False)
    schema.refresh()
    clock.advance()
    altered_at = clock.advance() + clock_error * SECOND
    node.alter("ks", "a", cdc=True, altered_at=altered_at)
    after = clock.advance()  # asked for before this publisher has noticed it
    schema.refresh()
    assert schema.published[table_id].needs_snapshot_since
    schema.note_snapshot(table_id, before)
    assert schema.published[table_id].needs_snapshot_since
    schema.note_snapshot(table_id, after)
    assert not schema.published[table_id].needs_snapshot_since


def test_a_clock_that_is_set_back_clears_no_mark(node: SchemaRows, schema: NodeSchema, clock: Clock) -> None:
    """This machine's own, while a snapshot runs that was asked for before cdc was off."""
    table_id = node.create("ks", "a", cdc=True)
    schema.refresh()
    before = clock.advance()
    clock.advance()
    schema.refresh()
    clock.advance(-3600)
    for cdc in (False, True):
        node.alter("ks", "a", cdc=cdc)
        schema.refresh()
    schema.note_snapshot(table_id, before)
    assert schema.published[table_id].needs_snapshot_since


def test_of_cdc_that_was_switched_on_while_the_publisher_was_away_all_before_its_start_is_missing(
    node: SchemaRows, schema: NodeSchema, tmp_path: Path
) -> None:
    table_id = node.create("ks", "a", cdc=False)
    schema.refresh()
    node.alter("ks", "a", cdc=True, altered_at=1234)
    started = time_ns() // 1000
    again = NodeSchema(tmp_path / "schema.json", node.run_query, ("cdc_filler", "filler"))
    again.load()
    again.refresh()
    assert again.published[table_id].needs_snapshot_since >= started


def test_what_the_materializer_asks_for_marks_the_table_once(
    node: SchemaRows, schema: NodeSchema, tmp_path: Path
) -> None:
    table_id, other = node.create("ks", "a", cdc=True), node.create("ks", "b", cdc=False)
    schema.refresh()

    def since(known: NodeSchema) -> int:
        return known.published[table_id].needs_snapshot_since

    assert not schema.note_request(other, 1000)
    assert not schema.note_request(table_id, 1000)
    assert since(schema) == 1000
    schema.note_snapshot(table_id, 1001)  # the request is there until the materializer has it all
    again = NodeSchema(tmp_path / "schema.json", node.run_query, ("cdc_filler", "filler"))
    again.load()
    again.refresh()
    for known in (schema, again):
        assert not known.note_request(table_id, 1000)
        assert since(known) == 0
    assert not again.note_request(table_id, 2000)  # another loss
    assert since(again) == 2000
    assert again.note_request(table_id, 0)  # the table was truncated again
    assert since(again) == 0
    assert not again.note_request(table_id, 0)


def test_a_request_does_not_end_another_mark(node: SchemaRows, schema: NodeSchema) -> None:
    table_id = node.create("ks", "a", cdc=True)
    schema.refresh()
    schema.note_request(table_id, 1000)
    schema.require_snapshots([table_id])
    assert not schema.note_request(table_id, 0)
    assert schema.published[table_id].needs_snapshot_since > 1000


def test_cdc_that_was_on_from_the_beginning_leaves_none(node: SchemaRows, schema: NodeSchema) -> None:
    schema.refresh()
    table_id = node.create("ks", "a", cdc=True)
    schema.refresh()
    assert schema.published[table_id].needs_snapshot_since == 0


def test_views_and_super_column_families_are_refused_by_name_and_once(
    node: SchemaRows, schema: NodeSchema, capsys: pytest.CaptureFixture[str]
) -> None:
    published, unreadable = node.create("ks", "a", cdc=True), node.create("ks", "s", cdc=True)
    node.alter("ks", "s", flags={"super", "dense"})
    view = node.make_view("ks", "a")
    schema.refresh()
    node.alter("ks", "a", gc_grace_seconds=7)
    schema.refresh()
    assert set(schema.published) == {published}
    assert {view, unreadable} <= schema.ignored
    said = [line for line in capsys.readouterr().out.splitlines() if Code.TABLE_NOT_PUBLISHED.text in line]
    assert sorted(line.split("table=")[1].strip() for line in said) == ["ks.s", "ks.v"]


def test_when_a_table_was_altered_makes_it_another_but_not_its_digest(node: SchemaRows, schema: NodeSchema) -> None:
    table_id = node.create("ks", "a", cdc=True)
    schema.refresh()
    before = schema.published[table_id]
    node.alter("ks", "a", altered_at=77)
    assert schema.refresh()
    after = schema.published[table_id]
    assert (after.table.altered_at, after.digest) == (77, before.digest)


class TestDroppedUserType:
    """A column of a non-frozen user type that 3.11 drops, and shows as a frozen tuple from then on."""

    @pytest.fixture
    def table_id(self, node: SchemaRows) -> bytes:
        node.types.append(
            {"keyspace_name": "ks", "type_name": "pair", "field_names": ["x", "y"], "field_types": ["int", "text"]}
        )
        table_id = node.create("ks", "t", cdc=True)
        node.add_column("ks", "t", "a", "int")
        node.add_column("ks", "t", "v", "map<int, text>")
        return table_id

    def drop(self, node: SchemaRows, *, dropped_time: int = DROPPED_AT) -> None:
        node.drop_column("ks", "t", "u", "frozen<tuple<int, text>>", dropped_time=dropped_time // 1000)

    def cells(self, table_id: bytes) -> bytes:
        return insert(replace(BEFORE, id=UUID(bytes=table_id)), (b"\0\0\0\1", b"y"), {1: "tea"}, timestamp=OLDER)

    def frozen(self, table_id: bytes) -> bytes:
        value = b"\0\0\0\4\0\0\0\1"
        return insert(replace(AGAIN, id=UUID(bytes=table_id)), (), {1: "tea"}, value=value, timestamp=OLDER)

    def columns(self, schema: NodeSchema, mutation: bytes) -> set[str]:
        tables = schema.as_written.tables_for(mutation, VERSION_3014)
        [update] = read_mutation(mutation, VERSION_3014, tables)
        published = schema.published_as(update.table)
        assert published is not None
        assert published.table is update.table
        [row] = update.rows
        return set(row.columns)

    @pytest.mark.parametrize("restarts", [False, True])
    def test_a_publisher_that_knew_it_reads_cells(
        self, node: SchemaRows, schema: NodeSchema, table_id: bytes, tmp_path: Path, *, restarts: bool
    ) -> None:
        node.add_column("ks", "t", "u", "pair")
        schema.refresh()
        before = self.cells(table_id)
        self.drop(node)
        if restarts:
            schema = NodeSchema(tmp_path / "schema.json", node.run_query, ("cdc_filler", "filler"))
            schema.load()
        schema.refresh()
        assert self.columns(schema, before) == {"a", "v"}
        assert schema.as_written.tables_for(before, VERSION_3014)[table_id].altered_at == 0
        again = NodeSchema(tmp_path / "schema.json", node.run_query, ("cdc_filler", "filler"))
        again.load()
        again.refresh()
        assert schema.published[table_id].digest == again.published[table_id].digest

    def test_after_adding_and_dropping_it_again_both_forms_are_read(
        self, node: SchemaRows, schema: NodeSchema, table_id: bytes
    ) -> None:
        node.add_column("ks", "t", "u", "pair")
        schema.refresh()
        self.drop(node)
        schema.refresh()
        before = self.cells(table_id)
        frozen = self.frozen(table_id)
        node.add_column("ks", "t", "u", "frozen<pair>")
        schema.refresh()
        assert [self.columns(schema, mutation) for mutation in (before, frozen)] == [
            {"a", "v"}
        ] * 2  # older than the drop
        self.drop(node, dropped_time=DROPPED_AT + 1000)
        schema.refresh()
        assert [self.columns(schema, mutation) for mutation in (before, frozen)] == [{"a", "v"}] * 2

    def test_a_frozen_column_is_not_in_doubt(self, node: SchemaRows, schema: NodeSchema, table_id: bytes) -> None:
        node.add_column("ks", "t", "u", "frozen<pair>")
        schema.refresh()
        self.drop(node)
        schema.refresh()
        mutation = self.frozen(table_id)
        assert schema.as_written.tables_for(mutation, VERSION_3014) is schema.tables

    def test_what_was_not_known_is_tried(self, node: SchemaRows, schema: NodeSchema, table_id: bytes) -> None:
        self.drop(node)
        schema.refresh()
        before = self.cells(table_id)
        assert self.columns(schema, before) == {"a", "v"}
        # 4.0 and later do not drop such a column
        assert schema.as_written.tables_for(before, VERSION_40) is schema.tables
