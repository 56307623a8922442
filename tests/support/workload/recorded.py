"""The files that are recorded beside the segments of a workload: the keystore and the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from publisher.tables.node_schema import NodeSchema

if TYPE_CHECKING:
    from pathlib import Path

KEYSTORE, SCHEMA = "keystore.jceks", "schema.json"


def load_schema(file: Path) -> NodeSchema:
    def ask(_: str) -> list[dict[str, object]]:
        raise AssertionError

    schema = NodeSchema(file, ask, ("", ""))
    schema.load()
    return schema
