"""The audit's output, and the way of a state's rows to the comparison."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.marshal import NativeType
from cdc_common.program.pace import Pace
from materializer.commands.audit.first_look import SpanComparison, scan_rows, state_units
from materializer.commands.audit.plan import AuditOptions, SlicePlan
from materializer.commands.audit.progress import Progress
from materializer.commands.audit.report import Report
from materializer.commands.audit.second_look import SecondLook
from materializer.commands.audit.select import Unread
from materializer.commands.audit.shown import ROW_UNIT, STATIC_UNIT, AuditedTable, Side
from materializer.commands.audit.spans import slices
from tests.support.materializer.audited import SECOND, WHOLE_RING, MemoryTable, PlainRow, compare, make_plan, state_of
from tests.support.materializer.raw_builder import TABLE

if TYPE_CHECKING:
    import pytest

    from materializer.commands.audit.first_look import Candidate


def test_the_rows_of_a_state_are_compared_as_they_are_stored() -> None:
    rows = [PlainRow(k, c, f"a{k}", ("e", "f")) for k in range(12) for c in (-1, 0, 1)]
    rows += [PlainRow(20, 1, None, st="static")]
    plan = SlicePlan(make_plan(AuditOptions(page_rows=5)), slices(7), 2)
    entries = list(scan_rows(plan, state_of(rows)))
    assert [key for key, _ in entries] != sorted(key for key, _ in entries)  # a state is not in token order
    entries.sort(key=lambda entry: entry[0])
    changed = [row._replace(a="other") if (row.k, row.c) == (3, 0) else row for row in rows]
    candidates: list[Candidate] = []
    for number, span in enumerate(plan.spans):
        comparison = SpanComparison(plan.audit, MemoryTable(changed), Pace(0), clock=lambda: float(SECOND))
        own = [entry for entry in entries if entry[0][0] == number]
        candidates += comparison.compare(span, state_units([((number, span.first, b"", b""), None), *own])).candidates
    assert [(candidate.partition_key, candidate.clustering) for candidate in candidates] == [
        (b"\0\0\0\3", (b"\0\0\0\0",))
    ]


def printed(capsys: pytest.CaptureFixture[str], *, as_json: bool) -> str:
    table = MemoryTable([PlainRow(1, 1, "x", time=2000), PlainRow(2, 5, st="s")])
    plan = make_plan()
    found = SecondLook(plan, state_of([PlainRow(1, 1, "y")]), table, clock=lambda: float(SECOND))
    for candidate in compare([PlainRow(1, 1, "y")], table).candidates:
        found.look_at(candidate)
    report = Report(plan.table(), as_json=as_json)
    for difference in found.differences:
        report.difference(difference)
    report.unread([Unread(WHOLE_RING, "timeout")])
    report.say("how far it is")
    report.summary(Progress("id", "ALL", 1, 0, rows=2, differences=3, unread=[Unread(WHOLE_RING, "timeout")]))
    out, err = capsys.readouterr()
    assert err == "how far it is\n"
    return out


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, as_json=False).splitlines()
    assert "difference k=1, c=1 (token -4069959284402364209)" in lines
    assert '        state:     value "y", written_us 1000' in lines
    assert '        cassandra: value "x", written_us 2000' in lines
    assert "    row: missing_row" in lines
    assert any(line.startswith("difference static columns k=2 ") for line in lines)
    assert lines[-2] == "not audited: tokens -9223372036854775808 to 9223372036854775807: timeout"
    assert lines[-1].startswith("shop.orders: 3 rows differ, 1 token ranges not audited: 2 rows read")


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    found: list[dict[str, Any]] = [json.loads(line) for line in printed(capsys, as_json=True).splitlines()]
    assert [line["type"] for line in found] == [*["difference"] * 3, "not_audited", "summary"]
    [first] = [line for line in found if line.get("key") == {"k": 1, "c": 1}]
    assert first["columns"] == {
        "a": {
            "cause": "state_older",
            "state": {"value": "y", "written_us": 1000},
            "cassandra": {"value": "x", "written_us": 2000},
        }
    }
    assert [line["key"] for line in found if line.get("static")] == [{"k": 2}]
    assert found[-1] == {"type": "summary", "rows": 2, "units": 0, "differences": 3, "settled": 0, "not_audited": 1}


def test_the_rows_of_static_compact_tables_are_their_static_rows() -> None:
    text = NativeType("text")
    table = TableMetadata(
        "shop",
        "thrift",
        TABLE.id,
        partition_key=(ColumnMetadata("k", text, ColumnKind.PARTITION_KEY, 0),),
        clustering=(ColumnMetadata("column1", text, ColumnKind.CLUSTERING, 0),),
        static_columns=(ColumnMetadata("a", text, ColumnKind.STATIC),),
        regular_columns=(ColumnMetadata("value", text, ColumnKind.REGULAR),),
        flags=frozenset(),
    )
    audited = AuditedTable(table, "4.0.17", lambda values: repr(values).encode())
    assert audited.range_query() == (
        "SELECT token(k), k, a, writetime(a), ttl(a) FROM shop.thrift WHERE token(k) >= ? AND token(k) <= ?"
    )
    assert audited.stored_unit_key(b"", is_static=True) == audited.unit_key(()) == ROW_UNIT
    assert audited.stored_unit_key(b"hidden", is_static=False) is None
    assert audited.state_key(()) is None
    row = Row((), {"a": Cell(9, b"v")})
    [selected] = audited.selected_units([bytes(8), b"key", b"v", (9).to_bytes(8, "big"), None], SECOND)
    assert (selected.unit, selected.clustering) == (ROW_UNIT, ())
    assert audited.is_stored_static(ROW_UNIT)
    assert (
        audited.state_side(row, SECOND, is_static=False)
        == selected.side
        == Side(is_there=True, cells=selected.side.cells)
    )


def test_statements_quote_names_and_ask_each_release_for_what_it_knows() -> None:
    for release, expected in (("4.1.9", "s FROM"), ("5.0.6", "s, maxwritetime(s) FROM")):
        query = AuditedTable(TABLE, release, repr).range_query()  # type: ignore[arg-type]
        assert expected in query
    quoted = TableMetadata(
        "Shop",
        "order",
        TABLE.id,
        partition_key=(ColumnMetadata('a"b', NativeType("int"), ColumnKind.PARTITION_KEY, 0),),
    )
    audited = AuditedTable(quoted, "5.0", repr)  # type: ignore[arg-type]
    assert audited.unit_query(is_static=True) == (
        'SELECT token("a""b"), "a""b" FROM "Shop"."order" WHERE "a""b" = ? LIMIT 1'
    )
    assert audited.unit_key(None) == STATIC_UNIT
