"""Backup and restore: all rows of one consistent view in a file that any database can be filled from."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Table, func, select, text

from cdc_common.errors.codes import CdcError, Code
from cdc_common.program.durable import sync_folder
from schematizer.model.given_ids import follow_ids
from schematizer.model.migrating import revision
from schematizer.model.registry_tables import subject_settings
from schematizer.model.tables import metadata

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from schematizer.model.database import Database

FORMAT = "cassandra-schematizer backup"
FORMAT_VERSION = 1
_AT_ONCE = 1000


def write_backup(database: Database, path: Path) -> int:
    """The rows written. The file appears when it is complete and on the disk, with mode 0600: gzipped JSON lines, first
    a header, then [table, row]s, last the count and the SHA-256 of the lines before.
    """
    part = path.with_name(path.name + ".part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as raw:
            with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as file:
                count = database.read_view(lambda connection: _write(connection, file))
            raw.flush()
            os.fsync(raw.fileno())
        part.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise _file_error(path, str(error)) from error
    finally:
        part.unlink(missing_ok=True)  # leave nothing behind on a full disk
    return count


def restore_backup(database: Database, path: Path) -> int:
    """The rows restored, in one transaction, into a database that holds no schema and no catalogue yet.

    CdcError BACKUP for a file that is incomplete, changed, or of tables of another version, or a database in use.
    """
    check_backup(path)
    return database.write(lambda connection: _restore(connection, path))


def check_backup(path: Path) -> dict[str, Any]:
    """The header of a complete file; CdcError BACKUP."""
    digest, count, header, footer = hashlib.sha256(), 0, None, None
    for line in _lines(path):
        if footer is not None:
            raise _file_error(path, "there is more after its end")
        content = _parsed(path, line)
        if isinstance(content, dict) and "rows" in content:
            footer = content
            continue
        digest.update(line)
        header = header or _checked_header(path, content)
        count += isinstance(content, list)
    if header is None or footer is None:
        raise _file_error(path, "it ends too early")
    if footer != {"rows": count, "sha256": digest.hexdigest()}:
        raise _file_error(path, "its content is not what was written")
    return header


def _write(connection: Connection, file: gzip.GzipFile) -> int:
    digest, count = hashlib.sha256(), 0
    header = {"format": FORMAT, "version": FORMAT_VERSION, "tables": revision(connection)}

    def write(content: object) -> bytes:
        line = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        file.write(line)
        return line

    digest.update(write(header))
    for table in metadata.sorted_tables:
        for row in _rows(connection, table):
            digest.update(write([table.name, row]))
            count += 1
    write({"rows": count, "sha256": digest.hexdigest()})
    return count


def _rows(connection: Connection, table: Table) -> Iterator[list[Any]]:
    """Yield the rows ordered by primary key, as the database stores them: times are numbers, enums texts."""
    columns = [column.name for column in table.columns]
    quote = connection.dialect.identifier_preparer.quote
    order = ", ".join(quote(column.name) for column in table.primary_key.columns)
    query = f"SELECT {', '.join(map(quote, columns))} FROM {quote(table.name)} ORDER BY {order}"  # noqa: S608 - our names
    booleans = {index for index, column in enumerate(table.columns) if column.type.python_type is bool}
    result = connection.execution_options(stream_results=True, yield_per=_AT_ONCE).execute(text(query))
    for row in result:
        yield [bool(value) if index in booleans and value is not None else value for index, value in enumerate(row)]


def _restore(connection: Connection, path: Path) -> int:
    header = check_backup(path)
    if header["tables"] != revision(connection):
        raise _file_error(
            path, f"it has tables of version {header['tables']}, this program's are {revision(connection)}"
        )
    filled = [
        table.name
        for table in metadata.sorted_tables
        if table is not subject_settings and connection.execute(select(func.count()).select_from(table)).scalar_one()
    ]
    if filled:
        raise CdcError(
            Code.BACKUP,
            f"The database has {', '.join(filled)}: a backup is restored into an empty one.",
            "Name a new database with --database-url, and start the registry on it once it is restored.",
        )
    connection.execute(subject_settings.delete())
    tables = {table.name: table for table in metadata.sorted_tables}
    pending: list[list[Any]] = []
    count, current = 0, ""
    for line in _lines(path):
        content = json.loads(line)
        if not isinstance(content, list):
            continue
        name, row = content
        if pending and (name != current or len(pending) == _AT_ONCE):
            _insert(connection, tables[current], pending)
            pending = []
        current = name
        pending.append(row)
        count += 1
    if pending:
        _insert(connection, tables[current], pending)
    for table in metadata.sorted_tables:
        follow_ids(connection, table)
    return count


def _insert(connection: Connection, table: Table, rows: list[list[Any]]) -> None:
    """Insert rows without the columns' types: the file contains what the database stores."""
    names = [column.name for column in table.columns]
    plain = text(
        f"INSERT INTO {connection.dialect.identifier_preparer.quote(table.name)} "  # noqa: S608 - our names
        f"({', '.join(map(connection.dialect.identifier_preparer.quote, names))}) "
        f"VALUES ({', '.join(f':{name}' for name in names)})"
    )
    connection.execute(plain, [dict(zip(names, row, strict=True)) for row in rows])


def _checked_header(path: Path, content: object) -> dict[str, Any]:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _file_error(path, "it is no backup of a registry")
    if content.get("version") != FORMAT_VERSION:
        raise _file_error(path, f"its format has version {content.get('version')}, not {FORMAT_VERSION}")
    return content


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path, "rb") as file:
            yield from file
    except (OSError, EOFError, zlib.error) as error:
        raise _file_error(path, f"it cannot be read: {error}") from error


def _parsed(path: Path, line: bytes) -> object:
    try:
        content: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _file_error(path, "a line is not JSON") from error
    return content


def _file_error(path: Path, problem: str) -> CdcError:
    return CdcError(Code.BACKUP, f"The backup {path}: {problem}.", "Choose another file or backup, or write it again.")
