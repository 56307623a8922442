"""Redshift: it copies Parquet objects by a manifest. Two transactions that conflict end with an error, not with a wait.

It has not been run on a real one: a stand-in of PostgreSQL executes its statements (docs/guides/warehouse.md).
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from secrets import token_hex
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import redshift_connector
from redshift_connector.error import Error, InterfaceError, OperationalError

from warehouse.faults import table_refused, warehouse_away
from warehouse.tables.types import REDSHIFT, Dialect
from warehouse.targets.connection import LoadTakenError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from redshift_connector.core import Connection
    from redshift_connector.cursor import Cursor

    from stream_runtime.stores.store import Store
    from warehouse.records import StoredObject, TableName
    from warehouse.targets.staging import Staged

PORT = 5439
_SAFE_CLASSES = ("42", "3F", "0A", "25", "28", "3D", "53", "54", "55", "57")
"""Classes of errors whose texts have names, and no values of rows."""
_CONFLICT = "1023"  # a serializable isolation violation, which has no class of its own
_GRANTS = """
SELECT 'GRANT ' || privilege_type || ' ON ' || QUOTE_IDENT(namespace_name) || '.' || QUOTE_IDENT(relation_name)
       || ' TO ' || CASE identity_type WHEN 'public' THEN 'PUBLIC' WHEN 'user' THEN QUOTE_IDENT(identity_name)
                             ELSE UPPER(identity_type) || ' ' || QUOTE_IDENT(identity_name) END
FROM svv_relation_privileges WHERE namespace_name = ? AND relation_name = ? AND identity_name <> current_user
"""


class RedshiftConnection:
    """warehouse.targets.connection.Connection and CopiesObjects."""

    dialect: Dialect = REDSHIFT
    is_indexed = False  # keys are not enforced

    def __init__(self, url: str, password: str, store: Store, iam_role: str) -> None:
        """iam_role: the ARN of the role with which Redshift reads the objects, or `default`."""
        self._url = urlsplit(url)
        self._password = password
        self._store = store
        self._role = "default" if iam_role == "default" else f"'{iam_role}'"
        self._open: Connection | None = None

    def run(self, statement: str, *values: object) -> Sequence[tuple[Any, ...]]:
        cursor = self._execute(statement, values)
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def change(self, statement: str, *values: object) -> int:
        return int(self._execute(statement, values).rowcount)

    def stage(self, table: str, columns: Sequence[Staged]) -> None:
        raise NotImplementedError(f"Redshift copies objects, and takes no rows of {len(columns)} columns for {table}")

    def copy_objects(self, table: str, objects: Sequence[StoredObject]) -> None:
        entries = [{"url": found.uri, "mandatory": True, "meta": {"content_length": found.bytes}} for found in objects]
        manifest = f"_manifests/{token_hex(16)}.json"
        self._store.put(manifest, json.dumps({"entries": entries}).encode())
        try:
            self.run(
                f"COPY {table} FROM '{self._store.uri(manifest)}' IAM_ROLE {self._role} FORMAT AS PARQUET MANIFEST"
            )
        finally:
            self._store.delete(manifest)

    @contextmanager
    def transaction(self, table: TableName) -> Iterator[None]:
        self.run("BEGIN")
        try:
            yield
            self.run("COMMIT")
        except BaseException as error:
            self.close()
            if isinstance(error, Error):
                if _CONFLICT in _fields(error).get("M", ""):
                    raise LoadTakenError(str(table)) from None
                raise table_refused(table, _text(error)) from None
            raise

    def snapshot(self, table: TableName) -> AbstractContextManager[None]:
        """All its transactions see the tables as they were at their first statement."""
        return self.transaction(table)

    def grants(self, table: TableName) -> Sequence[str]:
        return [statement for (statement,) in self.run(_GRANTS, *table)]

    def release(self) -> None:
        """Others can use the warehouse all the time."""

    def close(self) -> None:
        """The warehouse aborts an open transaction."""
        if self._open is not None:
            opened, self._open = self._open, None
            try:
                opened.close()
            except (Error, OSError):  # it was closed by the other side
                return

    def _execute(self, statement: str, values: Sequence[object]) -> Cursor:
        try:
            cursor = self._connection().cursor()
            cursor.paramstyle = "qmark"
            return cursor.execute(statement, tuple(values))
        except (InterfaceError, OperationalError, OSError) as error:
            self.close()
            raise warehouse_away(self._shown(), _text(error)) from None

    def _connection(self) -> Connection:
        if self._open is None:
            try:
                self._open = self._connect()
            except (Error, OSError) as error:
                raise warehouse_away(self._shown(), _text(error)) from None
            self._open.autocommit = True  # transactions are statements of the loader
            self.run("SET timezone TO 'UTC'")
        return self._open

    def _connect(self) -> Connection:
        url = self._url
        has_tls = parse_qs(url.query).get("sslmode", [""])[0] != "disable"
        return redshift_connector.connect(
            user=unquote(url.username or ""),
            password=self._password,
            host=url.hostname,
            port=url.port or PORT,
            database=unquote(url.path.lstrip("/")),
            ssl=has_tls,
            sslmode="verify-full" if has_tls else None,
            application_name="cassandra-warehouse",
        )

    def _shown(self) -> str:
        """The URL without a password."""
        return self._url._replace(netloc=self._url.netloc.rpartition("@")[2], query="").geturl()


def _fields(error: Exception) -> dict[str, str]:
    """The fields of an error of the server: its class `C`, and its text `M`."""
    first = error.args[0] if error.args else {}
    return first if isinstance(first, dict) else {}


def _text(error: Exception) -> str:
    found, kind = _fields(error), type(error).__name__
    state = found.get("C", "")
    if state[:2] in _SAFE_CLASSES:
        return f"{found.get('M', kind)} ({state})"
    if state:
        return f"{kind} ({state})"
    return (
        f"{kind}: {str(error).splitlines()[0]}" if isinstance(error, InterfaceError | OSError) and str(error) else kind
    )
