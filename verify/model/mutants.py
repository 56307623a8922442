"""The materializer with a defect seeded into it, in a real Spark job; CDC_MUTANT names it.

The defects are the fold's (tests/support/materializer/mutants.py), as far as they show in what comes out, and the loss
of a message, which the fold cannot have by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from materializer.job.open_partitions import table_work
from tests.support.materializer.mutants import MUTANTS, seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from local_stack.servers.programs import Program
    from materializer.exactly_once.partition_task import Work
    from materializer.fold.result import ChunkResult
    from materializer.job.plan import BatchPlan
    from materializer.records import RawRecord
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


@dataclass(frozen=True, slots=True)
class MutantWork:
    """What BatchTask takes for `make_work`; it is pickled to the workers, each of which serves this job alone."""

    name: str

    def __call__(self, plan: BatchPlan, topic: str) -> Work:
        if self.name == SKIP:
            return _skipping(table_work(plan, topic))
        _seed(self.name)
        return table_work(plan, topic)


class _Patch:
    """Of pytest.MonkeyPatch as much as `seed` takes, never undone."""

    setattr = staticmethod(setattr)


@cache
def _seed(name: str) -> None:
    """Once in a process."""
    [mutant] = [mutant for mutant in MUTANTS if mutant.name == name]
    seed(mutant, _Patch())  # type: ignore[arg-type]  # it has what is used


def _skipping(work: Work) -> Work:
    def fold(reader: StateReader, records: Sequence[RawRecord]) -> ChunkResult:
        return work.fold(reader, [each for at, each in enumerate(records, 1) if at % 20])

    return work._replace(fold=fold)
