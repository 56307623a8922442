"""A CQL client for the demo, the comparison and the tests: the one module of local_stack that imports the driver."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from cassandra import ConsistencyLevel, DriverException
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.cqltypes import EMPTY, _CassandraType
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.query import BatchStatement, BatchType, BoundStatement, SimpleStatement, dict_factory

from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cassandra.cluster import ResponseFuture, Session

Row: TypeAlias = dict[str, Any]
Errors = (DriverException, NoHostAvailable, OSError)

__all__ = ["EMPTY", "CqlClient", "Row", "TableColumns", "connect"]

_CassandraType.support_empty_values = True  # an empty value is EMPTY, not None
FETCH_SIZE = 2000
TIMEOUT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table."""

    # The names of the primary key's columns, in order.
    key: tuple[str, ...]
    # The driver's type class of every column, by name.
    types: dict[str, Any]
    # The number of columns of the partition key.
    partition_columns: int = 1


class CqlClient:
    """One connection. Errors come as CdcError(CASSANDRA_QUERY); writes take the client's time as their timestamp."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Execute one statement; parameters stand as %s in it."""
        return self._execute(statement, parameters)

    def _execute(self, statement: Any, parameters: Sequence[object], text: str = "") -> list[Row]:  # noqa: ANN401 - text or the driver's
        try:
            return list(self._session.execute(statement, parameters or None))
        except Errors as error:
            raise CdcError(
                Code.CASSANDRA_QUERY, f"Cassandra refuses: {text or statement} ({error}).", "See its log."
            ) from error

    def execute_at_all(self, statement: str) -> None:
        """Execute a write at consistency ALL: every replica has it in its log when this returns."""
        self._execute(SimpleStatement(statement, consistency_level=ConsistencyLevel.ALL), ())

    def prepare(self, statement: str) -> Any:  # noqa: ANN401 - the driver's PreparedStatement
        return self._session.prepare(statement)

    def bind(self, prepared: Any, values: Sequence[object]) -> Any:  # noqa: ANN401 - the driver's statements
        """Bind values that are serialized already to a prepared statement; None for null, UNSET_VALUE for unset."""
        bound = BoundStatement(prepared)
        bound.values = list(values)
        return bound

    def execute_bound(self, bound: Any) -> list[Row]:  # noqa: ANN401 - the driver's statements
        """Execute what `bind` gave."""
        return self._execute(bound, (), bound.prepared_statement.query_string)

    def batch(self, prepared: Any, rows: Iterable[Sequence[object]]) -> Any:  # noqa: ANN401 - the driver's statements
        """One unlogged batch of what `prepare` gave with the values of each row."""
        batch = BatchStatement(BatchType.UNLOGGED)
        for values in rows:
            batch.add(prepared, values)
        return batch

    def submit(self, statement: Any, parameters: Sequence[object], done: Callable[[Exception | None], None]) -> None:  # noqa: ANN401
        """Execute text, or what `prepare` or `batch` gave, without waiting; a driver's thread calls `done(error)`."""
        future: ResponseFuture = self._session.execute_async(statement, parameters or None)
        future.add_callbacks(lambda _rows: done(None), done)

    def tables(self) -> list[tuple[str, str]]:
        """(keyspace, table) of every table, in order."""
        found = self.execute("SELECT keyspace_name, table_name FROM system_schema.tables")
        return sorted((row["keyspace_name"], row["table_name"]) for row in found)

    def cdc_tables(self) -> list[tuple[str, str]]:
        """(keyspace, table) of every table with `cdc = true`, in order."""
        found = self.execute("SELECT keyspace_name, table_name, cdc FROM system_schema.tables")
        return sorted((row["keyspace_name"], row["table_name"]) for row in found if row["cdc"])

    def columns(self, keyspace: str, table: str) -> TableColumns:
        """Key and types of a table, as the server describes them."""
        found = self.execute(
            "SELECT column_name, kind, position FROM system_schema.columns WHERE keyspace_name = %s"
            " AND table_name = %s",
            (keyspace, table),
        )
        keys = [row for row in found if row["kind"] in {"partition_key", "clustering"}]
        keys.sort(key=lambda row: (row["kind"] != "partition_key", row["position"]))
        answer = self._session.execute(f'SELECT * FROM "{keyspace}"."{table}" LIMIT 1')  # noqa: S608 - names, quoted
        types = dict(zip(answer.column_names, answer.column_types, strict=True))
        names = (row["column_name"] for row in keys)
        shown = tuple(name for name in names if name in types)  # CQL hides some of compact tables
        return TableColumns(shown, types, sum(row["kind"] == "partition_key" for row in keys))

    def rows(self, keyspace: str, table: str) -> Iterator[Row]:
        """Every row, read at consistency ALL, page by page."""
        statement = SimpleStatement(
            f'SELECT * FROM "{keyspace}"."{table}"',  # noqa: S608 - names, quoted
            fetch_size=FETCH_SIZE,
            consistency_level=ConsistencyLevel.ALL,
        )
        yield from self._session.execute(statement)


@contextmanager
def connect(hosts: Sequence[str], port: int, *, consistency: int = ConsistencyLevel.LOCAL_ONE) -> Iterator[CqlClient]:
    """A client of the nodes at these addresses. Raises CdcError(CASSANDRA_UNREACHABLE)."""
    logging.getLogger("cassandra").setLevel(logging.CRITICAL)
    profile = ExecutionProfile(
        row_factory=dict_factory,
        consistency_level=consistency,
        request_timeout=TIMEOUT_SECONDS,
        load_balancing_policy=WhiteListRoundRobinPolicy(list(hosts)),
    )
    cluster = Cluster(
        list(hosts),
        port=port,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=TIMEOUT_SECONDS,
        schema_metadata_enabled=False,
        token_metadata_enabled=False,
        compression=False,
    )
    try:
        try:
            session = cluster.connect()
        except Errors as error:
            where = ", ".join(f"{host}:{port}" for host in hosts)
            raise CdcError(
                Code.CASSANDRA_UNREACHABLE, f"Cassandra at {where} does not answer ({error}).", "Is the stack running?"
            ) from error
        yield CqlClient(session)
    finally:
        cluster.shutdown()
