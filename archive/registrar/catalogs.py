"""Opens the catalogs of the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.faults import catalog_refused
from archive.registrar.iceberg_tables import IcebergTables, open_catalog
from stream_runtime.errors import trace_of

if TYPE_CHECKING:
    from archive.records import Layout
    from archive.registrar.tables import Tables
    from archive.settings import ArchiveSettings
    from stream_runtime.stores.store import Store


def open_tables(settings: ArchiveSettings, store: Store, topic_id: str) -> dict[Layout, Tables]:
    """The tables of each layout that has a catalog. Exceptions of a catalog."""
    tables: dict[Layout, Tables] = {}
    if settings.catalog_type != "none":
        tables["iceberg"] = IcebergTables(open_catalog(settings, store), store, topic_id)
    if settings.hive_catalog_type == "glue":
        from archive.registrar.glue_tables import GlueTables  # noqa: PLC0415 - others need no boto3

        tables["hive"] = GlueTables(store)
    return tables


def check_catalogs(settings: ArchiveSettings, store: Store) -> None:
    """Ask each catalog for a table. CdcError for one that does not answer, or refuses."""
    tables: dict[Layout, Tables] = {}
    for layout in ("iceberg", "hive"):
        try:
            tables = tables or open_tables(settings, store, "")
            if layout in tables:
                tables[layout].has(f"{settings.namespace}.none", {})
        except Exception as error:
            raise catalog_refused(layout, trace_of(error)) from error
