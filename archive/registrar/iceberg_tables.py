"""The tables of an Iceberg catalog: each knows its position in the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError

from archive.registrar.lake_table import LakeTable, LedgerOffsets
from archive.registrar.tables import Committed, position_after
from cdc_common.errors.codes import CdcError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.catalog import Catalog

    from archive.registrar.tables import TableKey, Waiting
    from archive.settings import ArchiveSettings
    from archive.writer.columns import Columns
    from stream_runtime.stores.store import Store


class IcebergTables:
    """archive.registrar.tables.Tables."""

    def __init__(self, catalog: Catalog, store: Store, topic_id: str) -> None:
        self._catalog = catalog
        self._store = store
        self._topic_id = topic_id

    def has(self, name: str, offsets: Mapping[int, int]) -> bool:
        try:
            known = self._table(name, "hour").offsets(self._catalog.load_table(name), self._topic_id)
        except (NoSuchTableError, CdcError):
            return False
        return all(known.has(partition, offset - 1) for partition, offset in offsets.items())

    def commit(self, key: TableKey, columns: Columns, waiting: Sequence[Waiting]) -> Committed:
        lake_table = self._table(key.name, key.bucket)
        table = lake_table.load()
        known = lake_table.offsets(table, self._topic_id)
        new = [one for one in waiting if not known.has(one.partition, one.offset)]
        if not new:
            return Committed(known.offsets, 0)
        offsets = position_after(known.offsets, new)
        paths = [self._store.uri(path) for one in new for path in one.paths]
        lake_table.commit(table, columns, paths, LedgerOffsets(self._topic_id, offsets))
        return Committed(offsets, len(paths))

    def _table(self, name: str, bucket: str) -> LakeTable:
        namespace, _, table = name.rpartition(".")
        return LakeTable(self._catalog, name, self._store.uri(f"{namespace}/{table}"), bucket)


def open_catalog(settings: ArchiveSettings, store: Store) -> Catalog:
    """The catalog of the settings. PyIceberg adds its own settings for the catalog's name."""
    uri = {"uri": settings.catalog_uri} if settings.catalog_uri else {}
    return load_catalog(settings.catalog_name, type=settings.catalog_type, **uri, **store.catalog_properties())
