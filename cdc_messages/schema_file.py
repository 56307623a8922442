"""Tables from files: a publisher's schema.json, or messages of the tables topic."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cdc_messages import tables as table_messages
from cdc_messages.errors import MessageError

if TYPE_CHECKING:
    from pathlib import Path

    from cassandra_storage.schema import TableMetadata


def read_schema_file(path: Path) -> list[TableMetadata]:
    """The tables of a publisher's schema.json, or of values of the topic `<prefix>.tables`, one per line. Values of
    other kinds are skipped.

    ValueError if the file is neither, OSError if it cannot be read.
    """
    content = path.read_text()
    try:
        return [table_messages.from_json(message) for message in _messages(content)]
    except (KeyError, TypeError, AttributeError, MessageError) as error:
        raise ValueError(f"neither a publisher's schema.json nor messages of the tables topic: {error}") from error


def _messages(content: str) -> list[bytes]:
    try:
        value: dict[str, Any] = json.loads(content)
    except ValueError:
        return [line.encode() for line in content.splitlines() if "table" in (json.loads(line or "null") or ())]
    if "tables" in value:
        return [entry["table"].encode() for entry in value["tables"]]
    return [content.encode()]
