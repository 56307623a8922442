"""Commits the files of new file events to their tables. A table that fails waits, and the others go on."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import structlog

from archive.faults import table_failed
from archive.registrar.start import Start, read_start, store_start
from archive.registrar.tables import TableKey, Waiting
from archive.table_names import table_of_form
from archive.writer.schema_plans import columns_folder, newest_columns
from cdc_common.errors.codes import CdcError
from stream_runtime.errors import trace_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from archive.events.ledger import LedgerEvent
    from archive.records import Layout
    from archive.registrar.tables import Tables
    from stream_runtime.stores.store import Store

_logger = structlog.get_logger(__name__)


class Registrar:
    """The committer of all tables. One process has one."""

    def __init__(self, name: str, tables: Mapping[Layout, Tables], store: Store, topic_id: str) -> None:
        """name: of the catalog. topic_id: of the topic of the file events. Exceptions of the catalog."""
        self.errors: dict[str, CdcError] = {}
        """The tables that could not be committed the last time, by name."""
        self.counts: Counter[str] = Counter()
        """Committed files by table."""
        self.next: dict[int, int] = {}
        """The offset after the last event that was taken, by partition."""
        self._name = name
        self._tables = tables
        self._store = store
        self._topic_id = topic_id
        self._waiting: dict[TableKey, list[Waiting]] = defaultdict(list)
        self._positions: dict[str, dict[int, int]] = {}
        self._stored: Start | None = None
        self._begin()

    def take(self, events: Iterable[LedgerEvent]) -> None:
        """Take new events, in the order of their offsets."""
        for partition, offset, event in events:
            self.next[partition] = offset + 1
            if event.layout not in self._tables:
                continue
            paths: dict[TableKey, list[str]] = defaultdict(list)
            for file in event.files:
                table = table_of_form(event.table, file.planned.form)
                key = TableKey(event.layout, table, file.planned.version, event.bucket)
                paths[key].append(file.planned.path)
            for key, found in paths.items():
                self._waiting[key].append(Waiting(partition, offset, found))

    def commit(self) -> None:
        """Commit what waits, table by table. An error concerns its table alone."""
        for key in sorted(self._waiting):
            try:
                self._commit_table(key)
            except CdcError as error:
                self._fail(key, error)
            except Exception as error:  # noqa: BLE001 - whatever a catalog raises must not stop the other tables
                self._fail(key, table_failed(key.name, type(error).__name__, trace_of(error)))
            else:
                del self._waiting[key]
                self.errors.pop(key.name, None)
        self._store_start()

    def _begin(self) -> None:
        """Continue where all tables have the events, unless one of the tables has lost its position."""
        start = read_start(self._store, self._name, self._topic_id)
        if not self._tables.keys() <= set(start.layouts):
            return
        for place, offsets in start.tables.items():
            layout, _, name = place.partition(":")
            tables = self._tables.get(layout)  # type: ignore[call-overload]  # any text
            if tables is not None and not tables.has(name, offsets):
                _logger.warning("all file events are read again", table=name)
                return
        self.next, self._positions, self._stored = dict(start.offsets), dict(start.tables), start

    def _store_start(self) -> None:
        """Store what all tables have, if that is more than before."""
        offsets = dict(self.next)
        for waiting in self._waiting.values():
            for one in waiting:
                offsets[one.partition] = min(one.offset, offsets[one.partition])
        start = Start(self._topic_id, sorted(self._tables), offsets, dict(self._positions))
        if start != self._stored:
            store_start(self._store, self._name, start)
            self._stored = start

    def _commit_table(self, key: TableKey) -> None:
        _, columns = newest_columns(self._store, columns_folder(key.table), key.version)
        waiting = self._waiting[key]
        position, files = self._tables[key.layout].commit(key, columns, waiting)
        self._positions[f"{key.layout}:{key.name}"] = position
        self.counts[key.name] += files
        if files:
            _logger.info("files registered", table=key.name, files=files, events=len(waiting))

    def _fail(self, key: TableKey, error: CdcError) -> None:
        if key.name not in self.errors:
            _logger.warning("table not registered", table=key.name, code=error.code.text, problem=error.problem)
        self.errors[key.name] = error
