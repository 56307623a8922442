"""The type of a fuzz target, and the real mutations that many of them begin with."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.errors import FormatError
from tests.support.vectors.load import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra_storage.formats.schema.tables import TableMetadata

SEED_BYTES = 2000  # larger ones are slow and hold nothing else
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder in it has a name of its own


class Target(NamedTuple):
    """One target."""

    # Reads the bytes, and returns whether it could.
    run: Callable[[bytes], bool]
    # The inputs to begin with.
    seeds: list[bytes]


def is_read(read: Callable[[], object]) -> bool:
    try:
        read()
    except FormatError:
        return False
    return True


def folder(name: str) -> Path:
    """Return a folder for a target's files, for as long as the process lives. It is in memory where possible, because
    on a disk each input would wait: a file that is made shorter and closed is written at once (ext4's auto_da_alloc).
    """
    place = Path(_folder().name) / name
    place.mkdir(exist_ok=True)
    return place


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fuzz-", dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None)


@cache
def first_mutations() -> tuple[Mapping[bytes, TableMetadata], list[bytes]]:
    """One mutation for each table and shape, the shorter the sooner."""
    vectors = load("5.0")
    found = sorted({entry.mutation for segment in vectors.segments for entry in segment.entries()}, key=len)
    return vectors.tables, [mutation for mutation in found if len(mutation) < SEED_BYTES]
