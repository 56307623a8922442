"""The resources of a process that works on a source partition with a state."""

from __future__ import annotations

from typing import NamedTuple

from stream_runtime.exactly_once.commits import Commits
from stream_runtime.state.checkpointed_state import CheckpointedState


class Resources(NamedTuple):
    """`commits` is made first: it fences every other process that could commit."""

    # Commits results. It is made first: it fences every other process that could commit.
    commits: Commits
    # The local state and its stored versions.
    state: CheckpointedState

    def close(self) -> None:
        self.commits.close()
        self.state.close()
