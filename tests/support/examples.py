"""How many examples Hypothesis tries: some in every run, ten times as many in `make exhaustive`."""

from __future__ import annotations

import os

IS_EXHAUSTIVE = bool(os.environ.get("CDC_EXHAUSTIVE"))
_EVERY_RUN = 25
_MORE = 10


def examples(every_run: int) -> int:
    """The number of examples of a test that tries `every_run` of them in every run."""
    return every_run * (_MORE if IS_EXHAUSTIVE else 1)


DEFAULT = examples(_EVERY_RUN)
"""Of tests that name no number."""
