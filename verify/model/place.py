"""Where a problem is: the table and the partition that its line names."""

from __future__ import annotations

import re
from typing import NamedTuple

_LINE = re.compile(r"\w+\.(\w+) \(?(?:p=)?(-?\d+)\b")


class Place(NamedTuple):
    table: str
    partition: int


def place_of(problem: str) -> Place | None:
    """None for a problem of no single partition."""
    found = _LINE.match(problem)
    return Place(found[1], int(found[2])) if found else None
