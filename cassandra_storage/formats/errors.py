"""The one exception family of this package."""

from __future__ import annotations


class FormatError(Exception):
    """Bytes that are not what Cassandra's format says they should be.

    `position` is the offset in the buffer (or file) at which the reader noticed; `segment` is the name
    of the file where it is known: a commit log segment or a component of an SSTable. Nothing of the value that raised
    it may be used.
    """

    def __init__(self, reason: str, *, position: int | None = None, segment: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position
        self.segment = segment

    def __str__(self) -> str:
        where = ", ".join(
            text
            for text in (
                self.segment or "",
                f"position {self.position}" if self.position is not None else "",
            )
            if text
        )
        return f"{self.reason} ({where})" if where else self.reason


class UnsupportedError(FormatError):
    """Probably valid, but of an unsupported version, compression or encryption."""


class UnknownTableError(FormatError):
    """A mutation names a table id that the schema at hand does not have; `table_id` is its 16 bytes."""

    def __init__(self, table_id: bytes, *, position: int | None = None, segment: str | None = None) -> None:
        super().__init__(f"unknown table id {table_id.hex()}", position=position, segment=segment)
        self.table_id = table_id


class UnknownColumnError(FormatError):
    """An update's header names a column that its table does not have and never dropped."""


class AmbiguousError(FormatError):
    """Bytes that can be read in two ways, with different contents."""
