"""The audit: it compares slice after slice of the ring, and looks again at what differs (decision 0036)."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.token_ranges import Span
from cdc_common.messages.topics import partition_for
from materializer.commands.audit.first_look import compare_spans, scan_state
from materializer.commands.audit.plan import SlicePlan
from materializer.commands.audit.second_look import LookPlan, LookResult, look_again, needed_us
from materializer.commands.audit.select import Unread
from materializer.commands.audit.spans import divide, slices
from materializer.records import RawPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from materializer.commands.audit.first_look import Candidate, SpanResult
    from materializer.commands.audit.plan import AuditPlan
    from materializer.commands.audit.progress import Progress, ProgressFile
    from materializer.commands.audit.report import Report
    from stream_runtime.query.spark_tasks import SparkTasks

_SPANS_PER_TASK = 8
_LOOK_SECONDS = 5.0  # between two looks at how far the states are
_SAY_SECONDS = 30.0  # between two lines about what it waits for


class Audit:
    """Progress is stored after each slice."""

    def __init__(self, plan: AuditPlan, tasks: SparkTasks, file: ProgressFile, report: Report) -> None:
        self._plan = plan
        self._tasks = tasks
        self._file = file
        self._report = report
        self._reached_us = 0  # up to which the logs are folded in the raw partitions that wait

    def run(self, progress: Progress) -> None:
        """Go on from `progress`, to the end."""
        ring = slices(progress.slices)
        for number, span in enumerate(ring):
            if number in progress.done:
                continue
            if len(progress.waiting) + progress.differences >= self._plan.options.most_candidates:
                self._add_unread(progress, [Unread(Span(span.first, ring[-1].last), "too many rows differ")])
                break
            self._compare(span, progress)
            progress.done.append(number)
            self._look_again(progress)
            self._file.write(progress)
            self._say(progress)
        self._settle(progress)

    def _compare(self, span: Span, progress: Progress) -> None:
        """The first look at a slice."""
        parallel = self._plan.options.parallel or self._tasks.parallelism
        plan = SlicePlan(self._plan, divide(span, parallel * _SPANS_PER_TASK), parallel)
        found: list[SpanResult] = self._tasks.shuffle(
            partial(scan_state, plan),
            self._plan.all_raw_partitions(),
            partial(compare_spans, plan),
            parallel,
        )
        for result in found:
            progress.rows += result.rows
            progress.units += result.units
            progress.waiting += result.candidates
            self._add_unread(progress, result.unread)

    def _settle(self, progress: Progress) -> None:
        """Wait for the states, and look again, until nothing is left."""
        seconds = self._plan.options.wait_seconds + self._plan.log_delay_seconds
        deadline = time.monotonic() + seconds
        say_at = time.monotonic()
        while progress.waiting:
            before = len(progress.waiting)
            self._look_again(progress)
            self._file.write(progress)
            if not progress.waiting:
                return
            if time.monotonic() > deadline:
                self._give_up(progress)
                return
            if len(progress.waiting) != before:
                self._say(progress)
            if time.monotonic() >= say_at:
                self._report.say(self._waits_for(progress.waiting, deadline - time.monotonic()))
                say_at = time.monotonic() + _SAY_SECONDS
            time.sleep(_LOOK_SECONDS)

    def _waits_for(self, waiting: Sequence[Candidate], seconds: float) -> str:
        """Return the line that says what the second look waits for, and for how long at most."""
        needed = max(needed_us(candidate, self._plan.log_delay_seconds) for candidate in waiting)
        idle = self._plan.settings.materializer.idle_commit_seconds
        return (
            f"The second look of {len(waiting)} rows waits for the job to fold the nodes' logs up to {_clock(needed)}; "
            f"it has folded them up to {_clock(self._reached_us)}. In a quiet table the job commits this every "
            f"{idle:g} s (materializer.idle_commit_seconds). The audit waits for at most {seconds:.0f} s more."
        )

    def _give_up(self, progress: Progress) -> None:
        tokens = {decorated_token(candidate.partition_key) for candidate in progress.waiting}
        reason = "the state has not caught up: is a publisher or the job stopped?"
        self._add_unread(progress, [Unread(Span(token, token), reason, begun=True) for token in sorted(tokens)])
        progress.waiting = []

    def _look_again(self, progress: Progress) -> None:
        """The second look at those candidates that the states have caught up with."""
        if not progress.waiting:
            return
        waiting = self._by_raw_partition(progress.waiting)
        looks = [LookPlan(raw_partition, own, len(waiting)) for raw_partition, own in waiting]
        found: list[LookResult] = list(self._tasks.run(partial(look_again, self._plan), looks))
        progress.waiting = [candidate for result in found for candidate in result.waiting]
        self._reached_us = min((result.watermark_us for result in found if result.waiting), default=0)
        for result in found:
            progress.settled += result.equal
            progress.differences += len(result.differences)
            self._add_unread(progress, result.unread)
            for difference in result.differences:
                if difference.partition_key not in progress.differing:
                    progress.differing.append(difference.partition_key)
                self._report.difference(difference)

    def _by_raw_partition(self, candidates: Sequence[Candidate]) -> list[tuple[RawPartition, list[Candidate]]]:
        def raw_partition(candidate: Candidate) -> RawPartition:
            number = partition_for(candidate.partition_key, self._plan.raw_partitions)
            return RawPartition(self._plan.topic, number)

        return [(key, list(own)) for key, own in groupby(sorted(candidates, key=raw_partition), key=raw_partition)]

    def _add_unread(self, progress: Progress, unread: Sequence[Unread]) -> None:
        progress.unread += unread
        self._report.unread(unread)

    def _say(self, progress: Progress) -> None:
        self._report.say(
            f"{len(progress.done)} of {progress.slices} slices compared: {progress.rows} rows, {progress.differences} "
            f"differ, {len(progress.waiting)} wait for a second look, {len(progress.unread)} token ranges not audited"
        )


def _clock(microseconds: int) -> str:
    """The time of day, or that none is known."""
    return datetime.fromtimestamp(microseconds / 1e6, UTC).strftime("%H:%M:%S UTC") if microseconds else "no time yet"
