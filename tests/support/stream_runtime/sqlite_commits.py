"""A store with transactions of its own that holds its positions: how a warehouse or a catalogue commits.

Messages and positions are rows of one database. Each source partition has an epoch there, which an instance raises when
it opens, in one transaction for all partitions of its share. A commit checks the epochs in its transaction. So a store
of this kind needs no transactional ids, and fences whatever sets of partitions there are.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stream_runtime.exactly_once.commits import StoredOffset

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from stream_runtime.records import Message, Share, SourcePartition

_TABLES = """
    CREATE TABLE IF NOT EXISTS positions (
        topic TEXT, number INTEGER, epoch INTEGER NOT NULL, position INTEGER, metadata TEXT, PRIMARY KEY (topic, number)
    );
    CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, topic TEXT, number INTEGER, key BLOB, value BLOB);
"""
_RAISE_EPOCH = """
    INSERT INTO positions (topic, number, epoch) VALUES (?, ?, 1)
    ON CONFLICT DO UPDATE SET epoch = epoch + 1 RETURNING epoch
"""
_EPOCH = "SELECT epoch FROM positions WHERE topic = ? AND number = ?"
_POSITION = "SELECT position, metadata FROM positions WHERE topic = ? AND number = ?"
_MOVE = "UPDATE positions SET position = ?, metadata = ? WHERE topic = ? AND number = ?"
_INSERT = "INSERT INTO messages (topic, number, key, value) VALUES (?, ?, ?, ?)"


class FencedError(Exception):
    """Another instance has opened a partition of the share."""


class SqliteCommits:
    """stream_runtime.exactly_once.commits.Commits."""

    def __init__(self, file: Path, share: Share) -> None:
        self._database = sqlite3.connect(file, isolation_level=None)
        self._database.executescript(_TABLES)
        self._share = share
        self._messages: list[Message] = []
        with self._transaction():
            self._epochs = {partition: self._ask(_RAISE_EPOCH, partition)[0] for partition in share.partitions}

    def read(self) -> Mapping[SourcePartition, StoredOffset | None]:
        found: dict[SourcePartition, StoredOffset | None] = {}
        with self._transaction():
            for partition in self._share.partitions:
                offset, metadata = self._ask(_POSITION, partition)
                found[partition] = None if offset is None else StoredOffset(offset, metadata)
        return found

    def send(self, message: Message) -> None:
        self._messages.append(message)

    def commit(self, offsets: Mapping[SourcePartition, StoredOffset]) -> None:
        with self._transaction():
            for partition, epoch in self._epochs.items():
                if self._ask(_EPOCH, partition)[0] != epoch:
                    raise FencedError(str(partition))
            self._database.executemany(_INSERT, [message[:4] for message in self._messages])
            self._database.executemany(_MOVE, [(*stored, *partition) for partition, stored in offsets.items()])
        self._messages = []

    def close(self) -> None:
        self._database.close()

    def _ask(self, statement: str, partition: SourcePartition) -> tuple[int, str]:
        (row,) = self._database.execute(statement, partition)
        return row  # type: ignore[no-any-return]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")


def committed_keys(file: Path) -> list[bytes]:
    """The keys of all committed messages, in their order."""
    with sqlite3.connect(file) as database:
        return [key for (key,) in database.execute("SELECT key FROM messages ORDER BY id")]
