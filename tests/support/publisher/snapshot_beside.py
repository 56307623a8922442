"""A node and a Kafka in memory, beside which a snapshot of real SSTables is taken."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from cassandra_storage.files.sstables import read_statistics
from cassandra_storage.formats.primitives.token_ranges import WHOLE_RING, TokenRange
from cdc_common.clients.cassandra import Node
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages import repairs, tables
from cdc_common.messages.raw import decode
from cdc_common.messages.snapshots import decode_step
from cdc_common.settings import NodeSettings
from publisher.settings import PublisherSettings, Settings
from publisher.snapshot.connections import node
from publisher.snapshot.connections.node import Published
from publisher.snapshot.rows import merged_table, sending
from publisher.snapshot.state.records import Record, Records, new_record
from publisher.snapshot.steps import run as run_module
from publisher.snapshot.steps.run import SnapshotRun
from publisher.snapshot.steps.worker import CancelledError, PausedError, StoppedError
from publisher.tables.published_table import PublishedTable
from publisher.topics.raw_topics import RawTopic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pytest

    from cdc_common.messages.repairs import RepairStep
    from cdc_native.formats.batches import Batch
    from publisher.inflight import PendingMessages
    from publisher.mutations.messages import OutgoingMessage
    from tests.support.vectors.indexed_sstables import IndexedVectors

HOST = UUID(int=0xA)
TRUNCATED_AT = 1_700_000_000_000
NAME = "ks.indexed"
NO_BOUNDS: dict[str, Any] = dict.fromkeys(
    (
        "snapshot_max_mib_per_second",
        "snapshot_max_lag_seconds",
        "snapshot_max_lag_mib",
        "snapshot_min_free_percent",
        "snapshot_part_gib",
    ),
    0,
)
FLUSH = ["clear", "truncated_at", "flush"]


class Beside:
    """A node and a Kafka. `events` are in order. The worker stops before the event with the number `stop_at`.
    `row_states` has each state that the worker writes into its host's row, with the number of events before it.
    """

    def __init__(self, vectors: IndexedVectors, folder: Path) -> None:
        self.vectors = vectors
        self.data = folder / "data"
        shutil.copytree(vectors.data, self.data)
        self.table = PublishedTable(
            vectors.table, vectors.table.id.bytes, tables.digest(tables.canonical(vectors.table))
        )
        self.events: list[str] = []
        self.rows: list[tuple[bytes, bytes]] = []
        self.stop_at: int | None = None
        self.stop_with: type[Exception] = StoppedError
        self.published_after = 0  # so many questions
        self.is_published = True
        self.ranges: list[TokenRange] = list(WHOLE_RING)
        self.only_primary = False
        self.replicas = 3
        self.epochs: set[int] = set()
        self.files: set[str] = set()
        self.steps: list[RepairStep] = []
        self.row_states: list[tuple[str, int]] = []
        self.refusal: CdcError | None = None
        self.settings = NO_BOUNDS
        self.while_held: Callable[[], None] | None = None
        self.client = self
        self.node = Node(HOST, "cluster", "dc1", "5.0.8")
        self.schema = cast("Any", self)
        self.raw_topics = cast("Any", self)
        self.sender = cast("Any", self)
        self.orders = cast("Any", self)
        bounds = [read_statistics(file).stats.commit_log_upper_bound for file in vectors.files()]
        self.flushed_to = max(bounds)

    def note(self, event: str) -> None:
        if self.stop_at is not None and len(self.events) >= self.stop_at:
            self.stop_at = None
            raise self.stop_with
        self.events.append(event)

    # the node

    def rows_of(self, query: str) -> list[dict[str, Any]]:
        if "compaction" in query:
            return [{"compaction": {"class": "any"}}]
        if "system.local" in query:
            return [{"host_id": HOST, "data_center": "dc1", "broadcast_address": "10.0.0.1"}]
        return []

    def write(self, query: str, values: Sequence[object]) -> None:
        if self.refusal is not None:
            raise self.refusal
        names = query.partition("(")[2].partition(")")[0].split(", ")
        self.row_states.append((str(dict(zip(names, values, strict=True))["state"]), len(self.events)))

    def take_snapshot(self, _keyspace: str, _table: str, tag: str) -> None:
        self.note("flush")
        for file in self.vectors.files():
            folder = self.data / file.folder.relative_to(self.vectors.data)
            if (folder / "snapshots" / tag).exists():
                continue
            shutil.copytree(file.folder, folder / "snapshots" / tag, ignore=shutil.ignore_patterns("snapshots"))

    def clear_snapshot(self, _keyspace: str, tag: str) -> None:
        self.note("clear")
        for folder in self.data.glob(f"*/*/snapshots/{tag}"):
            shutil.rmtree(folder)

    def owned_ranges(self, _keyspace: str, address: str, *, only_primary: bool) -> list[TokenRange]:
        assert address == "10.0.0.1"
        self.only_primary = only_primary
        return self.ranges

    def replica_counts(self, _keyspace: str, address: str) -> list[tuple[TokenRange, int]]:
        assert address == "10.0.0.1"
        return [(token_range, self.replicas) for token_range in self.ranges]

    # the link

    @property
    def known_tables(self) -> dict[bytes, PublishedTable]:
        return {self.table.id: self.table}

    def find_table(self, _table_id: str) -> PublishedTable:
        if not self.is_published:
            raise CdcError(Code.TABLE_NOT_PUBLISHED, "It is dropped.", "None.")
        return self.table

    def truncated_at(self, _table: PublishedTable) -> int:
        self.note("truncated_at")
        return TRUNCATED_AT

    def open(self, table: PublishedTable) -> RawTopic:
        return RawTopic(table, "raw", 3, 7)

    def poll(self, _seconds: float) -> None:
        return

    def serve(self) -> None:
        return

    def wait(self) -> None:
        return

    def pause(self) -> None:
        return

    def published(self) -> Published:
        self.note("asked")
        asked = self.events.count("asked")
        return Published(self.flushed_to if asked > self.published_after else (0, 0), 1.0)

    def send_to_all(self, outgoing: OutgoingMessage) -> None:
        step = decode_step(outgoing.message.update)
        assert HOST.bytes in step.hosts
        self.note(step.state)

    def send_and_wait(self, table: PublishedTable, messages: Sequence[OutgoingMessage]) -> None:
        assert table is self.table
        for message in messages:
            step = repairs.decode_step(message.message.update)
            assert message.message.kind == ("reset" if step.state == "running" else "reset_end")
            self.note(f"{step.state} {message.partition_key.hex()}")
            self.steps.append(step)

    def send(self, _raw_topic: RawTopic, unit: list[OutgoingMessage], _pending: PendingMessages) -> int:
        self.note("unit")
        self.epochs |= {outgoing.message.truncation_epoch for outgoing in unit}
        self.files |= {outgoing.message.file for outgoing in unit}
        self.rows += [(outgoing.partition_key, outgoing.message.update) for outgoing in unit]
        return 1

    def send_batch(self, _topics: tuple[str, ...], batch: Batch, _pending: PendingMessages) -> None:
        for index in range(len(batch)):
            self.note("unit")  # all of these tables' units have one message
            _, key, value = batch.message(index)
            message = decode(value)
            self.epochs.add(message.truncation_epoch)
            self.files.add(message.file)
            self.rows.append((key, message.update))


class Link:
    """Works as `Beside` does, with the names of the real link where they collide."""

    def __init__(self, beside: Beside) -> None:
        self._beside = beside
        self.client = type(
            "Client", (), {"rows": staticmethod(lambda query, *_: beside.rows_of(query)), "write": beside.write}
        )
        self.schema = type("Schema", (), {"find_known": staticmethod(beside.known_tables.get)})

    def __getattr__(self, name: str) -> object:
        return getattr(self._beside, name)


def make_beside(vectors: IndexedVectors, folder: Path, patch: pytest.MonkeyPatch) -> Beside:
    """Return a Beside with small batches, each of which is recorded, and without pauses."""
    patch.setattr(run_module, "RECORD_SECONDS", 0.0)
    patch.setattr(sending, "BATCH_UNITS", 9)
    patch.setattr(merged_table, "BATCH_BYTES", 3000)
    patch.setattr(node, "newest_segment", lambda _settings: 1 << 62)
    return Beside(vectors, folder)


def make_records(beside: Beside, folder: Path) -> Records:
    """Return records with a snapshot of the whole table."""
    made = Records(folder)
    made.make_folder()
    made.write(new_record(beside.table.table))
    return made


def take(beside: Beside, records: Records) -> Record:
    """One worker; the record it leaves."""
    settings = Settings(
        publisher=PublisherSettings(snapshot_data_directories=[beside.data], **beside.settings),
        node=NodeSettings(cdc_raw_directory=beside.data),
    )
    record = records.read(NAME)
    assert record is not None
    run = SnapshotRun(settings, cast("Any", Link(beside)), cast("Any", beside), records, record)
    try:
        run.run()
    except PausedError:
        run.pause()
    except StoppedError:
        pass
    except CancelledError:
        run.give_up("it was cancelled")
    found = records.read(NAME)
    assert found is not None
    return found
