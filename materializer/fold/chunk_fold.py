"""The fold of one chunk, table by table: what is the same for a whole chunk and for a part of a record's work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import TYPE_CHECKING
from uuid import UUID

from materializer.fold.clock import Clock
from materializer.fold.gaps import IncompletePartitions
from materializer.fold.native_fold import decode_plain, publishers_of
from materializer.fold.net_changes import as_row_change
from materializer.fold.publishers import PublisherWatermarks
from materializer.fold.repairs import Repairs, image_of_repair
from materializer.fold.result import ChunkResult
from materializer.fold.row_updates import decode_records
from materializer.fold.schema_change import shown_table_id
from materializer.fold.snapshots import Snapshots
from materializer.fold.table import ChunkContext, TableFold
from materializer.fold.table_runs import split_by_table
from materializer.fold.truncations import Truncations
from materializer.rows.budget import Budget
from materializer.rows.keys import RESEND
from materializer.rows.overlay import Overlay
from materializer.rows.published import read_published
from materializer.rows.topic_ids import must_resend, record_topic_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdc_native.fold.plan import Plan
    from materializer.fold.arrivals import AnyArrival
    from materializer.fold.clock import RunClock
    from materializer.fold.schema_in_force import SchemaInForce
    from materializer.fold.table_runs import TableRun
    from materializer.records import Arrival, Change, RawRecord
    from materializer.rows.catalog import TableCatalog
    from materializer.rows.settings import FoldSettings
    from stream_runtime.state.reader import StateReader


class ChunkFold(ABC):
    """Folds records of one raw partition into its state, once.

    A subclass decides in which order the updates of a table are folded (`_fold_updates`), and what it means that the
    budget ends: WholeChunk gives up the chunk, Part stores what it has done.
    """

    _may_be_native = True
    _is_alone = False

    def __init__(
        self,
        reader: StateReader,
        records: Sequence[RawRecord],
        catalog: TableCatalog,
        settings: FoldSettings,
        in_force: SchemaInForce | None = None,
    ) -> None:
        """in_force: None if the schema does not advance with the records."""
        self.budget = Budget(settings)
        self._records = records
        self._catalog = catalog
        self._in_force = in_force
        self._settings = settings
        self._overlay = Overlay(reader)
        self._clock = Clock(self._overlay, records, settings.reorder_ms)
        self._watermarks = PublisherWatermarks(self._overlay, self._clock, settings)
        self._incomplete = IncompletePartitions(self._overlay, settings.max_dead_letters)
        self._snapshots = Snapshots(self._overlay, settings.forgotten_publishers)
        self._repairs = Repairs(self._overlay)
        self._truncations = Truncations(self._overlay, settings.truncate_ms, settings.forgotten_publishers)
        self._images: list[Arrival] = []
        self._plan = self._native_plan()
        self._arrivals = self._decode(records)
        self._published = read_published(self._overlay)
        self._changes: list[Change] = []
        self._native_count = 0
        self._table: TableFold | None = None
        self._are_records_folded = False
        self._purge_waits_until: int | None = None

    def fold(self) -> ChunkResult:
        """Fold the chunk. BudgetSpentError, or CdcError as fold_chunk."""
        self._fold_tables()
        self._store_times()
        record_topic_ids(self._overlay, self._catalog.topic_ids)
        if not self._published and must_resend(self._overlay):  # it had no rows
            self._overlay.put(RESEND, None)
        return ChunkResult(
            writes=self._overlay.writes,
            changes=self._incomplete.mark_changes(self._finished_changes(), is_in_snapshot=self._snapshots.was_running),
            now_ms=self._clock.now_ms,
            publishers_ms=self._watermarks.clock_ms(),
            stalled_publishers=self._watermarks.stalled_publishers(),
            dead_letters=self._incomplete.dead_letters,
            left=0 if self._are_records_folded else len(self._records),
            native=self._native_count,
            running_snapshots=self._snapshots.running,
            lost_hosts={str(UUID(bytes=host)): since for host, since in sorted(self._truncations.lost.items())},
            published=self._published | read_published(self._overlay),
            null_values=Counter(),
        )

    @abstractmethod
    def _fold_updates(self, table: TableFold, run: TableRun, clock: RunClock) -> None:
        """Fold what leaves the reorder buffer, what expires and what the messages of one table write, in its time."""

    def _native_plan(self) -> Plan | None:
        """The native core's plan of the table that the state is of; None if the Python code must fold everything."""
        if not self._may_be_native or self._settings.reorder_ms:
            return None
        table_id = shown_table_id(self._overlay)
        if table_id is None and self._in_force is not None:
            if self._in_force.schema is None:
                return None  # the first message says which schema it is
            table_id = self._in_force.schema.table_id  # a later table of that name may have messages, too
        table_id = table_id or next(reversed(list(self._catalog.newest)), None)
        if table_id is None or (table_id, self._catalog.newest.get(table_id, b"")) not in self._catalog.schemas:
            return None
        return self._catalog.native_plan(table_id)

    def _decode(self, records: Sequence[RawRecord]) -> list[AnyArrival]:
        """Decode the records. AloneError and SchemaAdvanceError as decode_records."""
        times = self._clock.arrival_times_ms
        boundaries = None
        if self._plan is not None:
            boundaries = self._truncations.native_boundaries(self._plan.table_id, times[0])
        plain = decode_plain(self._plan, records, times, boundaries)
        arrivals = decode_records(
            records,
            times,
            self._incomplete,
            plain,
            self._truncations,
            check_schema=_in_any_case if self._in_force is None else self._in_force.check,
            is_alone=self._is_alone,
        )
        self._truncations.stop_waiting(arrivals, times[-1])
        self._images = [arrival for arrival in arrivals if image_of_repair(arrival)]
        return [arrival for arrival in arrivals if not image_of_repair(arrival)] if self._images else arrivals

    def _finished_changes(self) -> list[Change]:
        """The changes: where there is no encoder of their messages, as RowChanges."""
        if self._plan is None or self._plan.has_messages:
            return self._changes
        return [as_row_change(change) for change in self._changes]

    def _fold_tables(self) -> None:
        runs = split_by_table(shown_table_id(self._overlay), self._arrivals, self._catalog)
        clocks = self._clock.split(run.arrivals[0].arrival_ms for run in runs[1:])
        for run, clock in zip(runs, clocks, strict=False):
            if run.is_recreated:
                self._incomplete.resolve_all()
                self._snapshots.forget_all()
                self._truncations.forget_all()
                self._repairs.fail_all()
            self._snapshots.apply_steps(run.arrivals, self._incomplete.dead_letter)
            self._truncations.clear_lost(self._snapshots)
            table = self._open_table(run.table_id, self._catalog, clock)
            table.hold_images([image for image in self._images if image.table_id == run.table_id])
            self._fold_updates(table, run, clock)
            if run is runs[-1]:
                self._finish_records()
                self._repairs.clean_up(self._clock.now_ms, self._settings.purged_per_chunk)
                self._purge_waits_until = table.close(
                    self._watermarks, self._settings, may_purge=not self._snapshots.is_running
                )
            table.encode_rows()
        if not runs:  # no message of a table has ever been read
            self._finish_records()

    def _open_table(self, table_id: bytes, catalog: TableCatalog, clock: RunClock) -> TableFold:
        chunk = ChunkContext(self._overlay, clock, self.budget, self._changes, self._repairs)
        self._table = TableFold(chunk, catalog, table_id)
        return self._table

    def _finish_records(self) -> None:
        """All updates of the records are folded or buffered."""
        self._are_records_folded = True
        for arrival in publishers_of(self._arrivals):
            self._watermarks.observe_arrival(arrival)

    def _store_times(self) -> None:
        """Store the clock and the watermarks if something else is stored, or if they have advanced far enough."""
        if (
            self._overlay.has_writes
            or self._clock.has_advanced_by(self._settings.keep_time_ms)
            or self._watermarks.must_be_stored(self._purge_waits_until)
        ):
            self._clock.store()
            self._watermarks.store()
            self._snapshots.forget_old(self._clock.now_ms)


def _in_any_case(*_: object) -> bool:
    """Stands for SchemaInForce.check where the schema does not advance."""
    return True
