"""The settings of `cassandra-joinery`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from cdc_common.settings import shared
from cdc_common.settings.base import Table


class JoinerySettings(Table):
    """The joins of `cassandra-joinery`. `file` defines them (docs/guides/joins.md)."""

    file: Annotated[Path, Field(description="Joins file (TOML), unless the command names one.")] = Path(
        "/etc/joins.toml"
    )


class Settings(shared.Settings):
    """The tables of cdc.toml that joins read."""

    joinery: JoinerySettings = JoinerySettings()
