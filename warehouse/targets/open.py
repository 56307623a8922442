"""Opens the warehouse that the settings name."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from warehouse.faults import WAREHOUSE_FAULTS, target_unknown
from warehouse.files import open_store
from warehouse.tables.forms import FORMS, MARKED
from warehouse.targets.loader import Loader

if TYPE_CHECKING:
    from stream_runtime.stores.store import Store
    from warehouse.settings import WarehouseSettings
    from warehouse.targets.connection import Connection

GROUP = "cassandra_warehouse.targets"
"""The entry points of packages. The name of one is the scheme of its URLs, and it is an OpenTarget."""
_DUCKDB = "duckdb://"
_OWN = ("duckdb", "postgresql", "redshift")


class OpenTarget(Protocol):
    """What an entry point gives."""

    def __call__(self, target: str, password: str, lock_seconds: float, /) -> Connection:
        """A connection to the warehouse of a URL. It connects when it is first used."""
        ...


def open_loader(settings: WarehouseSettings) -> Loader:
    """A loader of the warehouse. It connects when it is first used."""
    form = MARKED if settings.deletes == "mark" else FORMS[settings.form]
    return Loader(_connection(settings), settings.state_schema, form, settings.deleted_days)


def _connection(settings: WarehouseSettings) -> Connection:
    scheme = urlsplit(settings.target).scheme
    if scheme == "duckdb":
        from warehouse.targets.duckdb import DuckDbConnection  # noqa: PLC0415 - only one of both need be installed

        return DuckDbConnection(Path(settings.target.removeprefix(f"{_DUCKDB}/")), settings.lock_seconds)
    password = settings.password.get_secret_value()
    if scheme == "postgresql":
        from warehouse.targets.postgresql import PostgreSqlConnection  # noqa: PLC0415 - as above

        return PostgreSqlConnection(settings.target, password, settings.lock_seconds)
    if scheme == "redshift":
        from warehouse.targets.redshift import RedshiftConnection  # noqa: PLC0415 - as above

        return RedshiftConnection(settings.target, password, _objects_of(settings), settings.iam_role)
    points = {point.name: point for point in entry_points(group=GROUP)}
    if scheme not in points:
        raise target_unknown(scheme, sorted({*_OWN, *points}))
    opens: OpenTarget = points[scheme].load()
    return opens(settings.target, password, settings.lock_seconds)


def _objects_of(settings: WarehouseSettings) -> Store:
    """The store of the objects. CdcError."""
    if not settings.location:
        raise WAREHOUSE_FAULTS.setting_missing("location", "the warehouse copies objects from there")
    return open_store(settings.location)
