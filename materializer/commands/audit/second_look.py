"""The second look at what differed, once the state has caught up with the first one: a task for each raw partition."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.token_ranges import Span
from cassandra_storage.formats.rows.clustering import Clustering
from cassandra_storage.formats.schema.partition_keys import partition_key_values
from cdc_common.clients.cassandra import PageUnreadableError, connect_raw
from cdc_common.program.pace import Pace
from materializer.commands.audit.caught_up import find_caught_up
from materializer.commands.audit.compare import CLOCK_SECONDS, Cause, ColumnPair, cause_of, judge, seen
from materializer.commands.audit.first_look import Candidate
from materializer.commands.audit.plan import ANSWER_SECONDS
from materializer.commands.audit.select import Unread
from materializer.commands.audit.shown import ABSENT
from materializer.commands.audit.states import UnitReader, open_committed
from materializer.records import RawPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from materializer.commands.audit.plan import AuditPlan
    from materializer.commands.audit.select import PageReader
    from materializer.commands.audit.shown import AuditedTable, Side
    from materializer.commands.audit.states import StoredUnit
    from stream_runtime.state.reader import StateReader

_MOST_LOOKS = 6


class LookPlan(NamedTuple):
    """The candidates to look at again in one raw partition."""

    # The raw partition of the candidates.
    raw_partition: RawPartition
    # The units to look at.
    candidates: Sequence[Candidate]
    # How many raw partitions are looked at, at a time.
    parallel: int


class DifferingColumn(NamedTuple):
    """A column that differs, and why."""

    # The likely cause.
    cause: Cause
    # The column on both sides.
    pair: ColumnPair


class Difference(NamedTuple):
    """A unit that differs."""

    # The serialized key of its Cassandra partition.
    partition_key: bytes
    # The values of its clustering columns; None for the static columns.
    clustering: Clustering | None
    # The differing columns by name; compare.ROW stands for the whole row.
    columns: Mapping[str, DifferingColumn]
    # Whether the state knows that something of the Cassandra partition is missing.
    has_gap: bool


class LookResult(NamedTuple):
    """The result of a second look in one raw partition."""

    # Units that differ.
    differences: tuple[Difference, ...]
    # Candidates that the state has not caught up with, and those that differ in another way now.
    waiting: tuple[Candidate, ...]
    # Tokens that could not be read.
    unread: tuple[Unread, ...]
    # How many units are right.
    equal: int
    # Everything in the nodes' logs up to this time (µs) is folded.
    watermark_us: int


def look_again(plan: AuditPlan, look: LookPlan) -> LookResult:
    """Look at those candidates that the state has caught up with. The others wait, and Cassandra is not asked."""
    caught_up = find_caught_up(plan.settings, look.raw_partition, plan.table_id)
    with open_committed(plan.settings, look.raw_partition, may_be_empty=caught_up.is_empty) as state:
        if state is None:
            return LookResult((), tuple(look.candidates), (), 0, 0)
        reached = caught_up.reached_us(state, plan.settings.materializer)
        ready = [candidate for candidate in look.candidates if is_reached(candidate, reached, plan.log_delay_seconds)]
        waiting = [
            candidate for candidate in look.candidates if not is_reached(candidate, reached, plan.log_delay_seconds)
        ]
        if not ready:
            return LookResult((), tuple(waiting), (), 0, reached)
        with connect_raw(plan.settings.cassandra, plan.options.consistency, ANSWER_SECONDS) as reader:
            found = SecondLook(plan, state, reader)
            pace = Pace(plan.options.rows_per_second / look.parallel)
            for candidate in ready:
                found.look_at(candidate)
                pace.wait(1)
        return LookResult(
            tuple(found.differences), (*waiting, *found.changed), tuple(found.unread), found.equal, reached
        )


def is_reached(candidate: Candidate, watermark_us: int, log_delay_seconds: float) -> bool:
    """Whether everything that SELECT showed at the last look is in the state: what was in memory then is in the log."""
    return watermark_us > needed_us(candidate, log_delay_seconds)


def needed_us(candidate: Candidate, log_delay_seconds: float) -> int:
    """The time (µs) that the watermark must have passed before the candidate is looked at again."""
    return candidate.seen_us + int((CLOCK_SECONDS + log_delay_seconds) * 1_000_000)


class SecondLook:
    """Looks at single units of a state that has caught up. clock: s since the epoch."""

    def __init__(
        self, plan: AuditPlan, state: StateReader, reader: PageReader, clock: Callable[[], float] = time.time
    ) -> None:
        self.differences: list[Difference] = []
        self.changed: list[Candidate] = []
        self.unread: list[Unread] = []
        self.equal = 0
        self._table: AuditedTable = plan.table()
        self._units = UnitReader(state, plan.catalog(), plan.table_id)
        self._reader = reader
        self._clock = clock

    def look_at(self, candidate: Candidate) -> None:
        stored = self._stored(candidate)
        try:
            selected = self._select(candidate)
        except PageUnreadableError as error:
            self._give_up(candidate, error.reason)
            return
        now = self._clock()
        state = self._table.state_side(stored.row, int(now), is_static=candidate.clustering is None)
        counted, changed = judge(candidate.columns, state, selected)
        if counted:
            columns = {
                name: DifferingColumn(cause_of(name, pair, stored.row, stored.deletion), pair)
                for name, pair in counted.items()
            }
            self.differences.append(Difference(candidate.partition_key, candidate.clustering, columns, stored.has_gap))
        if changed and candidate.looks >= _MOST_LOOKS:
            self._give_up(candidate, "it changes all the time")
        elif changed:
            self.changed.append(
                candidate._replace(seen_us=int(now * 1e6), columns=seen(changed), looks=candidate.looks + 1)
            )
        elif not counted:
            self.equal += 1

    def _stored(self, candidate: Candidate) -> StoredUnit:
        return self._units.read(candidate.partition_key, self._table.state_key(candidate.clustering))

    def _select(self, candidate: Candidate) -> Side:
        """Return what Cassandra has of the candidate. PageUnreadableError if it cannot be read."""
        clustering = candidate.clustering or ()
        values = [*partition_key_values(self._table.table, candidate.partition_key), *clustering]
        bound = [value for value in values if value is not None]
        if len(bound) < len(values):
            raise PageUnreadableError("failure")  # a null of a compact table, which no condition can name
        query = self._table.unit_query(is_static=candidate.clustering is None)
        page = self._reader.page(query, bound, 1)
        second, unit = int(self._clock()), self._table.unit_key(candidate.clustering)
        units = (found for row in page.rows for found in self._table.selected_units(row, second))
        return next((found.side for found in units if found.unit == unit), ABSENT)

    def _give_up(self, candidate: Candidate, reason: str) -> None:
        token = decorated_token(candidate.partition_key)
        self.unread.append(Unread(Span(token, token), reason, begun=True))
