"""States in memory that are redistributed over another number of raw partitions, as `state reshard` does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from materializer.commands.reshard.redistribute import plan_redistribution, read_facts, redistribute
from tests.support.materializer.memory_state import MemoryState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from materializer.commands.reshard.redistribute import Times


def redistribute_states(states: Sequence[MemoryState], partitions: int, times: Times) -> list[MemoryState]:
    plan = plan_redistribution([read_facts(state) for state in states], partitions, times)
    after = [MemoryState() for _ in range(partitions)]
    for state in after:
        state.apply(plan.initial)
    for state, numbers in zip(states, plan.schema_numbers, strict=True):
        for number, key, value in redistribute(state, numbers, partitions):
            after[number].apply({key: value})
    return after
