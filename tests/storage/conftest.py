"""Hypothesis without a deadline: what else runs on the machine is no fault of the example."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("storage", deadline=None)
settings.load_profile("storage")
