"""The materializer with a defect seeded into it, in a real Spark job; CDC_MUTANT names it.

The defects are the fold's (tests/support/materializer/mutants.py), as far as they show in what comes out, and the loss
of a message, which the fold cannot have by itself.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from materializer.exactly_once.processor import Processor
from materializer.job.plan import BatchPlan
from materializer.job.planner import Planner
from tests.support.materializer.mutants import MUTANTS, seed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cdc_messages.changes import RowChange
    from local_stack.servers.programs import Program
    from materializer.fold.gaps import DeadLetter
    from materializer.fold.result import ChunkResult
    from materializer.records import Message, RawPartition, RawRecord
    from materializer.rows.overlay import StateReader

VARIABLE = "CDC_MUTANT"
SKIP = "every twentieth message of a task is skipped"
NAMES = (
    SKIP,
    "every second intermediate change is dropped",
    "range tombstones are ignored",
    "statics are forgotten",
    "a range deletion skips a row",
    "a partition deletion keeps its statics",
    "reversed order is ignored",
    "expiry is not emitted",
)


def start_with(job: Program, name: str) -> None:
    """Start the job, which is stopped, with the defect."""
    job.arguments = ("-m", "verify.model.mutant_job", "run")
    job.environment[VARIABLE] = name
    job.start()


class MutantPlanner(Planner):
    """Plans whose processors have the defect."""

    def plan_batch(self) -> BatchPlan:
        plan = super().plan_batch()
        return MutantPlan(plan.topics, plan.kafka, plan.materializer, plan.shapes, os.environ[VARIABLE])


@dataclass(frozen=True, slots=True)
class MutantPlan(BatchPlan):
    """It is pickled to the workers, each of which serves this job alone."""

    mutant: str = ""

    def processor(self, raw_topic: str) -> Processor:
        if self.mutant == SKIP:
            return SkippingProcessor(BatchPlan.processor(self, raw_topic))
        _seed(self.mutant)
        return BatchPlan.processor(self, raw_topic)


class SkippingProcessor(Processor):
    """Loses every twentieth message of a task."""

    def __init__(self, whole: Processor) -> None:
        self.shape = whole.shape
        self._whole = whole

    def fold(self, state: StateReader, records: Sequence[RawRecord]) -> ChunkResult:
        return self._whole.fold(state, [each for at, each in enumerate(records, 1) if at % 20])

    def change_messages(self, changes: Iterable[RowChange]) -> Iterator[Message]:
        return self._whole.change_messages(changes)

    def dead_letter_messages(self, raw_partition: RawPartition, letters: Iterable[DeadLetter]) -> Iterator[Message]:
        return self._whole.dead_letter_messages(raw_partition, letters)

    def next_timer_ms(self, state: StateReader) -> int | None:
        return self._whole.next_timer_ms(state)


class _Patch:
    """Of pytest.MonkeyPatch as much as `seed` takes, never undone."""

    setattr = staticmethod(setattr)


@cache
def _seed(name: str) -> None:
    """Once in a process."""
    [mutant] = [mutant for mutant in MUTANTS if mutant.name == name]
    seed(mutant, _Patch())  # type: ignore[arg-type]  # it has what is used
