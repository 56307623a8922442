"""Tables from files: CQL, a publisher's schema.json, or messages of the tables topic."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.json_forms.tables import READABLE_VERSIONS, described_table
from cassandra_storage.formats.schema.cql_schema import CqlSchema

if TYPE_CHECKING:
    from pathlib import Path

    from cassandra_storage.formats.schema.cql_schema import CqlTable
    from cassandra_storage.formats.schema.tables import TableMetadata

FORMS = "CQL (a snapshot's schema.cql, or DESCRIBE), a publisher's schema.json, or messages of the tables topic"
_BEGINS_JSON = ("{", "[", '"', "null")


class SchemaFiles:
    """The tables that files define. `tables`: by JSON; `cql`: by files of CQL, which share their user types."""

    def __init__(self) -> None:
        self.tables: list[TableMetadata] = []
        self.cql = CqlSchema()
        self._names: dict[CqlTable, str] = {}

    def read(self, path: Path) -> None:
        """Add the tables and types of a file. FormatError with the file's name if it has none, is another kind of file,
        or cannot be read.
        """
        try:
            self._read(_text(path), path.name)
        except FormatError as error:
            raise FormatError(error.reason, position=error.position, segment=path.name) from None
        except OSError as error:
            raise FormatError(f"cannot be read: {error.strerror}", segment=path.name) from None

    def with_ids(self) -> list[TableMetadata]:
        """All tables, each with its id. FormatError if a table of CQL lacks its id or a user type."""
        return self.tables + [self._with_id(of) for of in self.cql.tables]

    def _with_id(self, of: CqlTable) -> TableMetadata:
        name = f"{of.keyspace}.{of.name}"
        if not of.id.int:
            reason = f"{name} has no ID: take a snapshot's schema.cql, or DESCRIBE … WITH INTERNALS"
            raise FormatError(reason, segment=self._names[of])
        try:
            return self.cql.table(of)
        except FormatError as error:
            reason = f"{error.reason} ({name}): add the CREATE TYPE that DESCRIBE prints, here or in another --schema"
            raise FormatError(reason, segment=self._names[of]) from None

    def _read(self, text: str, name: str) -> None:
        if text.lstrip().startswith(_BEGINS_JSON):
            self.tables += _json_tables(text)
            return
        known = CqlSchema()
        known.read(text)
        if not known.tables and not known.has_types:
            raise FormatError(f"no table found: the file is not {FORMS}")
        self.cql.read(text)
        self._names.update(dict.fromkeys(known.tables, name))


def read_schema_files(paths: list[Path]) -> list[TableMetadata]:
    """The tables of the files, each with its id. FormatError as SchemaFiles.read and with_ids."""
    files = SchemaFiles()
    for path in paths:
        files.read(path)
    return files.with_ids()


def read_schema_file(path: Path) -> list[TableMetadata]:
    """The tables of one file: see read_schema_files."""
    return read_schema_files([path])


def _text(path: Path) -> str:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"not text: the file is not {FORMS}", position=error.start) from None
    if "\0" in text:
        raise FormatError(f"not text: the file is not {FORMS}", position=text.index("\0"))
    if not text.strip():
        raise FormatError("the file is empty")
    return text


def _json_tables(text: str) -> list[TableMetadata]:
    try:
        found = [_described(json.loads(message)) for message in _messages(text)]
    except json.JSONDecodeError as error:
        raise FormatError("the file begins like JSON and is not whole: copy it again", position=error.pos) from None
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        found = []
    if not found:
        raise FormatError(f"no table found: the file is JSON, but not {FORMS}")
    return found


def _described(description: dict[str, Any]) -> TableMetadata:
    """The table of a description; ValueError if it is of a version that this build does not read."""
    if description["format_version"] not in READABLE_VERSIONS:
        raise ValueError(f"a table of format version {description['format_version']}")
    return described_table(description)


def _messages(text: str) -> list[bytes]:
    """The tables' messages: those of a schema.json, one message, or one on each line. Messages of other kinds are
    skipped.
    """
    try:
        value: dict[str, Any] = json.loads(text)
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
        return [line.encode() for line in lines if "table" in (json.loads(line) or ())]
    if "tables" in value:
        return [entry["table"].encode() for entry in value["tables"]]
    return [text.encode()]
