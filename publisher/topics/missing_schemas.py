"""Waits for schemas that the node does not show yet, while all other tables go on.

A mutation may be in the log a moment before system_schema shows its table or its column. Its table waits then
(publisher.topics.waiting), as one that cannot be read does. If the schema does not come within SCHEMA_WAIT_SECONDS, the
table was dropped before the publisher saw it, or no schema reads the mutation.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from cassandra_storage.formats.errors import UnknownColumnError, UnknownTableError
from cdc_common.errors.codes import Code
from publisher.kafka.table_error import TableError

if TYPE_CHECKING:
    from cassandra_storage.formats.errors import FormatError
    from publisher.tables.node_schema import NodeSchema
    from publisher.topics.table_follower import TableFollower
    from publisher.topics.table_problems import TableProblems
    from publisher.topics.waiting import WaitingTables
    from publisher.waits import Waits

SCHEMA_WAIT_SECONDS = 10.0

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Awaited:
    """A missing table or column, and the time until which it is waited for."""

    reason: str
    deadline: float


class MissingSchemas:
    """The tables that wait for their schema. Each missing table or column is waited for once."""

    def __init__(
        self, schema: NodeSchema, waiting: WaitingTables, tables: TableFollower, problems: TableProblems
    ) -> None:
        self._schema = schema
        self._waiting = waiting
        self._tables = tables
        self._problems = problems
        self._never_arrived: set[str] = set()
        self._awaited: dict[bytes, _Awaited] = {}
        for table_id, table in waiting.tables.items():
            if table.reason.code == Code.SCHEMA_UNKNOWN.text and table_id not in schema.published:
                self._await(table_id, UnknownTableError(table_id).reason)  # the publisher was stopped while it waited

    def may_arrive(self, error: FormatError) -> bool:
        """The node may show an unknown table or column a moment later."""
        is_unknown = isinstance(error, UnknownTableError | UnknownColumnError)
        return is_unknown and error.reason not in self._never_arrived

    def never_arrived(self, error: FormatError) -> None:
        """Do not wait again for what this error misses."""
        self._never_arrived.add(error.reason)

    def is_awaited(self, table_id: bytes) -> bool:
        """Return whether the table waits for its schema."""
        return table_id in self._awaited

    def hold(self, table_id: bytes, reason: str, segment: int, position: int) -> None:
        """The table waits for its schema, with its mutations from this position on."""
        table = self._schema.published.get(table_id)
        problem = TableError(
            Code.SCHEMA_UNKNOWN,
            f"The node's schema does not show yet what its mutations need: {reason}.",
            f"None is needed: the publisher looks for it for {SCHEMA_WAIT_SECONDS:.0f} s.",
        )
        if table is None:
            name = self._schema.switches.names.get(table_id, str(UUID(bytes=table_id)))
            self._waiting.begin(table_id, name, problem, monotonic())
        else:
            self._problems.wait(table, problem)
        self._await(table_id, reason)
        self._waiting.hold(table_id, segment, position)

    def _await(self, table_id: bytes, reason: str) -> None:
        self._waiting.tables[table_id].retry_at = inf  # it is tried when its schema changes
        self._awaited[table_id] = _Awaited(reason, monotonic() + SCHEMA_WAIT_SECONDS)

    def give_up_late(self) -> Waits[None]:
        """Give up what has not come in time. The TableFollower tries the tables whose schema has changed."""
        if not self._awaited:
            return
        now = monotonic()
        if any(now >= awaited.deadline for awaited in self._awaited.values()):
            self._schema.forget_version()
            yield from self._tables.wait_for_schema()
        for table_id, awaited in list(self._awaited.items()):
            if self._is_solved(table_id):
                del self._awaited[table_id]
            elif now >= awaited.deadline:
                del self._awaited[table_id]
                self._give_up(table_id, awaited.reason)

    def _is_solved(self, table_id: bytes) -> bool:
        """The table is tried again, waits for something else, or nothing of it is published."""
        table = self._waiting.tables.get(table_id)
        if table is None or table.reason.code != Code.SCHEMA_UNKNOWN.text or table.ready is not None:
            return True
        if table_id not in self._schema.tables:
            return False
        if table_id not in self._schema.published:
            self._waiting.end(table_id)
            return True
        return table.retry_at < inf

    def _give_up(self, table_id: bytes, reason: str) -> None:
        self._never_arrived.add(reason)
        if table_id in self._schema.published:
            self._waiting.retry_now(table_id)  # what cannot be decoded is quarantined in its place
        else:
            self.skip_dropped(table_id)
            self._waiting.end(table_id)

    def skip_dropped(self, table_id: bytes) -> None:
        """The table was dropped before the publisher saw it: no consumer waits for its rows.

        The node knew the table when it wrote the mutation, and has been asked for its schema since.
        """
        self._schema.ignore_table(table_id)
        log.warning(
            "skipping mutations of a dropped table",
            code=Code.SCHEMA_UNKNOWN.text,
            table=self._schema.switches.names.get(table_id, "unknown"),
            table_id=table_id.hex(),
        )
