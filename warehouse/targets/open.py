"""Opens the warehouse that the settings name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from warehouse.tables.forms import FORMS, MARKED
from warehouse.targets.loader import Loader

if TYPE_CHECKING:
    from warehouse.settings import WarehouseSettings
    from warehouse.tables.forms import Form
    from warehouse.targets.connection import Connection

_DUCKDB = "duckdb://"


def open_loader(settings: WarehouseSettings) -> Loader:
    """A loader of the warehouse. It connects when it is first used."""
    return Loader(_connection(settings), settings.state_schema, form_of(settings), settings.deleted_days)


def form_of(settings: WarehouseSettings) -> Form:
    """The form of the tables of a job."""
    return MARKED if settings.deletes == "mark" else FORMS[settings.form]


def _connection(settings: WarehouseSettings) -> Connection:
    if urlsplit(settings.target).scheme == "duckdb":
        from warehouse.targets.duckdb import DuckDbConnection  # noqa: PLC0415 - only one of both need be installed

        return DuckDbConnection(Path(settings.target.removeprefix(f"{_DUCKDB}/")), settings.lock_seconds)
    from warehouse.targets.postgresql import PostgreSqlConnection  # noqa: PLC0415 - as above

    return PostgreSqlConnection(settings.target, settings.password.get_secret_value(), settings.lock_seconds)
