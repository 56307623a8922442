"""Cassandra's own merging of rows in one long-lived JVM of any version: MergeOracle.java."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from dev.local_stack.servers.cassandra_versions import VERSIONS
from dev.verify.oracle.java_child import FOLDER, JavaChild
from dev.verify.oracle.merge_wire import write_request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cassandra_storage.formats.rows.deletion import DeletionTime
    from cassandra_storage.formats.rows.row import Row
    from dev.verify.oracle.merge_wire import Merge, MergedTable

SOURCE = FOLDER / "MergeOracle.java"
NOW = 102  # the "now" of 3.11, in s since the epoch: among the deletion times that merge_cases draws from

_INT_SECONDS = {
    "long localDeletionTime = seconds(in)": "int localDeletionTime = seconds(in)",
    "long seconds(DataInputStream in)": "int seconds(DataInputStream in)",
    "(long) seconds": "(int) seconds",
    "DeletionTime.build(markedForDeleteAt, ": "new DeletionTime(markedForDeleteAt, (int) ",
}
OTHERWISE: Mapping[str, Mapping[str, str]] = {
    "5.0": {},
    "4.1": _INT_SECONDS,
    "4.0": _INT_SECONDS,
    "3.11": {
        **_INT_SECONDS,
        "schema.ColumnMetadata": "config.ColumnDefinition",
        "ColumnMetadata.staticColumn": "ColumnDefinition.staticDef",
        "ColumnMetadata.regularColumn": "ColumnDefinition.regularDef",
        "ColumnMetadata": "ColumnDefinition",
        "Cell<?>": "Cell",
        "Clustering<?>": "Clustering",
        "cell.buffer()": "cell.value()",
        "new Row.Merger(rows.length, true)": "new Row.Merger(rows.length, now, true)",
        "Rows.merge(merged, rows[i])": "Rows.merge(merged, rows[i], now)",
        "        DatabaseDescriptor.setConcurrentValidations(1);\n": "",
    },
}
"""The names that each version has otherwise than 5.0: text of MergeOracle.java -> its own, replaced one after the
other.
"""


class MergeOracle:
    """A context manager; `folder` is for the source as the version needs it."""

    def __init__(self, folder: Path, line: str) -> None:
        source = folder / SOURCE.name
        source.write_text(source_for(line), encoding="utf-8")
        self._child = JavaChild(VERSIONS[line], [source], options=[f"-Dnow={NOW}", "-Xmx256m"])

    def __enter__(self) -> Self:
        self._child.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._child.__exit__(*error)

    def merge(
        self, table: MergedTable, pool: Sequence[Row], active: Sequence[DeletionTime], merges: Sequence[Merge]
    ) -> bytes:
        """The merged rows one after the other, for merge_wire.RowReader."""
        self._child.send_line(write_request(table, pool, active, merges).hex())
        return bytes.fromhex(self._child.answer())


def source_for(line: str) -> str:
    """MergeOracle.java as a version compiles it."""
    text = SOURCE.read_text(encoding="utf-8")
    for ours, theirs in OTHERWISE[line].items():
        assert ours in text, ours
        text = text.replace(ours, theirs)
    return text
