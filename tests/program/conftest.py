"""What the tests of the programs' common parts share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _logging_as_before(logging_as_before: None) -> None:
    """For every test here."""
