"""The registry's transactions, on SQLite by default, or on any database that SQLAlchemy supports."""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, insert, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as DatabaseTimeoutError
from sqlalchemy.orm import Session

from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings.describe import mask_url
from schematizer.model.kept import refuse_large_numbers
from schematizer.model.migrating import migrate
from schematizer.model.registry_tables import GLOBAL, subject_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BUSY_TIMEOUT_SECONDS = 30
_ATTEMPTS = 5
_WAL_PAUSE_SECONDS = 0.02
T = TypeVar("T")


class Database:
    """Transactions on the registry's database. Writing transactions run one at a time, even across processes."""

    def __init__(self, url: str, *, must_exist: bool = False) -> None:
        """Opens the database and brings its tables up to date; CdcError REGISTRY_DATABASE if that fails.

        `must_exist`: SQLite's file is not created. Other databases are never created.
        """
        self.url = url
        self._writer = Lock()
        parsed = _parsed(url)
        try:
            if parsed.get_backend_name() == "sqlite":
                if must_exist:
                    _check_file(parsed)
                _prepare_file(parsed)
            self._engine = _engine(parsed)
            self._make_tables()
        except (SQLAlchemyError, OSError, ImportError) as error:
            raise unusable_database(url, error) from error

    def close(self) -> None:
        self._engine.dispose()

    def read(self, transaction: Callable[[Connection], T]) -> T:
        """Return the result of `transaction`, in one consistent view."""
        with self._engine.begin() as connection:
            return transaction(connection)

    def read_view(self, transaction: Callable[[Connection], T]) -> T:
        """Run many statements as `read` does, without seeing others' commits in between, in any database."""
        options = {} if self._is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with self._engine.connect().execution_options(**options) as connection, connection.begin():
            return transaction(connection)

    def write(self, transaction: Callable[[Connection], T]) -> T:
        """Return the result of `transaction`, committed. It runs again if another process was faster."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._write_once(transaction)
            except IntegrityError:
                continue
        return self._write_once(transaction)

    def read_session(self, transaction: Callable[[Session], T]) -> T:
        """Run a transaction as `read` does, with mapped classes."""

        def in_session(connection: Connection) -> T:
            with Session(connection) as session:
                return transaction(session)

        return self.read(in_session)

    def write_session(self, transaction: Callable[[Session], T]) -> T:
        """Run a transaction as `write` does, with mapped classes. Its result must not need the database any more."""
        return self.write(lambda connection: write_in_session(connection, transaction))

    def _write_once(self, transaction: Callable[[Connection], T]) -> T:
        with (
            self._turn(),
            self._engine.connect().execution_options(cdc_write=True) as connection,
            connection.begin(),
        ):
            if not self._is_sqlite:  # SQLite already holds its write lock; in other databases this row is the lock
                lock = select(subject_settings.c.subject).where(subject_settings.c.subject == GLOBAL).with_for_update()
                connection.execute(lock)
            return transaction(connection)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Threads that want SQLite's write lock wait for each other here: SQLite's own wait is a sleep of up to 100 ms,
        after which whoever asks first gets the lock. Other databases have a queue.
        """
        if not self._is_sqlite:
            yield
            return
        if not self._writer.acquire(timeout=BUSY_TIMEOUT_SECONDS):
            raise DatabaseTimeoutError(f"another thread has been writing for {BUSY_TIMEOUT_SECONDS} s")
        try:
            yield
        finally:
            self._writer.release()

    @property
    def _is_sqlite(self) -> bool:
        return self._engine.dialect.name == "sqlite"

    def _make_tables(self) -> None:
        with self._engine.connect().execution_options(cdc_write=True) as connection, connection.begin():
            migrate(connection)
        try:
            with self._engine.connect().execution_options(cdc_write=True) as connection, connection.begin():
                found = connection.execute(select(subject_settings).where(subject_settings.c.subject == GLOBAL))
                if found.first() is None:
                    connection.execute(insert(subject_settings).values(subject=GLOBAL))
        except IntegrityError:
            pass  # another process has just created it


@contextmanager
def opened(url: str, *, must_exist: bool = False) -> Iterator[Database]:
    """The database, closed afterwards."""
    database = Database(url, must_exist=must_exist)
    try:
        yield database
    finally:
        database.close()


def write_in_session(connection: Connection, transaction: Callable[[Session], T]) -> T:
    """Return the result of `transaction`, within the connection's transaction. The session's commit flushes and tells
    those who listen for it; the connection's transaction goes on.
    """
    with Session(connection, join_transaction_mode="rollback_only", expire_on_commit=False) as session:
        result = transaction(session)
        session.commit()
        return result


def reason_of(error: Exception) -> str:
    """Return the message of the database's own driver."""
    return str(getattr(error, "orig", None) or error)


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
        parsed.get_dialect()
    except (ArgumentError, NoSuchModuleError, ImportError) as error:
        raise CdcError(
            Code.REGISTRY_DATABASE,
            f"schematizer.database_url {mask_url(url)} is not a usable SQLAlchemy URL: {error}.",
            "Write it as in sqlite:////var/lib/cassandra-schematizer/registry.db, and install the database's driver.",
        ) from error
    if parsed.get_backend_name() == "sqlite" and (parsed.database or ":memory:") == ":memory:":
        raise CdcError(
            Code.REGISTRY_DATABASE,
            f"schematizer.database_url {url} is a database in memory, which would lose its ids.",
            "Name a file: sqlite:////absolute/path/registry.db.",
        )
    return parsed


def unusable_database(url: str, error: Exception) -> CdcError:
    reason = reason_of(error)
    if isinstance(error, ImportError):
        fix = "Install that Python driver beside the registry, or use SQLite."
    else:
        fix = "Let the registry's user write that file and its folder, or correct schematizer.database_url."
    return CdcError(Code.REGISTRY_DATABASE, f"The registry's database {mask_url(url)} cannot be used: {reason}.", fix)


def _check_file(url: URL) -> None:
    if not Path(url.database or "").exists():
        raise CdcError(
            Code.REGISTRY_DATABASE,
            f"There is no database {url.database}.",
            "Correct schematizer.database_url (--database-url). Only serve, restore and keys create make a new one.",
        )


def _prepare_file(url: URL) -> None:
    """Creates the file with mode 0600, and its directory with 0700 if missing."""
    path = Path(url.database or "")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True)
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_SECONDS}, max_overflow=-1)
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    refuse_large_numbers(engine)
    return engine


def _set_up_sqlite(connection: Any, _record: object) -> None:  # noqa: ANN401 - sqlite3's, as SQLAlchemy hands it out
    """WAL: readers never wait. FULL: an id that was answered survives a power cut."""
    connection.isolation_level = None  # the driver must not begin transactions
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_SECONDS * 1000}")
    _use_wal(cursor)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _use_wal(cursor: sqlite3.Cursor) -> None:
    """SQLite does not wait for a process that is about to write to a file which is not in this mode yet: for one that
    makes the same file.
    """
    deadline = monotonic() + BUSY_TIMEOUT_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > deadline:
                raise
            sleep(_WAL_PAUSE_SECONDS)
        else:
            return


def _begin_sqlite(connection: Connection) -> None:
    """A writer takes the lock at once: a reader that becomes a writer would fail instead of waiting."""
    writes = connection.get_execution_options().get("cdc_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
