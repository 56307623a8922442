"""Segments on disk: which there are, and the walk through one of them, whatever state it is in."""

from __future__ import annotations

import os
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.commitlog import (
    CorruptEntry,
    SegmentReader,
    index_file_name,
    parse_cdc_index,
    parse_file_name,
)
from cassandra_storage.errors import FormatError
from cdc_program.errors import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from cassandra_storage.commitlog import CdcIndex, CommitLogDescriptor, CommitLogEntry

_WINDOW = 256 * 1024


class SegmentFile(NamedTuple):
    """A segment's file. `is_newest` of its folder: as when Cassandra replays, only that one may end torn."""

    id: int
    path: Path
    is_newest: bool


class Ending(Enum):
    """How a segment ends."""

    ZEROES = "zero marker"
    FILE_END = "end of the file"
    TORN = "torn tail"
    CORRUPT = "corrupt"


class Problem(NamedTuple):
    """What of a segment cannot be read; `position` is an offset in the file."""

    file: Path
    position: int
    reason: str
