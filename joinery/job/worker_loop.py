"""A worker routes and joins the messages of its shares (stream_runtime.worker.share_loop)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joinery.faults import JOIN_FAULTS
from joinery.job.open_joins import OpenJoins
from joinery.records import JoineryPlan
from stream_runtime.worker.loop import LoopTask
from stream_runtime.worker.share_loop import ShareLoop

if TYPE_CHECKING:
    from collections.abc import Hashable

    from joinery.records import Definitions


class JoineryTask(LoopTask[JoineryPlan]):
    """Routes and joins in a worker."""

    def loop_key(self, plan: JoineryPlan) -> Hashable:
        return "joinery", plan.definitions.settings.group_id

    def make_loop(self, plan: JoineryPlan) -> ShareLoop[JoineryPlan]:
        return open_loop(plan.definitions)


def open_loop(definitions: Definitions) -> ShareLoop[JoineryPlan]:
    """The loop of a worker, without open shares."""
    return ShareLoop(JOIN_FAULTS.words, OpenJoins(definitions), definitions.settings.trigger_interval_ms)
