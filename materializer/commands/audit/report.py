"""Prints the audit's progress on stderr and its findings on stdout, as text or as JSON, one object a line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from cassandra_storage.formats.json_forms.values import value_json
from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.schema.partition_keys import partition_key_values
from materializer.commands.audit.compare import ROW

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cassandra_storage.formats.schema.tables import ColumnMetadata
    from materializer.commands.audit.progress import Progress
    from materializer.commands.audit.second_look import Difference
    from materializer.commands.audit.select import Unread
    from materializer.commands.audit.shown import AuditedTable, ShownCell


class Report:
    """Prints row values: the operator has asked for them. Nothing of this is logged."""

    def __init__(self, table: AuditedTable, *, as_json: bool) -> None:
        self._table = table
        self._as_json = as_json

    def say(self, text: str) -> None:
        """Progress."""
        click.echo(text, err=True)

    def difference(self, difference: Difference) -> None:
        shown = self.difference_json(difference)
        if self._as_json:
            click.echo(json.dumps(shown))
            return
        key = ", ".join(f"{name}={json.dumps(value)}" for name, value in shown["key"].items())
        gap = " (the state knows of a gap in this Cassandra partition)" if shown["gap"] else ""
        what = " static columns" if difference.clustering is None else ""
        click.echo(f"difference{what} {key} (token {shown['token']}){gap}")
        for name, column in shown["columns"].items():
            label = name or "row"
            click.echo(f"    {label}: {column['cause']}")
            click.echo(f"        state:     {_text(column['state'])}")
            click.echo(f"        cassandra: {_text(column['cassandra'])}")

    def difference_json(self, difference: Difference) -> dict[str, Any]:
        """key: the primary key; of static columns the partition key. columns: by name, "" for the row as a whole."""
        table = self._table.table
        key = _named(table.partition_key, partition_key_values(table, difference.partition_key))
        key |= _named(table.clustering, difference.clustering or ())
        return {
            "type": "difference",
            "key": key,
            "token": decorated_token(difference.partition_key),
            "static": difference.clustering is None,
            "gap": difference.has_gap,
            "columns": {
                name: {
                    "cause": str(cause),
                    "state": self._cell(name, pair.state),
                    "cassandra": self._cell(name, pair.selected),
                }
                for name, (cause, pair) in difference.columns.items()
            },
        }

    def repaired(self, partition_key: bytes, *, is_replaced: bool) -> None:
        """Whether a Cassandra partition was replaced."""
        table, token = self._table.table, decorated_token(partition_key)
        key = _named(table.partition_key, partition_key_values(table, partition_key))
        if self._as_json:
            click.echo(json.dumps({"type": "repair", "key": key, "token": token, "replaced": is_replaced}))
        else:
            named = ", ".join(f"{name}={json.dumps(value)}" for name, value in key.items())
            click.echo(f"{'repaired' if is_replaced else 'not repaired'} {named} (token {token})")

    def unread(self, unread: Iterable[Unread]) -> None:
        """Report what was not audited."""
        for span, reason, begun in unread:
            if self._as_json:
                shown = {"type": "not_audited", "first": span.first, "last": span.last, "reason": reason, "part": begun}
                click.echo(json.dumps(shown))
            else:
                part = "some rows of " if begun and span.first == span.last else ""
                click.echo(f"not audited: {part}tokens {span.first} to {span.last}: {reason}")

    def summary(self, progress: Progress, *, is_repaired: bool = False) -> None:
        """is_repaired: whether what differs was to be repaired."""
        if self._as_json:
            shown = {
                "type": "summary",
                "rows": progress.rows,
                "units": progress.units,
                "differences": progress.differences,
                "settled": progress.settled,
                "not_audited": len(progress.unread),
            }
            if is_repaired:
                shown |= {"differing_partitions": len(progress.differing), "replaced": progress.replaced}
            click.echo(json.dumps(shown))
            return
        result = "equal" if not progress.differences else f"{progress.differences} rows differ"
        if is_repaired and progress.differing:
            result += f", {progress.replaced} of {len(progress.differing)} Cassandra partitions repaired"
        unread = f", {len(progress.unread)} token ranges not audited" if progress.unread else ""
        click.echo(
            f"{self._table.table.qualified_name}: {result}{unread}: {progress.rows} rows read, "
            f"{progress.settled} differed at the first look only"
        )

    def _cell(self, name: str, cell: ShownCell | None) -> dict[str, Any] | None:
        """None if it is null, or the row is not there."""
        if cell is None:
            return None
        shown: dict[str, Any] = {}
        if name != ROW:
            shown["value"] = value_json(self._table.columns[name].type, cell.value)
        if cell.timestamp is not None:
            shown["written_us"] = cell.timestamp
        if cell.expires is not None:
            shown["expires"] = datetime.fromtimestamp(cell.expires, UTC).isoformat()
        return shown


def _named(columns: Sequence[ColumnMetadata], values: Sequence[bytes | None]) -> dict[str, Any]:
    named = zip(columns, values, strict=False)
    return {column.name: None if value is None else value_json(column.type, value) for column, value in named}


def _text(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "absent"
    return ", ".join(f"{name} {json.dumps(value)}" for name, value in cell.items()) or "present"
