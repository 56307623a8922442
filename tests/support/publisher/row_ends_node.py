"""A node and its log, as the sender of the ends of tables uses them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cassandra_storage.formats.commitlog.segment import CommitLogPosition
from cassandra_storage.formats.primitives.vint import write_int
from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Row
from cassandra_storage.formats.versions import VERSION_40
from publisher.mutations.messages import Origin
from publisher.sending.row_end_sender import RowEndSender
from publisher.tables.node_schema import NodeSchema
from publisher.tables.row_ends import LogSegments
from publisher.tables.selection import ALL_TABLES, Selection
from publisher.topics.waiting import WaitingTables
from tests.support.materializer.raw_builder import TableWriter, int_bytes, partition_update
from tests.support.publisher.finish import finish
from tests.support.publisher.schema_rows import SchemaRows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cassandra_storage.formats.commitlog.segment import CommitLogEntry
    from publisher.inflight import PendingMessages
    from publisher.mutations.messages import OutgoingMessage
    from publisher.waits import Waits

OLDEST, NEWEST = 3, 7  # segments
AT = 1_700_000_000_000  # ms
HOST = b"h" * 16
DURABLE_SECONDS = 30.0
SETTLE_SECONDS = 20.0


class Entry(NamedTuple):
    mutation: bytes
    end_position: int


class Tail:
    """A segment that is read again; `entries` by their end positions."""

    messaging_version = VERSION_40

    def __init__(self, segment: int, entries: list[Entry]) -> None:
        self.file = type("File", (), {"id": segment, "path": type("Path", (), {"name": f"CommitLog-7-{segment}.log"})})
        self._entries = entries

    def entries(self) -> Iterator[CommitLogEntry]:
        return iter(cast("Any", self._entries))


class Node:
    """A node with the table ks.a, the publisher's view of it, and what is sent."""

    def __init__(self, folder: Path) -> None:
        self.rows = SchemaRows()
        self.file = folder / "schema.json"
        self.table_id = self.rows.create("ks", "a", cdc=True)
        self.host_id = HOST
        self.durable_seconds: float | None = DURABLE_SECONDS
        self.settle_seconds = SETTLE_SECONDS
        self.positions: Any = SimpleNamespace(published_up_to=CommitLogPosition(5, 0), clock=0)
        self.tails = self
        self.waiting = WaitingTables(folder / "waiting.json")
        self.log: dict[int, list[Entry]] = {}
        self.read: dict[int, int] = {}
        self.is_lost = False
        self.sent: list[OutgoingMessage] = []
        self.outstanding: list[PendingMessages] = []
        self.restart()

    def restart(self, selection: Selection = ALL_TABLES) -> None:
        self.schema = NodeSchema(
            self.file,
            self.rows.run_query,
            ("cdc_filler", "filler"),
            selection,
            segments=LogSegments(oldest=lambda: OLDEST, newest=lambda: NEWEST),
        )
        self.schema.load()
        self.schema.refresh()
        self.ends = RowEndSender(cast("Any", self), cast("Any", self), 0)

    # SegmentTails and MutationSender

    def has_lost(self, _segment: int) -> bool:
        return self.is_lost

    def read_again(self, after: CommitLogPosition) -> Iterator[tuple[Tail, int]]:
        for segment, entries in self.log.items():
            if segment >= after.segment_id:
                start = after.position if segment == after.segment_id else 0
                yield Tail(segment, [entry for entry in entries if entry.end_position > start]), self.read[segment]

    def is_ready(self, _table: object) -> Waits[bool]:
        yield 0.0
        return True

    def send(self, messages: list[OutgoingMessage], pending: PendingMessages) -> Waits[None]:
        yield 0.0
        self.sent += messages
        self.outstanding.append(pending)

    def acknowledge(self) -> None:
        for pending in self.outstanding:
            pending.outstanding = 0
        finish(self.ends.send_due())

    # the log

    def truncate(self, segment: int, position: int, at: int = AT) -> None:
        self.rows.truncate(self.table_id, segment, position, at)
        self.schema.refresh()

    def settle(self) -> None:
        """Read the records when it is known that no other truncation follows."""
        records = dict(self.rows.truncated)
        noticed_at = self.schema.row_ends.pending[self.table_id].noticed_at
        read_at = noticed_at + int(SETTLE_SECONDS * 1e6)
        assert not self.schema.row_ends.note_records(records, self.schema.published, read_at)
        finish(self.ends.send_due())

    def mutation(self, key: int) -> bytes:
        writer = TableWriter(self.schema.tables[self.table_id])
        return write_int(1) + partition_update(int_bytes(key), "row", Row((), {}, LivenessInfo(1)), writer)

    def kinds(self) -> list[tuple[str, int, int]]:
        return [(outgoing.message.kind, outgoing.message.segment, outgoing.message.position) for outgoing in self.sent]

    def read_message(self, segment: int, position: int) -> None:
        """Read one mutation of the table as the publisher's loop does."""
        origin = Origin(HOST, segment, f"CommitLog-7-{segment}.log", VERSION_40, position)
        table = self.schema.published[self.table_id]
        outgoing: Any = SimpleNamespace(table=table)
        finish(self.ends.send_before([outgoing], origin))
        self.ends.note_read(segment, position)
