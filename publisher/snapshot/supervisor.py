"""The publisher's part in snapshots: it starts and pauses the worker, asks for due snapshots, and clears marks."""

from __future__ import annotations

import multiprocessing
from contextlib import suppress
from time import time
from typing import TYPE_CHECKING, Protocol

import structlog

from cdc_common.errors.codes import CdcError
from publisher.log.space import WARN_PERCENTS
from publisher.snapshot.state.records import Record, new_record
from publisher.snapshot.state.shown import Shown, shown
from publisher.snapshot.steps.worker import (
    CANCEL,
    GO_ON,
    PAUSE,
    run_worker,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.context import SpawnProcess
    from uuid import UUID

    from publisher.settings import Settings
    from publisher.snapshot.state.cluster import SnapshotGroup
    from publisher.snapshot.state.records import Records
    from publisher.tables.published_table import PublishedTable

RETRY_SECONDS = 10.0
BEGIN_SECONDS = 5.0
STOP_SECONDS = 5.0
TURN_SECONDS = 300.0  # until the next host begins what is due: the ones before are away, or have no mark of their own

log = structlog.get_logger(__name__)


class Worker(Protocol):
    """A worker process; `order`: worker.GO_ON, PAUSE, CANCEL or why it is to hold."""

    name: str

    def is_alive(self) -> bool: ...

    def order(self, order: str) -> None: ...

    def answer(self, published: tuple[tuple[int, int], float]) -> None:
        """Answer the worker's question about what is published, if it has asked."""
        ...

    def stop(self) -> None: ...


class Supervisor:
    """One worker runs at a time. Times are of the monotonic clock, in seconds."""

    def __init__(
        self, settings: Settings, records: Records, group: SnapshotGroup, read_hosts: Callable[[], Sequence[UUID]]
    ) -> None:
        """`read_hosts`: the hosts that a snapshot expects now."""
        self._settings = settings
        self._records = records
        self._group = group
        self._read_hosts = read_hosts
        self._next_begin = 0.0
        self._problem = ""
        self._worker: Worker | None = None
        self._tried_at: dict[str, float] = {}
        self._due_since: dict[bytes, float] = {}
        self.newest: tuple[Record, ...] = ()
        self._paused: set[str] = set()
        self._of_marks: tuple[Record, ...] = ()
        records.make_folder()

    @property
    def current(self) -> str:
        """The name of the table whose snapshot the worker sends; empty without one."""
        return "" if self._worker is None else self._worker.name

    def serve(self, now: float, cdc_raw_percent: float, published: tuple[tuple[int, int], float]) -> None:
        """Do what is due; called once a second. `published`: see node.Published.

        Problems of the snapshots' files are logged: the commit log is published without them.
        """
        try:
            self._serve(now, cdc_raw_percent, published)
        except CdcError as error:
            self._note(error)

    def _serve(self, now: float, cdc_raw_percent: float, published: tuple[tuple[int, int], float]) -> None:
        self.newest = tuple(self._records.all())
        self._of_marks = tuple(self._records.all_of_marks())
        self._paused = {record.name for record in self.newest if self._records.is_paused(record)}
        if self._worker is not None and not self._worker.is_alive():
            self._worker.stop()
            self._worker = None
        if self._worker is None:
            self._start_next(now)
        if self._worker is not None:
            self._worker.order(self._order_for(self._worker.name, cdc_raw_percent))
            self._worker.answer(published)

    def begin_due(self, tables: Sequence[PublishedTable], now: float) -> None:
        """Take part in what other hosts have begun, and ask for what publisher.snapshot wants."""
        if now < self._next_begin:
            return
        self._next_begin = now + BEGIN_SECONDS
        try:
            self._group.exchange(tables)
            self._request_due(tables, now)
        except CdcError as error:
            self._note(error)

    def _note(self, error: CdcError) -> None:
        if error.problem != self._problem:
            self._problem = error.problem
            log.error("snapshots wait", code=error.code.text, problem=error.problem, fix=error.fix)

    def _request_due(self, tables: Sequence[PublishedTable], now: float) -> None:
        mode = self._settings.publisher.snapshot
        due = {table.id: table for table in tables if mode != "never" and self._is_due(table, mode)}
        self._due_since = {table_id: self._due_since.get(table_id, now) for table_id in due}
        hosts = self._read_hosts() if due else ()
        if len(hosts) > 1 and not self._group.is_possible:
            return
        turn_seconds = TURN_SECONDS * self._group.turn_of(hosts) if len(hosts) > 1 else 0.0
        for table_id, table in due.items():
            is_its_turn = now - self._due_since[table_id] >= turn_seconds
            if is_its_turn and self._records.begin(new_record(table.table, hosts=tuple(hosts))):
                log.info("a snapshot is due", table=table.table.qualified_name, mode=mode)

    def ended(self) -> list[Record]:
        """Snapshots of whole tables that have ended on all hosts, but whose tables may still have a mark."""
        return [record for record in self._of_marks if record.may_clear_mark and self._group.has_ended(record)]

    def mark_cleared(self, record: Record) -> None:
        """The table's mark is gone."""
        try:
            self._records.mark_cleared(record)
        except CdcError as error:
            self._note(error)

    def shown(self) -> tuple[Shown, ...]:
        """Return what the status shows of each snapshot."""
        return tuple(shown(record, time(), is_paused=record.name in self._paused) for record in self.newest)

    def stop(self) -> None:
        """End the worker; the snapshot continues when the publisher starts again."""
        if self._worker is not None:
            self._worker.stop()

    def _is_due(self, table: PublishedTable, mode: str) -> bool:
        known = self._records.read(table.table.qualified_name)
        if known is None or known.table_id != table.id.hex():
            return bool(table.needs_snapshot_since) or mode == "initial"
        whole = self._records.before(known.name) if known.portion.tokens else known
        asked_at = 0.0 if whole is None or whole.table_id != known.table_id else whole.requested_at * 1e6
        return known.is_final and asked_at < table.needs_snapshot_since

    def _start_next(self, now: float) -> None:
        for record in self.newest:
            is_rested = now - self._tried_at.get(record.name, -RETRY_SECONDS) >= RETRY_SECONDS
            if not record.is_final and is_rested and record.name not in self._paused:
                self._tried_at[record.name] = now
                self._worker = self._start(record.name)
                return

    def _start(self, name: str) -> Worker:
        return _Process(self._settings, name)

    def _order_for(self, name: str, cdc_raw_percent: float) -> str:
        wanted = self._records.wanted(name)
        if wanted != "run":
            return PAUSE if wanted == "pause" else CANCEL
        if cdc_raw_percent >= WARN_PERCENTS[0]:
            return f"cdc_raw is {cdc_raw_percent:.0f} % full: the log goes first"
        return GO_ON


class _Process:
    """A worker of its own interpreter, which shares nothing with the publisher."""

    def __init__(self, settings: Settings, name: str) -> None:
        context = multiprocessing.get_context("spawn")
        theirs, self._pipe = context.Pipe()
        self.name = name
        self._ordered = GO_ON
        self._process: SpawnProcess = context.Process(
            target=run_worker, args=(settings, name, theirs), name=f"snapshot of {name}", daemon=True
        )
        self._process.start()
        theirs.close()  # so that it ends with the publisher: see worker.Orders

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def order(self, order: str) -> None:
        if order != self._ordered:
            with suppress(OSError):  # it has just ended
                self._pipe.send(order)
            self._ordered = order

    def answer(self, published: tuple[tuple[int, int], float]) -> None:
        with suppress(OSError, EOFError):
            if self._pipe.poll():
                self._pipe.recv()
                self._pipe.send(published)

    def stop(self) -> None:
        self._process.terminate()
        self._process.join(STOP_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._pipe.close()
