"""Measures the cost of a raw partition that changes workers: `make bench NAME=moves`.

Two processes, each with a state directory of its own, take turns over a partition of `--rows` rows, by the real task
with its changelogs and snapshots; only Kafka is left out (the position is handed over by hand). Each turn updates rows
at random. What a turn reads to come up to date must be changelogs alone.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from materializer.errors import RAW_FAULTS
from materializer.fold.result import ChunkResult
from materializer.processing.raw_processor import RawProcessor
from materializer.records import RawPartition, RawRecord
from stream_runtime.exactly_once.chunks import ChunkSettings
from stream_runtime.exactly_once.partition_task import PartitionTask, TaskSettings
from stream_runtime.exactly_once.position import Position, decode
from stream_runtime.exactly_once.resources import Resources
from stream_runtime.records import TopicShape
from stream_runtime.state.checkpointed_state import CheckpointedState
from stream_runtime.state.checkpoints import CheckpointStore, RetentionSettings
from stream_runtime.state.object_store import ObjectStore
from stream_runtime.state.rocksdb import open_local_store
from stream_runtime.state.snapshots import StateSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection

    from stream_runtime.exactly_once.commits import StoredOffset
    from stream_runtime.records import Message
    from stream_runtime.state.download import Download
    from stream_runtime.state.reader import StateReader

PARTITION = RawPartition("bench", 0)
VALUE_BYTES = 200
CHUNK = 20_000  # rows of a transaction while the partition is filled
UPDATES = 1_000  # rows of a transaction in a turn
TRANSACTIONS = 20  # of a turn


class Turn(NamedTuple):
    """The work of a process."""

    # The position at which it begins; None for the first turn.
    position: Position | None
    # The number of transactions.
    transactions: int
    # The number of rows in each transaction.
    rows: int
    # Whether it fills the state with new rows; otherwise it updates rows at random.
    is_fill: bool
    # The number of transactions from one snapshot to the next.
    snapshot_every: int


class Cost(NamedTuple):
    """The cost of a turn."""

    # The position at its end.
    position: Position
    # The bytes that were read, by folder of the location.
    read: Counter[str]
    # The bytes that were written, by folder of the location.
    written: Counter[str]
    # The time to the first fold, in ms.
    restore_ms: float
    # The time of the whole turn, in s.
    seconds: float


class CountingStore(ObjectStore):
    """An ObjectStore that tells its folders apart."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.bytes_read, self.bytes_written = Counter[str](), Counter[str]()

    def read(self, path: str) -> bytes | None:
        data = super().read(path)
        self.bytes_read[_folder(path)] += len(data or b"")
        return data

    def download(self, files: Sequence[Download]) -> Iterator[Download]:
        for file in super().download(files):
            self.bytes_read[_folder(file.path)] += file.size
            yield file

    def write(self, path: str, data: bytes) -> None:
        super().write(path, data)
        self.bytes_written[_folder(path)] += len(data)

    def upload(self, path: str, source: Path) -> None:
        super().upload(path, source)
        self.bytes_written[_folder(path)] += source.stat().st_size


def _folder(path: str) -> str:
    return path.split("/")[-2]


class HandedOver:
    """Commits that are done at once."""

    def __init__(self, position: Position | None) -> None:
        self.position = position

    def read(self) -> dict[RawPartition, StoredOffset | None]:
        return {PARTITION: self.position and self.position.stored()}

    def send(self, message: Message) -> None: ...

    def commit(self, offsets: Mapping[RawPartition, StoredOffset]) -> None:
        stored = offsets[PARTITION]
        self.position = decode(stored.offset, stored.metadata, PARTITION, RAW_FAULTS)

    def close(self) -> None: ...


class Updates(RawProcessor):
    """Each message is a row's new value; nothing comes out. `first_fold`: when the first chunk was folded."""

    shape = TopicShape(1, "")

    def __init__(self) -> None:
        self.first_fold = 0.0

    def fold(self, _state: StateReader, records: Sequence[RawRecord]) -> ChunkResult:
        self.first_fold = self.first_fold or time.monotonic()
        return ChunkResult({b"p" + record.key: record.value for record in records}, [], 0)

    def change_messages(self, _result: ChunkResult) -> Iterator[Message]:
        return iter(())


def take_turn(turn: Turn, location: str, folder: Path, total: int) -> Cost:
    store = CountingStore(location)
    commits = HandedOver(turn.position)
    began = time.monotonic()
    updates = Updates()
    state = CheckpointedState(
        open_local_store(folder),
        CheckpointStore(store, "bench", PARTITION),
        StateSettings(turn.snapshot_every, RetentionSettings(100, 3600)),
    )
    settings = TaskSettings(ChunkSettings(1 << 40, turn.rows, 3600))
    task = PartitionTask(PARTITION, Resources(commits, state), settings)
    start = turn.position.offset if turn.position else 0
    for number in range(turn.transactions):  # each of them a micro-batch
        task.process(records(start + number * turn.rows, turn, total), updates)
    task.close()
    assert commits.position is not None
    restore_ms = 1000 * (updates.first_fold - began)
    return Cost(commits.position, store.bytes_read, store.bytes_written, restore_ms, time.monotonic() - began)


def records(start: int, turn: Turn, total: int) -> Iterator[RawRecord]:
    """Row after row to fill the partition, otherwise rows at random."""
    for offset in range(start, start + turn.rows):
        row = offset if turn.is_fill else random.randrange(total)  # noqa: S311 - a bench
        yield RawRecord(b"%010d" % row, os.urandom(VALUE_BYTES), offset, 0)


def serve(connection: Connection, location: str, folder: Path, total: int) -> None:
    while (turn := connection.recv()) is not None:
        connection.send(take_turn(turn, location, folder, total))


class Worker:
    """A process with a state directory of its own."""

    def __init__(self, location: str, folder: Path, total: int) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._connection, theirs = spawn.Pipe()
        self._process = spawn.Process(target=serve, args=(theirs, location, folder, total), daemon=True)
        self._process.start()

    def take_over(self, turn: Turn) -> Cost:
        self._connection.send(turn)
        cost: Cost = self._connection.recv()
        return cost

    def close(self) -> None:
        self._connection.send(None)
        self._process.join()


def measure(location: str, folder: Path, total: int, moves: int) -> bool:
    """Print the table; whether no move has read a snapshot."""
    workers = [Worker(location, folder / name, total) for name in ("a", "b")]
    try:
        filled = workers[0].take_over(
            Turn(None, max(1, total // CHUNK), min(CHUNK, total), True, max(1, total // CHUNK))
        )
        print_line(f"{total:,} rows of {VALUE_BYTES} B filled in {filled.seconds:.1f} s")
        fresh = workers[1].take_over(Turn(filled.position, 1, UPDATES, False, 1000))
        snapshot = fresh.read["files"] + fresh.read["snapshots"]
        print_line(f"a worker that has nothing: {mib(snapshot)} of snapshot read, ready in {fresh.restore_ms:.0f} ms\n")
        print_line(
            f"{'move':>4} {'to':>2} {'changelogs read':>16} {'snapshot read':>14} {'ready ms':>9} {'written':>12}"
        )
        position, snapshot_read = fresh.position, 0
        for number in range(moves):
            cost = workers[number % 2].take_over(Turn(position, TRANSACTIONS, UPDATES, False, 50))
            position, read = cost.position, cost.read["files"]
            snapshot_read += read
            print_line(
                f"{number + 1:>4} {'ab'[number % 2]:>2} {mib(cost.read['changelogs']):>16} {mib(read):>14} "
                f"{cost.restore_ms:>9.0f} {mib(sum(cost.written.values())):>12}"
            )
        last = workers[(moves + 1) % 2].take_over(Turn(position, 2, UPDATES, False, 1))
        sent = last.written["files"] / 2
        print_line(f"\na snapshot after {UPDATES:,} changed rows: {mib(sent)} of new files sent, of {mib(snapshot)}")
        verdict = "WRONG" if snapshot_read else "as it should be"
        print_line(f"bytes of snapshots read in {moves} moves: {snapshot_read} ({verdict})")
        return not snapshot_read
    finally:
        for worker in workers:
            worker.close()


def mib(size: float) -> str:
    return f"{size / 2**20:.2f} MiB"


def print_line(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser("dev.bench.state_moves", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the partition")
    parser.add_argument("--moves", type=int, default=10)
    parser.add_argument("--location", default="", help="a checkpoint location; a temporary folder if none is given")
    chosen = parser.parse_args(list(arguments) if arguments is not None else None)
    with tempfile.TemporaryDirectory(prefix="bench-moves-") as folder:
        location = chosen.location or f"{folder}/location"
        return 0 if measure(location, Path(folder), chosen.rows, chosen.moves) else 1


if __name__ == "__main__":
    sys.exit(main())
