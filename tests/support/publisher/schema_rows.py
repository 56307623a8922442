"""A node's schema tables, as a publisher reads them."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID, uuid4

from publisher.tables.system_schema import VERSION_QUERY


class SchemaRows:
    """system_schema as its rows."""

    def __init__(self) -> None:
        self.version = uuid4()
        self.tables: dict[tuple[str, str], dict[str, Any]] = {}
        self.columns: list[dict[str, Any]] = []
        self.views: list[dict[str, Any]] = []
        self.dropped: list[dict[str, Any]] = []
        self.types: list[dict[str, Any]] = []
        self.truncated: dict[UUID, bytes] = {}
        self.questions: list[str] = []
        self.changes_while_read = 0
        self.reads_without_columns = 0

    def copy(self) -> SchemaRows:
        """The same tables, which change by themselves from now on."""
        copied = SchemaRows()
        copied.tables = {name: dict(row) for name, row in self.tables.items()}
        copied.columns, copied.types = list(self.columns), list(self.types)
        return copied

    def show(self, other: SchemaRows) -> None:
        """Show what the other one has now."""
        self.tables, self.columns, self.types = other.tables, other.columns, other.types
        self.version = uuid4()

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

    def alter(self, keyspace: str, name: str, **settings: object) -> None:
        self.tables[keyspace, name].update(settings)
        self.version = uuid4()

    def add_column(self, keyspace: str, table: str, name: str, type_text: str, kind: str = "regular") -> None:
        position, order = (0, "asc") if kind == "clustering" else (-1, "none")
        self.columns.append(
            {
                "keyspace_name": keyspace,
                "table_name": table,
                "column_name": name,
                "kind": kind,
                "position": position,
                "type": type_text,
                "clustering_order": order,
            }
        )
        self.version = uuid4()

    def drop_column(self, keyspace: str, table: str, name: str, type_text: str, dropped_time: int) -> None:
        """`type_text`: as Cassandra keeps it; `dropped_time` in ms."""
        place = {"keyspace_name": keyspace, "table_name": table, "column_name": name}
        self.columns = [row for row in self.columns if not place.items() <= row.items()]
        self.dropped = [row for row in self.dropped if not place.items() <= row.items()]
        self.dropped.append({**place, "kind": "regular", "type": type_text, "dropped_time": dropped_time})
        self.version = uuid4()

    def make_view(self, keyspace: str, table: str) -> bytes:
        """A view of the table with the same columns and cdc."""
        of = self.tables[keyspace, table]
        view_id = uuid4()
        self.views.append({**of, "id": view_id, "view_name": "v", "cdc": True})
        self.columns += [{**row, "table_name": "v"} for row in self.columns if row["table_name"] == table]
        self.version = uuid4()
        return view_id.bytes

    def drop(self, keyspace: str, name: str) -> None:
        del self.tables[keyspace, name]
        self.version = uuid4()

    def truncate(self, table_id: bytes, segment: int, position: int, at: int) -> None:
        """Store a record as SystemKeyspace.saveTruncationRecord does; `at` in ms."""
        self.truncated[UUID(bytes=table_id)] = struct.pack(">qiq", segment, position, at)

    def run_query(self, query: str) -> list[dict[str, Any]]:
        self.questions.append(query)
        if query == VERSION_QUERY:
            return [{"schema_version": self.version, "truncated_at": dict(self.truncated) or None}]
        if "writetime" in query:
            found = self.tables.values() if "system_schema.tables" in query else self._types(query)
            return [{**row, "altered_at": row.get("altered_at", 1)} for row in found]
        if "system_schema.tables" in query:
            rows = list(self.tables.values())
            if self.changes_while_read:
                self.changes_while_read -= 1
                self.create("ks", f"t{len(self.tables)}", cdc=True)
            return rows
        rest = {"columns": self._columns(query), "types": self.types, "views": self.views}
        for name, rows in rest.items():
            if f"system_schema.{name}" in query:
                return rows
        return self.dropped if "system_schema.dropped_columns" in query else []

    def _types(self, query: str) -> list[dict[str, Any]]:
        return self.types if "system_schema.types" in query else []

    def _columns(self, query: str) -> list[dict[str, Any]]:
        if self.reads_without_columns and "system_schema.columns" in query:
            self.reads_without_columns -= 1
            return []
        there = self.tables.keys() | {(row["keyspace_name"], row["view_name"]) for row in self.views}
        return [row for row in self.columns if (row["keyspace_name"], row["table_name"]) in there]
