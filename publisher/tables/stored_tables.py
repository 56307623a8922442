"""The tables in a `schema.json`, this publisher's own or another one's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages import tables as table_messages
from cdc_common.messages.errors import MessageError
from publisher import state_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from cassandra_storage.formats.schema.tables import TableMetadata


def table_to_json(table: TableMetadata) -> dict[str, Any]:
    return {"cdc": table.cdc, "table": table_messages.to_json(table).decode()}


def tables_from_json(stored: Iterable[Mapping[str, Any]]) -> dict[bytes, TableMetadata]:
    """Return the tables by the bytes of their ids.

    KeyError, TypeError, AttributeError or MessageError if they are damaged.
    """
    tables = [replace(table_messages.from_json(entry["table"].encode()), cdc=bool(entry["cdc"])) for entry in stored]
    return {table.id.bytes: table for table in tables}


def read_known_tables(file: Path) -> dict[bytes, TableMetadata]:
    """Return the tables that the publisher of a schema file knows. CdcError CONFIG_INVALID if it is not such a file."""
    try:
        return tables_from_json((state_files.read(file) or {})["tables"])
    except (KeyError, TypeError, AttributeError, MessageError, CdcError) as error:
        raise CdcError(
            Code.CONFIG_INVALID,
            f"{file} is not a publisher's schema file.",
            "Give a copy of schema.json in the publisher.state_directory of a publisher that knows the tables.",
        ) from error
