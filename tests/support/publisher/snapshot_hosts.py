"""Hosts whose publishers take snapshots together, by rows in memory; their workers do nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from cdc_common.node.snapshot_rows import SnapshotRows
from publisher.settings import PublisherSettings, Settings
from publisher.snapshot.state.cluster import SnapshotGroup, tell_hosts
from publisher.snapshot.state.records import Record, Records
from publisher.snapshot.supervisor import BEGIN_SECONDS, Supervisor
from publisher.tables.published_table import PublishedTable
from tests.support.materializer.table_writes import MIXED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cdc_common.errors.codes import CdcError
    from publisher.snapshot.state.cluster import PartState

ONE, TWO = UUID(int=1), UUID(int=2)
TABLE = PublishedTable(MIXED.table, MIXED.table.id.bytes, MIXED.digest)
NAME = TABLE.table.qualified_name
PUBLISHED = ((5, 6), 7.0)


class Rows:
    """The rows in Cassandra, of all hosts."""

    def __init__(self) -> None:
        self.rows: dict[tuple[UUID, UUID], dict[str, Any]] = {}
        self.refusal: CdcError | None = None

    def read(self, _query: str) -> list[dict[str, Any]]:
        if self.refusal is not None:
            raise self.refusal
        return list(self.rows.values())

    def write(self, query: str, values: Sequence[object]) -> None:
        if self.refusal is not None:
            raise self.refusal
        names = query.partition("(")[2].partition(")")[0].split(", ")
        row: dict[str, Any] = dict(zip(names, values, strict=True))
        self.rows[row["snapshot"], row["host_id"]] = row


class Worker:
    def __init__(self, name: str) -> None:
        self.name = name
        self.is_running = True
        self.orders: list[str] = []
        self.answers: list[object] = []

    def is_alive(self) -> bool:
        return self.is_running

    def order(self, order: str) -> None:
        self.orders.append(order)

    def answer(self, published: object) -> None:
        self.answers.append(published)

    def stop(self) -> None:
        self.is_running = False


class Host:
    """The supervisor of one host; `workers`: those that it has started."""

    def __init__(
        self, folder: Path, rows: Rows, host_id: UUID, mode: str = "never", hosts: Sequence[UUID] = ()
    ) -> None:
        own = PublisherSettings.model_validate({"state_directory": folder, "snapshot": mode})
        folder.mkdir(exist_ok=True)
        self.records = Records(folder)
        self.workers: list[Worker] = []
        self._rows = SnapshotRows(rows.read, rows.write, "cdc_filler")
        self._host_id = host_id
        self.group = SnapshotGroup(self._rows, self.records, host_id)
        self.supervisor = Supervisor(Settings(publisher=own), self.records, self.group, lambda: hosts or (host_id,))
        self.now = 100.0

    def begin_due(self, table: PublishedTable = TABLE) -> Record | None:
        self.now += BEGIN_SECONDS
        self.supervisor.begin_due([table], self.now)
        return self.records.read(NAME)

    def serve(self, percent: float = 0.0) -> None:
        self.now += 1.0
        self.supervisor.serve(self.now, percent, PUBLISHED)

    def tell(self, state: PartState) -> None:
        """Report the state as the worker does before it sends that state to the raw partitions."""
        record = self.records.read(NAME)
        assert record is not None
        tell_hosts(self._rows, record, self._host_id, state)

    def end(self, phase: PartState = "ended") -> None:
        """End as the worker does once the raw partitions have its end."""
        self.tell(phase)
        record = self.records.read(NAME)
        assert record is not None
        self.records.write(record.moved(phase=phase))


def worker_of(host: Host) -> Worker:
    worker = host.supervisor._worker
    assert isinstance(worker, Worker)
    return worker
