"""Cassandra partitions whose state lacks something: a raw message that could not be read, or a gap in a node's log.

Each has marks in the state, one for each thing that is missing, until that has come after all (docs/decisions/0015). A
mark under the empty key is of everything: nobody knows which partition the message was for. Pure.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from cdc_messages.raw import place_id
from cdc_program.errors import CdcError, Code
from materializer.rows.format_version import FORMAT_VERSION, check_version
from materializer.rows.keys import INCOMPLETE, INCOMPLETE_END

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdc_messages.changes import RowChange
    from cdc_messages.raw import RawMessage
    from materializer.records import RawRecord, RowUpdate, UnreadableError
    from materializer.rows.overlay import Overlay

_VALUE = struct.Struct(">BBqq")
_ID_SIZE = 16
_LENGTH = struct.Struct(">I")
_DEAD, _GAP = 0, 1


class DeadLetter(NamedTuple):
    """A raw message that is put aside or, if `value` is None, one that needs to be no longer."""

    id: bytes
    key: bytes
    value: bytes | None
    offset: int
    timestamp_ms: int
    code: str = ""
    reason: str = ""


class Incomplete:
    """The marks of one raw partition's state; `letters` is what is to be sent to the dead-letter topic."""

    def __init__(self, overlay: Overlay, max_dead_letters: int) -> None:
        self.letters: list[DeadLetter] = []
        self._overlay = overlay
        self._max = max_dead_letters
        self._kinds: dict[tuple[bytes, bytes], int] = {}
        for name, value in overlay.scan(INCOMPLETE, INCOMPLETE_END):
            check_version(value)
            self._kinds[_split(name)] = _VALUE.unpack(value)[1]
        self._partitions = {key for key, _ in self._kinds}

    @property
    def count(self) -> int:
        """Of the things that are missing."""
        return len(self._kinds)

    def bury(self, record: RawRecord, problem: UnreadableError) -> None:
        """A message cannot be read: it becomes a dead letter, once for all its copies.

        CdcError(TOO_MANY_DEAD_LETTERS) if there are too many already.
        """
        mark = record.key, message_id(record.key, record.value)
        if mark in self._kinds:
            return
        if sum(kind == _DEAD for kind in self._kinds.values()) >= self._max:
            raise too_many(self._max, record, problem)
        self._put(mark, _DEAD, record)
        self.letters.append(DeadLetter(mark[1], *record, Code.DEAD_LETTERED.text, problem.reason))

    def gap(self, record: RawRecord, message: RawMessage) -> None:
        """A publisher reports a mutation that it could not decode, or (without a file) that a mark is void."""
        if not message.file:
            self._remove((record.key, message.update), record.offset, record.timestamp_ms)
        else:
            place = place_id(message.host_id, message.segment, message.position)
            if (record.key, place) not in self._kinds:
                self._put((record.key, place), _GAP, record)

    def settle(self, updates: Iterable[RowUpdate]) -> None:
        """What was missing is gone where it is folded now."""
        if not self._kinds:
            return
        anybody = any(not key for key, _ in self._kinds)
        for update in updates:
            key = update.partition_key
            if key in self._partitions or anybody:
                _, host, segment, position, _ = update.order
                for mark in ((key, message_id(key, update.raw)), (key, place_id(host, segment, position))):
                    self._remove(mark, -1, update.arrival_ms)
                self._remove((b"", place_id(host, segment, position)), -1, update.arrival_ms)

    def forget(self) -> None:
        """Nothing is missing: the table is gone and another has its name."""
        for key, place in list(self._kinds):
            self._remove((key, place), -1, 0)
        self._partitions.clear()

    def told(self, changes: list[RowChange]) -> list[RowChange]:
        """The changes; those of a partition that lacked something at any time of this chunk say so."""
        if not self._partitions:
            return changes
        everything = b"" in self._partitions
        return [
            change._replace(source=change.source._replace(incomplete=True))
            if everything or change.partition_key in self._partitions
            else change
            for change in changes
        ]

    def _put(self, mark: tuple[bytes, bytes], kind: int, record: RawRecord) -> None:
        self._kinds[mark] = kind
        self._partitions.add(mark[0])
        self._overlay.put(_name(*mark), _VALUE.pack(FORMAT_VERSION, kind, record.offset, record.timestamp_ms))

    def _remove(self, mark: tuple[bytes, bytes], offset: int, timestamp_ms: int) -> None:
        kind = self._kinds.pop(mark, None)
        if kind is None:
            return
        self._overlay.put(_name(*mark), None)
        if kind == _DEAD:
            self.letters.append(DeadLetter(mark[1], mark[0], None, offset, timestamp_ms))


def message_id(key: bytes, value: bytes) -> bytes:
    """What names a dead letter: the same for each copy of a raw message."""
    return blake2b(_LENGTH.pack(len(key)) + key + value, digest_size=_ID_SIZE).digest()


def too_many(limit: int, record: RawRecord, problem: UnreadableError) -> CdcError:
    """CdcError(TOO_MANY_DEAD_LETTERS)."""
    return CdcError(
        Code.TOO_MANY_DEAD_LETTERS,
        f"The raw message at offset {record.offset} can't be read: {problem.reason}; {limit} of its raw partition are "
        "dead letters already, which is materializer.max_dead_letters.",
        "See who else writes to the raw topic. A publisher's messages are readable by a materializer of its version: "
        "after an upgrade `cassandra-materializer dead-letters replay` sends them again.",
    )


def _name(key: bytes, mark: bytes) -> bytes:
    return INCOMPLETE + _LENGTH.pack(len(key)) + key + mark


def _split(name: bytes) -> tuple[bytes, bytes]:
    start = 1 + _LENGTH.size
    end = start + _LENGTH.unpack_from(name, 1)[0]
    return name[start:end], name[end:]
