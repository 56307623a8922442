"""The job with a fold that fails for one table while a file exists.

CDC_FAILING_TABLE names the table, CDC_FAILING_FILE the file. CDC_MUTANT may name a defect of the job.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from cdc_common.program.cli import Program
from materializer.job import run as spark
from materializer.job.planner import Planner
from materializer.processing.raw_processor import RawProcessor
from materializer.settings import Settings
from materializer.worker.batch_plan import BatchPlan
from tests.support.materializer.job_mutants import STOP_ALL_ON_ONE, stop_all_on_one

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from materializer.fold.gaps import DeadLetter
    from materializer.fold.result import ChunkResult
    from materializer.records import RawPartition, RawRecord
    from stream_runtime.records import ChangeRun, Message, Rest
    from stream_runtime.state.reader import StateReader

TABLE, FILE, MUTANT = "CDC_FAILING_TABLE", "CDC_FAILING_FILE", "CDC_MUTANT"
SECRET = "the value of a row, which no log may hold"

main = Program("failing", Settings, tables=("kafka", "registry", "materializer", "log"), help="A fold that fails.")


class FailingPlanner(Planner):
    """Plans whose processors fail for the table."""

    def plan_batch(self) -> BatchPlan:
        plan = super().plan_batch()
        table, file = os.environ[TABLE], os.environ[FILE]
        return FailingPlan(**{field.name: getattr(plan, field.name) for field in fields(plan)}, table=table, file=file)


@dataclass(frozen=True, slots=True)
class FailingPlan(BatchPlan):
    """Pickled to the workers."""

    table: str = ""
    file: str = ""

    def processor(self, raw_topic: str) -> RawProcessor:
        whole = BatchPlan.processor(self, raw_topic)
        return FailingProcessor(whole, Path(self.file)) if raw_topic.endswith(f".{self.table}") else whole


class FailingProcessor(RawProcessor):
    """Works as the whole processor does, unless the file exists."""

    def __init__(self, whole: RawProcessor, file: Path) -> None:
        self.shape = whole.shape
        self._whole = whole
        self._file = file

    def fold(self, state: StateReader, records: Sequence[RawRecord]) -> ChunkResult:
        if self._file.exists():
            raise KeyError(SECRET)
        return self._whole.fold(state, records)

    def change_messages(self, result: ChunkResult) -> Iterator[Message | ChangeRun]:
        return self._whole.change_messages(result)

    def dead_letter_messages(self, raw_partition: RawPartition, letters: Iterable[DeadLetter]) -> Iterator[Message]:
        return self._whole.dead_letter_messages(raw_partition, letters)

    def is_busy(self, result: ChunkResult) -> bool:
        return self._whole.is_busy(result)

    def rest(self, state: StateReader) -> Rest | None:
        return self._whole.rest(state)


class _Patch:
    """The part of pytest.MonkeyPatch that a mutant uses. It is never undone."""

    setattr = staticmethod(setattr)


@main.program_command("run", is_service=True)
def run(settings: Settings) -> None:
    vars(spark)["Planner"] = FailingPlanner
    if os.environ.get(MUTANT) == STOP_ALL_ON_ONE:
        stop_all_on_one(_Patch())
    spark.run_job(settings)
