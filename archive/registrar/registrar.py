"""Commits the files of new file events to their tables. A table that fails waits, and the others go on."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

import structlog
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError

from archive.faults import table_failed
from archive.registrar.lake_table import LakeTable, LedgerOffsets
from archive.registrar.start import Start, read_start, store_start
from archive.table_names import versioned
from archive.writer.schema_plans import columns_folder, newest_columns
from cdc_common.errors.codes import CdcError
from stream_runtime.errors import trace_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyiceberg.catalog import Catalog

    from archive.events.ledger import LedgerEvent
    from archive.settings import ArchiveSettings
    from archive.stores.store import Store

_logger = structlog.get_logger(__name__)


class TableKey(NamedTuple):
    """A table of a topic: each schema version has one."""

    # The table's name without the schema version.
    table: str
    # The schema version.
    version: int
    # The time that a file covers: `hour` or `day`.
    bucket: str

    @property
    def name(self) -> str:
        return versioned(self.table, self.version)


class _Waiting(NamedTuple):
    """Files of an event that a table does not have yet."""

    partition: int
    offset: int
    paths: list[str]


class Registrar:
    """The committer of all tables. One process has one."""

    def __init__(self, catalog: Catalog, store: Store, topic_id: str) -> None:
        """topic_id: of the topic of the file events. Exceptions of the catalog."""
        self.errors: dict[str, CdcError] = {}
        """The tables that could not be committed the last time, by name."""
        self.counts: Counter[str] = Counter()
        """Committed files by table."""
        self.next: dict[int, int] = {}
        """The offset after the last event that was taken, by partition."""
        self._catalog = catalog
        self._store = store
        self._topic_id = topic_id
        self._waiting: dict[TableKey, list[_Waiting]] = defaultdict(list)
        self._tables: dict[str, dict[int, int]] = {}
        self._stored: Start | None = None
        self._begin()

    def take(self, events: Iterable[LedgerEvent]) -> None:
        """Take new events, in the order of their offsets."""
        for partition, offset, event in events:
            self.next[partition] = offset + 1
            if event.layout != "iceberg":
                continue
            paths: dict[int, list[str]] = defaultdict(list)
            for file in event.files:
                paths[file.planned.version].append(file.planned.path)
            for version, found in paths.items():
                self._waiting[TableKey(event.table, version, event.bucket)].append(_Waiting(partition, offset, found))

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
        start = read_start(self._store, self._catalog.name, self._topic_id)
        for name, offsets in start.tables.items():
            if not self._has(name, offsets):
                _logger.warning("all file events are read again", table=name)
                return
        self.next, self._tables, self._stored = dict(start.offsets), dict(start.tables), start

    def _has(self, name: str, offsets: Mapping[int, int]) -> bool:
        """Whether a table is there, and has a position."""
        try:
            known = self._lake_table(name, "hour").offsets(self._catalog.load_table(name), self._topic_id)
        except (NoSuchTableError, CdcError):
            return False
        return all(known.has(partition, offset - 1) for partition, offset in offsets.items())

    def _store_start(self) -> None:
        """Store what all tables have, if that is more than before."""
        offsets = dict(self.next)
        for waiting in self._waiting.values():
            for one in waiting:
                offsets[one.partition] = min(one.offset, offsets[one.partition])
        start = Start(self._topic_id, offsets, dict(self._tables))
        if start != self._stored:
            store_start(self._store, self._catalog.name, start)
            self._stored = start

    def _lake_table(self, name: str, bucket: str) -> LakeTable:
        namespace, _, table = name.rpartition(".")
        return LakeTable(self._catalog, name, self._store.uri(f"{namespace}/{table}"), bucket)

    def _commit_table(self, key: TableKey) -> None:
        lake_table = self._lake_table(key.name, key.bucket)
        table = lake_table.load()
        known = lake_table.offsets(table, self._topic_id)
        new = [one for one in self._waiting[key] if not known.has(one.partition, one.offset)]
        if not new:
            self._tables[key.name] = known.offsets
            return
        offsets = LedgerOffsets(self._topic_id, _after(known.offsets, new))
        _, columns = newest_columns(self._store, columns_folder(key.table), key.version)
        paths = [self._store.uri(path) for one in new for path in one.paths]
        lake_table.commit(table, columns, paths, offsets)
        self._tables[key.name] = offsets.offsets
        self.counts[key.name] += len(paths)
        _logger.info("files registered", table=key.name, files=len(paths), events=len(new))

    def _fail(self, key: TableKey, error: CdcError) -> None:
        if key.name not in self.errors:
            _logger.warning("table not registered", table=key.name, code=error.code.text, problem=error.problem)
        self.errors[key.name] = error


def _after(known: Mapping[int, int], new: Iterable[_Waiting]) -> dict[int, int]:
    """The position after these events."""
    found = dict(known)
    for one in new:
        found[one.partition] = max(one.offset + 1, found.get(one.partition, 0))
    return found


def open_catalog(settings: ArchiveSettings, store: Store) -> Catalog:
    """The catalog of the settings. PyIceberg adds its own settings for the catalog's name."""
    properties = {"type": settings.catalog_type, "uri": settings.catalog_uri, **store.catalog_properties()}
    return load_catalog(settings.catalog_name, **properties)
