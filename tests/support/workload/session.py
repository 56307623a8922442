"""Runs a workload against a node: statements prepared once, in batches, many at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING

from cassandra import InvalidRequest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.concurrent import execute_concurrent
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.query import BatchStatement, BatchType, BoundStatement, PreparedStatement, dict_factory

from dev.verify.oracle.type_values import KEYSPACE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Self

    from cassandra.query import Statement

    from dev.local_stack.servers.cassandra import CassandraNode
    from tests.support.workload.statements import Shape, Value
    from tests.support.workload.workload import Unit

REQUEST_SECONDS = 120.0
AT_ONCE = 48
CHUNK = 1000  # units
AT_ONCE_PREPARED = 8
TOLERATED = 0.01  # of the units
BATCH_TYPES = {"batch": BatchType.UNLOGGED, "logged": BatchType.LOGGED, "counter": BatchType.COUNTER}


class WorkloadSession:
    """A context manager: a driver's session on one node."""

    def __init__(self, node: CassandraNode) -> None:
        profile = ExecutionProfile(
            load_balancing_policy=WhiteListRoundRobinPolicy([node.address]),
            request_timeout=REQUEST_SECONDS,
            row_factory=dict_factory,
        )
        self._driver = Cluster(
            [node.address],
            port=node.port,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            connect_timeout=REQUEST_SECONDS,
            control_connection_timeout=REQUEST_SECONDS,
            schema_metadata_enabled=False,
            token_metadata_enabled=False,
            compression=False,
        )
        self._prepared: dict[str, PreparedStatement] = {}

    def __enter__(self) -> Self:
        self.session: Session = self._driver.connect()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._driver.shutdown()

    def execute(self, statements: Iterable[str]) -> None:
        """One after the other."""
        for statement in statements:
            self.session.execute(statement)

    def use(self) -> None:
        self.session.set_keyspace(KEYSPACE)

    def run(self, units: Iterable[Unit]) -> int:
        """Send the units, many at once; how many the server failed at, which few may be: it has bugs of its own."""
        sent, failed = 0, []
        source = iter(units)
        while chunk := list(islice(source, CHUNK)):
            self._prepare({shape.cql for unit in chunk for shape, _ in unit.statements})
            statements = [(self._statement(unit), ()) for unit in chunk]
            results = execute_concurrent(self.session, statements, concurrency=AT_ONCE, raise_on_first_error=False)
            failed += [result for succeeded, result in results if not succeeded]
            sent += len(chunk)
        if len(failed) > sent * TOLERATED or any(isinstance(error, InvalidRequest) for error in failed):
            raise failed[0]
        return len(failed)

    def _prepare(self, texts: set[str]) -> None:
        new = sorted(texts.difference(self._prepared))
        with ThreadPoolExecutor(AT_ONCE_PREPARED) as pool:
            self._prepared.update(zip(new, pool.map(self.session.prepare, new), strict=True))

    def _statement(self, unit: Unit) -> Statement:
        if unit.kind == "single":
            ((shape, values),) = unit.statements
            return self._bound(shape, values)
        batch = BatchStatement(BATCH_TYPES[unit.kind])
        for shape, values in unit.statements:
            batch.add(self._bound(shape, values))
        return batch

    def _bound(self, shape: Shape, values: list[Value]) -> BoundStatement:
        bound = BoundStatement(self._prepared[shape.cql])
        bound.values = values
        return bound
