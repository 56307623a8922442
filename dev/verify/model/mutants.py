"""Programs with a defect seeded into them: the materializer in a real Spark job, or the publisher. CDC_MUTANT names it.

The defects are the fold's (tests/support/materializer/mutants.py), as far as they show in what comes out; those of what
only this workload has; and the loss of a message, which the fold cannot have by itself.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING

from cassandra_storage.formats.json_forms.tables import described_table
from cassandra_storage.formats.rows.readings import Readings
from materializer.fold.part import Part
from materializer.fold.partition import PartitionFold
from materializer.fold.partition_schema_change import PartitionSchemaChange
from materializer.job.planner import Planner
from materializer.planning import change_topics
from materializer.processing.raw_processor import RawProcessor
from materializer.rows.catalog import TableCatalog
from materializer.worker.batch_plan import BatchPlan
from publisher.snapshot.connections import nodetool
from publisher.topics.table_follower import TableFollower
from tests.support.materializer.mutants import MUTANTS, Mutant, seed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dev.local_stack.servers.programs import Program
    from dev.local_stack.servers.stack import Stack
    from materializer.fold.gaps import DeadLetter
    from materializer.fold.result import ChunkResult
    from materializer.records import RawPartition, RawRecord
    from stream_runtime.records import ChangeRun, Message, Rest
    from stream_runtime.state.reader import StateReader

VARIABLE = "CDC_MUTANT"
SKIP = "every twentieth message of a task is skipped"
REORDERING = "the reorder time is ignored"  # shows only with a reorder buffer
# The log of a node knows nothing of UNSET: to take it for null is to take what a write leaves out for null.
OWN = (
    Mutant("a truncation is ignored", Part._end_rows, 'cause == "truncate" or', 'cause == "drop" and'),
    Mutant("what a write leaves out is null", PartitionFold.merge_row, "else (stored.row, update)", "else (update,)"),
    Mutant(
        "a recreated table forgets rows that expire",
        PartitionSchemaChange._delete_row,
        "self._emit(stored",
        "stored.row_sequence if stored.row.liveness.ttl else self._emit(stored",
    ),
    Mutant(
        "DROP USING TIMESTAMP is ignored",
        described_table,
        'return replace(table, altered_at=int(description.get("altered_at_us", 0)))',
        'at = int(description.get("altered_at_us", 0))\n'
        "    dropped = table.dropped_columns.items()\n"
        "    known = {n: one if one.dropped_time <= at else replace(one, dropped_time=0) for n, one in dropped}\n"
        "    return replace(table, altered_at=at, dropped_columns=known)",
    ),
)
# Shows only if the schema changes while the job is stopped.
IN_BACKLOGS = (
    Mutant(
        "a backlog is folded under the newest schema",
        TableCatalog.as_of,
        "return replace(self, newest={**self.newest, schema.table_id: schema.digest})",
        "return self",
    ),
    Mutant(
        "schemas between the first and the newest are skipped",
        change_topics.new_schemas,
        "if place in newest.values() or (place > last_known and (times[place] > 0 or not has_times))",
        "if place in newest.values()",
    ),
)
# 3.11 alone drops columns of a non-frozen user type, and remembers them as tuples.
IN_PUBLISHER = (
    Mutant(
        "the newer type of a dropped column is taken",
        Readings.concern,
        "return any(table_id in mutation for table_id in self._doubts)",
        "return False",
    ),
)
# Shows beside tables that cannot be published.
BESIDE_BAD_TABLES = (
    Mutant(
        "the publisher ends at a table's problem",
        TableFollower._wait,
        "self._problems.wait(table, problem)",
        "raise problem",
    ),
)
# Shows in a snapshot of rows that a node does not own any more (dev.verify.snapshot.stale_rows).
IN_SNAPSHOT = (
    Mutant(
        "a snapshot sends what the node does not own",
        nodetool._replicas,
        "if address not in endpoints:",
        "if not endpoints:",
    ),
)
SEEDS = {"the newer type of a dropped column is taken": 8}  # which writes to the column for long before it drops it
BACKLOGS = frozenset(mutant.name for mutant in IN_BACKLOGS)
SNAPSHOTS = frozenset(mutant.name for mutant in IN_SNAPSHOT)
BAD_TABLES = frozenset(mutant.name for mutant in BESIDE_BAD_TABLES)
PUBLISHERS = frozenset({*SNAPSHOTS, *BAD_TABLES, *(mutant.name for mutant in IN_PUBLISHER)})
NAMES = (
    SKIP,
    "every second intermediate change is dropped",
    "range tombstones are ignored",
    "statics are forgotten",
    "a range deletion skips a row",
    "a partition deletion keeps its statics",
    "reversed order is ignored",
    "expiry is not emitted",
    "a duplicate is an event",
    "the paths of a list are shown",
    "gc_grace is ignored",
    REORDERING,
    *(mutant.name for mutant in (*OWN, *IN_BACKLOGS, *IN_PUBLISHER, *BESIDE_BAD_TABLES, *IN_SNAPSHOT)),
)


def version_for(name: str) -> str:
    """The version of Cassandra on which the defect shows."""
    return "3.11" if name in PUBLISHERS - SNAPSHOTS - BAD_TABLES else "5.0"


def start_with(stack: Stack, name: str, reorder_seconds: float = 0.0) -> Program:
    """Start the program that has the defect; the one that is returned."""
    program, module = stack.materializer, "dev.verify.model.mutant_job"
    if name in PUBLISHERS:
        program, module = stack.publishers[0], "dev.verify.model.mutant_publisher"
    else:
        program.settings["materializer.reorder_seconds"] = reorder_seconds
    program.stop()
    program.arguments = ("-m", module, "run")
    program.environment |= {VARIABLE: name, "CDC_NATIVE": "0"}  # defects are in Python code, which the core replaces
    program.start()
    return program


@contextmanager
def running_with(stack: Stack, name: str, reorder_seconds: float) -> Iterator[Program]:
    """The program that has the defect; afterwards the one without it runs again."""
    program = stack.publishers[0] if name in PUBLISHERS else stack.materializer
    whole = program.arguments, dict(program.environment), dict(program.settings)
    try:
        yield start_with(stack, name, reorder_seconds)
    finally:
        program.stop()
        program.arguments, program.environment, program.settings = whole
        program.start()


class MutantPlanner(Planner):
    """Plans whose processors have the defect."""

    def plan_batch(self) -> BatchPlan:
        seed_once(os.environ[VARIABLE])
        plan = super().plan_batch()
        whole = {field.name: getattr(plan, field.name) for field in fields(plan)}
        return MutantPlan(**whole, mutant=os.environ[VARIABLE])


@dataclass(frozen=True, slots=True)
class MutantPlan(BatchPlan):
    """A plan with a defect. It is pickled to the workers, each of which serves this job alone."""

    # The name of the defect.
    mutant: str = ""

    def processor(self, raw_topic: str) -> RawProcessor:
        seed_once(self.mutant)
        processor = BatchPlan.processor(self, raw_topic)
        return SkippingProcessor(processor) if self.mutant == SKIP else processor


class SkippingProcessor(RawProcessor):
    """Loses every twentieth message of a task."""

    def __init__(self, whole: RawProcessor) -> None:
        self.shape = whole.shape
        self._whole = whole

    def fold(self, state: StateReader, records: Sequence[RawRecord]) -> ChunkResult:
        return self._whole.fold(state, [record for at, record in enumerate(records, 1) if at % 20])

    def change_messages(self, result: ChunkResult) -> Iterator[Message | ChangeRun]:
        return self._whole.change_messages(result)

    def dead_letter_messages(self, raw_partition: RawPartition, letters: Iterable[DeadLetter]) -> Iterator[Message]:
        return self._whole.dead_letter_messages(raw_partition, letters)

    def is_busy(self, result: ChunkResult) -> bool:
        return self._whole.is_busy(result)

    def rest(self, state: StateReader) -> Rest | None:
        return self._whole.rest(state)


class _Patch:
    """The part of pytest.MonkeyPatch that `seed` uses. It is never undone."""

    setattr = staticmethod(setattr)


@cache
def seed_once(name: str) -> None:
    """Once in a process."""
    for mutant in (*MUTANTS, *OWN, *IN_BACKLOGS, *IN_PUBLISHER, *BESIDE_BAD_TABLES, *IN_SNAPSHOT):
        if mutant.name == name:
            seed(mutant, _Patch())  # type: ignore[arg-type]  # it has what is used
