"""Runs a case: its changes are routed and joined as the job does it, in memory."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, NamedTuple

from fastavro import parse_schema, schemaless_reader

from cdc_common.messages import wire
from joinery.cases.changelog import Changelog
from joinery.cases.errors import CaseError
from joinery.cases.state import MemoryState
from joinery.joining.errors import JoinError
from joinery.joining.join import join_chunk
from joinery.output.messages import JoinedWriter
from joinery.planning.joined_schema import value_schema
from joinery.planning.plan import plan_join
from joinery.routing.errors import RouteError
from joinery.routing.route import place, route
from joinery.routing.rows import RowCutter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from joinery.cases.definition import Case, Change
    from joinery.definition import Join

_ALL = 1 << 62  # bytes of changes


class Joined(NamedTuple):
    """A change of a joined row."""

    # As in Debezium's envelope.
    op: str
    # The joined row before the change; None if there was none.
    before: dict[str, Any] | None
    # The joined row after the change; None if there is none.
    after: dict[str, Any] | None


class Trial:
    """A case in memory: one partition of each input, and one of the target."""

    def __init__(self, join: Join, case: Case) -> None:
        """CaseError for a case that does not fit the join; PlanError for a join that does not fit the case's inputs."""
        if case.input.keys() != join.input.keys():
            raise CaseError(f"its inputs are {', '.join(case.input)}, and those of the join {', '.join(join.input)}")
        self._logs = {name: Changelog(name, join.input[name], given) for name, given in case.input.items()}
        self._case = case
        self._plan = plan_join(join, {name: log.schema for name, log in self._logs.items()})
        self._values = parse_schema(value_schema(self._plan))
        self._cutters = {
            name: RowCutter(self._plan, number, self._logs[name].value_schema) for number, name in enumerate(join.input)
        }
        self._writer = JoinedWriter(self._plan, str(join.target), 0, 0)
        self._state = MemoryState()
        self._rows: dict[bytes, dict[str, Any]] = {}
        self._offset = 0

    @property
    def fields(self) -> list[str]:
        """The names of the fields of joined rows."""
        return [field["name"] for field in self._plan.row_fields]

    def type_of(self, name: str) -> Any:  # noqa: ANN401 - JSON
        """The Avro type of a field of joined rows."""
        return next(field["type"] for field in self._plan.row_fields if field["name"] == name)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The joined rows that there are now."""
        return list(self._rows.values())

    def run(self) -> Iterator[tuple[Change, list[Joined]]]:
        """Each change with what comes out. CaseError names the change that cannot be joined."""
        for number, change in enumerate(self._case.changes):
            try:
                yield change, self._join(number, change)
            except (CaseError, RouteError, JoinError) as error:
                raise CaseError(f"change {number + 1}, of {change.input}: {error.reason}") from error

    def _join(self, number: int, change: Change) -> list[Joined]:
        value = self._logs[change.input].change(change.row, is_delete=change.is_delete)
        routed = [message for _, message in place(route(self._cutters[change.input].change(value, 0, number)), 1)]
        joined: list[Joined] = []
        for message in routed:
            made = join_chunk(self._plan.rule, self._state, [(self._offset, message)], _ALL)
            self._state.apply(made.writes)
            self._offset += 1
            sent = self._writer.messages(made.changes, 0, 0)
            joined += [self._take(key, value) for _, _, key, value, _ in sent if value is not None]
        return joined

    def _take(self, key: bytes, value: bytes) -> Joined:
        found: Any = schemaless_reader(io.BytesIO(value[wire.HEADER_SIZE :]), self._values, None)
        self._rows.pop(key, None)
        if found["after"] is not None:
            self._rows[key] = found["after"]
        return Joined(found["op"], found["before"], found["after"])
