"""The numbers of requests, within what every database keeps: none reaches a database that cannot hold it."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from schematizer.errors import CatalogueError, Refusal

LARGEST_INT = 2**31 - 1
LARGEST_LONG = 2**63 - 1


def _known(number: int) -> int:
    """CatalogueError NOT_FOUND for an id that nothing can have."""
    if not 0 <= number <= LARGEST_INT:
        raise CatalogueError(Refusal.NOT_FOUND, f"Nothing has the id {_shown(number)}.", "List the ids that there are.")
    return number


def _shown(number: int) -> str:
    return str(number) if abs(number) <= LARGEST_LONG else "of more than 64 bits"


PathId = Annotated[int, AfterValidator(_known)]
"""An id in a path: one that nothing can have is not found."""
GivenId = Annotated[int, Field(ge=0, le=LARGEST_INT)]
"""An id in a query or a body."""
Cursor = Annotated[int, Field(ge=-LARGEST_LONG, le=LARGEST_LONG)]
Count = Annotated[int, Field(ge=0, le=LARGEST_INT)]
Seconds = Annotated[int, Field(ge=1, le=LARGEST_INT)]
