"""A worker transforms the messages of its shares (stream_runtime.worker.share_loop)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_runtime.worker.loop import LoopTask
from stream_runtime.worker.share_loop import ShareLoop
from transformer.faults import STREAM_FAULTS
from transformer.job.open_streams import OpenStreams
from transformer.records import TransformPlan

if TYPE_CHECKING:
    from collections.abc import Hashable

    from transformer.records import Definitions


class TransformTask(LoopTask[TransformPlan]):
    """Transforms in a worker."""

    def loop_key(self, plan: TransformPlan) -> Hashable:
        return "transformer", plan.definitions.settings.group_id

    def make_loop(self, plan: TransformPlan) -> ShareLoop[TransformPlan]:
        return open_loop(plan.definitions)


def open_loop(definitions: Definitions) -> ShareLoop[TransformPlan]:
    """The loop of a worker, without open shares."""
    return ShareLoop(STREAM_FAULTS.words, OpenStreams(definitions), definitions.settings.trigger_interval_ms)
