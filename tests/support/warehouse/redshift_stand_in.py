"""A stand-in of Redshift: a proxy before PostgreSQL that Redshift's own driver talks to.

The driver, the transactions, the states, the merges and the migrations are real. The proxy takes the clauses out that
PostgreSQL does not know, and executes COPY: it reads the manifest and the objects from the store, and gives PostgreSQL
their rows. Types and functions that Redshift has are domains and functions of the database. What it does not have:
Redshift's isolation, its limits, and its own reader of Parquet.
"""

from __future__ import annotations

import io
import json
import re
import socket
import struct
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import psycopg
import pyarrow.csv
import pyarrow.parquet as pq

from dev.local_stack.process.network import LOCALHOST

if TYPE_CHECKING:
    from types import TracebackType

    from stream_runtime.stores.store import Store

PREPARE = """
CREATE DOMAIN super AS json;
CREATE DOMAIN varbyte AS bytea;
CREATE FUNCTION json_parse(text) RETURNS json IMMUTABLE STRICT LANGUAGE sql AS 'SELECT $1::json';
CREATE FUNCTION to_varbyte(text, text) RETURNS bytea IMMUTABLE STRICT LANGUAGE sql
    AS 'SELECT CASE $2 WHEN ''hex'' THEN decode($1, ''hex'') ELSE convert_to($1, ''UTF8'') END';
CREATE FUNCTION getdate() RETURNS timestamp STABLE LANGUAGE sql AS 'SELECT now()::timestamp';
"""
_STORAGE = b" DISTSTYLE KEY DISTKEY (_key) SORTKEY (_key)"
_COPY = re.compile(
    rb"COPY (\w+) FROM '([^']+)' IAM_ROLE ('arn:aws:iam::\d+:role/\w+'|default) FORMAT AS PARQUET MANIFEST"
)
_KNOWN_PARAMETERS = (b"user", b"database", b"application_name")


class RedshiftStandIn:
    """Listens at `port`. The server listens at a Unix socket of a folder."""

    def __init__(self, server: str, store: Store) -> None:
        """server: the path of PostgreSQL's socket."""
        self.copies = 0
        """The number of COPY statements."""
        self.statements: list[str] = []
        """All statements, as the driver sent them."""
        self._server = server
        self._store = store
        self._listener = socket.create_server((LOCALHOST, 0), backlog=32)
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self.cut()

    def url(self, database: str) -> str:
        return f"redshift://test@{LOCALHOST}:{self.port}/{database}?sslmode=disable"

    def cut(self) -> None:
        """Cut all connections."""
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._open.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._open += [client, server]
                link = _Link(self, client, server)
                threading.Thread(target=link.requests, daemon=True).start()
                threading.Thread(target=link.answers, daemon=True).start()

    def rows_of(self, manifest: str) -> bytes:
        """The rows of the objects of a manifest, as CSV. ValueError if an object is not as the manifest says."""
        found = []
        for entry in json.loads(self._read(manifest))["entries"]:
            data = self._read(entry["url"])
            if len(data) != entry["meta"]["content_length"] or entry["mandatory"] is not True:
                raise ValueError(f"{entry['url']} is not as the manifest says")
            out = io.BytesIO()
            options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="all_valid")
            pyarrow.csv.write_csv(pq.read_table(io.BytesIO(data)), out, options)
            found.append(out.getvalue())
        return b"".join(found)

    def _read(self, uri: str) -> bytes:
        data = self._store.read(uri.removeprefix(self._store.uri("")).lstrip("/"))
        if data is None:
            raise ValueError(f"{uri} is missing")
        return data


class _Link:
    """A connection of the driver, and the one to the server."""

    def __init__(self, owner: RedshiftStandIn, client: socket.socket, server: socket.socket) -> None:
        self._owner = owner
        self._client = client
        self._server = server
        self._copied: list[bytes] = []
        self._is_synced = threading.Event()

    def requests(self) -> None:
        """Pass what the driver sends."""
        with suppress(OSError, EOFError):
            self._start()
            while True:
                kind, body = _read_message(self._client)
                if kind == b"P":
                    body = self._translated(body)
                if kind == b"E":
                    self._is_synced.clear()
                self._server.sendall(kind + struct.pack("!i", len(body) + 4) + body)
                if kind == b"S":
                    self._is_synced.set()
        self._close()

    def answers(self) -> None:
        """Pass what the server answers. To its question for rows the proxy answers itself."""
        with suppress(OSError, EOFError):
            while True:
                kind, body = _read_message(self._server)
                if kind == b"G":
                    rows = self._copied.pop()
                    self._is_synced.wait()  # a Sync that came later would be answered, too
                    self._server.sendall(b"d" + struct.pack("!i", len(rows) + 4) + rows + b"c" + struct.pack("!i", 4))
                    self._server.sendall(b"S" + struct.pack("!i", 4))  # the driver's was ignored during the copy
                    continue
                if kind == b"S" and body.startswith(b"server_version\0"):
                    body = b"server_version\0008.0.2\0"  # Redshift says this one
                self._client.sendall(kind + struct.pack("!i", len(body) + 4) + body)
        self._close()

    def _start(self) -> None:
        """The first message, without the parameters that PostgreSQL does not know."""
        size = struct.unpack("!i", _read_exactly(self._client, 4))[0]
        body = _read_exactly(self._client, size - 4)
        version, words = body[:4], body[4:].rstrip(b"\0").split(b"\0")
        pairs = dict(zip(words[::2], words[1::2], strict=True))
        kept = [(name, value) for name, value in pairs.items() if name in _KNOWN_PARAMETERS]
        body = version + b"".join(name + b"\0" + value + b"\0" for name, value in kept) + b"\0"
        self._server.sendall(struct.pack("!i", len(body) + 4) + body)

    def _translated(self, body: bytes) -> bytes:
        """A statement (Parse) as PostgreSQL takes it."""
        name, statement, rest = body.split(b"\0", 2)
        self._owner.statements.append(statement.decode())
        copy = _COPY.fullmatch(statement)
        if copy is not None:
            self._owner.copies += 1
            self._copied.append(self._owner.rows_of(copy.group(2).decode()))
            statement = b"COPY " + copy.group(1) + b" FROM STDIN (FORMAT csv)"
        return b"\0".join((name, statement.replace(_STORAGE, b""), rest))

    def _close(self) -> None:
        for one in (self._client, self._server):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def _read_message(source: socket.socket) -> tuple[bytes, bytes]:
    kind = _read_exactly(source, 1)
    size = struct.unpack("!i", _read_exactly(source, 4))[0]
    return kind, _read_exactly(source, size - 4)


def _read_exactly(source: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = source.recv(count - len(found))
        if not part:
            raise EOFError
        found += part
    return found


def prepare_database(url: str) -> None:
    """Make Redshift's types and functions in a database of PostgreSQL."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(PREPARE.encode())
