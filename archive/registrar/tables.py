"""The tables that a registrar keeps in a catalog: the interface of a kind of tables, and what they have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from archive.records import Bucket, Layout
from archive.table_names import versioned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from archive.writer.columns import Columns


class TableKey(NamedTuple):
    """A table of a topic: each schema version has one."""

    # The layout of its files.
    layout: Layout
    # The table's name without the schema version.
    table: str
    # The schema version.
    version: int
    # The time that a file covers: `hour` or `day`.
    bucket: Bucket

    @property
    def name(self) -> str:
        return versioned(self.table, self.version)


class Waiting(NamedTuple):
    """Files of an event that a table does not have yet."""

    # The partition of the topic of file events.
    partition: int
    # The offset of the event.
    offset: int
    # The paths of the files in the store.
    paths: list[str]


class Committed(NamedTuple):
    """The state of a table after a commit."""

    # The next offset that it does not have, by partition of the topic of file events.
    position: dict[int, int]
    # The number of files that were added.
    files: int


class Tables(Protocol):
    """The tables of one layout, in a catalog. Exceptions of the catalog, or CdcError(ARCHIVE_TABLE)."""

    def has(self, name: str, offsets: Mapping[int, int], /) -> bool:
        """Whether a table is there with all events before these offsets."""
        ...

    def commit(self, key: TableKey, columns: Columns, waiting: Sequence[Waiting], /) -> Committed:
        """Add the files that a table does not have yet."""
        ...


def position_after(known: Mapping[int, int], new: Sequence[Waiting]) -> dict[int, int]:
    """The position after these events."""
    found = dict(known)
    for one in new:
        found[one.partition] = max(one.offset + 1, found.get(one.partition, 0))
    return found
