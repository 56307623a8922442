"""Tables that are refused by name, with the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.schema.tables import BINARY_NAMES, ColumnKind, ColumnMetadata
from cassandra_storage.formats.types.marshal import (
    LEXICAL_UUID_TYPE,
    CqlType,
    CustomType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
)
from cdc_common.errors.codes import Code
from publisher.losses.loss_rules import Severity, apply_rules
from publisher.monitoring.status import Status, text
from publisher.tables.node_schema import NodeSchema
from publisher.tables.refusals import refusal
from tests.support.materializer.raw_builder import TABLE
from tests.support.publisher.loss_facts import WELL
from tests.support.publisher.schema_rows import SchemaRows

if TYPE_CHECKING:
    from pathlib import Path

INT, TEXT = NativeType("int"), NativeType("text")
CUSTOM = CustomType(
    "org.apache.cassandra.db.marshal.DynamicCompositeType(i=>org.apache.cassandra.db.marshal.Int32Type)"
)


def inside(of: CqlType) -> list[CqlType]:
    """Frozen types of every kind that hold this one."""
    return [
        of,
        ListType(of, is_multi_cell=False),
        SetType(of, is_multi_cell=False),
        MapType(of, INT, is_multi_cell=False),
        MapType(INT, of, is_multi_cell=False),
        TupleType((INT, of)),
        UserType("ks", "t", ("x", "y"), (INT, of), is_multi_cell=False),
        VectorType(of, 2),
        ListType(TupleType((of,)), is_multi_cell=False),
    ]


@pytest.mark.parametrize("kind", range(9))
@pytest.mark.parametrize("of", [CUSTOM, NativeType("counter")])
def test_types_without_an_order_are_refused(of: CqlType, kind: int) -> None:
    cql_type = inside(of)[kind]
    clustering = replace(TABLE, clustering=(ColumnMetadata("c", cql_type, ColumnKind.CLUSTERING, 0),))
    assert "The order of the clustering column c is not known" in refusal(clustering)
    for paths in (SetType(cql_type, is_multi_cell=True), MapType(cql_type, INT, is_multi_cell=True)):
        static, regular = (ColumnMetadata("m", paths, kind) for kind in (ColumnKind.STATIC, ColumnKind.REGULAR))
        for table in (replace(TABLE, static_columns=(static,)), replace(TABLE, regular_columns=(regular,))):
            assert "The order of the column m is not known" in refusal(table)


@pytest.mark.parametrize("kind", range(9))
def test_values_need_no_order(kind: int) -> None:
    cql_type = inside(CUSTOM)[kind]
    columns = (
        ColumnMetadata("a", cql_type, ColumnKind.REGULAR),
        ColumnMetadata("l", ListType(cql_type, is_multi_cell=True), ColumnKind.REGULAR),
        ColumnMetadata("m", MapType(INT, cql_type, is_multi_cell=True), ColumnKind.REGULAR),
        ColumnMetadata("u", UserType("ks", "t", ("x",), (cql_type,), is_multi_cell=True), ColumnKind.REGULAR),
    )
    key = (ColumnMetadata("k", cql_type, ColumnKind.PARTITION_KEY, 0),)
    assert refusal(replace(TABLE, partition_key=key, regular_columns=columns)) == ""


@pytest.mark.parametrize("kind", range(9))
def test_types_with_an_order_are_published(kind: int) -> None:
    for of in (INT, TEXT, CustomType(LEXICAL_UUID_TYPE)):
        column = ColumnMetadata("c", inside(of)[kind], ColumnKind.CLUSTERING, 0)
        assert refusal(replace(TABLE, clustering=(column,))) == ""


def test_a_table_is_refused_while_it_has_such_a_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = SchemaRows()
    schema = NodeSchema(tmp_path / "schema.json", node.run_query, ("cdc_filler", "filler"))
    table_id, other = node.create("ks", "t", cdc=True), node.create("ks", "other", cdc=True)
    schema.refresh()
    node.add_column("ks", "t", "m", f"map<'{CUSTOM.class_name}', int>")
    schema.refresh()
    assert set(schema.published) == {other}
    assert table_id in schema.ignored
    assert list(schema.refusals()) == ["ks.t"]
    node.drop_column("ks", "t", "m", f"map<'{CUSTOM.class_name}', int>", 5)
    node.alter("ks", "t", altered_at=6)
    schema.refresh()
    assert schema.published[table_id].needs_snapshot_since
    assert schema.refusals() == {}
    said = [line for line in capsys.readouterr().out.splitlines() if Code.TABLE_NOT_PUBLISHED.text in line]
    assert len(said) == 1
    assert "DynamicCompositeType" in said[0]


def test_names_that_are_not_text_are_refused() -> None:
    assert "the names of its columns are not text" in refusal(replace(TABLE, flags=frozenset({BINARY_NAMES})))


def test_check_and_status_name_the_reason() -> None:
    finding = next(
        finding for finding in apply_rules(replace(WELL, refusals={"ks.t": "Because."})) if "ks.t" in finding.message
    )
    assert (finding.check, finding.severity) == ("tables", Severity.WARN)
    assert finding.message == "ks.t cannot be published. Because."
    shown = text(Status("host", "cluster", "5.0", is_compiled=True, refused_tables=("ks.t: Because.",)))
    assert "refused   ks.t: Because." in shown
