"""A scratch state on disk, for one partition: the rows of the inputs as a join has them, and the target's rows."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.rocksdb import open_local_store
from stream_runtime.state.versions import next_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_OUTPUT, _AFTER_OUTPUT = b"x", b"y"  # no key of a join's state begins with it
_OFFSET = struct.Struct(">q")


class OutputRow(NamedTuple):
    """A joined row that the target has."""

    # The offset of its last message.
    offset: int
    # Its Avro bytes.
    row: bytes


class Scratch:
    """state: where a join reads and writes its rows."""

    def __init__(self, folder: Path) -> None:
        self.state = open_local_store(folder)

    def apply(self, writes: Mapping[bytes, bytes | None]) -> None:
        if writes:
            self.finish(writes, Head(next_version(self.state.version), 0, 0, 1))

    def finish(self, writes: Mapping[bytes, bytes | None], head: Head) -> None:
        """The last writes, with the head of the whole state."""
        self.state.apply(Changelog(head, self.state.version, 0, writes))

    def put_output(self, rows: Mapping[bytes, OutputRow | None]) -> None:
        """Put joined rows of the target by their keys; None deletes one."""
        self.apply(
            {
                _OUTPUT + key: None if found is None else _OFFSET.pack(found.offset) + found.row
                for key, found in rows.items()
            }
        )

    def take_output(self, keys: Sequence[bytes]) -> list[OutputRow | None]:
        """The joined rows of these keys, which are deleted here."""
        own = [_OUTPUT + key for key in keys]
        found = self.state.get_many(own)
        self.apply({key: None for key, value in zip(own, found, strict=True) if value is not None})
        return [None if value is None else _decoded(value) for value in found]

    def output(self) -> Iterator[tuple[bytes, OutputRow]]:
        """All joined rows of the target that were not taken, by their keys."""
        for key, value in self.state.scan(_OUTPUT, _AFTER_OUTPUT):
            yield key[len(_OUTPUT) :], _decoded(value)

    def close(self) -> None:
        self.state.close()


def _decoded(value: bytes) -> OutputRow:
    return OutputRow(_OFFSET.unpack_from(value)[0], value[_OFFSET.size :])
